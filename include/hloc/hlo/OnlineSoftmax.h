#pragma once
// The mark of a softmax that may be made in one pass (decisions/0021): on the convert that rounds its undivided
// weights, at any scale, and on the dot that adds their products up.

#include "hloc/hlo/HloInstruction.h"

namespace hloc {

/// Other readers of HLO pass it on.
inline constexpr llvm::StringLiteral onlineSoftmaxMark = "hloc_softmax=\"online\"";

inline Attribute onlineSoftmaxAttribute() {
  return {AttributeKey::FrontendAttributes, llvm::StringRef("{hloc_softmax=\"online\"}")};
}

inline bool isOnlineSoftmax(const HloInstruction &instr) {
  return (instr.opcode() == Opcode::Convert || instr.opcode() == Opcode::Dot) &&
         instr.string(AttributeKey::FrontendAttributes).contains(onlineSoftmaxMark);
}

} // namespace hloc
