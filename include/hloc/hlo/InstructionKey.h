#pragma once
// InstructionKey: two instructions have equal keys if they compute the same from the same operands. The contents count,
// not where attributes and literals are kept; metadata, origin and statistics do not count. Literals whose text was
// elided (`{...}`) equal only themselves: nobody knows their values. Pseudo-random and other effects are the user's to
// look at (hasSideEffect).
//
// A key points at its instruction and is good as long as that does not change.

#include <cstdint>

namespace hloc {

class HloInstruction;

struct InstructionKey {
  HloInstruction *instr = nullptr;
  uint64_t hash() const;
  bool operator==(const InstructionKey &other) const;
};

} // namespace hloc
