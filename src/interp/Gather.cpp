// gather and scatter. Both walk the positions of the index array; each position names a window of the operand.

#include "interp/Ops.h"
#include "interp/ScalarFunction.h"
#include "interp/Strided.h"
#include "interp/WindowStarts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace hloc::interp {

namespace {

using Ints = llvm::ArrayRef<int64_t>;

/// Strides of the window array along the operand's dims (0 for those it lacks).
Index windowStrides(const Shape &windowArray, const WindowDims &dims, unsigned operandRank) {
  Index strides = rowMajorStrides(windowArray.dims()), made(operandRank, 0);
  Index kept = without(operandRank, dims.droppedDims);
  for (size_t i = 0; i < kept.size(); ++i)
    made[size_t(kept[i])] = strides[size_t(dims.windowDims[i])];
  return made;
}

/// Linear position of a window in the window array.
int64_t windowOffset(const Shape &windowArray, const WindowDims &dims, Ints batch) {
  Index strides = rowMajorStrides(windowArray.dims());
  int64_t offset = 0;
  for (size_t i = 0; i < batch.size(); ++i)
    offset += batch[i] * strides[size_t(dims.scatterDims[i])];
  return offset;
}

/// Combines whole windows: what is there, and the updates. Results take the place of the first.
using CombineWindows =
    llvm::function_ref<void(std::vector<std::vector<uint8_t>> &current, std::vector<std::vector<uint8_t>> &updates)>;

/// One scatter being carried out: the operands so far and the updates to come.
class Scatter {
public:
  Scatter(const HloInstruction &instr, std::vector<Literal> results, const Literal &indices,
          std::vector<const Literal *> windows, CombineWindows combine)
      : combine(combine), results(std::move(results)), n(unsigned(this->results.size())), indices(indices),
        dims(scatterDims(instr, windows.front()->shape())), updates(std::move(windows)),
        window(scatterWindow(dims, updates[0]->shape(), this->results[0].shape().rank())) {
    for (unsigned i = 0; i < n; ++i) {
      auto bytes = size_t(product(window)) * hostBytes(this->results[i].shape().elementType());
      current.emplace_back(bytes);
      update.emplace_back(size_t(product(window)) * hostBytes(updates[i]->shape().elementType()));
    }
  }

  std::vector<Literal> run() {
    StartReader starts(indices, dims, results[0].shape().rank());
    Index batchSizes = starts.batchSizes(), batch(batchSizes.size(), 0);
    if (product(batchSizes) == 0 || product(window) == 0)
      return std::move(results);
    do {
      Index start = starts.start(batch);
      if (isInside(start))
        apply(start, batch);
    } while (increment(batch, batchSizes));
    return std::move(results);
  }

private:
  bool isInside(Ints start) const {
    for (size_t i = 0; i < start.size(); ++i)
      if (start[i] < 0 || start[i] > results[0].shape().dim(unsigned(i)) - window[i])
        return false;
    return true;
  }

  /// Takes the windows of operands and updates out, combines them, and puts the result back.
  void apply(Ints start, Ints batch) {
    Index dense = rowMajorStrides(window);
    for (unsigned i = 0; i < n; ++i) {
      unsigned width = hostBytes(updates[i]->shape().elementType());
      const uint8_t *from =
          updates[i]->bytes().data() + windowOffset(updates[i]->shape(), dims, batch) * int64_t(width);
      copyStrided(window, width, {update[i].data(), dense},
                  {from, windowStrides(updates[i]->shape(), dims, unsigned(window.size()))});
      copyStrided(window, hostBytes(results[i].shape().elementType()), {current[i].data(), dense},
                  sourceAt(results[i], start));
    }
    combine(current, update);
    for (unsigned i = 0; i < n; ++i)
      copyStrided(window, hostBytes(results[i].shape().elementType()), targetAt(results[i], start),
                  {current[i].data(), dense});
  }

  CombineWindows combine;
  std::vector<Literal> results;
  unsigned n;
  const Literal &indices;
  WindowDims dims;
  std::vector<const Literal *> updates;
  Index window; ///< sizes along the operand's dims
  std::vector<std::vector<uint8_t>> current, update;
};

/// The combiner on windows, in lanes.
class CombineByFunction {
public:
  CombineByFunction(ScalarFunction &function, llvm::ArrayRef<Literal> results, llvm::ArrayRef<const Literal *> updates)
      : function(function), n(unsigned(results.size())), lanes(2 * n), combined(n) {
    for (unsigned i = 0; i < n; ++i) {
      types.push_back(results[i].shape().elementType());
      updateTypes.push_back(updates[i]->shape().elementType());
    }
    for (LaneBuffer &buffer : lanes)
      parameters.push_back(buffer.bytes);
    for (LaneBuffer &buffer : combined)
      outputs.push_back(buffer.bytes);
  }

  void operator()(std::vector<std::vector<uint8_t>> &current, std::vector<std::vector<uint8_t>> &updates) {
    if (function.returnsParameter(1) && updateTypes[0] == types[0]) {
      current[0] = updates[0];
      return;
    }
    auto total = int64_t(current[0].size() / hostBytes(types[0]));
    for (int64_t done = 0; done < total; done += maxLanes) {
      int64_t count = std::min(maxLanes, total - done);
      for (unsigned i = 0; i < n; ++i) {
        loadFunction(types[i])(current[i].data() + done * hostBytes(types[i]), lanes[i].bytes, count);
        loadFunction(updateTypes[i])(updates[i].data() + done * hostBytes(updateTypes[i]), lanes[n + i].bytes, count);
      }
      function.run(parameters, outputs, count);
      for (unsigned i = 0; i < n; ++i)
        storeFunction(types[i])(combined[i].bytes, current[i].data() + done * hostBytes(types[i]), count);
    }
  }

private:
  ScalarFunction &function;
  unsigned n;
  llvm::SmallVector<ElementType, 2> types, updateTypes;
  llvm::SmallVector<LaneBuffer, 2> lanes, combined;
  llvm::SmallVector<const void *, 4> parameters;
  llvm::SmallVector<void *, 2> outputs;
};

/// Ends of what either of two bounds admits. A NaN beside numbers leaves the element unknown (BoundedValue.h).
double endOf(double a, double b, bool highest) {
  if (std::isnan(a) && std::isnan(b))
    return a;
  if (std::isnan(a) || std::isnan(b))
    return highest ? std::numeric_limits<double>::quiet_NaN() : -std::numeric_limits<double>::infinity();
  if (a == b && a == 0) // -0 is below +0
    return std::signbit(a) != highest ? a : b;
  return highest ? std::max(a, b) : std::min(a, b);
}
template <typename Int> Int endOf(Int a, Int b, bool highest) { return highest ? std::max(a, b) : std::min(a, b); }

template <typename T> void takeEnds(std::vector<uint8_t> &current, const std::vector<uint8_t> &updates, bool highest) {
  for (size_t at = 0; at < current.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, &current[at], sizeof(T));
    std::memcpy(&b, &updates[at], sizeof(T));
    T end = endOf(a, b, highest);
    std::memcpy(&current[at], &end, sizeof(T));
  }
}

/// The same for windows of elements that bounds are kept in.
void takeEnds(ElementType type, std::vector<uint8_t> &current, const std::vector<uint8_t> &updates, bool highest) {
  if (isFloat(type) || isComplex(type))
    return takeEnds<double>(current, updates, highest);
  bool isNegative = isSigned(type);
  switch (hostBytes(type)) {
  case 1:
    return isNegative ? takeEnds<int8_t>(current, updates, highest) : takeEnds<uint8_t>(current, updates, highest);
  case 2:
    return isNegative ? takeEnds<int16_t>(current, updates, highest) : takeEnds<uint16_t>(current, updates, highest);
  case 4:
    return isNegative ? takeEnds<int32_t>(current, updates, highest) : takeEnds<uint32_t>(current, updates, highest);
  default:
    return isNegative ? takeEnds<int64_t>(current, updates, highest) : takeEnds<uint64_t>(current, updates, highest);
  }
}

} // namespace

Literal scatterNumbers(const HloInstruction &scatter, Literal into, const Literal &indices, const Literal &updates,
                       llvm::function_ref<double(double, double)> function) {
  std::vector<Literal> results;
  results.push_back(std::move(into));
  auto combine = [&](std::vector<std::vector<uint8_t>> &current, std::vector<std::vector<uint8_t>> &windows) {
    for (size_t at = 0; at < current[0].size(); at += sizeof(double)) {
      double a, b;
      std::memcpy(&a, &current[0][at], sizeof(double));
      std::memcpy(&b, &windows[0][at], sizeof(double));
      a = function(a, b);
      std::memcpy(&current[0][at], &a, sizeof(double));
    }
  };
  results = Scatter(scatter, std::move(results), indices, {&updates}, combine).run();
  return std::move(results.front());
}

Literal endsOfOverwritten(const HloInstruction &scatter, Literal into, const Literal &indices, const Literal &updates,
                          bool highest) {
  std::vector<Literal> results;
  results.push_back(std::move(into));
  // First every place that is hit gets one of its updates, so that what was there does not count.
  for (bool isFirst : {true, false}) {
    ElementType type = updates.shape().elementType();
    auto combine = [&](std::vector<std::vector<uint8_t>> &current, std::vector<std::vector<uint8_t>> &windows) {
      if (isFirst)
        current[0] = windows[0];
      else
        takeEnds(type, current[0], windows[0], highest);
    };
    results = Scatter(scatter, std::move(results), indices, {&updates}, combine).run();
  }
  return std::move(results.front());
}

/// Every component of a start is clamped so that its slice lies inside.
llvm::FailureOr<Value> evaluateGather(Step &step) {
  const Literal &operand = step.array(0);
  Ints sizes = step.instr.ints(AttributeKey::SliceSizes);
  WindowDims dims = gatherDims(step.instr);
  Literal result(step.shape());
  if (result.numElements() == 0)
    return Value(std::move(result));
  StartReader starts(step.array(1), dims, operand.shape().rank());
  Index batchSizes = starts.batchSizes(), batch(batchSizes.size(), 0);
  Index strides = windowStrides(step.shape(), dims, operand.shape().rank());
  unsigned width = hostBytes(operand.shape().elementType());
  do {
    Index start = starts.start(batch);
    for (size_t i = 0; i < start.size(); ++i)
      start[i] = std::clamp<int64_t>(start[i], 0, operand.shape().dim(unsigned(i)) - sizes[i]);
    uint8_t *to = result.mutableBytes().data() + windowOffset(step.shape(), dims, batch) * int64_t(width);
    copyStrided(sizes, width, {to, strides}, sourceAt(operand, start));
  } while (increment(batch, batchSizes));
  return Value(std::move(result));
}

/// A window that is not wholly inside the operand is left out.
llvm::FailureOr<Value> evaluateScatter(Step &step) {
  llvm::FailureOr<ScalarFunction> function =
      ScalarFunction::compile(*step.instr.computation(AttributeKey::ToApply), step);
  if (llvm::failed(function))
    return llvm::failure();
  auto n = unsigned(step.operands.size() / 2);
  if (function->numParameters() != 2 * n || function->numResults() != n)
    return step.unsupported("the combiner's signature does not fit", DiagnosticKind::InvalidCallee);
  for (unsigned i = 0; i < 2 * n; ++i) {
    const Literal &array = step.array(i < n ? i : i + 1);
    if (array.shape().elementType() != function->parameterType(i))
      return step.unsupported("the combiner's parameters are of other types than its operands",
                              DiagnosticKind::UnsupportedType);
  }
  std::vector<Literal> results;
  for (unsigned i = 0; i < n; ++i)
    results.push_back(step.operands[i].take());
  std::vector<const Literal *> updates;
  for (unsigned i = 0; i < n; ++i)
    updates.push_back(&step.array(n + 1 + i));
  CombineByFunction combine(*function, results, updates);
  results = Scatter(step.instr, std::move(results), step.array(n), std::move(updates), combine).run();
  return Value::ofResults(step.shape(), std::move(results));
}

} // namespace hloc::interp
