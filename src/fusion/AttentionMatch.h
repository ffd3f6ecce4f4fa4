#pragma once
// Finding what is rows, keys, terms and stages of attention (AttentionPlan.h).

#include "fusion/ContractionSides.h"
#include "hloc/fusion/AttentionPlan.h"

namespace hloc {

/// Larger tiles do not fit into registers.
inline constexpr int64_t mostTermsOfAttention = 256;
std::string tooLarge(const AttentionPlan &plan);

/// Of the dots of a plan, which outlives them.
struct AttentionSides {
  std::optional<ContractionSides> scores, beside, product;
  llvm::SmallVector<ContractionSides *, 3> all() {
    llvm::SmallVector<ContractionSides *, 3> found;
    for (std::optional<ContractionSides> *each : {&scores, &beside, &product})
      if (*each)
        found.push_back(&**each);
    return found;
  }
};

/// Everything but the tiles; or why the graph is no attention.
std::optional<Rejection> matchAttention(AttentionPlan &plan, AttentionSides &sides, const FusionGraph &graph,
                                        const TargetInfo &target, mlir::MLIRContext *context);

} // namespace hloc
