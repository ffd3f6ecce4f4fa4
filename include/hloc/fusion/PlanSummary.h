#pragma once
// What the cost of a fusion depends on, of its plan: what its kernels do for their own sake (PlanCounts.h), how large
// they are, and which instructions they compute once, by threads together. With what the instructions compute and read
// (GroupWork.h) that is all the device model has to know (hloc/kernel/Estimate.h).

#include "hloc/fusion/PlanCounts.h"
#include "hloc/kernel/Estimate.h"

namespace hloc {

struct GroupWork;

struct PlanSummary {
  unsigned launches = 1;  ///< kernels, copies and fills
  double resultBytes = 0; ///< of the fusion
  double extraBytes = 0;  ///< that copies, fills and scratch memory move
  uint64_t blocks = 1;    ///< of the largest kernel
  uint32_t threads = 128; ///< of its blocks
  uint32_t registers = 32, sharedBytes = 0;
  double perThread = 4;       ///< neighbours that a thread computes together, if it may
  unsigned passes = 1;        ///< how often operands are read
  bool inPlace = false;       ///< outputs are updated: only what changes moves
  bool besideColumns = false; ///< rows with columns beside them, which a second kernel may have to combine
  /// Instructions of which every element is computed once, by threads together.
  llvm::SmallVector<const HloInstruction *, 4> kept;
  PlanCounts counts;      ///< of all kernels
  Hero hero = Hero::Loop; ///< of the last kernel
};

/// Neighbours that a thread of a loop computes together, of an output of so many elements: as LoopPlan has them.
inline constexpr double mostElementsPerThread = 4;
double elementsPerThread(double elements, double threads);

PlanSummary summarize(const FusionGraph &graph, const FusionPlan &plan);

KernelCounts countsOf(const GroupWork &work, const PlanSummary &plan);
/// Of all launches of the plan.
double secondsOf(const GroupWork &work, const PlanSummary &plan, const DeviceModel &device);

} // namespace hloc
