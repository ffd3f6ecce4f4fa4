#pragma once
// What a kernel of some instructions costs, before it is a fusion: what its plan does for its own sake (PlanCounts.h),
// what its instructions compute and read (GroupWork.h), and what that takes on the target's device
// (hloc/kernel/Estimate.h), as `--estimate` has it; and what is too much for one kernel.

#include "hloc/fusion/GroupWork.h"
#include "hloc/fusion/PlanContext.h"
#include "hloc/kernel/Estimate.h"

#include <functional>
#include <map>
#include <string>

namespace hloc {

struct KernelCost {
  double seconds = 0;
  double bytes = 0; ///< from and to memory, what caches bring again not counted
  double work = 0;  ///< instructions of single lanes
  Hero hero = Hero::Loop;
  std::string impossible; ///< why there is no such kernel; empty if there is
};

/// Limits of one kernel. All are far above what is of use: more parameters than 96 are slow to set up for a launch,
/// each stream of a loop takes four addresses and vectors of a thread's 255 registers, and code of more than some
/// thousand instructions takes longer to assemble than it can save.
struct KernelLimits {
  size_t buffers = 96;    ///< operands and outputs
  size_t streams = 28;    ///< of these, those as large as what is computed
  size_t codeSize = 1500; ///< instructions, each as often as it is read at points of its own

  /// Why a kernel is too much; empty if it is not.
  std::string why(const GroupWork &work, size_t numRoots) const;
};

/// Of groups of one computation. The target outlives it.
class FusionCost {
public:
  FusionCost(const HloComputation &computation, const TargetInfo &target,
             std::function<bool(const HloInstruction &)> mayUpdate);
  /// `members`: operands before users. Layers of a model repeat: equal kernels are looked at once.
  const KernelCost &of(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots);

private:
  using Key = std::pair<uint64_t, uint64_t>;
  Key keyOf(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots);
  uint64_t hashOf(const HloInstruction &instr);
  KernelCost find(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots);
  const TargetInfo &target;
  const DeviceModel &device;
  KernelLimits limits;
  std::function<bool(const HloInstruction &)> mayUpdate;
  std::vector<uint32_t> stamps, slots; ///< by id: place among the members of the query of that number
  std::vector<uint64_t> hashes;        ///< by id: of what an instruction does; 0: not known yet
  std::map<Key, KernelCost> known;
  GroupCounter counter;
  PlanContext plans;
  uint32_t query = 0;
};

} // namespace hloc
