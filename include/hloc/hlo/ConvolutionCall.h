#pragma once
// What the text of a call of cuDNN's convolutions says. Window, labels and groups of all calls are those of the forward
// convolution y = convolution(x, kernel), whose input has no holes and which has no batch groups:
//
//   __cudnn$convForward                 y, scratch       of x, kernel
//   __cudnn$convBiasActivationForward   y, scratch       of x, kernel, bias[, side input]
//   __cudnn$convBackwardInput           dx, scratch      of dy, kernel
//   __cudnn$convBackwardFilter          dkernel, scratch of x, dy

#include "hloc/hlo/HloInstruction.h"

#include <optional>

namespace hloc {

enum class ConvolutionCallKind { Forward, BiasActivation, InputGradient, KernelGradient };

/// By the target of a custom call; none if it is not one of cuDNN's convolutions.
std::optional<ConvolutionCallKind> convolutionCallKind(llvm::StringRef target);

/// Of y = convolution(x, kernel).
struct ConvolutionShapes {
  const Shape &x, &kernel, &y;
};

/// Who is who of a call's first two operands and its first result.
ConvolutionShapes convolutionShapes(ConvolutionCallKind kind, const Shape &first, const Shape &second,
                                    const Shape &result);

/// y = activation(scale * convolution + sideScale * side input + bias)
struct ConvolutionEpilogue {
  enum class Activation { None, Relu, Relu6, LeakyRelu, Elu, Unknown } activation = Activation::Unknown;
  double scale = 1, sideScale = 0, leak = 0;

  /// Of a `backend_config`; the activation is unknown where that does not say all of it.
  static ConvolutionEpilogue parse(llvm::StringRef config);
  /// Does it leave the convolution as it is?
  bool isPlain() const { return activation == Activation::None && scale == 1; }
};

/// The `backend_config` of a call without an epilogue.
llvm::StringRef plainConvolutionConfiguration();

/// A call that fits `convolution`'s rules, which nobody has checked at a custom call. Lives as long as the instruction.
struct ConvolutionCall {
  ConvolutionCallKind kind;
  ConvolutionShapes shapes;
  const Window &window;
  const ConvolutionLabels &labels;
  int64_t groups;                    ///< of features
  llvm::ArrayRef<int64_t> precision; ///< of operands; empty: the default
  ConvolutionEpilogue epilogue;
  bool allowsTf32 = false; ///< its mark says so (LibraryMark.h)

  /// None if the target is another, or operands, results, attributes and configuration do not fit each other. Sizes of
  /// the window stay below 2^30, so that sums and products of two do not overflow. Element types are not looked at.
  static std::optional<ConvolutionCall> of(const HloInstruction &instr);

  /// Is it y = convolution(x, kernel) of two s8? Their sums are s32, which is converted.
  bool multipliesBytes() const;

  /// Of the spatial dimension `i`.
  int64_t xSize(size_t i) const { return shapes.x.dim(unsigned(labels.lhsSpatial[i])); }
  int64_t ySize(size_t i) const { return shapes.y.dim(unsigned(labels.outSpatial[i])); }
};

} // namespace hloc
