#pragma once
// Convolutions as `convolution` and the calls of cuDNN share them.

#include "hloc/hlo/Attribute.h"
#include "hloc/hlo/Literal.h"

#include <optional>

namespace hloc {
class HloInstruction;
}

namespace hloc::interp {

/// What each dimension is for, and which input element each pair of an output element and a kernel element meets:
/// position `out * stride + kernel * windowDilation - padLow` of the input that has `baseDilation - 1` holes between
/// neighbours. Padding at the high end follows from the size of the result.
struct ConvolutionGeometry {
  ConvolutionLabels labels;
  Window window;
  int64_t featureGroups = 1, batchGroups = 1;

  /// From the attributes of the instruction.
  static ConvolutionGeometry of(const HloInstruction &instr);
};

/// Sums of products of the operands, both converted to the type of `result`; an array of the sum type of that type.
Literal convolutionSums(const ConvolutionGeometry &geometry, const Literal &input, const Literal &kernel,
                        const Shape &result);

/// By element of a convolution's result: whether an element of the kernel that is no number, or infinite, meets padding
/// or a hole there. Who multiplies it by zero has NaN, who skips it has not. Empty: nowhere.
std::vector<bool> paddedSpecials(const HloInstruction &convolution, const Literal &kernel);

/// The gradients of y = convolution(x, kernel), in whose geometry the input is not dilated and there are no batch
/// groups: what y's gradient `dy` makes of x's, and of the kernel's.
Literal inputGradientSums(const ConvolutionGeometry &forward, const Literal &dy, const Literal &kernel,
                          const Shape &result);
Literal kernelGradientSums(const ConvolutionGeometry &forward, const Literal &input, const Literal &dy,
                           const Shape &result);

} // namespace hloc::interp
