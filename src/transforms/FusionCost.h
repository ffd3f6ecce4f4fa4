#pragma once
// What a kernel of some instructions costs, before it is a fusion: bytes, work, limits. A quick relative of
// `--estimate`, whose device model it uses with counts of its own.
//
// How often an instruction is computed follows from how it is read: elementwise readers hand on the points at which
// they are computed themselves, all others (broadcast, reduce, gather, ...) read at points of their own. Equal points
// count once.
//
//   exp(x) * broadcast(sum(y)), f32[64,64], one loop: exp 4096 times; sum 4096 times 64 steps, where heroes do not help

#include "PlanQuery.h"

#include "hloc/kernel/Estimate.h"

#include <functional>
#include <map>
#include <string>

namespace hloc {

struct KernelCost {
  double seconds = 0;
  double bytes = 0; ///< from and to memory, caches disregarded where they hold what is read again
  double work = 0;  ///< instructions of single lanes
  llvm::StringRef hero = "loop";
  std::string impossible; ///< why there is no such kernel; empty if there is
};

/// Limits of one kernel.
struct KernelLimits {
  size_t buffers = 96;    ///< operands and outputs
  size_t streams = 28;    ///< of these, those as large as what is computed
  size_t codeSize = 1500; ///< instructions, each as often as it is read at points of its own
};

class FusionCost {
public:
  FusionCost(const HloComputation &computation, const TargetInfo &target,
             std::function<bool(const HloInstruction &)> mayUpdate);
  /// `members`: operands before users. Layers of a model repeat: equal kernels are looked at once.
  const KernelCost &of(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots);

private:
  using Key = std::pair<uint64_t, uint64_t>;
  struct Access;
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
  uint32_t query = 0;
};

} // namespace hloc
