#pragma once
// The mark of a softmax that may be made in one pass (decisions/0021): on the convert that rounds its undivided
// weights, at any scale, and on the dot that adds their products up.

#include "hloc/hlo/FrontendMark.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

inline constexpr llvm::StringLiteral onlineSoftmaxMark = "hloc_softmax=\"online\"";

inline Attribute onlineSoftmaxAttribute() {
  return {AttributeKey::FrontendAttributes, llvm::StringRef("{hloc_softmax=\"online\"}")};
}

/// Of an f32 to what has 16 bits, or of a dot of f32; others are what they are without it.
inline bool isOnlineSoftmax(const HloInstruction &instr) {
  auto has = [](const Shape &shape, std::initializer_list<ElementType> types) {
    return shape.isArray() && llvm::is_contained(types, shape.elementType());
  };
  const bool mayBe = instr.opcode() == Opcode::Convert
                         ? has(instr.operand(0)->shape(), {ElementType::F32}) &&
                               has(instr.shape(), {ElementType::BF16, ElementType::F16})
                         : instr.opcode() == Opcode::Dot && has(instr.shape(), {ElementType::F32});
  return mayBe && hasFrontendMark(instr, onlineSoftmaxMark);
}

} // namespace hloc
