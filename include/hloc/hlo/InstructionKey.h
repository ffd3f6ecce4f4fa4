#pragma once
// InstructionKey: two instructions have equal keys if they compute the same from the same operands. The contents count,
// not where attributes and literals are kept; metadata, origin and statistics do not count. Literals whose text was
// elided (`{...}`) equal only themselves: nobody knows their values. Pseudo-random and other effects are the user's to
// look at (hasSideEffect).
//
// A key points at its instruction and is good as long as that does not change.

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>

namespace hloc {

class HloComputation;
class HloInstruction;

struct InstructionKey {
  HloInstruction *instr = nullptr;
  uint64_t hash() const;
  bool operator==(const InstructionKey &other) const;
};

/// A hash of what an instruction does with its operands, whatever these and the computations it calls are.
uint64_t hashOfWork(const HloInstruction &instr);
/// Whether two instructions do the same with their operands, whatever these are. `sameComputation`: of two that they
/// call.
bool doSameWork(const HloInstruction &a, const HloInstruction &b,
                llvm::function_ref<bool(const HloComputation *, const HloComputation *)> sameComputation);

} // namespace hloc
