#pragma once
// What the rules of the algebraic simplifier ask of values, and what they make.

#include "Rewriter.h"

namespace hloc {

inline bool is(const HloInstruction *value, Opcode opcode) { return value->opcode() == opcode; }

/// The constant all of whose elements are equal that `value` is, or is a broadcast of; null if it is none. Constants
/// whose elements are not in the text are none, nor are large ones, which are not worth the look.
const HloInstruction *splatOf(const HloInstruction *value);
/// Is every element of `value` the integer, truth value or float? Floats: +0 is not -0.
bool isSplat(const HloInstruction *value, double wanted);
bool isMinusZero(const HloInstruction *value);
/// All bits of an integer, or true.
bool isAllOnes(const HloInstruction *value);
/// Of an unsigned integer that is a power of two: which; -1 otherwise.
int powerOfTwo(const HloInstruction *value);
/// Is +0 in all parts, so that x - value is x?
bool isPlainZero(const HloInstruction *value);

inline ElementType typeOf(const HloInstruction *value) { return value->shape().elementType(); }
/// pred and integers: arithmetic on them is exact.
inline bool isDiscrete(const HloInstruction *value) {
  return value->shape().isArray() && (isInteger(typeOf(value)) || isPred(typeOf(value)));
}
/// Has the type negative numbers? Negation is exact then. (Of floats f8e8m0fnu has none.)
inline bool hasNegatives(ElementType type) { return type != ElementType::F8E8M0FNU && !isPred(type); }

/// All elements of `shape` are this.
HloInstruction *makeSplat(HloRewriter &r, const Shape &shape, int64_t value);
/// The attributes of `instr` that its opcode takes: what instructions have in common stays behind.
llvm::SmallVector<Attribute, 4> ownAttributes(const HloInstruction &instr);
/// The instruction again, with other operands and another shape.
HloInstruction *again(HloRewriter &r, const HloInstruction &instr, const Shape &shape,
                      llvm::ArrayRef<HloInstruction *> operands);
/// A binary or unary op of the shape of `like`.
inline HloInstruction *make(HloRewriter &r, Opcode opcode, const HloInstruction &like,
                            llvm::ArrayRef<HloInstruction *> operands) {
  return r.builder().add(opcode, like.shape(), operands);
}

} // namespace hloc
