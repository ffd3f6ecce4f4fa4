#pragma once
// Exponentials of what is no larger than a row's maximum, and quotients by their sum: less than functions of any number
// have to do, within what the reference admits for these.

#include "emitters/CodeBuilder.h"

namespace hloc {

/// What exponents are less by: a maximum that is no number yet would make them none.
inline mlir::Value exponentBase(CodeBuilder &b, mlir::Value maximum) {
  mlir::Value isLeast = b.cmpF(CodeBuilder::FPred::OEQ, maximum, b.infinity(maximum.getType(), /*negative=*/true));
  return b.select(isLeast, b.floatingLike(maximum, 0), maximum);
}

/// A sum of exponentials less `maximum`, of the same less another. Where the maximum stays this multiplies by 1, though
/// it may be a product, whose rounding a multiply-add would bring back.
inline mlir::Value rescaledSum(CodeBuilder &b, mlir::Value sum, mlir::Value maximum, mlir::Value newSubtrahend) {
  return b.mulF(sum, mlir::math::ExpOp::create(b, b.differenceF(maximum, newSubtrahend), CodeBuilder::flags));
}

inline constexpr double log2OfE = 1.4426950408889634;

/// 2^x; what is less than the normal numbers of f32 may be 0, which no sum of 1 and more shows.
inline mlir::Value flushedPower(CodeBuilder &b, mlir::Value x) {
  return mlir::math::Exp2Op::create(b, x, CodeBuilder::flags | mlir::arith::FastMathFlags::afn);
}

/// e^x for sums of many in which none is above 1 and one is 1, or all are that times one number of up to e^8. The
/// product is off by half a unit of x: of a sum's share, no more than the logarithm of their number on average, far
/// less than such sums may be.
inline mlir::Value roughPower(CodeBuilder &b, mlir::Value x) { return flushedPower(b, b.mulF(x, log2OfE)); }

/// e^x for x up to 0, in two factors, of which the second is nearly 1: `rest` is what it is more than 1. `flushes`: the
/// first may be 0 where it is less than the normal numbers.
struct PowerInFactors {
  mlir::Value power, rest;
};
inline PowerInFactors powerOf(CodeBuilder &b, mlir::Value x, bool flushes = false) {
  constexpr double ln2 = 0.6931471805599453, high = float(ln2), leastExponent = -150;
  // Of what is less, minus infinity among it, the power is 0; the rest would be no number.
  x = b.maxF(x, b.floatingLike(x, leastExponent));
  mlir::Value product = b.mulF(x, log2OfE);
  mlir::Value rest = b.fma(product, b.floatingLike(x, -high), x);
  rest = b.fma(product, b.floatingLike(x, high - ln2), rest);
  return {flushes ? flushedPower(b, product) : mlir::math::Exp2Op::create(b, product, CodeBuilder::flags), rest};
}

/// The same in one.
inline mlir::Value exactPower(CodeBuilder &b, mlir::Value x, bool flushes = false) {
  const PowerInFactors power = powerOf(b, x, flushes);
  return b.fma(power.power, power.rest, power.power);
}

/// Of a sum that is 1 or more: rounded to the nearest but for one in many, so that a product is a quotient within two
/// units.
inline mlir::Value nearReciprocal(CodeBuilder &b, mlir::Value sum) {
  mlir::Value near = b.divF(b.floatingLike(sum, 1), sum);
  mlir::Value rest = b.fma(b.negF(sum), near, b.floatingLike(sum, 1));
  return b.fma(rest, near, near);
}

} // namespace hloc
