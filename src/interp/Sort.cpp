// sort and top-k. Rows along the sorted dimension are independent; a row's order is a permutation applied to all
// operands.

#include "interp/Ops.h"
#include "interp/ParameterReader.h"
#include "interp/SortOrder.h"

#include <functional>
#include <numeric>

namespace hloc::interp {

namespace {

/// Stable merge sort that terminates within bounds whatever the comparison answers.
template <typename Less> void mergeSort(std::vector<int64_t> &items, Less less) {
  std::vector<int64_t> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t low = 0; low < items.size(); low += 2 * width) {
      size_t middle = std::min(low + width, items.size()), high = std::min(low + 2 * width, items.size());
      size_t a = low, b = middle;
      for (size_t out = low; out < high; ++out) {
        bool takeRight = a == middle || (b < high && less(items[b], items[a]));
        merged[out] = takeRight ? items[b++] : items[a++];
      }
    }
    items.swap(merged);
  }
}

/// The comparator applied to positions of a row: parameters a0, b0, a1, b1, ... of all operands.
class RowComparator {
public:
  RowComparator(ScalarFunction &function, size_t numOperands, int64_t rowLength)
      : function(function), rowLength(rowLength), columns(numOperands), parameters(2 * numOperands) {}

  /// Widens row `row` of every operand once, so that comparing loads nothing.
  void setRow(llvm::ArrayRef<Literal> operands, int64_t row) {
    for (size_t i = 0; i < operands.size(); ++i) {
      ElementType type = operands[i].shape().elementType();
      columns[i].width = laneBytes(computeType(type));
      columns[i].lanes.resize(size_t(rowLength) * columns[i].width);
      loadFunction(type)(operands[i].bytes().data() + row * rowLength * hostBytes(type), columns[i].lanes.data(),
                         rowLength);
    }
  }
  bool operator()(int64_t a, int64_t b) {
    for (size_t i = 0; i < columns.size(); ++i) {
      parameters[2 * i] = columns[i].lanes.data() + size_t(a) * columns[i].width;
      parameters[2 * i + 1] = columns[i].lanes.data() + size_t(b) * columns[i].width;
    }
    bool less = false;
    function.run(parameters, {&less}, 1);
    return less;
  }

private:
  struct Column {
    std::vector<std::byte> lanes;
    size_t width = 0;
  };
  ScalarFunction &function;
  int64_t rowLength;
  std::vector<Column> columns;
  llvm::SmallVector<const void *, 4> parameters;
};

/// result[row, i] = from[row, order[i]]
void applyOrder(llvm::ArrayRef<int64_t> order, const Literal &from, int64_t row, int64_t rowLength, Literal &to) {
  unsigned width = hostBytes(from.shape().elementType());
  const uint8_t *source = from.bytes().data() + row * rowLength * width;
  uint8_t *target = to.mutableBytes().data() + row * rowLength * width;
  for (size_t i = 0; i < order.size(); ++i)
    std::copy_n(source + order[i] * width, width, target + int64_t(i) * width);
}

} // namespace

llvm::FailureOr<std::vector<int64_t>> orderOfSort(Step &step, llvm::ArrayRef<Literal> operands) {
  llvm::FailureOr<ScalarFunction> function =
      ScalarFunction::compile(*step.instr.computation(AttributeKey::ToApply), step);
  if (llvm::failed(function))
    return llvm::failure();
  size_t n = operands.size();
  if (function->numParameters() != 2 * n || function->numResults() != 1 || function->resultType(0) != ElementType::Pred)
    return step.unsupported("the comparator's signature does not fit", DiagnosticKind::InvalidCallee);
  const Shape &shape = operands[0].shape();
  int64_t rowLength = shape.dims().back(), rows = rowLength == 0 ? 0 : shape.numElements() / rowLength;
  RowComparator less(*function, n, rowLength);
  std::vector<int64_t> positions(size_t(rowLength), 0), order;
  for (int64_t row = 0; row < rows; ++row) {
    std::iota(positions.begin(), positions.end(), 0);
    less.setRow(operands, row);
    mergeSort(positions, std::ref(less));
    llvm::append_range(order, positions);
  }
  return order;
}

llvm::FailureOr<Value> evaluateSort(Step &step) {
  int64_t dim = step.instr.ints(AttributeKey::Dimensions)[0];
  const Shape &shape = step.array(0).shape();
  DimLast dims(shape.rank(), dim);
  std::vector<Literal> operands, results;
  for (size_t i = 0; i < step.operands.size(); ++i)
    operands.push_back(transposed(step.array(unsigned(i)), dims.to));
  llvm::FailureOr<std::vector<int64_t>> order = orderOfSort(step, operands);
  if (llvm::failed(order))
    return llvm::failure();
  int64_t rowLength = shape.dim(unsigned(dim)), rows = rowLength == 0 ? 0 : shape.numElements() / rowLength;
  for (const Literal &operand : operands) {
    Literal sorted = operand;
    for (int64_t row = 0; row < rows; ++row)
      applyOrder(llvm::ArrayRef(*order).slice(size_t(row * rowLength), size_t(rowLength)), operand, row, rowLength,
                 sorted);
    results.push_back(transposed(sorted, dims.back));
  }
  return Value::ofResults(step.shape(), std::move(results));
}

llvm::FailureOr<std::vector<int64_t>> orderOfTopK(Step &step, const Literal &operand, bool largest) {
  ElementType type = operand.shape().elementType();
  Kernel less = compareKernel(ComparisonDirection::Lt, isFloat(type) ? totalOrderOf(type) : FloatOrder::Partial,
                              computeType(type));
  if (!less)
    return step.unsupported("this element type has no order", DiagnosticKind::UnsupportedType);
  int64_t rowLength = operand.shape().dims().back(), rows = rowLength == 0 ? 0 : operand.numElements() / rowLength;
  size_t laneWidth = laneBytes(computeType(type));
  std::vector<std::byte> lanes(size_t(rowLength) * laneWidth);
  std::vector<int64_t> positions(size_t(rowLength), 0), order;
  auto before = [&](int64_t a, int64_t b) {
    bool isLess = false;
    Lanes pair;
    pair.operands[0] = lanes.data() + size_t(largest ? b : a) * laneWidth;
    pair.operands[1] = lanes.data() + size_t(largest ? a : b) * laneWidth;
    pair.result = &isLess;
    pair.count = 1;
    less(pair);
    return isLess;
  };
  for (int64_t row = 0; row < rows; ++row) {
    loadFunction(type)(operand.bytes().data() + row * rowLength * hostBytes(type), lanes.data(), rowLength);
    std::iota(positions.begin(), positions.end(), 0);
    mergeSort(positions, before);
    llvm::append_range(order, positions);
  }
  return order;
}

/// Shared with the custom calls of that meaning.
llvm::FailureOr<Value> topK(Step &step, int64_t k, bool largest) {
  const Literal &operand = step.array(0);
  llvm::FailureOr<std::vector<int64_t>> order = orderOfTopK(step, operand, largest);
  if (llvm::failed(order))
    return llvm::failure();
  int64_t rowLength = operand.shape().dims().back(), rows = rowLength == 0 ? 0 : operand.numElements() / rowLength;
  std::vector<Literal> results = newResults(step.shape());
  unsigned width = hostBytes(operand.shape().elementType());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < k; ++i) {
      const int64_t position = (*order)[size_t(row * rowLength + i)];
      std::copy_n(operand.bytes().data() + (row * rowLength + position) * width, width,
                  results[0].mutableBytes().data() + (row * k + i) * width);
      if (results.size() > 1)
        results[1].setInt(row * k + i, position);
    }
  return Value::ofResults(step.shape(), std::move(results));
}

llvm::FailureOr<Value> evaluateTopK(Step &step) {
  return topK(step, step.instr.intOr(AttributeKey::K, 0), step.instr.flag(AttributeKey::Largest, true));
}

} // namespace hloc::interp
