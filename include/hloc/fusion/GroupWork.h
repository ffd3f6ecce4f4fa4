#pragma once
// What a group of instructions computes and reads if it becomes one kernel, counted without making one: how often each
// instruction is computed, and how many sectors of memory the reads of its operands are.
//
// How often follows from how an instruction is read: elementwise readers hand on the points at which they are computed
// themselves, all others (broadcast, reduce, gather, ...) read at points of their own. Equal points count once.
//
//   exp(x) * broadcast(sum(y)), f32[64,64], one loop: exp 4096 times; sum 4096 times 64 steps, where heroes do not help

#include "hloc/fusion/GroupChain.h"

#include <vector>

namespace hloc {

struct GroupWork {
  double work = 0;         ///< instructions of single lanes
  double memoryBytes = 0;  ///< of operands and outputs that go to memory at least once
  double sectors = 0;      ///< of 32 bytes, that all warps ask for
  int64_t largest = 1;     ///< elements of the largest output
  size_t buffers = 0;      ///< operands and outputs
  size_t streams = 0;      ///< of these, those as large as the largest output
  size_t codeSize = 0;     ///< instructions, each as often as it is read at points of its own
  bool isOneByOne = false; ///< threads of a loop compute no neighbours together
  GroupChain chain;        ///< of one thread, beside what the plan says
};

/// Counts groups of one computation.
class GroupCounter {
public:
  explicit GroupCounter(size_t numInstructions) : stamps(numInstructions, 0), slots(numInstructions, 0) {}

  /// `members`: operands before users, `roots` among them. `plan`: of the kernel, if a hero was asked for one.
  GroupWork count(llvm::ArrayRef<const HloInstruction *> members, llvm::ArrayRef<const HloInstruction *> roots,
                  const PlanSummary &plan);

private:
  std::vector<uint32_t> stamps, slots; ///< by id: place among the members of the query of that number
  uint32_t query = 0;
  friend class GroupQuery;
};

} // namespace hloc
