// Calls of cuDNN's convolutions (hlo/ConvolutionCall.h): forward with or without an epilogue, and both gradients.

#include "hloc/hlo/ConvolutionCall.h"
#include "hloc/support/Check.h"
#include "interp/Convolution.h"
#include "interp/MatrixProduct.h"
#include "interp/Ops.h"
#include "interp/Strided.h"

#include <cmath>

namespace hloc::interp {

namespace {

double activate(const ConvolutionEpilogue &epilogue, double value) {
  using Activation = ConvolutionEpilogue::Activation;
  switch (epilogue.activation) {
  case Activation::None:
  case Activation::Unknown:
    return value;
  case Activation::Relu: // the comparisons let NaN through
    return value < 0 ? 0 : value;
  case Activation::Relu6:
    return value < 0 ? 0 : value > 6 ? 6 : value;
  case Activation::LeakyRelu:
    return value < 0 ? epilogue.leak * value : value;
  case Activation::Elu:
    return value < 0 ? std::expm1(value) : value;
  }
  HLOC_UNREACHABLE("activation out of range");
}

void apply(const ConvolutionEpilogue &epilogue, const Step &step, unsigned feature, Literal &sums) {
  llvm::ArrayRef<int64_t> dims = sums.shape().dims();
  int64_t perFeature = product(dims.drop_front(feature + 1));
  for (int64_t i = 0; i < sums.numElements(); ++i) {
    double value = epilogue.scale * sums.getDouble(i) + step.array(2).getDouble(i / perFeature % dims[feature]);
    if (step.operands.size() == 4)
      value += epilogue.sideScale * step.array(3).getDouble(i);
    sums.setDouble(i, activate(epilogue, value));
  }
}

Literal sumsOfBytes(const Step &step, const ConvolutionGeometry &geometry) {
  const Shape &result = step.shape().element(0);
  const Literal whole =
      convolutionSums(geometry, step.array(0), step.array(1), result.withElementType(ElementType::S32));
  Literal sums(result.withElementType(ElementType::F64));
  for (int64_t i = 0; i < sums.numElements(); ++i)
    sums.setDouble(i, double(int32_t(whole.getInt(i))));
  return sums;
}

Literal sumsOf(const ConvolutionCall &call, const Step &step, const ConvolutionGeometry &geometry) {
  const Shape &result = step.shape().element(0);
  if (call.multipliesBytes())
    return sumsOfBytes(step, geometry);
  switch (call.kind) {
  case ConvolutionCallKind::Forward:
  case ConvolutionCallKind::BiasActivation:
    return convolutionSums(geometry, step.array(0), step.array(1), result);
  case ConvolutionCallKind::InputGradient:
    return inputGradientSums(geometry, step.array(0), step.array(1), result);
  case ConvolutionCallKind::KernelGradient:
    return kernelGradientSums(geometry, step.array(0), step.array(1), result);
  }
  HLOC_UNREACHABLE("kind of convolution out of range");
}

/// Are products of the operands, and what is added to them, real numbers?
bool hasTypes(const ConvolutionCall &call, const Step &step) {
  const ElementType result = step.shape().element(0).elementType();
  bool fits = isFloat(result);
  for (unsigned i = call.multipliesBytes() ? 2 : 0; fits && i < step.operands.size(); ++i) {
    const ElementType type = step.array(i).shape().elementType();
    fits = isProductDefined(type, result) && (i < 2 || isFloat(type));
  }
  return fits;
}

} // namespace

llvm::FailureOr<Value> convolutionCall(Step &step) {
  std::optional<ConvolutionCall> call = ConvolutionCall::of(step.instr);
  if (!call || !hasTypes(*call, step))
    return step.unsupported("operands, results or configuration do not fit the target `" +
                            step.instr.string(AttributeKey::CustomCallTarget) + "`");
  ConvolutionGeometry geometry = ConvolutionGeometry::of(step.instr);
  Literal sums = sumsOf(*call, step, geometry), result(step.shape().element(0));
  if (call->kind == ConvolutionCallKind::BiasActivation)
    apply(call->epilogue, step, unsigned(geometry.labels.outFeature), sums);
  roundInto(sums, result);
  return Value::tuple({Value(std::move(result)), Value::zero(step.shape().element(1))});
}

} // namespace hloc::interp
