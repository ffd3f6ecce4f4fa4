#pragma once
// batch-norm-* as the steps that compilers make of them, for bounds: what cancels in them cannot be seen from operands
// and results.
// Written anew, not taken from the compiler's own expansion: a mistake there must not widen what is admissible.

#include "hloc/hlo/HloModule.h"

#include <memory>
#include <vector>

namespace hloc::interp {

/// Modules of the operands' shapes, each a way to compute the results. Inference in f32 at least, the others in f64:
///   inference  (x - mean) / sqrt(variance + epsilon) * scale + offset, and the same by rsqrt
///   training   the same of mean and variance of x
///   grad       scale / sqrt(s) / n * (n g - sum(g) - (x - mean) sum(g (x - mean)) / s), s = variance + epsilon
std::vector<std::unique_ptr<HloModule>> normStepsOf(const HloInstruction &batchNorm);

} // namespace hloc::interp
