#include "Matching.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

namespace hloc {

const HloInstruction *splatOf(const HloInstruction *value) {
  constexpr int64_t worthTheLook = 4096;
  while (is(value, Opcode::Broadcast))
    value = value->operand(0);
  if (!is(value, Opcode::Constant) || !value->shape().isArray() || value->literal().isElided() ||
      value->shape().numElements() == 0 || value->shape().numElements() > worthTheLook || !value->literal().isSplat())
    return nullptr;
  return value;
}

bool isSplat(const HloInstruction *value, double wanted) {
  const HloInstruction *constant = splatOf(value);
  if (!constant || isComplex(typeOf(constant)))
    return false;
  double found = constant->literal().getDouble(0);
  return found == wanted && std::signbit(found) == std::signbit(wanted);
}

bool isMinusZero(const HloInstruction *value) { return isFloat(typeOf(value)) && isSplat(value, -0.0); }

bool isAllOnes(const HloInstruction *value) {
  const HloInstruction *constant = splatOf(value);
  if (!constant || !isDiscrete(constant))
    return false;
  unsigned bits = isPred(typeOf(constant)) ? 1 : bitWidth(typeOf(constant));
  return (constant->literal().getBits(0) & llvm::maskTrailingOnes<uint64_t>(bits)) ==
         llvm::maskTrailingOnes<uint64_t>(bits);
}

int powerOfTwo(const HloInstruction *value) {
  const HloInstruction *constant = splatOf(value);
  if (!constant || !isUnsigned(typeOf(constant)))
    return -1;
  uint64_t bits = constant->literal().getBits(0);
  return llvm::isPowerOf2_64(bits) ? static_cast<int>(llvm::Log2_64(bits)) : -1;
}

bool isPlainZero(const HloInstruction *value) {
  const HloInstruction *constant = splatOf(value);
  if (!constant || !isComplex(typeOf(constant)))
    return isSplat(value, 0);
  std::complex<double> zero = constant->literal().getComplex(0);
  return zero == 0.0 && !std::signbit(zero.real()) && !std::signbit(zero.imag());
}

HloInstruction *makeSplat(HloRewriter &r, const Shape &shape, int64_t value) {
  Literal literal(Shape::scalar(shape.elementType()));
  if (isComplex(shape.elementType()))
    literal.setComplex(0, double(value));
  else if (isFloat(shape.elementType()))
    literal.setDouble(0, double(value));
  else
    literal.setInt(0, value);
  HloInstruction *scalar = r.builder().constant(std::move(literal));
  return shape.isScalar() ? scalar : r.builder().broadcast(scalar, shape, {});
}

llvm::SmallVector<Attribute, 4> ownAttributes(const HloInstruction &instr) {
  llvm::SmallVector<Attribute, 4> own;
  for (const Attribute &attribute : instr.attributes())
    if (llvm::any_of(attributeSpecs(instr.opcode()),
                     [&](const AttributeSpec &spec) { return spec.key == attribute.key; }))
      own.push_back(attribute);
  return own;
}

HloInstruction *again(HloRewriter &r, const HloInstruction &instr, const Shape &shape,
                      llvm::ArrayRef<HloInstruction *> operands) {
  return r.builder().add(instr.opcode(), shape, operands, ownAttributes(instr));
}

} // namespace hloc
