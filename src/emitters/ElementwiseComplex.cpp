// Complex arithmetic on (re, im) pairs. Quotients and moduli are scaled so that they overflow only if the result does.
#include "emitters/Elementwise.h"

#include "hloc/hlo/OpcodeTable.h"

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
  Value larger = arith::MaxNumFOp::create(b, re, im); // the one that is a number
  Value smaller = b.minF(re, im);
  Value ratio = b.divF(smaller, larger);
  Value product = b.mulF(larger, b.sqrt(b.addF(b.mulF(ratio, ratio), 1.0)));
  // Of two zeros, of two infinities, or of a NaN, which is the smaller one, the ratio is NaN.
  Value result = b.select(b.cmpF(FPred::UNO, product, product), smaller, product);
  return b.select(b.cmpF(FPred::OEQ, larger, b.infinity(re.getType())), larger, result);
}

Value angle(CodeBuilder &b, Pair z) { return b.atan2(z.im, z.re); }

/// (modulus, angle) to (re, im).
Pair fromPolar(CodeBuilder &b, Value radius, Value phase) {
  return {b.mulF(radius, math::CosOp::create(b, phase)), b.mulF(radius, math::SinOp::create(b, phase))};
}

/// An argument of exp, sinh or cosh that is less by one or two times a constant where they would overflow, and powers
/// of e that are left to multiply the result with, one after the other: times a sine or cosine, it need not overflow.
struct LimitedArgument {
  Value value, first, second, isLarge;
};
LimitedArgument limitArgument(CodeBuilder &b, Value x) {
  // Numbers of few bits, so that differences are exact, whose powers of e are within 0.002 units of numbers of the
  // type: e^60.09375 = 13598603 * 2^63, e^461.6875 = 4741505689524849 * 2^614.
  const bool isDouble = x.getType().isF64();
  const double limit = isDouble ? 709.0 : 88.0, step = isDouble ? 461.6875 : 60.09375;
  const double power = isDouble ? std::ldexp(4741505689524849.0, 614) : std::ldexp(13598603.0, 63);
  Value magnitude = b.absF(x);
  Value isLarge = b.cmpF(FPred::OGT, magnitude, limit), isLarger = b.cmpF(FPred::OGT, magnitude, limit + step);
  Value steps = b.select(isLarger, b.floatingLike(x, 2 * step), b.floatingLike(x, step));
  Value reduced = b.copySign(b.subF(magnitude, steps), x);
  Value one = b.floatingLike(x, 1.0), factor = b.floatingLike(x, power);
  return {b.select(isLarge, reduced, x), b.select(isLarge, factor, one), b.select(isLarger, factor, one), isLarge};
}

Pair exponential(CodeBuilder &b, Pair z) {
  LimitedArgument limited = limitArgument(b, z.re);
  Value overflows = b.andI(limited.isLarge, b.cmpF(FPred::OGT, z.re, 0.0));
  Value size = math::ExpOp::create(b, b.select(overflows, limited.value, z.re));
  Pair result = fromPolar(b, size, z.im);
  auto scale = [&](Value part) {
    Value scaled = b.mulF(b.mulF(part, limited.first), limited.second);
    return b.select(overflows, scaled, part);
  };
  result = {scale(result.re), scale(result.im)};
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
  // Far below the one nothing cancels; far above it is lost, and parts of the sum may overflow.
  Value isSmall = b.cmpF(FPred::OLT, whole.re, 0.5), isLarge = b.cmpF(FPred::OGT, z.re, 50.0);
  Value isApart = b.orI(isSmall, isLarge);
  return {b.select(isApart, b.addF(whole.re, -1.0), small), whole.im};
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
  Value near = b.fma(z.im, z.im, b.fma(z.re, z.re, b.addF(z.re, z.re)));
  Value small = b.mulF(math::Log1pOp::create(b, near), 0.5);
  Value plain = logOfModulus(b, shifted);
  // Above, 1 + re has lost digits of re that the logarithm of a modulus near 1 shows.
  Value isSmall = b.andI(b.cmpF(FPred::OGT, near, -0.5), b.cmpF(FPred::OLT, near, 8.0));
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

/// (cosh(x) f, sinh(x) g), where f and g are sines and cosines of one angle. One of the two is what is left of an
/// infinite x if the angle is infinite or no number: as C's Annex G has it, the real part of cosh and sinh.
enum class Kept { Even, Odd };
Pair multiplyHyperbolic(CodeBuilder &b, Value x, Value f, Value g, Kept kept) {
  LimitedArgument limited = limitArgument(b, x);
  Value even = multiplyZeroWins(b, f, math::CoshOp::create(b, limited.value));
  Value odd = multiplyZeroWins(b, g, math::SinhOp::create(b, limited.value));
  auto scale = [&](Value product) { return b.mulF(b.mulF(product, limited.first), limited.second); };
  Value hasNoAngle = b.andI(isInfinite(b, x), b.isNan(f)), infinity = b.infinity(x.getType());
  auto keep = [&](Value part) { return b.select(hasNoAngle, infinity, scale(part)); };
  return kept == Kept::Even ? Pair{keep(even), scale(odd)} : Pair{scale(even), keep(odd)};
}
Value cosineOf(CodeBuilder &b, Value x) { return math::CosOp::create(b, x); }
Value sineOf(CodeBuilder &b, Value x) { return math::SinOp::create(b, x); }

Pair cosine(CodeBuilder &b, Pair z) {
  Pair product = multiplyHyperbolic(b, z.im, cosineOf(b, z.re), sineOf(b, z.re), Kept::Even);
  return {product.re, b.negF(product.im)};
}
Pair sine(CodeBuilder &b, Pair z) { return multiplyHyperbolic(b, z.im, sineOf(b, z.re), cosineOf(b, z.re), Kept::Odd); }
Pair hyperbolicSine(CodeBuilder &b, Pair z) {
  Pair product = multiplyHyperbolic(b, z.re, sineOf(b, z.im), cosineOf(b, z.im), Kept::Odd);
  return {product.im, product.re};
}
Pair hyperbolicCosine(CodeBuilder &b, Pair z) {
  return multiplyHyperbolic(b, z.re, cosineOf(b, z.im), sineOf(b, z.im), Kept::Even);
}

/// (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y), which is accurate at the poles, where both terms of the
/// denominator vanish. cosh is made of sinh: then errors of sinh cancel where x is large.
Pair hyperbolicTangent(CodeBuilder &b, Pair z) {
  // Beyond, the imaginary part vanishes, and the square of sinh would soon overflow.
  Value limit = b.floatingLike(z.re, z.re.getType().isF64() ? 354.0 : 44.0);
  Value magnitude = b.absF(z.re);
  Value isLarge = b.cmpF(FPred::OGT, magnitude, limit);
  Value sinh = math::SinhOp::create(b, b.select(isLarge, b.copySign(limit, z.re), z.re));
  Value sine = sineOf(b, z.im), cosine = cosineOf(b, z.im);
  Value square = b.mulF(sinh, sinh);
  Value denominator = b.fma(cosine, cosine, square);
  Value re = b.divF(b.mulF(sinh, b.sqrt(b.addF(square, 1.0))), denominator);
  Value product = b.mulF(sine, cosine);
  Value im = b.select(isLarge, b.mulF(product, 0.0), b.divF(product, denominator));
  // Where the other part is infinite or no number, a zero stays zero and an infinite real part gives 1.
  Value isImaginary = b.cmpF(FPred::OEQ, z.re, 0.0);
  Value isReal = b.cmpF(FPred::OEQ, z.im, 0.0);
  Value settled = isInfinite(b, z.re);
  re = b.select(isImaginary, z.re, b.select(settled, b.copySign(b.floatingLike(re, 1.0), z.re), re));
  Value none = b.copySign(b.floatingLike(im, 0.0), z.im);
  return {re, b.select(b.orI(isReal, settled), none, im)};
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

/// A power of two that brings numbers of this size into the range where sums of their squares are normal numbers.
Value squareScale(CodeBuilder &b, Value size) {
  const int half = llvm::APFloat::semanticsMaxExponent(cast<FloatType>(size.getType()).getFloatSemantics()) / 2;
  Value isLarge = b.cmpF(FPred::OGE, size, std::ldexp(1.0, half - 4));
  Value isSmall = b.cmpF(FPred::OLT, size, std::ldexp(1.0, -half / 2));
  Value others = b.select(isSmall, b.floatingLike(size, std::ldexp(1.0, half * 3 / 2 - 8)), b.floatingLike(size, 1.0));
  return b.select(isLarge, b.floatingLike(size, std::ldexp(1.0, -half - 8)), others);
}

/// -i log((x + i y) / sqrt(x^2 + y^2)) for complex y, x.
Pair arcTangent2(CodeBuilder &b, Pair y, Pair x) {
  // Of multiples it is the same; squares must not overflow.
  Value size = b.maxF(b.maxF(b.absF(x.re), b.absF(x.im)), b.maxF(b.absF(y.re), b.absF(y.im)));
  Value scale = squareScale(b, size);
  x = {b.mulF(x.re, scale), b.mulF(x.im, scale)};
  y = {b.mulF(y.re, scale), b.mulF(y.im, scale)};
  Pair numerator = {b.subF(x.re, y.im), b.addF(x.im, y.re)};
  Pair xx = multiply(b, x, x), yy = multiply(b, y, y);
  Pair norm = squareRoot(b, {b.addF(xx.re, yy.re), b.addF(xx.im, yy.im)});
  Pair log = logarithm(b, divide(b, numerator, norm));
  return {log.im, b.negF(log.re)};
}

/// z / |z| without |z|, which may overflow: of the larger part and the ratio of the smaller to it, 1 / sqrt(1 +
/// ratio^2) and ratio / sqrt(1 + ratio^2). Infinite parts have no sign.
Pair signOf(CodeBuilder &b, Pair z) {
  Value re = b.absF(z.re), im = b.absF(z.im);
  Value realLarger = b.cmpF(FPred::OGE, re, im);
  Value scale = sizeScale(b, b.maxF(re, im)).factor;
  Value larger = b.mulF(b.maxF(re, im), scale), smaller = b.mulF(b.minF(re, im), scale);
  Value ratio = b.divF(smaller, larger);
  Value most = math::RsqrtOp::create(b, b.fma(ratio, ratio, b.floatingLike(ratio, 1.0)));
  Value least = b.mulF(ratio, most);
  Value isZero = b.cmpF(FPred::OEQ, larger, 0.0), isVast = isInfinite(b, z);
  auto part = [&](Value of, Value size) {
    Value settled = b.select(isZero, zero(b, z), b.copySign(size, of));
    return b.select(isVast, b.mulF(of, 0.0), settled);
  };
  return {part(z.re, b.select(realLarger, most, least)), part(z.im, b.select(realLarger, least, most))};
}

/// 1 / (1 + e^-z), or e^z / (1 + e^z) on the left: neither overflows. With e = (a, b), p = 1 + a, n = p^2 + b^2 they
/// are (p, -b) / n and (a p + b^2, b) / n.
Pair logistic(CodeBuilder &b, Pair z) {
  Value isLeft = b.cmpF(FPred::OLT, z.re, 0.0);
  Pair e = exponential(b, {b.negF(b.absF(z.re)), b.select(isLeft, z.im, b.negF(z.im))});
  Value sum = b.addF(e.re, 1.0), square = b.mulF(e.im, e.im);
  Value norm = b.fma(sum, sum, square);
  Value re = b.select(isLeft, b.fma(e.re, sum, square), sum);
  return {b.divF(re, norm), b.divF(b.select(isLeft, e.im, b.negF(e.im)), norm)};
}

/// x if its real part has this relation to that of y, else y.
Pair chosen(CodeBuilder &b, FPred relation, Pair x, Pair y) {
  Value isFirst = b.cmpF(relation, x.re, y.re);
  return {b.select(isFirst, x.re, y.re), b.select(isFirst, x.im, y.im)};
}

Pair reciprocalRoot(CodeBuilder &b, Pair z) {
  Value one = b.floatingLike(z.re, 1.0);
  return divide(b, {one, zero(b, z)}, squareRoot(b, z));
}

/// An op from pairs to pairs; those of one operand are not given another.
struct PairFunction {
  Pair (*ofOne)(CodeBuilder &, Pair) = nullptr;
  Pair (*ofTwo)(CodeBuilder &, Pair, Pair) = nullptr;
};

PairFunction pairFunction(Opcode opcode) {
  using enum Opcode;
  constexpr auto refused = nullptr;
  static constexpr OpcodeTable<PairFunction> functions(
      [](Opcode each) { return isDefinedOn(each, TypeSet::Complex); },
      {
          {{Negate}, {[](CodeBuilder &b, Pair z) { return Pair{b.negF(z.re), b.negF(z.im)}; }}},
          {{Sign}, {signOf}},
          {{Exponential}, {exponential}},
          {{ExponentialMinusOne}, {exponentialMinusOne}},
          {{Log}, {logarithm}},
          {{LogPlusOne}, {logarithmPlusOne}},
          {{Sqrt}, {squareRoot}},
          {{Rsqrt}, {reciprocalRoot}},
          {{Cosine}, {cosine}},
          {{Sine}, {sine}},
          {{Tan}, {tangent}},
          {{Sinh}, {hyperbolicSine}},
          {{Cosh}, {hyperbolicCosine}},
          {{Tanh}, {hyperbolicTangent}},
          {{Logistic}, {logistic}},
          {{Acos, Acosh, Asin, Asinh, Atanh}, {refused}},
          {{Real, Imag, Abs}, {nullptr}}, // to real numbers: emitComplexOp
          {{Add},
           {nullptr, [](CodeBuilder &b, Pair x, Pair y) { return Pair{b.addF(x.re, y.re), b.addF(x.im, y.im)}; }}},
          {{Subtract},
           {nullptr, [](CodeBuilder &b, Pair x, Pair y) { return Pair{b.subF(x.re, y.re), b.subF(x.im, y.im)}; }}},
          {{Multiply}, {nullptr, multiply}},
          {{Divide}, {nullptr, divide}},
          {{Power}, {nullptr, power}},
          {{Atan2}, {nullptr, arcTangent2}},
          {{Maximum}, {nullptr, [](CodeBuilder &b, Pair x, Pair y) { return chosen(b, FPred::OGE, x, y); }}},
          {{Minimum}, {nullptr, [](CodeBuilder &b, Pair x, Pair y) { return chosen(b, FPred::OLE, x, y); }}},
      });
  return functions.contains(opcode) ? functions[opcode] : PairFunction();
}

} // namespace

Value complexArithmetic(CodeBuilder &b, Opcode opcode, Value x, Value y) {
  return join(b, pairFunction(opcode).ofTwo(b, split(b, x), split(b, y)));
}

llvm::FailureOr<Value> emitComplexOp(const ElementwiseOp &op) {
  CodeBuilder &b = op.b;
  Pair x = split(b, op.operand(0));
  if (op.opcode() == Opcode::Real)
    return x.re;
  if (op.opcode() == Opcode::Imag)
    return x.im;
  if (op.opcode() == Opcode::Abs)
    return modulus(b, x);
  const PairFunction function = pairFunction(op.opcode());
  if (function.ofOne)
    return join(b, function.ofOne(b, x));
  if (function.ofTwo)
    return join(b, function.ofTwo(b, x, split(b, op.operand(1))));
  return op.unsupportedType();
}

} // namespace hloc
