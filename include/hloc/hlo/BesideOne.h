#pragma once
// The mark of tanh that nothing reads but sums with 1, as a gelu's (decisions/0039): 1 + tanh(x) is 2 / (1 + e^-2x), a
// few instructions where tanh alone, right near 0 as well, takes twenty. What is read decides, before any pass changes
// it, so that kernels and reference say the same of it.

#include "hloc/hlo/FrontendMark.h"
#include "hloc/hlo/HloModule.h"

namespace hloc {

/// Marks all of a module's that are of f32.
void markTanhBesideOne(HloModule &module);

inline bool isTanhBesideOne(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Tanh && instr.shape().isArray() && instr.shape().elementType() == ElementType::F32 &&
         hasFrontendMark(instr, "hloc_tanh=\"beside_one\"");
}

} // namespace hloc
