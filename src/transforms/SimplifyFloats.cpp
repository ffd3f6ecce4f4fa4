// Rules that may change the results of floats, by a rounding or for zeros, infinities and NaNs: only those are applied
// that are asked for by name. Each asks for floats; integers have rules of their own.

#include "AlgebraicRules.h"
#include "Matching.h"

#include <cmath>

namespace hloc {

namespace {

bool isReal(const HloInstruction &instr) { return instr.shape().isArray() && isFloat(typeOf(&instr)); }

/// The value of a float constant that all elements have; NaN if there is none.
double floatOf(const HloInstruction *value) {
  const HloInstruction *constant = splatOf(value);
  return constant && isFloat(typeOf(constant)) ? constant->literal().getDouble(0) : std::nan("");
}

HloInstruction *makeFloat(HloRewriter &r, const Shape &shape, double value) {
  HloInstruction *scalar = r.builder().scalar(shape.elementType(), value);
  return shape.isScalar() ? scalar : r.builder().broadcast(scalar, shape, {});
}

HloInstruction *addAnyZero(HloInstruction &sum, HloRewriter &) {
  for (unsigned i : {0u, 1u})
    if (isReal(sum) && floatOf(sum.operand(i)) == 0)
      return sum.operand(1 - i);
  return nullptr;
}

HloInstruction *multiplyFloatZero(HloInstruction &product, HloRewriter &) {
  for (unsigned i : {0u, 1u})
    if (isReal(product) && floatOf(product.operand(i)) == 0)
      return product.operand(i);
  return nullptr;
}

HloInstruction *divideByConstant(HloInstruction &quotient, HloRewriter &r) {
  double divisor = isReal(quotient) ? floatOf(quotient.operand(1)) : std::nan("");
  if (!std::isfinite(divisor) || !std::isnormal(1 / divisor))
    return nullptr;
  return make(r, Opcode::Multiply, quotient, {quotient.operand(0), makeFloat(r, quotient.shape(), 1 / divisor)});
}

/// a / f(b) -> a * g(b)
template <Opcode f, Opcode g> HloInstruction *divideByFunction(HloInstruction &quotient, HloRewriter &r) {
  HloInstruction *divisor = quotient.operand(1);
  if (!isReal(quotient) || !is(divisor, f) || !r.hasOneUser(divisor))
    return nullptr;
  return make(r, Opcode::Multiply, quotient, {quotient.operand(0), make(r, g, quotient, {divisor->operand(0)})});
}

HloInstruction *divideByExponential(HloInstruction &quotient, HloRewriter &r) {
  HloInstruction *divisor = quotient.operand(1);
  if (!isReal(quotient) || !is(divisor, Opcode::Exponential) || !r.hasOneUser(divisor))
    return nullptr;
  HloInstruction *negated = make(r, Opcode::Negate, quotient, {divisor->operand(0)});
  return make(r, Opcode::Multiply, quotient, {quotient.operand(0), make(r, Opcode::Exponential, quotient, {negated})});
}

HloInstruction *multiplyExponentials(HloInstruction &product, HloRewriter &r) {
  HloInstruction *a = product.operand(0), *b = product.operand(1);
  if (!isReal(product) || !is(a, Opcode::Exponential) || !is(b, Opcode::Exponential) || !r.hasOneUser(a) ||
      !r.hasOneUser(b))
    return nullptr;
  HloInstruction *sum = make(r, Opcode::Add, product, {a->operand(0), b->operand(0)});
  return make(r, Opcode::Exponential, product, {sum});
}

HloInstruction *logOfExponential(HloInstruction &log, HloRewriter &) {
  return isReal(log) && is(log.operand(0), Opcode::Exponential) ? log.operand(0)->operand(0) : nullptr;
}

HloInstruction *powerOfConstant(HloInstruction &power, HloRewriter &r) {
  if (!isReal(power))
    return nullptr;
  HloInstruction *x = power.operand(0);
  double exponent = floatOf(power.operand(1));
  if (exponent == 0.5)
    return make(r, Opcode::Sqrt, power, {x});
  if (exponent == 2)
    return make(r, Opcode::Multiply, power, {x, x});
  if (exponent == 3)
    return make(r, Opcode::Multiply, power, {x, make(r, Opcode::Multiply, power, {x, x})});
  if (exponent == -1)
    return make(r, Opcode::Divide, power, {makeFloat(r, power.shape(), 1), x});
  return nullptr;
}

HloInstruction *sqrtOfSquare(HloInstruction &sqrt, HloRewriter &r) {
  HloInstruction *square = sqrt.operand(0);
  bool fits = isReal(sqrt) && is(square, Opcode::Multiply) && square->operand(0) == square->operand(1);
  return fits ? make(r, Opcode::Abs, sqrt, {square->operand(0)}) : nullptr;
}

HloInstruction *divideTwice(HloInstruction &outer, HloRewriter &r) {
  HloInstruction *a = outer.operand(0), *b = outer.operand(1);
  if (!isReal(outer))
    return nullptr;
  if (is(a, Opcode::Divide) && r.hasOneUser(a))
    return make(r, Opcode::Divide, outer, {a->operand(0), make(r, Opcode::Multiply, outer, {a->operand(1), b})});
  if (is(b, Opcode::Divide) && r.hasOneUser(b))
    return make(r, Opcode::Divide, outer, {make(r, Opcode::Multiply, outer, {a, b->operand(1)}), b->operand(0)});
  return nullptr;
}

/// (x op c) op d -> x op (c op d), which constant folding computes.
HloInstruction *gatherConstants(HloInstruction &outer, HloRewriter &r) {
  if (!isReal(outer))
    return nullptr;
  for (unsigned i : {0u, 1u}) {
    HloInstruction *inner = outer.operand(i), *constant = outer.operand(1 - i);
    if (!is(inner, outer.opcode()) || !splatOf(constant) || !r.hasOneUser(inner))
      continue;
    for (unsigned j : {0u, 1u})
      if (splatOf(inner->operand(j)) && !splatOf(inner->operand(1 - j)))
        return make(r, outer.opcode(), outer,
                    {inner->operand(1 - j), make(r, outer.opcode(), outer, {inner->operand(j), constant})});
  }
  return nullptr;
}

constexpr RewriteRule rules[] = {
    {"add-any-zero", Opcode::Add, addAnyZero, "x + 0 -> x, also for -0"},
    {"add-constants", Opcode::Add, gatherConstants, "(x + c) + d -> x + (c + d)"},
    {"multiply-constants", Opcode::Multiply, gatherConstants, "(x * c) * d -> x * (c * d)"},
    {"multiply-float-zero", Opcode::Multiply, multiplyFloatZero, "x * 0 -> 0, also for infinities and NaN"},
    {"multiply-exponentials", Opcode::Multiply, multiplyExponentials, "exp(x) * exp(y) -> exp(x + y)"},
    {"divide-by-constant", Opcode::Divide, divideByConstant, "x / c -> x * (1 / c)"},
    {"divide-by-sqrt", Opcode::Divide, divideByFunction<Opcode::Sqrt, Opcode::Rsqrt>, "x / sqrt(y) -> x * rsqrt(y)"},
    {"divide-by-rsqrt", Opcode::Divide, divideByFunction<Opcode::Rsqrt, Opcode::Sqrt>, "x / rsqrt(y) -> x * sqrt(y)"},
    {"divide-by-exponential", Opcode::Divide, divideByExponential, "x / exp(y) -> x * exp(-y)"},
    {"divide-twice", Opcode::Divide, divideTwice, "(x / y) / z -> x / (y * z), x / (y / z) -> (x * z) / y"},
    {"log-of-exponential", Opcode::Log, logOfExponential, "log(exp(x)) -> x"},
    {"power-of-constant", Opcode::Power, powerOfConstant, "x^0.5 -> sqrt(x), x^2 -> x * x, x^3, x^-1 -> 1 / x"},
    {"sqrt-of-square", Opcode::Sqrt, sqrtOfSquare, "sqrt(x * x) -> |x|"},
};

} // namespace

llvm::ArrayRef<RewriteRule> fastMathRules() { return rules; }

} // namespace hloc
