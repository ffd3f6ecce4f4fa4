#pragma once
// All tiles that a contraction could have.

#include "hloc/fusion/FusionGraph.h"
#include "hloc/fusion/PlanContext.h"
#include "hloc/kernel/Estimate.h"

namespace hloc {

/// What there is of a contraction's tiles, each with the number of parts of its sums that is fastest.
struct TileCandidate {
  TileSizes tile;
  int64_t warpRows = 1, warpColumns = 1;
  int64_t parts = 1, blocks = 1;
  uint64_t sharedBytes = 0;
  unsigned registers = 0;
  KernelEstimate estimate;
  double seconds = 0; ///< with the kernel that adds up parts
};

/// The fastest first; none if the graph is no contraction. `asIf`: the algorithm that it is to have instead of its own.
std::vector<TileCandidate> tileCandidates(const FusionGraph &graph, const TargetInfo &target, PlanContext &plans,
                                          std::optional<DotAlgorithm> asIf = std::nullopt);

} // namespace hloc
