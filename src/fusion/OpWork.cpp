#include "fusion/OpWork.h"

#include "hloc/hlo/HloComputation.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hloc {
namespace {

double elementwiseWork(const HloInstruction &instr) {
  const ElementType type = instr.shape().isArray() ? instr.shape().elementType() : ElementType::F32;
  const bool isWide = deviceBits(type) == 64, isReal = isFloat(type);
  auto dear = [&](double work) { return work * (isWide ? 4 : isComplex(type) ? 6 : 1); };
  switch (instr.opcode()) {
  case Opcode::Divide:
    return dear(isReal ? 9 : 20);
  case Opcode::Remainder:
    return dear(25);
  case Opcode::Exponential:
    return dear(8);
  case Opcode::Log:
  case Opcode::Sqrt:
  case Opcode::Rsqrt:
  case Opcode::ExponentialMinusOne:
  case Opcode::LogPlusOne:
  case Opcode::Logistic:
    return dear(20);
  case Opcode::Tanh:
  case Opcode::Erf:
  case Opcode::Cbrt:
  case Opcode::Sinh:
  case Opcode::Cosh:
  case Opcode::Asin:
  case Opcode::Acos:
    return dear(30);
  case Opcode::Sine:
  case Opcode::Cosine:
  case Opcode::Tan:
  case Opcode::Atan2:
  case Opcode::Asinh:
  case Opcode::Acosh:
  case Opcode::Atanh:
    return dear(50);
  case Opcode::Power:
    return dear(70);
  case Opcode::Convert:
    return deviceBits(type) < 16 ? 6 : 1;
  default:
    return isComplex(type) ? 4 : 1;
  }
}

/// Instructions of what is applied to elements, parameters aside.
double calleeWork(const HloInstruction &instr) {
  double work = 0;
  for (const HloComputation *callee : instr.calledComputations())
    for (const HloInstruction *inner : callee->instructions())
      if (inner->numOperands() > 0)
        work += isElementwise(inner->opcode()) ? elementwiseWork(*inner) : 1;
  return work;
}

double windowElements(const HloInstruction &instr) {
  double elements = 1;
  for (const WindowDim &dim : instr.windowOr(instr.resultShape().rank()).dims)
    elements *= double(dim.size);
  return elements;
}

double windowsOfElement(const HloInstruction &instr) {
  double windows = 1;
  for (const WindowDim &dim : instr.windowOr(instr.resultShape().rank()).dims)
    windows *= double((dim.size + dim.stride - 1) / std::max<int64_t>(dim.stride, 1));
  return windows;
}

double ratio(int64_t of, int64_t to) { return double(of) / double(std::max<int64_t>(to, 1)); }

/// Steps of a contraction for each element of the result.
double contractedElements(const HloInstruction &instr) {
  if (instr.opcode() == Opcode::Convolution) {
    const Shape &weights = instr.operand(1)->shape();
    const auto *labels = instr.find(AttributeKey::DimLabels);
    return labels ? ratio(weights.numElements(), weights.dim(std::get<const ConvolutionLabels *>(*labels)->rhsOutput))
                  : double(weights.numElements());
  }
  const Shape &lhs = instr.operand(0)->shape();
  double steps = 1;
  for (int64_t dim : instr.ints(AttributeKey::LhsContractingDims))
    steps *= double(lhs.dim(dim));
  return steps;
}

} // namespace

double readsPerElement(const HloInstruction &instr, unsigned number) {
  const Shape &result = instr.resultShape(), &operand = instr.operand(number)->shape();
  if (!operand.isArray() || !result.isArray())
    return 1;
  switch (instr.opcode()) {
  case Opcode::Reduce:
    return number < instr.numOperands() / 2 ? ratio(operand.numElements(), result.numElements()) : 1;
  case Opcode::ReduceWindow:
    return number < instr.numOperands() / 2 ? windowElements(instr) : 1;
  case Opcode::Convolution:
  case Opcode::Dot:
  case Opcode::ScaledDot:
  case Opcode::RaggedDot:
    return number < 2 ? contractedElements(instr) : 1;
  case Opcode::SelectAndScatter: // all elements of all windows that an element is in
    return number < 2 ? windowElements(instr) * windowsOfElement(instr) : 1;
  case Opcode::Concatenate:
  case Opcode::Pad:
    return std::min(1.0, ratio(operand.numElements(), result.numElements()));
  case Opcode::DynamicUpdateSlice:
    return number == 1 ? ratio(operand.numElements(), result.numElements()) : 1;
  default:
    return 1;
  }
}

double workPerElement(const HloInstruction &instr) {
  switch (instr.opcode()) {
  case Opcode::Reduce:
  case Opcode::ReduceWindow:
    return readsPerElement(instr, 0) * std::max(1.0, calleeWork(instr));
  case Opcode::Convolution:
    return contractedElements(instr) * 5;
  case Opcode::Dot:
  case Opcode::ScaledDot:
  case Opcode::RaggedDot:
    return contractedElements(instr) * 3;
  case Opcode::SelectAndScatter:
    return readsPerElement(instr, 0) * 6;
  case Opcode::Map:
    return calleeWork(instr);
  case Opcode::Gather:
  case Opcode::DynamicSlice:
  case Opcode::DynamicUpdateSlice:
    return 4;
  case Opcode::Concatenate:
    return 2.0 * double(instr.numOperands());
  case Opcode::Pad:
  case Opcode::Reverse:
  case Opcode::Transpose:
    return 2;
  case Opcode::Reshape:
  case Opcode::Bitcast:
  case Opcode::Broadcast:
  case Opcode::Slice:
    return 0.25;
  case Opcode::Scatter:
    return 8;
  case Opcode::Sort:
    return 64;
  default:
    return instr.numOperands() == 0 ? 0.5 : elementwiseWork(instr);
  }
}

} // namespace hloc
