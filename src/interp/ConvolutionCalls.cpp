// Calls of cuDNN's convolutions: forward with or without an epilogue, and both gradients. Window, labels and groups of
// all of them are those of the forward convolution y = convolution(x, kernel):
//
//   __cudnn$convForward                 y, scratch       of x, kernel
//   __cudnn$convBiasActivationForward   y, scratch       of x, kernel, bias[, side input]
//   __cudnn$convBackwardInput           dx, scratch      of dy, kernel
//   __cudnn$convBackwardFilter          dkernel, scratch of x, dy

#include "hloc/support/Check.h"
#include "interp/Convolution.h"
#include "interp/MatrixProduct.h"
#include "interp/Ops.h"
#include "interp/Strided.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

#include <cmath>

namespace hloc::interp {

namespace {

enum class CallKind { Forward, BiasActivation, InputGradient, KernelGradient };

CallKind callKind(llvm::StringRef target) {
  return llvm::StringSwitch<CallKind>(target)
      .Case("__cudnn$convBiasActivationForward", CallKind::BiasActivation)
      .Case("__cudnn$convBackwardInput", CallKind::InputGradient)
      .Case("__cudnn$convBackwardFilter", CallKind::KernelGradient)
      .Default(CallKind::Forward);
}

/// Shapes of the forward convolution.
struct ForwardShapes {
  const Shape &x, &kernel, &y;
};

ForwardShapes forwardShapes(CallKind kind, const Step &step) {
  const Shape &first = step.array(0).shape(), &second = step.array(1).shape(), &result = step.shape().element(0);
  switch (kind) {
  case CallKind::Forward:
  case CallKind::BiasActivation:
    return {first, second, result};
  case CallKind::InputGradient:
    return {result, second, first};
  case CallKind::KernelGradient:
    return {first, result, second};
  }
  HLOC_UNREACHABLE("kind of convolution out of range");
}

/// Numbers a window can have, so that sums and products of them do not overflow.
bool isSmall(const WindowDim &dim) {
  constexpr int64_t limit = int64_t(1) << 30;
  return dim.stride >= 1 && dim.stride < limit && dim.windowDilation >= 1 && dim.windowDilation < limit &&
         dim.size >= 1 && dim.size < limit && std::abs(dim.padLow) < limit && std::abs(dim.padHigh) < limit;
}

/// The rules of `convolution`, which nobody has checked at a custom call, and cuDNN's: no holes in the input and no
/// batch groups.
bool isForwardConvolution(const ConvolutionGeometry &geometry, const ForwardShapes &shapes) {
  const ConvolutionLabels &labels = geometry.labels;
  size_t spatial = geometry.window.dims.size();
  bool ranksFit = shapes.x.rank() == spatial + 2 && shapes.kernel.rank() == spatial + 2 &&
                  shapes.y.rank() == spatial + 2 && labels.lhsSpatial.size() == spatial &&
                  labels.rhsSpatial.size() == spatial && labels.outSpatial.size() == spatial;
  if (!ranksFit || geometry.batchGroups != 1 || geometry.featureGroups < 1)
    return false;
  int64_t inFeatures = shapes.kernel.dim(unsigned(labels.rhsInput)),
          outFeatures = shapes.kernel.dim(unsigned(labels.rhsOutput));
  if (shapes.x.dim(unsigned(labels.lhsBatch)) != shapes.y.dim(unsigned(labels.outBatch)) ||
      shapes.x.dim(unsigned(labels.lhsFeature)) != inFeatures * geometry.featureGroups ||
      shapes.y.dim(unsigned(labels.outFeature)) != outFeatures || outFeatures % geometry.featureGroups != 0)
    return false;
  for (size_t i = 0; i < spatial; ++i) {
    const WindowDim &dim = geometry.window.dims[i];
    if (!isSmall(dim))
      return false;
    if (dim.baseDilation != 1 || dim.size != shapes.kernel.dim(unsigned(labels.rhsSpatial[i])))
      return false;
    int64_t padded = dim.padLow + shapes.x.dim(unsigned(labels.lhsSpatial[i])) + dim.padHigh;
    int64_t kernel = (dim.size - 1) * dim.windowDilation + 1;
    int64_t positions = padded < kernel ? 0 : (padded - kernel) / dim.stride + 1;
    if (shapes.y.dim(unsigned(labels.outSpatial[i])) != positions)
      return false;
  }
  return true;
}

/// y = activation(scale * convolution + sideScale * side input + bias)
struct Epilogue {
  enum class Activation { None, Relu, Relu6, LeakyRelu, Elu, Unknown } activation = Activation::Unknown;
  double scale = 1, sideScale = 0, leak = 0;

  double activate(double value) const {
    switch (activation) {
    case Activation::None:
    case Activation::Unknown:
      return value;
    case Activation::Relu: // the comparisons let NaN through
      return value < 0 ? 0 : value;
    case Activation::Relu6:
      return value < 0 ? 0 : value > 6 ? 6 : value;
    case Activation::LeakyRelu:
      return value < 0 ? leak * value : value;
    case Activation::Elu:
      return value < 0 ? std::expm1(value) : value;
    }
    HLOC_UNREACHABLE("activation out of range");
  }
  /// Does it leave the convolution as it is?
  bool isPlain() const { return activation == Activation::None && scale == 1; }
};

/// From the backend configuration; the activation is unknown where that does not say all of it.
Epilogue epilogue(llvm::StringRef text) {
  using Activation = Epilogue::Activation;
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return {};
  }
  const llvm::json::Object *outer = parsed->getAsObject();
  const llvm::json::Object *config = outer ? outer->getObject("cudnn_conv_backend_config") : nullptr;
  if (!config)
    return {};
  std::optional<double> scale = config->getNumber("conv_result_scale");
  Activation activation = llvm::StringSwitch<Activation>(config->getString("activation_mode").value_or(""))
                              .Case("kNone", Activation::None)
                              .Case("kRelu", Activation::Relu)
                              .Case("kRelu6", Activation::Relu6)
                              .Case("kLeakyRelu", Activation::LeakyRelu)
                              .Case("kElu", Activation::Elu)
                              .Default(Activation::Unknown);
  return {scale ? activation : Activation::Unknown, scale.value_or(1),
          config->getNumber("side_input_scale").value_or(0), config->getNumber("leakyrelu_alpha").value_or(0)};
}

/// Bias, one for each output feature, and side input, of the result's dimensions, where the call has them.
bool fitEpilogue(const Step &step, const ConvolutionGeometry &geometry, const Shape &result) {
  auto isRealFloat = [&](unsigned i) { return isFloat(step.array(i).shape().elementType()); };
  return (step.operands.size() == 3 || step.operands.size() == 4) && isRealFloat(2) &&
         step.array(2).shape().dims() == llvm::ArrayRef(result.dim(unsigned(geometry.labels.outFeature))) &&
         (step.operands.size() == 3 || (isRealFloat(3) && step.array(3).shape().dims() == result.dims()));
}

void apply(const Epilogue &epilogue, const Step &step, unsigned feature, Literal &sums) {
  llvm::ArrayRef<int64_t> dims = sums.shape().dims();
  int64_t perFeature = product(dims.drop_front(feature + 1));
  for (int64_t i = 0; i < sums.numElements(); ++i) {
    double value = epilogue.scale * sums.getDouble(i) + step.array(2).getDouble(i / perFeature % dims[feature]);
    if (step.operands.size() == 4)
      value += epilogue.sideScale * step.array(3).getDouble(i);
    sums.setDouble(i, epilogue.activate(value));
  }
}

Literal sumsOf(CallKind kind, const Step &step, const ConvolutionGeometry &geometry) {
  const Shape &result = step.shape().element(0);
  switch (kind) {
  case CallKind::Forward:
  case CallKind::BiasActivation:
    return convolutionSums(geometry, step.array(0), step.array(1), result);
  case CallKind::InputGradient:
    return inputGradientSums(geometry, step.array(0), step.array(1), result);
  case CallKind::KernelGradient:
    return kernelGradientSums(geometry, step.array(0), step.array(1), result);
  }
  HLOC_UNREACHABLE("kind of convolution out of range");
}

bool isUnderstood(CallKind kind, const Step &step, const Epilogue &epilogue) {
  const Shape &shape = step.shape();
  bool fits = step.operands.size() >= 2 && step.instr.has(AttributeKey::DimLabels) &&
              step.instr.has(AttributeKey::Window) && shape.isTuple() && shape.elements().size() == 2 &&
              shape.element(0).isArray() && isFloat(shape.element(0).elementType());
  for (unsigned i = 0; fits && i < step.operands.size(); ++i)
    fits = !step.operands[i].isTuple() &&
           isProductDefined(step.array(i).shape().elementType(), shape.element(0).elementType());
  if (!fits)
    return false;
  ConvolutionGeometry geometry = ConvolutionGeometry::of(step.instr);
  if (!isForwardConvolution(geometry, forwardShapes(kind, step)))
    return false;
  return kind == CallKind::BiasActivation
             ? epilogue.activation != Epilogue::Activation::Unknown && fitEpilogue(step, geometry, shape.element(0))
             : epilogue.isPlain() && step.operands.size() == 2;
}

} // namespace

llvm::FailureOr<Value> convolutionCall(Step &step) {
  llvm::StringRef target = step.instr.string(AttributeKey::CustomCallTarget);
  CallKind kind = callKind(target);
  Epilogue after = epilogue(step.instr.string(AttributeKey::BackendConfig));
  if (!isUnderstood(kind, step, after))
    return step.unsupported("operands, results or configuration do not fit the target `" + target + "`");
  ConvolutionGeometry geometry = ConvolutionGeometry::of(step.instr);
  Literal sums = sumsOf(kind, step, geometry), result(step.shape().element(0));
  if (kind == CallKind::BiasActivation)
    apply(after, step, unsigned(geometry.labels.outFeature), sums);
  roundInto(sums, result);
  return Value::tuple({Value(std::move(result)), Value::zero(step.shape().element(1))});
}

} // namespace hloc::interp
