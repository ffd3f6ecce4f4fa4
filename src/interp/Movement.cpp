// Ops that move elements without looking at them: every one is a strided copy of bytes.

#include "hloc/support/Check.h"
#include "interp/Lanes.h"
#include "interp/Ops.h"
#include "interp/Strided.h"

#include <cstring>

namespace hloc::interp {

namespace {

unsigned elementWidth(const Literal &literal) { return hostBytes(literal.shape().elementType()); }

Index ones(size_t count) { return Index(count, 1); }

/// Every element of `result` becomes the scalar.
void fill(Literal &result, const Literal &scalar) {
  Index zero(result.shape().rank(), 0);
  copyStrided(result.shape().dims(), elementWidth(result), targetAt(result, {}), {scalar.bytes().data(), zero});
}

/// Starts of a dynamic slice or update, clamped so that the box lies inside.
Index clampedStarts(Step &step, unsigned firstIndex, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> sizes) {
  bool vector = step.operands.size() == firstIndex + 1 && step.array(firstIndex).shape().rank() == 1;
  Index starts;
  for (unsigned i = 0; i < dims.size(); ++i) {
    const Literal &array = step.array(vector ? firstIndex : firstIndex + i);
    int64_t start = array.getInt(vector ? i : 0);
    if (array.shape().elementType() == ElementType::U64 && start < 0)
      start = INT64_MAX; // beyond the signed range: too large, not negative
    starts.push_back(std::clamp<int64_t>(start, 0, dims[i] - sizes[i]));
  }
  return starts;
}

} // namespace

llvm::FailureOr<Value> evaluateBroadcast(Step &step) {
  const Literal &operand = step.array(0);
  llvm::ArrayRef<int64_t> dimensions = step.instr.ints(AttributeKey::Dimensions);
  Index fromStrides(step.shape().rank(), 0), strides = rowMajorStrides(operand.shape().dims());
  for (unsigned i = 0; i < dimensions.size(); ++i)
    fromStrides[size_t(dimensions[i])] = strides[i];
  Literal result(step.shape());
  copyStrided(step.shape().dims(), elementWidth(operand), targetAt(result, {}), {operand.bytes().data(), fromStrides});
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateTranspose(Step &step) {
  return Value(transposed(step.array(0), step.instr.ints(AttributeKey::Dimensions)));
}

/// The logical row-major sequence stays.
llvm::FailureOr<Value> evaluateReshape(Step &step) {
  Literal result(step.shape());
  llvm::copy(step.array(0).bytes(), result.mutableBytes().begin());
  return Value(std::move(result));
}

/// The physical bytes stay: out by the operand's layout, in by the result's.
llvm::FailureOr<Value> evaluateBitcast(Step &step) {
  const Literal &operand = step.array(0);
  const Shape &from = step.instr.operand(0)->shape();
  if (from.elementType() == step.shape().elementType() && from.hasDefaultLayout() && step.shape().hasDefaultLayout())
    return evaluateReshape(step);
  if (!operand.shape().sameDims(from)) // a scalar's function, of many at once
    return evaluateBitcastConvert(step);
  std::vector<uint8_t> bytes = toDeviceBytes(Value::borrow(operand).toLiteral(from));
  if (int64_t(bytes.size()) < step.shape().byteSize())
    return step.unsupported("operand and result differ in size", DiagnosticKind::ShapeMismatch);
  return Value(fromDeviceBytes(step.shape(), bytes));
}

llvm::FailureOr<Value> evaluateSlice(Step &step) {
  Index starts, strides;
  for (const SliceDim &dim : step.instr.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice)) {
    starts.push_back(dim.start);
    strides.push_back(dim.stride);
  }
  Literal result(step.shape());
  if (result.numElements() != 0)
    copyStrided(step.shape().dims(), elementWidth(result), targetAt(result, {}),
                sourceAt(step.array(0), starts, strides));
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateReverse(Step &step) {
  Index starts(step.shape().rank(), 0), strides = ones(step.shape().rank());
  for (int64_t dim : step.instr.ints(AttributeKey::Dimensions)) {
    starts[size_t(dim)] = step.shape().dim(unsigned(dim)) - 1;
    strides[size_t(dim)] = -1;
  }
  Literal result(step.shape());
  if (result.numElements() != 0)
    copyStrided(step.shape().dims(), elementWidth(result), targetAt(result, {}),
                sourceAt(step.array(0), starts, strides));
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateConcatenate(Step &step) {
  auto dim = size_t(step.instr.ints(AttributeKey::Dimensions)[0]);
  Literal result(step.shape());
  Index start(step.shape().rank(), 0);
  for (unsigned i = 0; i < step.operands.size(); ++i) {
    const Literal &piece = step.array(i);
    if (piece.numElements() != 0)
      copyStrided(piece.shape().dims(), elementWidth(piece), targetAt(result, start), sourceAt(piece, {}));
    start[dim] += piece.shape().dim(unsigned(dim));
  }
  return Value(std::move(result));
}

/// Operand element i lands at low + i * (interior + 1); negative edges leave out those that fall outside.
llvm::FailureOr<Value> evaluatePad(Step &step) {
  const Literal &operand = step.array(0);
  Literal result(step.shape());
  fill(result, step.array(1));
  Index box, from, to, spacing;
  auto padding = step.instr.get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding);
  for (unsigned i = 0; i < padding.size(); ++i) {
    int64_t stride = padding[i].interior + 1, low = padding[i].low;
    int64_t first = low >= 0 ? 0 : (-low + stride - 1) / stride;
    int64_t room = step.shape().dim(i) - low - first * stride; // from the first kept element to the end
    int64_t kept = std::min(operand.shape().dim(i) - first, room <= 0 ? 0 : (room - 1) / stride + 1);
    box.push_back(std::max<int64_t>(kept, 0));
    from.push_back(first);
    to.push_back(low + first * stride);
    spacing.push_back(stride);
  }
  if (product(box) != 0)
    copyStrided(box, elementWidth(operand), targetAt(result, to, spacing), sourceAt(operand, from));
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateDynamicSlice(Step &step) {
  Literal result(step.shape());
  Index starts = clampedStarts(step, 1, step.array(0).shape().dims(), step.shape().dims());
  copyStrided(step.shape().dims(), elementWidth(result), targetAt(result, {}), sourceAt(step.array(0), starts));
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateDynamicUpdateSlice(Step &step) {
  const Literal &update = step.array(1);
  Index starts = clampedStarts(step, 2, step.array(0).shape().dims(), update.shape().dims());
  Literal result = step.operands[0].take();
  copyStrided(update.shape().dims(), elementWidth(update), targetAt(result, starts), sourceAt(update, {}));
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateIota(Step &step) {
  auto dim = unsigned(step.instr.intOr(AttributeKey::IotaDimension, 0));
  ElementType type = step.shape().elementType();
  // One line of values along the dimension, spread over the others.
  Literal line(Shape::array(type, {step.shape().dim(dim)}));
  std::optional<Store> store = storeFunction(type);
  ComputeType compute = computeType(type);
  for (int64_t i = 0; i < line.numElements(); ++i)
    withLaneType(compute, [&](auto zero) {
      auto lane = static_cast<decltype(zero)>(i);
      (*store)(&lane, line.mutableBytes().data() + i * hostBytes(type), 1);
    });
  Index fromStrides(step.shape().rank(), 0);
  fromStrides[dim] = 1;
  Literal result(step.shape());
  copyStrided(step.shape().dims(), hostBytes(type), targetAt(result, {}), {line.bytes().data(), fromStrides});
  return Value(std::move(result));
}

/// Little-endian regrouping: the last dimension of the narrower type holds the parts of one wide element, lowest first.
/// Of a predicate any byte but 0 is true, and true is the byte 1.
llvm::FailureOr<Value> evaluateBitcastConvert(Step &step) {
  Literal dense = Value::borrow(step.array(0)).toLiteral(step.array(0).shape().withDefaultLayout());
  std::vector<uint8_t> bytes = toDeviceBytes(dense);
  Shape shape = step.shape().withDefaultLayout();
  if (int64_t(bytes.size()) < shape.byteSize())
    return step.unsupported("operand and result differ in size", DiagnosticKind::ShapeMismatch);
  if (isPred(shape.elementType()))
    for (uint8_t &byte : bytes)
      byte = byte != 0;
  return Value(fromDeviceBytes(shape, bytes));
}

llvm::FailureOr<Value> evaluateGetDimensionSize(Step &step) {
  Literal result(step.shape());
  result.setInt(0, step.array(0).shape().dim(unsigned(step.instr.ints(AttributeKey::Dimensions)[0])));
  return Value(std::move(result));
}

} // namespace hloc::interp
