// reduce-window and select-and-scatter.
//
// reduce-window goes through the positions of the window in order; at each position, the elements that it meets for all
// results form a strided box of the operand, which is combined with the box of accumulators. Positions over padding and
// dilation holes meet nothing. Where windows have many elements and the order does not matter they are slid instead
// (SlidingWindows.h).

#include "interp/Ops.h"
#include "interp/ParameterReader.h"
#include "interp/SlidingWindows.h"
#include "interp/Strided.h"

#include <cstring>
#include <numeric>

namespace hloc::interp {

namespace {

/// Which results, along one dimension, meet an element at a window position: results first, first+step, ... (count of
/// them), which read operand elements from, from+stride, ...
struct Meeting {
  int64_t first = 0, step = 1, count = 0, from = 0, stride = 1;
};

/// Padded, dilated coordinate of result r at position w is r*stride + w*windowDilation - padLow; it is an element if it
/// is a multiple of baseDilation inside the operand.
Meeting meet(const WindowDim &window, int64_t position, int64_t results, int64_t size) {
  Meeting made;
  int64_t offset = position * window.windowDilation - window.padLow;
  made.step = window.baseDilation / std::gcd(window.stride, window.baseDilation);
  made.stride = made.step * window.stride / window.baseDilation;
  int64_t r = 0;
  for (int64_t tries = 0; r < results && tries < made.step + 1; ++r, ++tries)
    if ((r * window.stride + offset) % window.baseDilation == 0)
      break;
  if (r >= results || (r * window.stride + offset) % window.baseDilation != 0)
    return made;
  int64_t element = (r * window.stride + offset) / window.baseDilation;
  if (element < 0) { // skip the results that lie over the low padding
    int64_t skipped = (-element + made.stride - 1) / made.stride;
    r += skipped * made.step;
    element += skipped * made.stride;
  }
  if (r >= results || element >= size)
    return made;
  made.first = r;
  made.from = element;
  made.count = std::min((results - 1 - r) / made.step, (size - 1 - element) / made.stride) + 1;
  return made;
}

struct Box {
  Index first, step, count, from, stride;
  bool empty = false;

  Box(const Window &window, llvm::ArrayRef<int64_t> position, llvm::ArrayRef<int64_t> results,
      llvm::ArrayRef<int64_t> operand) {
    for (size_t i = 0; i < position.size(); ++i) {
      Meeting dim = meet(window.dims[i], position[i], results[i], operand[i]);
      first.push_back(dim.first);
      step.push_back(dim.step);
      count.push_back(dim.count);
      from.push_back(dim.from);
      stride.push_back(dim.stride);
      empty |= dim.count == 0;
    }
  }
};

/// Accumulators and inputs of one op.
class WindowReduction {
public:
  WindowReduction(Step &step, ScalarFunction &function)
      : step(step), function(function), n(step.operands.size() / 2),
        window(step.instr.windowOr(step.array(0).shape().rank())), results(newResults(step.shape())) {
    const Literal &operand = step.array(0);
    // As in reduce: sums of floats are kept in f64 and rounded once.
    sumsFloats = n == 1 && function.commutativeOp() == Opcode::Add && isFloat(function.resultType(0)) &&
                 isFloat(operand.shape().elementType());
    for (size_t i = 0; i < n; ++i) {
      ElementType type = sumsFloats ? ElementType::F64 : function.resultType(unsigned(i));
      accumulators.emplace_back(Shape::array(type, results[0].shape().dims()));
      fill(accumulators.back(), step.array(unsigned(n + i)));
    }
  }

  std::vector<Literal> run() {
    if (results[0].numElements() != 0)
      maySlide() ? slide() : goThrough();
    for (size_t i = 0; i < n; ++i)
      convertAll(accumulators[i], results[i]);
    return std::move(results);
  }

private:
  /// Is it all the same in which order the elements of a window are combined? Sums are, but for roundings of f64.
  bool maySlide() const {
    if (n != 1 || !areLargeWindows(window) || !function.commutativeOp())
      return false;
    const ElementType type = function.resultType(0);
    const Opcode op = *function.commutativeOp();
    const bool isChoice = op == Opcode::Maximum || op == Opcode::Minimum;
    return sumsFloats || (step.array(0).shape().elementType() == type && (isChoice || isInteger(type) || isPred(type)));
  }

  void slide() {
    const Shape &operand = step.array(0).shape(), &shape = results[0].shape();
    Literal combined = combineWindows(step.array(0), window, shape.dims(), function, sumsFloats);
    std::vector<Literal> held = {accumulators[0]};
    if (sumsFloats)
      addTo(held[0], combined);
    else
      apply(held, combined);
    const size_t width = hostBytes(held[0].shape().elementType());
    Index index(shape.rank(), 0);
    for (size_t at = 0; at < size_t(shape.numElements()); ++at, increment(index, shape.dims()))
      if (!meetsNothing(window, index, operand.dims()))
        std::copy_n(held[0].bytes().data() + at * width, width, accumulators[0].mutableBytes().data() + at * width);
  }

  void goThrough() {
    Index sizes;
    for (const WindowDim &dim : window.dims)
      sizes.push_back(dim.size);
    Index position(sizes.size(), 0);
    if (product(sizes) == 0)
      return;
    do {
      Box box(window, position, results[0].shape().dims(), step.array(0).shape().dims());
      if (!box.empty)
        combine(box);
    } while (increment(position, sizes));
  }

  static void convertAll(const Literal &from, Literal &to) {
    ElementType type = to.shape().elementType();
    ParameterReader reader(from, type);
    for (int64_t start = 0; start < to.numElements(); start += maxLanes) {
      int64_t count = std::min(maxLanes, to.numElements() - start);
      storeFunction(type)(reader.read(start, count), to.mutableBytes().data() + start * hostBytes(type), count);
    }
  }
  static void fill(Literal &to, const Literal &scalar) {
    Literal one(Shape::array(to.shape().elementType(), {}));
    convertAll(scalar, one);
    copyStrided(to.shape().dims(), hostBytes(to.shape().elementType()), targetAt(to, {}),
                {one.bytes().data(), Index(to.shape().rank(), 0)});
  }

  void combine(const Box &box) {
    std::vector<Literal> inputs, held;
    for (size_t i = 0; i < n; ++i) {
      inputs.push_back(take(step.array(unsigned(i)), box.count, box.from, box.stride));
      held.push_back(take(accumulators[i], box.count, box.first, box.step));
    }
    if (sumsFloats)
      addTo(held[0], inputs[0]);
    else
      apply(held, inputs);
    for (size_t i = 0; i < n; ++i)
      copyStrided(box.count, hostBytes(held[i].shape().elementType()), targetAt(accumulators[i], box.first, box.step),
                  sourceAt(held[i], {}));
  }
  static Literal take(const Literal &from, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> start,
                      llvm::ArrayRef<int64_t> stride) {
    Literal taken(Shape::array(from.shape().elementType(), dims));
    copyStrided(dims, hostBytes(from.shape().elementType()), targetAt(taken, {}), sourceAt(from, start, stride));
    return taken;
  }
  static void addTo(Literal &sums, const Literal &terms) {
    ParameterReader reader(terms, ElementType::F64);
    auto to = sums.mutableData<double>();
    for (int64_t start = 0; start < terms.numElements(); start += maxLanes) {
      int64_t count = std::min(maxLanes, terms.numElements() - start);
      auto *from = static_cast<const double *>(reader.read(start, count));
      for (int64_t i = 0; i < count; ++i)
        to[size_t(start + i)] += from[i];
    }
  }
  void apply(std::vector<Literal> &held, llvm::ArrayRef<Literal> inputs) {
    std::vector<ParameterReader> readers;
    for (size_t i = 0; i < n; ++i)
      readers.emplace_back(held[i], function.parameterType(unsigned(i)));
    for (size_t i = 0; i < n; ++i)
      readers.emplace_back(inputs[i], function.parameterType(unsigned(n + i)));
    std::vector<LaneBuffer> combined(n);
    llvm::SmallVector<const void *, 4> parameters(2 * n);
    llvm::SmallVector<void *, 2> outputs;
    for (LaneBuffer &buffer : combined)
      outputs.push_back(buffer.bytes);
    for (int64_t start = 0; start < held[0].numElements(); start += maxLanes) {
      int64_t count = std::min(maxLanes, held[0].numElements() - start);
      for (size_t i = 0; i < readers.size(); ++i)
        parameters[i] = readers[i].read(start, count);
      function.run(parameters, outputs, count);
      for (size_t i = 0; i < n; ++i) {
        ElementType type = held[i].shape().elementType();
        storeFunction(type)(combined[i].bytes, held[i].mutableBytes().data() + start * hostBytes(type), count);
      }
    }
  }

  Step &step;
  ScalarFunction &function;
  size_t n;
  Window window;
  std::vector<Literal> results, accumulators;
  bool sumsFloats = false;
};

/// Applies a function of two scalars of one type to single elements.
class PairFunction {
public:
  PairFunction(ScalarFunction &function, ElementType type)
      : function(function), load(loadFunction(type)), store(storeFunction(function.resultType(0))) {}
  void operator()(const uint8_t *a, const uint8_t *b, uint8_t *result) {
    load(a, left, 1);
    load(b, right, 1);
    function.run({left, right}, {combined}, 1);
    store(combined, result, 1);
  }

private:
  ScalarFunction &function;
  Load load;
  Store store;
  alignas(16) std::byte left[16], right[16], combined[16];
};

} // namespace

llvm::FailureOr<Value> evaluateReduceWindow(Step &step) {
  llvm::FailureOr<ScalarFunction> function =
      ScalarFunction::compile(*step.instr.computation(AttributeKey::ToApply), step);
  if (llvm::failed(function))
    return llvm::failure();
  size_t n = step.operands.size() / 2;
  if (function->numParameters() != 2 * n || function->numResults() != n)
    return step.unsupported("the reducer's signature does not fit", DiagnosticKind::InvalidCallee);
  return Value::ofResults(step.shape(), WindowReduction(step, *function).run());
}

/// For each source element, the element of its window that `select` prefers receives it through `scatter`.
llvm::FailureOr<Value> evaluateSelectAndScatter(Step &step) {
  llvm::FailureOr<ScalarFunction> select = ScalarFunction::compile(*step.instr.computation(AttributeKey::Select), step);
  llvm::FailureOr<ScalarFunction> scatter =
      ScalarFunction::compile(*step.instr.computation(AttributeKey::Scatter), step);
  if (llvm::failed(select) || llvm::failed(scatter))
    return llvm::failure();
  const Literal &operand = step.array(0), &source = step.array(1);
  ElementType type = operand.shape().elementType();
  unsigned width = hostBytes(type);
  if (select->numParameters() != 2 || scatter->numParameters() != 2 || select->resultType(0) != ElementType::Pred ||
      select->parameterType(0) != type || scatter->parameterType(0) != source.shape().elementType() ||
      source.shape().elementType() != step.shape().elementType())
    return step.unsupported("the functions' signatures do not fit", DiagnosticKind::InvalidCallee);
  Literal result(step.shape());
  copyStrided(step.shape().dims(), width, targetAt(result, {}),
              {step.array(2).bytes().data(), Index(step.shape().rank(), 0)});
  Window window = step.instr.windowOr(operand.shape().rank());
  Index sizes, strides = rowMajorStrides(operand.shape().dims());
  for (const WindowDim &dim : window.dims)
    sizes.push_back(dim.size);
  Index at(source.shape().rank(), 0);
  PairFunction prefers(*select, type), combine(*scatter, source.shape().elementType());
  if (source.numElements() == 0 || product(sizes) == 0)
    return Value(std::move(result));
  int64_t linear = 0;
  do {
    int64_t selected = -1;
    Index position(sizes.size(), 0);
    do {
      int64_t element = 0;
      bool inside = true;
      for (size_t i = 0; i < sizes.size() && inside; ++i) {
        int64_t index =
            at[i] * window.dims[i].stride + position[i] * window.dims[i].windowDilation - window.dims[i].padLow;
        inside = index >= 0 && index < operand.shape().dim(unsigned(i));
        element += index * strides[i];
      }
      if (!inside)
        continue;
      uint8_t keeps = 1;
      if (selected >= 0)
        prefers(operand.bytes().data() + selected * width, operand.bytes().data() + element * width, &keeps);
      if (selected < 0 || !keeps)
        selected = element;
    } while (increment(position, sizes));
    if (selected >= 0) {
      uint8_t *to = result.mutableBytes().data() + selected * width;
      combine(to, source.bytes().data() + linear * width, to);
    }
    ++linear;
  } while (increment(at, source.shape().dims()));
  return Value(std::move(result));
}

} // namespace hloc::interp
