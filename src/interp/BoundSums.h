#pragma once
// Bounds of sums and sums of products, which may be taken in any order and have terms with bounds of their own.

#include "interp/BoundElementwise.h"

namespace hloc::interp {

/// How large floats are at most; NaN where nothing is known.
Literal magnitudes(const Bounds &bounds);
/// The opcode if the computation is one binary op on its two parameters, in either order.
std::optional<Opcode> plainOp(const HloComputation &computation);
/// Does the reducer make result `i` by this op of accumulator i and element i, apart from all others?
bool combinesAlone(const HloComputation &reducer, unsigned i, Opcode opcode);

/// `reduce` of one float or complex operand by `add`.
BoundsPtr boundReduceSum(const BoundStep &step);
/// `dot` and `convolution` of floats or complex numbers.
llvm::FailureOr<BoundsPtr> boundProducts(const BoundStep &step);
/// `reduce-window` by `add` of floats.
llvm::FailureOr<BoundsPtr> boundWindowSum(const BoundStep &step);
/// Is it a `scan` of floats or complex numbers that gives out the sums of one operand, in whatever order they are made?
bool isSumScan(const HloInstruction &instr);
/// The output of such a scan, which is the step's value.
BoundsPtr boundScanSum(const BoundStep &step);
/// `reduce-window` by `multiply` of floats, where `ends` are the bounds for the order of the text: in some orders
/// factors overflow or vanish among themselves before others meet them.
llvm::FailureOr<BoundsPtr> boundWindowProduct(const BoundStep &step, const BoundsPtr &ends);
/// `scatter` by `add` of floats with known indices.
llvm::FailureOr<BoundsPtr> boundScatterSum(const BoundStep &step);

} // namespace hloc::interp
