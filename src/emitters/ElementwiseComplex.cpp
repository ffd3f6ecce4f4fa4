// Complex arithmetic on (re, im) pairs. Quotients and moduli are scaled so that they overflow only if the result does.
#include "emitters/Elementwise.h"

#include <cmath>

using namespace mlir;

namespace hloc {
namespace {

using FPred = CodeBuilder::FPred;

struct Pair {
  Value re, im;
};

Pair split(CodeBuilder &b, Value z) { return {b.real(z), b.imag(z)}; }
Value join(CodeBuilder &b, Pair z) { return b.complex(z.re, z.im); }
Value zero(CodeBuilder &b, Pair z) { return b.floatingLike(z.re, 0.0); }

Pair multiply(CodeBuilder &b, Pair x, Pair y) {
  return {b.subF(b.mulF(x.re, y.re), b.mulF(x.im, y.im)), b.addF(b.mulF(x.re, y.im), b.mulF(x.im, y.re))};
}

/// f * g where a zero wins over an infinity or NaN: sin(0) cosh(y) is 0 for every y.
Value multiplyZeroWins(CodeBuilder &b, Value f, Value g) {
  Value isZero = b.orI(b.cmpF(FPred::OEQ, f, 0.0), b.cmpF(FPred::OEQ, g, 0.0));
  Value zero = b.mulF(b.copySign(b.floatingLike(f, 0.0), f), b.copySign(b.floatingLike(g, 1.0), g));
  return b.select(isZero, zero, b.mulF(f, g));
}

Value isInfinite(CodeBuilder &b, Value a) { return b.cmpF(FPred::OEQ, b.absF(a), b.infinity(a.getType())); }
Value isFinite(CodeBuilder &b, Value a) { return b.cmpF(FPred::OLT, b.absF(a), b.infinity(a.getType())); }
Value isInfinite(CodeBuilder &b, Pair z) { return b.orI(isInfinite(b, z.re), isInfinite(b, z.im)); }
Value isFinite(CodeBuilder &b, Pair z) { return b.andI(isFinite(b, z.re), isFinite(b, z.im)); }

/// The direction of an infinite number: components +-1 where they are infinite, +-0 elsewhere.
Pair direction(CodeBuilder &b, Pair z) {
  auto component = [&](Value a) {
    Value size = b.select(isInfinite(b, a), b.floatingLike(a, 1.0), b.floatingLike(a, 0.0));
    return b.copySign(size, a);
  };
  return {component(z.re), component(z.im)};
}

/// x * conj(y)
Pair multiplyConjugate(CodeBuilder &b, Pair x, Pair y) {
  return {b.addF(b.mulF(x.re, y.re), b.mulF(x.im, y.im)), b.subF(b.mulF(x.im, y.re), b.mulF(x.re, y.im))};
}

/// A power of four that brings numbers of this size into the range where products and quotients are normal numbers.
struct SizeScale {
  Value factor, inverseRoot;
};
int precisionOf(Value value) {
  return int(llvm::APFloat::semanticsPrecision(cast<FloatType>(value.getType()).getFloatSemantics()));
}
SizeScale sizeScale(CodeBuilder &b, Value size) {
  const llvm::fltSemantics &semantics = cast<FloatType>(size.getType()).getFloatSemantics();
  int precision = precisionOf(size);
  int least = llvm::APFloat::semanticsMinExponent(semantics), most = llvm::APFloat::semanticsMaxExponent(semantics);
  Value isLarge = b.cmpF(FPred::OGE, size, std::ldexp(1.0, most - 2));
  Value isSmall = b.cmpF(FPred::OLT, size, std::ldexp(1.0, least + precision));
  auto power = [&](int large, int small) {
    Value up = b.select(isSmall, b.floatingLike(size, std::ldexp(1.0, small)), b.floatingLike(size, 1.0));
    return b.select(isLarge, b.floatingLike(size, std::ldexp(1.0, large)), up);
  };
  int up = (precision + 3) / 2;
  return {power(-2, 2 * up), power(1, -up)};
}

/// Powers of two that bring a large dividend down by more than sizeScale brings a small divisor up, and a small one
/// where its products with numbers below one are normal, and back.
std::pair<Value, Value> dividendScale(CodeBuilder &b, Pair dividend) {
  Value size = arith::MaximumFOp::create(b, b.absF(dividend.re), b.absF(dividend.im));
  const llvm::fltSemantics &semantics = cast<FloatType>(size.getType()).getFloatSemantics();
  int least = llvm::APFloat::semanticsMinExponent(semantics), most = llvm::APFloat::semanticsMaxExponent(semantics);
  int down = precisionOf(size) + 6, up = 2 * precisionOf(size);
  Value isLarge = b.cmpF(FPred::OGE, size, std::ldexp(1.0, most - down));
  Value isSmall = b.cmpF(FPred::OLT, size, std::ldexp(1.0, least + precisionOf(size)));
  auto power = [&](int large, int small) {
    Value others = b.select(isSmall, b.floatingLike(size, std::ldexp(1.0, small)), b.floatingLike(size, 1.0));
    return b.select(isLarge, b.floatingLike(size, std::ldexp(1.0, large)), others);
  };
  return {power(-down, up), power(down, -up)};
}

/// Smith's method. What has a zero or infinite divisor, or an infinite dividend, is as C's Annex G wants it.
Pair divide(CodeBuilder &b, Pair dividend, Pair divisor) {
  Value realLarger = b.cmpF(FPred::OGE, b.absF(divisor.re), b.absF(divisor.im));
  Value scale = sizeScale(b, b.absF(b.select(realLarger, divisor.re, divisor.im))).factor;
  auto [shift, shiftBack] = dividendScale(b, dividend);
  Pair x = {b.mulF(b.mulF(dividend.re, shift), scale), b.mulF(b.mulF(dividend.im, shift), scale)};
  Pair y = {b.mulF(divisor.re, scale), b.mulF(divisor.im, scale)};
  Value larger = b.select(realLarger, y.re, y.im);
  Value smaller = b.select(realLarger, y.im, y.re);
  Value ratio = b.divF(smaller, larger);
  Value denominator = b.addF(larger, b.mulF(smaller, ratio));
  Value p = b.select(realLarger, x.re, x.im);
  Value q = b.select(realLarger, x.im, x.re);
  // |re| >= |im|: ((a + b r) / d, (b - a r) / d), else ((a r + b) / d, (b r - a) / d).
  Value re = b.divF(b.addF(p, b.mulF(q, ratio)), denominator);
  Value imNumerator = b.select(realLarger, b.subF(x.im, b.mulF(x.re, ratio)), b.subF(b.mulF(x.im, ratio), x.re));
  Value im = b.divF(imNumerator, denominator);
  Value undecided = b.andI(b.isNan(re), b.isNan(im));
  auto choose = [&](Value condition, Pair z) {
    condition = b.andI(undecided, condition);
    re = b.select(condition, z.re, re);
    im = b.select(condition, z.im, im);
  };
  Pair infinite = multiplyConjugate(b, direction(b, x), y);
  Value infinity = b.infinity(re.getType());
  choose(b.andI(isInfinite(b, x), isFinite(b, y)), {b.mulF(infinite.re, infinity), b.mulF(infinite.im, infinity)});
  Pair vanishing = multiplyConjugate(b, x, direction(b, y));
  choose(b.andI(isFinite(b, x), isInfinite(b, y)), {b.mulF(vanishing.re, 0.0), b.mulF(vanishing.im, 0.0)});
  choose(b.cmpF(FPred::OEQ, larger, 0.0), {b.divF(x.re, y.re), b.divF(x.im, y.re)});
  return {b.mulF(re, shiftBack), b.mulF(im, shiftBack)};
}

/// sqrt(re^2 + im^2); infinite if a component is, even if the other is NaN.
Value modulus(CodeBuilder &b, Pair z) {
  Value re = b.absF(z.re), im = b.absF(z.im);
  Value larger = arith::MaximumFOp::create(b, re, im);
  Value smaller = arith::MinimumFOp::create(b, re, im);
  Value ratio = b.divF(smaller, larger);
  Value result = b.mulF(larger, b.sqrt(b.addF(b.mulF(ratio, ratio), 1.0)));
  result = b.select(b.cmpF(FPred::OEQ, larger, 0.0), larger, result);
  Value infinity = b.infinity(re.getType());
  Value infinite = b.orI(b.cmpF(FPred::OEQ, re, infinity), b.cmpF(FPred::OEQ, im, infinity));
  return b.select(infinite, infinity, result);
}

Value angle(CodeBuilder &b, Pair z) { return math::Atan2Op::create(b, z.im, z.re); }

/// (modulus, angle) to (re, im).
Pair fromPolar(CodeBuilder &b, Value radius, Value phase) {
  return {b.mulF(radius, math::CosOp::create(b, phase)), b.mulF(radius, math::SinOp::create(b, phase))};
}

/// An argument of exp, sinh or cosh up to where they overflow, and the factor that is left to multiply the result with,
/// twice: times a sine or cosine, it need not overflow.
struct LimitedArgument {
  Value value, factor, isLarge;
};
LimitedArgument limitArgument(CodeBuilder &b, Value x) {
  Value limit = b.floatingLike(x, x.getType().isF64() ? 709.0 : 88.0);
  Value magnitude = b.absF(x);
  Value isLarge = b.cmpF(FPred::OGT, magnitude, limit);
  // The difference is exact up to twice the limit. Its half does not overflow where the smallest sine keeps the product
  // from doing so.
  Value factor = math::ExpOp::create(b, b.mulF(b.subF(magnitude, limit), 0.5));
  return {b.select(isLarge, b.copySign(limit, x), x), b.select(isLarge, factor, b.floatingLike(x, 1.0)), isLarge};
}

Pair exponential(CodeBuilder &b, Pair z) {
  LimitedArgument limited = limitArgument(b, z.re);
  Value overflows = b.andI(limited.isLarge, b.cmpF(FPred::OGT, z.re, 0.0));
  Value size = math::ExpOp::create(b, b.select(overflows, limited.value, z.re));
  Value factor = b.select(overflows, limited.factor, b.floatingLike(z.re, 1.0));
  Pair result = fromPolar(b, size, z.im);
  result = {b.mulF(b.mulF(result.re, factor), factor), b.mulF(b.mulF(result.im, factor), factor)};
  // Infinitely small or large whatever the angle is; a real argument stays real, also where exp overflows.
  Value infinity = b.infinity(z.re.getType());
  Value noAngle = b.isNan(result.re);
  Value vanishes = b.andI(noAngle, b.cmpF(FPred::OEQ, z.re, b.negF(infinity)));
  Value explodes = b.andI(noAngle, b.cmpF(FPred::OEQ, z.re, infinity));
  Value isReal = b.cmpF(FPred::OEQ, z.im, 0.0);
  Value re = b.select(vanishes, zero(b, z), b.select(explodes, infinity, result.re));
  Value im = b.select(vanishes, zero(b, z), b.select(isReal, z.im, result.im));
  return {re, im};
}

Pair exponentialMinusOne(CodeBuilder &b, Pair z) {
  // exp(a)cos(y) - 1 = expm1(a)cos(y) + (cos(y) - 1), with cos(y) - 1 = -2 sin^2(y/2).
  Value half = math::SinOp::create(b, b.mulF(z.im, 0.5));
  Value cosMinusOne = b.mulF(b.mulF(half, half), -2.0);
  Value minusOne = math::ExpM1Op::create(b, z.re);
  Value cosine = math::CosOp::create(b, z.im);
  Value small = b.addF(b.mulF(minusOne, cosine), cosMinusOne);
  Pair whole = exponential(b, z);
  Value isLarge = b.cmpF(FPred::OGT, z.re, 50.0);
  return {b.select(isLarge, whole.re, small), whole.im};
}

/// log|z|: from |z|^2 - 1 near the unit circle, where log of a rounded modulus has no good digits; elsewhere
/// log(larger) + log(1 + (smaller / larger)^2) / 2, which does not overflow.
Value logOfModulus(CodeBuilder &b, Pair z) {
  Value re = b.absF(z.re), im = b.absF(z.im);
  Value larger = b.maxF(re, im), smaller = b.minF(re, im);
  Value near = b.addF(b.mulF(b.addF(larger, -1.0), b.addF(larger, 1.0)), b.mulF(smaller, smaller));
  Value isNear = b.cmpF(FPred::OLT, b.absF(near), 0.5);
  Value one = b.floatingLike(re, 1.0);
  Value ratio = b.select(b.cmpF(FPred::OEQ, smaller, larger), one, b.divF(smaller, larger));
  Value rest = b.mulF(math::Log1pOp::create(b, b.select(isNear, near, b.mulF(ratio, ratio))), 0.5);
  Value result = b.addF(math::LogOp::create(b, b.select(isNear, one, larger)), rest);
  return b.select(isInfinite(b, z), b.infinity(re.getType()), result);
}

Pair logarithm(CodeBuilder &b, Pair z) { return {logOfModulus(b, z), angle(b, z)}; }

Pair logarithmPlusOne(CodeBuilder &b, Pair z) {
  // log|1 + z| = log1p(re (2 + re) + im^2) / 2 near zero; the plain form elsewhere.
  Pair shifted = {b.addF(z.re, 1.0), z.im};
  Value near = b.addF(b.mulF(z.re, b.addF(z.re, 2.0)), b.mulF(z.im, z.im));
  Value small = b.mulF(math::Log1pOp::create(b, near), 0.5);
  Value plain = logOfModulus(b, shifted);
  Value isSmall = b.cmpF(FPred::OLT, b.absF(near), 0.5);
  return {b.select(isSmall, small, plain), angle(b, shifted)};
}

/// The root with non-negative real part.
Pair squareRoot(CodeBuilder &b, Pair argument) {
  SizeScale scale = sizeScale(b, b.maxF(b.absF(argument.re), b.absF(argument.im)));
  Pair z = {b.mulF(argument.re, scale.factor), b.mulF(argument.im, scale.factor)};
  Value radius = modulus(b, z);
  Value larger = b.mulF(b.sqrt(b.mulF(b.addF(radius, b.absF(z.re)), 0.5)), scale.inverseRoot);
  Value smaller = b.mulF(b.divF(argument.im, larger), 0.5);
  Value isZero = b.cmpF(FPred::OEQ, radius, 0.0);
  smaller = b.select(isZero, z.im, smaller);
  Value positive = b.cmpF(FPred::OGE, z.re, 0.0);
  Value re = b.select(positive, larger, b.absF(smaller));
  Value im = b.select(positive, smaller, b.copySign(larger, z.im));
  Value infinity = b.infinity(re.getType());
  Value infiniteIm = isInfinite(b, z.im);
  return {b.select(infiniteIm, infinity, re), b.select(infiniteIm, z.im, im)};
}

/// (cosh(x) f, sinh(x) g), where f and g are sines and cosines.
Pair multiplyHyperbolic(CodeBuilder &b, Value x, Value f, Value g) {
  LimitedArgument limited = limitArgument(b, x);
  Value even = multiplyZeroWins(b, f, math::CoshOp::create(b, limited.value));
  Value odd = multiplyZeroWins(b, g, math::SinhOp::create(b, limited.value));
  auto scale = [&](Value product) {
    return multiplyZeroWins(b, multiplyZeroWins(b, product, limited.factor), limited.factor);
  };
  return {scale(even), scale(odd)};
}
Value cosineOf(CodeBuilder &b, Value x) { return math::CosOp::create(b, x); }
Value sineOf(CodeBuilder &b, Value x) { return math::SinOp::create(b, x); }

Pair cosine(CodeBuilder &b, Pair z) {
  Pair product = multiplyHyperbolic(b, z.im, cosineOf(b, z.re), sineOf(b, z.re));
  return {product.re, b.negF(product.im)};
}
Pair sine(CodeBuilder &b, Pair z) { return multiplyHyperbolic(b, z.im, sineOf(b, z.re), cosineOf(b, z.re)); }
Pair hyperbolicSine(CodeBuilder &b, Pair z) {
  Pair product = multiplyHyperbolic(b, z.re, sineOf(b, z.im), cosineOf(b, z.im));
  return {product.im, product.re};
}
Pair hyperbolicCosine(CodeBuilder &b, Pair z) {
  return multiplyHyperbolic(b, z.re, cosineOf(b, z.im), sineOf(b, z.im));
}

/// (tanh a + i tan y) / (1 + i tanh a tan y): no overflow for large a.
Pair hyperbolicTangent(CodeBuilder &b, Pair z) {
  Value t = math::TanhOp::create(b, z.re);
  Value u = math::TanOp::create(b, z.im);
  Pair quotient = divide(b, {t, u}, {b.floatingLike(t, 1.0), b.mulF(t, u)});
  // Where the other part is infinite or no number, a zero stays zero and an infinite real part gives 1.
  Value isImaginary = b.cmpF(FPred::OEQ, z.re, 0.0);
  Value isReal = b.cmpF(FPred::OEQ, z.im, 0.0);
  Value settled = isInfinite(b, z.re);
  Value none = b.copySign(b.floatingLike(t, 0.0), z.im);
  return {b.select(b.orI(isImaginary, settled), t, quotient.re), b.select(b.orI(isReal, settled), none, quotient.im)};
}
Pair tangent(CodeBuilder &b, Pair z) {
  Pair rotated = hyperbolicTangent(b, {b.negF(z.im), z.re});
  return {rotated.im, b.negF(rotated.re)};
}

Pair power(CodeBuilder &b, Pair x, Pair y) {
  Pair raised = exponential(b, multiply(b, y, logarithm(b, x)));
  Value zeroBase = b.cmpF(FPred::OEQ, modulus(b, x), 0.0);
  Value zeroExponent = b.cmpF(FPred::OEQ, modulus(b, y), 0.0);
  Value one = b.floatingLike(x.re, 1.0);
  Value re = b.select(zeroBase, zero(b, x), raised.re);
  Value im = b.select(zeroBase, zero(b, x), raised.im);
  return {b.select(zeroExponent, one, re), b.select(zeroExponent, zero(b, x), im)};
}

/// -i log((x + i y) / sqrt(x^2 + y^2)) for complex y, x.
Pair arcTangent2(CodeBuilder &b, Pair y, Pair x) {
  Pair numerator = {b.subF(x.re, y.im), b.addF(x.im, y.re)};
  Pair xx = multiply(b, x, x), yy = multiply(b, y, y);
  Pair norm = squareRoot(b, {b.addF(xx.re, yy.re), b.addF(xx.im, yy.im)});
  Pair log = logarithm(b, divide(b, numerator, norm));
  return {log.im, b.negF(log.re)};
}

Pair signOf(CodeBuilder &b, Pair z) {
  Value radius = modulus(b, z);
  Value isZero = b.cmpF(FPred::OEQ, radius, 0.0);
  Value none = zero(b, z);
  return {b.select(isZero, none, b.divF(z.re, radius)), b.select(isZero, none, b.divF(z.im, radius))};
}

Pair logistic(CodeBuilder &b, Pair z) {
  Pair e = exponential(b, {b.negF(z.re), b.negF(z.im)});
  Value one = b.floatingLike(z.re, 1.0);
  return divide(b, {one, zero(b, z)}, {b.addF(e.re, one), e.im});
}

std::optional<Pair> unary(CodeBuilder &b, Opcode opcode, Pair z) {
  switch (opcode) {
  case Opcode::Negate:
    return Pair{b.negF(z.re), b.negF(z.im)};
  case Opcode::Sign:
    return signOf(b, z);
  case Opcode::Exponential:
    return exponential(b, z);
  case Opcode::ExponentialMinusOne:
    return exponentialMinusOne(b, z);
  case Opcode::Log:
    return logarithm(b, z);
  case Opcode::LogPlusOne:
    return logarithmPlusOne(b, z);
  case Opcode::Sqrt:
    return squareRoot(b, z);
  case Opcode::Rsqrt: {
    Value one = b.floatingLike(z.re, 1.0);
    return divide(b, {one, zero(b, z)}, squareRoot(b, z));
  }
  case Opcode::Cosine:
    return cosine(b, z);
  case Opcode::Sine:
    return sine(b, z);
  case Opcode::Tan:
    return tangent(b, z);
  case Opcode::Sinh:
    return hyperbolicSine(b, z);
  case Opcode::Cosh:
    return hyperbolicCosine(b, z);
  case Opcode::Tanh:
    return hyperbolicTangent(b, z);
  case Opcode::Logistic:
    return logistic(b, z);
  default:
    return std::nullopt;
  }
}

std::optional<Pair> binary(CodeBuilder &b, Opcode opcode, Pair x, Pair y) {
  switch (opcode) {
  case Opcode::Add:
    return Pair{b.addF(x.re, y.re), b.addF(x.im, y.im)};
  case Opcode::Subtract:
    return Pair{b.subF(x.re, y.re), b.subF(x.im, y.im)};
  case Opcode::Multiply:
    return multiply(b, x, y);
  case Opcode::Divide:
    return divide(b, x, y);
  case Opcode::Power:
    return power(b, x, y);
  case Opcode::Atan2:
    return arcTangent2(b, x, y);
  default:
    return std::nullopt;
  }
}

} // namespace

Value complexArithmetic(CodeBuilder &b, Opcode opcode, Value x, Value y) {
  return join(b, *binary(b, opcode, split(b, x), split(b, y)));
}

llvm::FailureOr<Value> emitComplexOp(const ElementwiseOp &op) {
  CodeBuilder &b = op.b;
  Pair x = split(b, op.operand(0));
  switch (op.opcode()) {
  case Opcode::Real:
    return x.re;
  case Opcode::Imag:
    return x.im;
  case Opcode::Abs:
    return modulus(b, x);
  default:
    break;
  }
  std::optional<Pair> result =
      op.operands.size() == 2 ? binary(b, op.opcode(), x, split(b, op.operand(1))) : unary(b, op.opcode(), x);
  if (!result)
    return op.unsupportedType();
  return join(b, *result);
}

} // namespace hloc
