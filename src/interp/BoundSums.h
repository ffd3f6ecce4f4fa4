#pragma once
// Bounds of sums and sums of products, which may be taken in any order and have terms with bounds of their own.

#include "interp/BoundElementwise.h"

namespace hloc::interp {

/// The opcode if the computation is one binary op on its two parameters, in either order.
std::optional<Opcode> plainOp(const HloComputation &computation);
/// Of a reducer of several operands: is result `i` the sum of accumulator i and element i, apart from all others?
bool addsAlone(const HloComputation &reducer, unsigned i);

/// `reduce` of one float or complex operand by `add`.
BoundsPtr boundReduceSum(const BoundStep &step);
/// `dot` and `convolution` of floats or complex numbers.
llvm::FailureOr<BoundsPtr> boundProducts(const BoundStep &step);
/// `reduce-window` by `add` of floats.
llvm::FailureOr<BoundsPtr> boundWindowSum(const BoundStep &step);
/// `scatter` by `add` of floats with known indices.
llvm::FailureOr<BoundsPtr> boundScatterSum(const BoundStep &step);

} // namespace hloc::interp
