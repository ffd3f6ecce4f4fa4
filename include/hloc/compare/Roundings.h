#pragma once
// Comparing what a backend computed with what the interpreter did, roundings considered: Monte Carlo arithmetic
// (Parker 1997).
//
// A result may depend on a difference of two nearly equal numbers, each of which is right to its last place: 1 +
// tanh(x) for x near -8 has hardly a correct digit, whoever computes it. No bound by the ops on the way can tell such
// elements from wrong ones. So where elements are beyond their tolerance, the program is interpreted a few times more,
// every float op's result moved up or down at random by the error that the op is allowed (for sums: their terms), and
// each element may differ by a few times as much as it moved.

#include "hloc/compare/Compare.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/Support/LogicalResult.h"

namespace hloc {

/// `expected` is what `interpret(module, arguments)` gives, `tolerances` as for compareLiterals. Costs nothing more
/// than that where all elements are within their tolerances; else up to 24 times the interpretation, and 8 bytes an
/// element. An element that is NaN or infinite in some of these runs and a number in others may differ without limit.
llvm::FailureOr<CompareResult> compareRun(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                          const Literal &expected, const Literal &actual,
                                          llvm::ArrayRef<Tolerance> tolerances, DiagnosticEngine &diagnostics);

} // namespace hloc
