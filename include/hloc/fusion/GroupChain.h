#pragma once
// The longest chain of one thread of a kernel that does not exist yet: loads that wait for others, and instructions
// that wait for what they read, as lint/StaticCounts.h counts them in the PTX of one that does.
//
// Code is a sequence of stretches: what is computed anyway, the body of each branch (an operand of a concatenate or a
// pad), each loop that is not unrolled. Within a stretch only what depends on each other adds up; stretches follow each
// other. The unrolling is that of OptimizeLoops and LLVM.
//
//   exp(gather(x, i)) + y                       one stretch: 2 loads (i, then x), some 20 instructions
//   pad(x) + pad(y), of more than a load each   3 stretches, 2 of them load
//   sum of 128 terms x[i] * y[i]                8 rounds of 16 terms: 8 loads

#include "hloc/fusion/PlanSummary.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace hloc {

struct GroupChain {
  double memoryRoundTrips = 0, instructions = 0;
  void operator+=(const GroupChain &other) {
    memoryRoundTrips += other.memoryRoundTrips;
    instructions += other.instructions;
  }
  void raiseTo(const GroupChain &other);
};

/// What the chain depends on, of a member of the group.
struct ChainMember {
  const HloInstruction *instr;
  double count = 1;         ///< points at which it is computed, of all threads
  unsigned places = 1;      ///< in the code where it is computed, each at points of its own
  double vector = 0;        ///< so many of its terms lie beside each other in an array, and are loaded together
  unsigned vectorReads = 0; ///< of so many arrays
  bool isUniform = false;   ///< all threads compute the same element, which is known when code is made
};

/// `members`: operands before users; `roots` are among them. `slotOf`: the number of a member, by which nothing is
/// found of what is outside.
GroupChain longestChain(llvm::ArrayRef<ChainMember> members, llvm::ArrayRef<const HloInstruction *> roots,
                        const PlanSummary &plan,
                        llvm::function_ref<std::optional<size_t>(const HloInstruction &)> slotOf);

/// The code of one term of a loop of one thread.
struct TermCode {
  double size = 0;  ///< operations, as OptimizeLoops counts them
  double loads = 0; ///< among them
  double cost = 0;  ///< instructions without the loads, as LLVM counts them
  bool isBranching = false;
  bool hasLateLoop = false; ///< one that only LLVM unrolls: those around it are left to LLVM, too
};

/// How a thread's loop over `trips` terms is unrolled.
struct UnrolledLoop {
  bool isGone = false; ///< straight code
  double rounds = 1;   ///< of the loop that is left
  bool isLate = false; ///< by LLVM alone
};
UnrolledLoop unrolled(double trips, const TermCode &term);

} // namespace hloc
