#include "AlgebraicRules.h"
#include "Matching.h"

#include <cmath>

namespace hloc {

namespace {

/// What is added without an effect: 0 of integers, -0 of floats (-0 + +0 is +0).
bool isNeutralOfSum(const HloInstruction *value) { return isDiscrete(value) ? isSplat(value, 0) : isMinusZero(value); }

HloInstruction *addZero(HloInstruction &sum, HloRewriter &) {
  for (unsigned i : {0u, 1u})
    if (isNeutralOfSum(sum.operand(i)))
      return sum.operand(1 - i);
  return nullptr;
}

/// Never -0, as it begins with 0. Sums of narrower floats may be rounded to -0 in the end.
bool isSumFromZero(const HloInstruction *value) {
  while (is(value, Opcode::Reshape) || is(value, Opcode::Bitcast))
    value = value->operand(0);
  if (!is(value, Opcode::Reduce) || !value->shape().isArray())
    return false;
  ElementType type = typeOf(value);
  return (type == ElementType::F32 || type == ElementType::F64) && isSplat(value->operand(1), 0) &&
         is(value->computation(AttributeKey::ToApply)->root(), Opcode::Add) &&
         typeOf(value->computation(AttributeKey::ToApply)->root()) == type;
}

HloInstruction *addZeroToSum(HloInstruction &sum, HloRewriter &) {
  for (unsigned i : {0u, 1u})
    if (isSplat(sum.operand(i), 0) && isSumFromZero(sum.operand(1 - i)))
      return sum.operand(1 - i);
  return nullptr;
}

HloInstruction *subtractZero(HloInstruction &difference, HloRewriter &) {
  return isPlainZero(difference.operand(1)) ? difference.operand(0) : nullptr;
}

HloInstruction *subtractSelf(HloInstruction &difference, HloRewriter &r) {
  bool same = difference.operand(0) == difference.operand(1);
  return same && isDiscrete(&difference) ? makeSplat(r, difference.shape(), 0) : nullptr;
}

HloInstruction *addDifference(HloInstruction &sum, HloRewriter &) {
  if (!isDiscrete(&sum))
    return nullptr;
  for (unsigned i : {0u, 1u}) {
    HloInstruction *x = sum.operand(i), *difference = sum.operand(1 - i);
    if (is(difference, Opcode::Subtract) && difference->operand(1) == x)
      return difference->operand(0);
  }
  return nullptr;
}

HloInstruction *subtractDifference(HloInstruction &outer, HloRewriter &) {
  HloInstruction *x = outer.operand(0), *inner = outer.operand(1);
  bool fits = isDiscrete(&outer) && is(inner, Opcode::Subtract) && inner->operand(0) == x;
  return fits ? inner->operand(1) : nullptr;
}

HloInstruction *subtractFromSum(HloInstruction &difference, HloRewriter &) {
  HloInstruction *sum = difference.operand(0);
  if (!isDiscrete(&difference) || !is(sum, Opcode::Add))
    return nullptr;
  for (unsigned i : {0u, 1u})
    if (sum->operand(i) == difference.operand(1))
      return sum->operand(1 - i);
  return nullptr;
}

bool isNegation(const HloInstruction *value) { return is(value, Opcode::Negate) && hasNegatives(typeOf(value)); }

HloInstruction *addNegation(HloInstruction &sum, HloRewriter &r) {
  for (unsigned i : {1u, 0u})
    if (isNegation(sum.operand(i)))
      return make(r, Opcode::Subtract, sum, {sum.operand(1 - i), sum.operand(i)->operand(0)});
  return nullptr;
}

HloInstruction *subtractNegation(HloInstruction &difference, HloRewriter &r) {
  HloInstruction *subtrahend = difference.operand(1);
  return isNegation(subtrahend) ? make(r, Opcode::Add, difference, {difference.operand(0), subtrahend->operand(0)})
                                : nullptr;
}

HloInstruction *negateNegation(HloInstruction &outer, HloRewriter &) {
  return isNegation(outer.operand(0)) ? outer.operand(0)->operand(0) : nullptr;
}

HloInstruction *negateDifference(HloInstruction &negation, HloRewriter &r) {
  HloInstruction *difference = negation.operand(0);
  bool fits = isDiscrete(&negation) && is(difference, Opcode::Subtract) && r.hasOneUser(difference);
  return fits ? make(r, Opcode::Subtract, negation, {difference->operand(1), difference->operand(0)}) : nullptr;
}

HloInstruction *multiplyOne(HloInstruction &product, HloRewriter &) {
  for (unsigned i : {0u, 1u})
    if (isSplat(product.operand(i), 1))
      return product.operand(1 - i);
  return nullptr;
}

HloInstruction *multiplyZero(HloInstruction &product, HloRewriter &) {
  for (unsigned i : {0u, 1u})
    if (isDiscrete(&product) && isSplat(product.operand(i), 0))
      return product.operand(i);
  return nullptr;
}

HloInstruction *multiplyNegations(HloInstruction &product, HloRewriter &r) {
  HloInstruction *a = product.operand(0), *b = product.operand(1);
  return isNegation(a) && isNegation(b) ? make(r, Opcode::Multiply, product, {a->operand(0), b->operand(0)}) : nullptr;
}

/// Not of complex numbers, whose modulus is a float.
bool isRealModulus(const HloInstruction *value) {
  return is(value, Opcode::Abs) && !isComplex(typeOf(value->operand(0)));
}

HloInstruction *multiplyModuli(HloInstruction &product, HloRewriter &r) {
  HloInstruction *a = product.operand(0), *b = product.operand(1);
  return a == b && isRealModulus(a) ? make(r, Opcode::Multiply, product, {a->operand(0), a->operand(0)}) : nullptr;
}

HloInstruction *modulusOfNegation(HloInstruction &modulus, HloRewriter &r) {
  HloInstruction *negation = modulus.operand(0);
  return isNegation(negation) ? make(r, Opcode::Abs, modulus, {negation->operand(0)}) : nullptr;
}

HloInstruction *modulusOfModulus(HloInstruction &modulus, HloRewriter &) {
  return is(modulus.operand(0), Opcode::Abs) ? modulus.operand(0) : nullptr;
}

HloInstruction *divideByOne(HloInstruction &quotient, HloRewriter &) {
  return isSplat(quotient.operand(1), 1) ? quotient.operand(0) : nullptr;
}

HloInstruction *divideByPowerOfTwo(HloInstruction &quotient, HloRewriter &r) {
  int power = powerOfTwo(quotient.operand(1));
  if (power <= 0)
    return nullptr;
  HloInstruction *amount = makeSplat(r, quotient.shape(), power);
  return make(r, Opcode::ShiftRightLogical, quotient, {quotient.operand(0), amount});
}

HloInstruction *remainderOfPowerOfTwo(HloInstruction &remainder, HloRewriter &r) {
  int power = powerOfTwo(remainder.operand(1));
  if (power < 0)
    return nullptr;
  HloInstruction *mask = makeSplat(r, remainder.shape(), static_cast<int64_t>((uint64_t(1) << power) - 1));
  return make(r, Opcode::And, remainder, {remainder.operand(0), mask});
}

HloInstruction *remainderTwice(HloInstruction &outer, HloRewriter &) {
  HloInstruction *inner = outer.operand(0);
  return is(inner, Opcode::Remainder) && inner->operand(1) == outer.operand(1) ? inner : nullptr;
}

HloInstruction *powerOne(HloInstruction &power, HloRewriter &) {
  return isSplat(power.operand(1), 1) ? power.operand(0) : nullptr;
}

HloInstruction *powerZero(HloInstruction &power, HloRewriter &r) {
  bool isReal = isSplat(power.operand(1), 0) || isMinusZero(power.operand(1));
  return isReal ? makeSplat(r, power.shape(), 1) : nullptr;
}

HloInstruction *squareOfInteger(HloInstruction &power, HloRewriter &r) {
  HloInstruction *x = power.operand(0);
  return isDiscrete(&power) && isSplat(power.operand(1), 2) ? make(r, Opcode::Multiply, power, {x, x}) : nullptr;
}

HloInstruction *extremeOfSame(HloInstruction &extreme, HloRewriter &) {
  return extreme.operand(0) == extreme.operand(1) && !isComplex(typeOf(&extreme)) ? extreme.operand(0) : nullptr;
}

/// Is it what no number is beyond: the least for a maximum, the greatest for a minimum?
bool isNeutralOfExtreme(const HloInstruction *value, bool ofMaximum) {
  const HloInstruction *constant = splatOf(value);
  if (!constant)
    return false;
  ElementType type = typeOf(constant);
  const Literal &literal = constant->literal();
  if (isPred(type))
    return (literal.getInt(0) == 0) == ofMaximum;
  if (isFloat(type))
    return std::isinf(literal.getDouble(0)) && std::signbit(literal.getDouble(0)) == ofMaximum;
  if (!isInteger(type))
    return false;
  unsigned bits = bitWidth(type);
  uint64_t all = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1, top = uint64_t(1) << (bits - 1);
  uint64_t least = isSigned(type) ? top : 0, greatest = isSigned(type) ? all ^ top : all;
  return (literal.getBits(0) & all) == (ofMaximum ? least : greatest);
}

HloInstruction *extremeOfNeutral(HloInstruction &extreme, HloRewriter &) {
  for (unsigned i : {0u, 1u})
    if (isNeutralOfExtreme(extreme.operand(i), is(&extreme, Opcode::Maximum)))
      return extreme.operand(1 - i);
  return nullptr;
}

/// Of floats +0 and -0 are equal, and which of them comes out may depend on the order.
HloInstruction *extremeTwice(HloInstruction &outer, HloRewriter &) {
  for (unsigned i : {0u, 1u}) {
    HloInstruction *inner = outer.operand(i), *other = outer.operand(1 - i);
    if (isDiscrete(&outer) && is(inner, outer.opcode()) && llvm::is_contained(inner->operands(), other))
      return inner;
  }
  return nullptr;
}

HloInstruction *clampTwice(HloInstruction &outer, HloRewriter &) {
  HloInstruction *inner = outer.operand(1);
  bool same =
      is(inner, Opcode::Clamp) && inner->operand(0) == outer.operand(0) && inner->operand(2) == outer.operand(2);
  return same && isDiscrete(&outer) ? inner : nullptr;
}

constexpr RewriteRule rules[] = {
    {"add-zero", Opcode::Add, addZero, "x + 0 -> x; of floats x + -0"},
    {"add-zero-to-sum", Opcode::Add, addZeroToSum, "x + 0 -> x; of a sum of f32 or f64 that begins with 0"},
    {"add-difference", Opcode::Add, addDifference, "x + (y - x) -> y of integers"},
    {"add-negation", Opcode::Add, addNegation, "x + -y -> x - y"},
    {"subtract-zero", Opcode::Subtract, subtractZero, "x - 0 -> x"},
    {"subtract-self", Opcode::Subtract, subtractSelf, "x - x -> 0 of integers"},
    {"subtract-difference", Opcode::Subtract, subtractDifference, "x - (x - y) -> y of integers"},
    {"subtract-from-sum", Opcode::Subtract, subtractFromSum, "(x + y) - x -> y of integers"},
    {"subtract-negation", Opcode::Subtract, subtractNegation, "x - -y -> x + y"},
    {"negate-negation", Opcode::Negate, negateNegation, "-(-x) -> x"},
    {"negate-difference", Opcode::Negate, negateDifference, "-(x - y) -> y - x of integers"},
    {"multiply-one", Opcode::Multiply, multiplyOne, "x * 1 -> x"},
    {"multiply-zero", Opcode::Multiply, multiplyZero, "x * 0 -> 0 of integers"},
    {"multiply-negations", Opcode::Multiply, multiplyNegations, "-x * -y -> x * y"},
    {"multiply-moduli", Opcode::Multiply, multiplyModuli, "|x| * |x| -> x * x"},
    {"abs-of-negation", Opcode::Abs, modulusOfNegation, "|-x| -> |x|"},
    {"abs-of-abs", Opcode::Abs, modulusOfModulus, "||x|| -> |x|"},
    {"divide-by-one", Opcode::Divide, divideByOne, "x / 1 -> x"},
    {"divide-by-power-of-two", Opcode::Divide, divideByPowerOfTwo, "x / 2^k -> x >> k of unsigned integers"},
    {"remainder-of-power-of-two", Opcode::Remainder, remainderOfPowerOfTwo, "x % 2^k -> x & (2^k - 1), unsigned"},
    {"remainder-twice", Opcode::Remainder, remainderTwice, "(x % y) % y -> x % y"},
    {"power-one", Opcode::Power, powerOne, "x^1 -> x"},
    {"power-zero", Opcode::Power, powerZero, "x^0 -> 1"},
    {"square-of-integer", Opcode::Power, squareOfInteger, "x^2 -> x * x of integers"},
    {"maximum-of-same", Opcode::Maximum, extremeOfSame, "max(x, x) -> x"},
    {"minimum-of-same", Opcode::Minimum, extremeOfSame, "min(x, x) -> x"},
    {"maximum-of-least", Opcode::Maximum, extremeOfNeutral, "max(x, the least number) -> x"},
    {"minimum-of-greatest", Opcode::Minimum, extremeOfNeutral, "min(x, the greatest number) -> x"},
    {"maximum-twice", Opcode::Maximum, extremeTwice, "max(max(x, y), y) -> max(x, y) of integers"},
    {"minimum-twice", Opcode::Minimum, extremeTwice, "min(min(x, y), y) -> min(x, y) of integers"},
    {"clamp-twice", Opcode::Clamp, clampTwice, "clamp(a, clamp(a, x, b), b) -> clamp(a, x, b) of integers"},
};

} // namespace

llvm::ArrayRef<RewriteRule> arithmeticRules() { return rules; }

} // namespace hloc
