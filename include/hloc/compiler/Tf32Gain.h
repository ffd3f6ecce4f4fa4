#pragma once
// What a product of f32 would gain if it were one of tf32.

#include "hloc/fusion/FusionGraph.h"
#include "hloc/fusion/PlanContext.h"
#include "hloc/kernel/TargetInfo.h"

#include <optional>
#include <string>

namespace hloc {

/// Seconds by the cost model, each with the fastest tile.
struct Tf32Gain {
  llvm::SmallVector<const HloInstruction *, 1> dots; ///< of the kernel
  double seconds, asTf32;
  /// "`d` is multiplied as f32, in 280.50 us on h100 by the cost model; --f32-dots=tf32 makes it 40.20"; "`d` and `e`
  /// are multiplied ..."
  std::string toString(const TargetInfo &target) const;
};

/// Of a contraction of which `--f32-dots` decides (isPlainF32Product); nothing if it is none, or the target has no
/// tf32.
std::optional<Tf32Gain> tf32Gain(const FusionGraph &graph, const TargetInfo &target, PlanContext &plans);

} // namespace hloc
