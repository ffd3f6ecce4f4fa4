#include "hloc/hlo/ConvolutionCall.h"

#include "BackendConfig.h"

#include "hloc/hlo/LibraryMark.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstdlib>

namespace hloc {

namespace {

/// Do the labels name each dimension of an array of `spatial.size() + 2` once?
bool cover(const Shape &shape, int64_t first, int64_t second, llvm::ArrayRef<int64_t> spatial) {
  if (shape.rank() != spatial.size() + 2)
    return false;
  llvm::SmallVector<bool> named(shape.rank(), false);
  auto name = [&](int64_t dim) {
    return dim >= 0 && dim < int64_t(named.size()) && !std::exchange(named[size_t(dim)], true);
  };
  return name(first) && name(second) && llvm::all_of(spatial, name);
}

bool labelsFit(const ConvolutionLabels &labels, const ConvolutionShapes &shapes, size_t spatial) {
  return labels.lhsSpatial.size() == spatial && labels.rhsSpatial.size() == spatial &&
         labels.outSpatial.size() == spatial &&
         cover(shapes.x, labels.lhsBatch, labels.lhsFeature, labels.lhsSpatial) &&
         cover(shapes.kernel, labels.rhsInput, labels.rhsOutput, labels.rhsSpatial) &&
         cover(shapes.y, labels.outBatch, labels.outFeature, labels.outSpatial);
}

bool featuresFit(const ConvolutionCall &call) {
  const auto &[x, kernel, y] = call.shapes;
  const ConvolutionLabels &labels = call.labels;
  const int64_t outFeatures = kernel.dim(unsigned(labels.rhsOutput)), features = x.dim(unsigned(labels.lhsFeature));
  return call.groups >= 1 && x.dim(unsigned(labels.lhsBatch)) == y.dim(unsigned(labels.outBatch)) &&
         features % call.groups == 0 && features / call.groups == kernel.dim(unsigned(labels.rhsInput)) &&
         y.dim(unsigned(labels.outFeature)) == outFeatures && outFeatures % call.groups == 0;
}

bool isSmall(const WindowDim &dim) {
  constexpr int64_t limit = int64_t(1) << 30;
  return dim.stride >= 1 && dim.stride < limit && dim.windowDilation >= 1 && dim.windowDilation < limit &&
         dim.size >= 1 && dim.size < limit && dim.padLow > -limit && dim.padLow < limit && dim.padHigh > -limit &&
         dim.padHigh < limit;
}

bool windowFits(const ConvolutionCall &call) {
  for (auto [i, dim] : llvm::enumerate(call.window.dims)) {
    if (!isSmall(dim) || dim.baseDilation != 1 ||
        dim.size != call.shapes.kernel.dim(unsigned(call.labels.rhsSpatial[i])))
      return false;
    const int64_t padded = dim.padLow + call.xSize(i) + dim.padHigh;
    const int64_t kernel = (dim.size - 1) * dim.windowDilation + 1;
    if (call.ySize(i) != (padded < kernel ? 0 : (padded - kernel) / dim.stride + 1))
      return false;
  }
  return true;
}

/// Bias, one for each output feature, and side input, of the result's dimensions, where the call has them.
bool epilogueFits(const ConvolutionCall &call, const HloInstruction &instr) {
  if (call.kind != ConvolutionCallKind::BiasActivation)
    return call.epilogue.isPlain() && instr.numOperands() == 2;
  const Shape &y = call.shapes.y;
  return call.epilogue.activation != ConvolutionEpilogue::Activation::Unknown &&
         (instr.numOperands() == 3 || instr.numOperands() == 4) &&
         instr.operand(2)->shape().dims() == llvm::ArrayRef(y.dim(unsigned(call.labels.outFeature))) &&
         (instr.numOperands() == 3 || instr.operand(3)->shape().sameDims(y));
}

} // namespace

std::optional<ConvolutionCallKind> convolutionCallKind(llvm::StringRef target) {
  return llvm::StringSwitch<std::optional<ConvolutionCallKind>>(target)
      .Case("__cudnn$convForward", ConvolutionCallKind::Forward)
      .Case("__cudnn$convBiasActivationForward", ConvolutionCallKind::BiasActivation)
      .Case("__cudnn$convBackwardInput", ConvolutionCallKind::InputGradient)
      .Case("__cudnn$convBackwardFilter", ConvolutionCallKind::KernelGradient)
      .Default(std::nullopt);
}

ConvolutionShapes convolutionShapes(ConvolutionCallKind kind, const Shape &first, const Shape &second,
                                    const Shape &result) {
  switch (kind) {
  case ConvolutionCallKind::Forward:
  case ConvolutionCallKind::BiasActivation:
    return {first, second, result};
  case ConvolutionCallKind::InputGradient:
    return {result, second, first};
  case ConvolutionCallKind::KernelGradient:
    return {first, result, second};
  }
  HLOC_UNREACHABLE("kind of convolution out of range");
}

ConvolutionEpilogue ConvolutionEpilogue::parse(llvm::StringRef text) {
  const llvm::json::Object whole = readBackendConfig(text);
  const llvm::json::Object *config = whole.getObject("cudnn_conv_backend_config");
  std::optional<double> scale = config ? config->getNumber("conv_result_scale") : std::nullopt;
  if (!scale)
    return {};
  return {llvm::StringSwitch<Activation>(config->getString("activation_mode").value_or(""))
              .Case("kNone", Activation::None)
              .Case("kRelu", Activation::Relu)
              .Case("kRelu6", Activation::Relu6)
              .Case("kLeakyRelu", Activation::LeakyRelu)
              .Case("kElu", Activation::Elu)
              .Default(Activation::Unknown),
          *scale, config->getNumber("side_input_scale").value_or(0), config->getNumber("leakyrelu_alpha").value_or(0)};
}

llvm::StringRef plainConvolutionConfiguration() {
  return R"({"cudnn_conv_backend_config":{"activation_mode":"kNone","conv_result_scale":1}})";
}

bool ConvolutionCall::multipliesBytes() const {
  return (kind == ConvolutionCallKind::Forward || kind == ConvolutionCallKind::BiasActivation) &&
         shapes.x.elementType() == ElementType::S8 && shapes.kernel.elementType() == ElementType::S8;
}

std::optional<ConvolutionCall> ConvolutionCall::of(const HloInstruction &instr) {
  if (instr.opcode() != Opcode::CustomCall)
    return std::nullopt;
  const std::optional<ConvolutionCallKind> kind = convolutionCallKind(instr.string(AttributeKey::CustomCallTarget));
  const Shape &shape = instr.shape();
  if (!kind || !instr.has(AttributeKey::DimLabels) || !instr.has(AttributeKey::Window) || instr.numOperands() < 2 ||
      !shape.isTuple() || shape.elements().size() != 2 ||
      !llvm::all_of(shape.elements(), [](const Shape &element) { return element.isArray(); }) ||
      !llvm::all_of(instr.operands(), [](const HloInstruction *operand) { return operand->shape().isArray(); }) ||
      instr.intOr(AttributeKey::BatchGroupCount, 1) != 1)
    return std::nullopt;
  ConvolutionCall call{*kind,
                       convolutionShapes(*kind, instr.operand(0)->shape(), instr.operand(1)->shape(), shape.element(0)),
                       *instr.get<const Window *>(AttributeKey::Window),
                       *instr.get<const ConvolutionLabels *>(AttributeKey::DimLabels),
                       instr.intOr(AttributeKey::FeatureGroupCount, 1),
                       instr.ints(AttributeKey::OperandPrecision).take_front(2),
                       ConvolutionEpilogue::parse(instr.string(AttributeKey::BackendConfig)),
                       hasTf32LibraryMark(instr)};
  if (!labelsFit(call.labels, call.shapes, call.window.dims.size()) || !featuresFit(call) || !windowFits(call) ||
      !epilogueFits(call, instr))
    return std::nullopt;
  return call;
}

} // namespace hloc
