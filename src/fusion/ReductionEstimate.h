#pragma once
// How long the kernels of a reduction take, from their plans alone: what candidates are chosen by.

#include "fusion/HeroMatch.h"

namespace hloc {

/// What a reduction does for each of its operands' elements.
struct ReductionWork {
  int64_t bits = 0;    ///< read and written, of all arrays as large as the operands
  int64_t streams = 0; ///< how many these are
  int64_t ops = 0;     ///< computed
};
ReductionWork workOf(const ReductionFrame &frame, const FusionGraph &graph);

/// Seconds of one launch. What a Combine kernel works on is in its plan.
double estimatedSeconds(const RowReductionPlan &plan, const LaunchGeometry &launch, const ReductionWork &work,
                        const TargetInfo &target);
double estimatedSeconds(const ColumnReductionPlan &plan, const LaunchGeometry &launch, const ReductionWork &work,
                        const TargetInfo &target);

/// Does a kernel that moves much leave more than half of the multiprocessors without a block? Estimates say too little
/// of that. Half of them read as fast as memory can: one of an H100's 72 bytes a ns, three times its share.
bool leavesIdle(const ReductionFrame &frame, const ReductionWork &work, int64_t blocks, const TargetInfo &target);

/// The share of the usual plan's time that another plan may take to be preferred: estimates are no better than that.
constexpr double worthAnotherPlan = 0.85;
/// The same of a plan without a second kernel, which is said to save little more than that: the traffic is the same.
constexpr double worthNoParts = 0.98;
/// Says so of a plan that is not taken.
Rejection planNotTaken(llvm::StringRef plan, double seconds, double taken);

} // namespace hloc
