#pragma once
// batch-norm-inference as the steps that compilers make of it, for bounds: what cancels in them cannot be seen from
// operands and result.

#include "hloc/hlo/HloModule.h"

#include <memory>

namespace hloc::interp {

/// Two modules of the operands' shapes, of arithmetic in f32 (f64 of f64), which is that of the result for others:
///   (x - mean) / sqrt(variance + epsilon) * scale + offset
///   (x - mean) * rsqrt(variance + epsilon) * scale + offset
struct NormSteps {
  std::unique_ptr<HloModule> byRoot, byReciprocal;
};
NormSteps normStepsOf(const HloInstruction &batchNormInference);

} // namespace hloc::interp
