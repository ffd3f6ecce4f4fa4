#include "AlgebraicRules.h"
#include "Matching.h"

namespace hloc {

namespace {

/// Bits of the magnitude of an integer; -2^k takes as many as 2^k - 1, being a power of two.
unsigned magnitudeBits(ElementType type) {
  return isPred(type) ? 1 : bitWidth(type) - (isSigned(type) && bitWidth(type) > 1);
}

/// Exponents of the least and the greatest power of two of a float format.
struct ExponentRange {
  int least, greatest;
};
ExponentRange exponentsOf(const FloatFormat &format) {
  bool reserved = format.specials == FloatFormat::Specials::Ieee;
  return {1 - format.bias - format.mantissaBits, (1 << format.exponentBits) - 1 - reserved - format.bias};
}

/// Is every value of `from` one of `to`? Formats without infinities or a zero of both signs hold nothing here.
bool holdsAllValues(ElementType to, ElementType from) {
  if (isComplex(to) || isComplex(from) || from == ElementType::F8E8M0FNU)
    return false;
  if (from == to)
    return true;
  if (isPred(to))
    return false;
  if (!isFloat(to)) {
    if (isFloat(from))
      return false;
    return isSigned(to) ? magnitudeBits(from) <= magnitudeBits(to)
                        : !isSigned(from) && magnitudeBits(from) <= magnitudeBits(to);
  }
  const FloatFormat &wide = floatFormat(to);
  if (wide.specials != FloatFormat::Specials::Ieee)
    return false;
  ExponentRange exponents = exponentsOf(wide);
  if (!isFloat(from))
    return int(magnitudeBits(from)) <= wide.mantissaBits + 1 && int(magnitudeBits(from)) <= exponents.greatest;
  const FloatFormat &narrow = floatFormat(from);
  ExponentRange needed = exponentsOf(narrow);
  return narrow.mantissaBits <= wide.mantissaBits && needed.least >= exponents.least &&
         needed.greatest <= exponents.greatest;
}

HloInstruction *convertToSame(HloInstruction &convert, HloRewriter &) {
  return typeOf(convert.operand(0)) == typeOf(&convert) ? convert.operand(0) : nullptr;
}

/// A conversion of a value does not depend on the type that holds it, but for integers: those wrap, while floats
/// saturate.
HloInstruction *convertTwice(HloInstruction &outer, HloRewriter &r) {
  HloInstruction *inner = outer.operand(0);
  if (!is(inner, Opcode::Convert))
    return nullptr;
  HloInstruction *source = inner->operand(0);
  ElementType from = typeOf(source), between = typeOf(inner), to = typeOf(&outer);
  if (!holdsAllValues(between, from) || isComplex(to))
    return nullptr;
  if (from == to)
    return source->shape() == outer.shape() ? source : nullptr;
  bool wraps = isInteger(to) && !isFloat(from) && isFloat(between) && !holdsAllValues(to, from);
  return wraps ? nullptr : make(r, Opcode::Convert, outer, {source});
}

/// Of f16 subnormal numbers become 0: they are so few bits of an f32, whose pattern is what is rounded.
HloInstruction *reducePrecisionToOwn(HloInstruction &instr, HloRewriter &) {
  ElementType type = typeOf(&instr);
  const FloatFormat &format = floatFormat(type);
  bool computedAsItIs = type == ElementType::F32 || type == ElementType::BF16 || type == ElementType::F64;
  bool own = computedAsItIs && typeOf(instr.operand(0)) == type &&
             instr.intOr(AttributeKey::ExponentBits, 0) == format.exponentBits &&
             instr.intOr(AttributeKey::MantissaBits, 0) == format.mantissaBits;
  return own ? instr.operand(0) : nullptr;
}

HloInstruction *partOfComplex(HloInstruction &part, HloRewriter &) {
  HloInstruction *complex = part.operand(0);
  return is(complex, Opcode::Complex) ? complex->operand(is(&part, Opcode::Imag)) : nullptr;
}

HloInstruction *realOfReal(HloInstruction &part, HloRewriter &) {
  return isComplex(typeOf(part.operand(0))) ? nullptr : part.operand(0);
}

HloInstruction *imagOfReal(HloInstruction &part, HloRewriter &r) {
  ElementType type = typeOf(part.operand(0));
  bool hasZero = isFloat(type) && type != ElementType::F8E8M0FNU;
  return hasZero ? makeSplat(r, part.shape(), 0) : nullptr;
}

HloInstruction *complexOfParts(HloInstruction &complex, HloRewriter &) {
  HloInstruction *real = complex.operand(0), *imag = complex.operand(1);
  bool parts = is(real, Opcode::Real) && is(imag, Opcode::Imag) && real->operand(0) == imag->operand(0) &&
               isComplex(typeOf(real->operand(0)));
  return parts ? real->operand(0) : nullptr;
}

HloInstruction *bitcastConvertToSame(HloInstruction &instr, HloRewriter &) {
  return typeOf(instr.operand(0)) == typeOf(&instr) ? instr.operand(0) : nullptr;
}

/// Where the widths are equal; a pred has more bits than values.
HloInstruction *bitcastConvertTwice(HloInstruction &outer, HloRewriter &r) {
  HloInstruction *inner = outer.operand(0);
  if (!is(inner, Opcode::BitcastConvert) || isPred(typeOf(inner)))
    return nullptr;
  HloInstruction *source = inner->operand(0);
  if (source->shape() == outer.shape())
    return source;
  unsigned bits = bitWidth(typeOf(&outer));
  bool equalWidths = bitWidth(typeOf(inner)) == bits && bitWidth(typeOf(source)) == bits;
  bool anyPred = isPred(typeOf(source)) || isPred(typeOf(&outer));
  return equalWidths && !anyPred ? make(r, Opcode::BitcastConvert, outer, {source}) : nullptr;
}

HloInstruction *copyToSameLayout(HloInstruction &copy, HloRewriter &) { return copy.operand(0); }

HloInstruction *copyTwice(HloInstruction &copy, HloRewriter &r) {
  HloInstruction *inner = copy.operand(0);
  return is(inner, Opcode::Copy) && copy.shape().isArray() ? make(r, Opcode::Copy, copy, {inner->operand(0)}) : nullptr;
}

HloInstruction *bitcastToSame(HloInstruction &bitcast, HloRewriter &) { return bitcast.operand(0); }

HloInstruction *bitcastTwice(HloInstruction &bitcast, HloRewriter &r) {
  HloInstruction *inner = bitcast.operand(0);
  return is(inner, Opcode::Bitcast) ? make(r, Opcode::Bitcast, bitcast, {inner->operand(0)}) : nullptr;
}

constexpr RewriteRule rules[] = {
    {"convert-to-same", Opcode::Convert, convertToSame, "convert to the type it has -> x"},
    {"convert-twice", Opcode::Convert, convertTwice, "a convert by way of a type that holds every value -> one, or x"},
    {"reduce-precision-to-own", Opcode::ReducePrecision, reducePrecisionToOwn, "to the bits of its own type -> x"},
    {"real-of-complex", Opcode::Real, partOfComplex, "real(complex(x, y)) -> x"},
    {"imag-of-complex", Opcode::Imag, partOfComplex, "imag(complex(x, y)) -> y"},
    {"real-of-real", Opcode::Real, realOfReal, "real(x) -> x of floats"},
    {"imag-of-real", Opcode::Imag, imagOfReal, "imag(x) -> 0 of floats"},
    {"complex-of-parts", Opcode::Complex, complexOfParts, "complex(real(z), imag(z)) -> z"},
    {"bitcast-convert-to-same", Opcode::BitcastConvert, bitcastConvertToSame, "to the type it has -> x"},
    {"bitcast-convert-twice", Opcode::BitcastConvert, bitcastConvertTwice, "by way of a type as wide -> one, or x"},
    {"copy-to-same-layout", Opcode::Copy, copyToSameLayout, "copy to the layout it has -> x"},
    {"copy-twice", Opcode::Copy, copyTwice, "copy of a copy -> one copy"},
    {"bitcast-to-same", Opcode::Bitcast, bitcastToSame, "bitcast to the shape it has -> x"},
    {"bitcast-twice", Opcode::Bitcast, bitcastTwice, "bitcast of a bitcast -> one bitcast"},
};

} // namespace

llvm::ArrayRef<RewriteRule> conversionRules() { return rules; }

} // namespace hloc
