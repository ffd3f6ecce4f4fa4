#pragma once
// Sine, cosine and tangent of f32 as arithmetic. Unlike libdevice's they need no local memory, and what a sine and a
// cosine of the same number have in common is found equal and computed once.
//
//   x = k pi/2 + r, |r| <= pi/4:   sin(x) = +-sin(r) or +-cos(r), by the last two bits of k

#include "mlir/IR/Builders.h"

namespace hloc {

enum class Trigonometric { Sine, Cosine, Tangent };

/// An argument as k pi/2 + r.
struct ReducedArgument {
  mlir::Value rest;     ///< f32 in [-pi/4, pi/4] and a little more
  mlir::Value quadrant; ///< i32, of which the last two bits count
};

/// Errors against the exact value, measured on a million numbers of all exponents: sine and cosine below 1.5 ulp,
/// tangent below 3.1 ulp. NaN for infinities and NaN; -0 for the sine and tangent of -0.
ReducedArgument reduceArgument(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value trigonometric(Trigonometric function, mlir::OpBuilder &builder, mlir::Location loc,
                          ReducedArgument argument);

} // namespace hloc
