#pragma once
// tanh that nothing reads but sums with 1, as a gelu's: 1 + tanh(x) is 2 / (1 + e^-2x), a few instructions where tanh
// alone, right near 0 as well, takes twenty. Kernels may make it so, and the reference knows it (SEMANTICS.md).

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/Literal.h"

namespace hloc {

/// 1 everywhere, in one dimension or any.
inline bool isOneEverywhere(const HloInstruction *value) {
  auto handsOn = [](Opcode opcode) {
    return opcode == Opcode::Broadcast || opcode == Opcode::Reshape || opcode == Opcode::Convert ||
           opcode == Opcode::Bitcast || opcode == Opcode::Copy;
  };
  while (handsOn(value->opcode()))
    value = value->operand(0);
  return value->opcode() == Opcode::Constant && value->shape().isArray() && !value->literal().isElided() &&
         value->shape().numElements() == 1 && isFloat(value->shape().elementType()) &&
         value->literal().getDouble(0) == 1;
}

/// Of an instruction: is it tanh of f32, and each of its users 1 + tanh?
inline bool isTanhBesideOne(const HloInstruction &instr) {
  if (instr.opcode() != Opcode::Tanh || !instr.shape().isArray() || instr.shape().elementType() != ElementType::F32 ||
      instr.parent()->root() == &instr)
    return false;
  bool isRead = false;
  for (const HloInstruction *user : instr.parent()->instructions()) {
    if (!llvm::is_contained(user->operands(), &instr))
      continue;
    isRead = true;
    if (user->opcode() != Opcode::Add || !isOneEverywhere(user->operand(user->operand(0) == &instr ? 1 : 0)))
      return false;
  }
  return isRead;
}

} // namespace hloc
