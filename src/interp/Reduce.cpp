// reduce and map: a scalar function over the elements of arrays.
//
// Operands are brought into the order [reduced..., kept...], so that one run of lanes is one run of results.

#include "interp/Ops.h"
#include "interp/ParameterReader.h"
#include "interp/ScalarFunction.h"
#include "interp/Strided.h"

#include <cmath>
#include <cstring>

namespace hloc::interp {

namespace {

struct ReduceDims {
  llvm::SmallVector<int64_t, 6> reduced, kept;
  int64_t numReduced = 1, numKept = 1;

  explicit ReduceDims(Step &step) {
    const Shape &operand = step.array(0).shape();
    llvm::ArrayRef<int64_t> dimensions = step.instr.ints(AttributeKey::Dimensions);
    for (unsigned i = 0; i < operand.rank(); ++i) {
      bool isReduced = llvm::is_contained(dimensions, int64_t(i));
      (isReduced ? reduced : kept).push_back(i);
      (isReduced ? numReduced : numKept) *= operand.dim(i);
    }
  }
  llvm::SmallVector<int64_t, 12> reducedFirst() const { return joined(reduced, kept); }
  llvm::SmallVector<int64_t, 12> keptFirst() const { return joined(kept, reduced); }

private:
  static llvm::SmallVector<int64_t, 12> joined(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
    llvm::SmallVector<int64_t, 12> order(a.begin(), a.end());
    order.append(b.begin(), b.end());
    return order;
  }
};

/// A sum that is NaN has the bits of any arithmetic's NaN.
void setSum(Literal &result, int64_t i, double sum) {
  const FloatFormat &format = floatFormat(result.shape().elementType());
  bool hasPayload = format.specials == FloatFormat::Specials::Ieee && format.bits < 64;
  if (std::isnan(sum) && hasPayload)
    return result.setBits(i, (uint64_t(1) << (format.bits - 1)) - 1);
  result.setDouble(i, std::isnan(sum) ? std::fabs(sum) : sum);
}

/// Sums of floats are accumulated in f64 and rounded once: the oracle's sum has no order.
void sumFloats(const Literal &operand, const ReduceDims &dims, double init, Literal &result) {
  ElementType type = operand.shape().elementType();
  std::vector<double> sums(size_t(dims.numKept), init);
  LaneBuffer buffer;
  Load load = loadFunction(type);
  auto addRuns = [&](int64_t from, int64_t count, auto addLane) {
    load(operand.bytes().data() + from * hostBytes(type), buffer.bytes, count);
    withLaneType(computeType(type), [&](auto zero) {
      if constexpr (RealLane<decltype(zero)>)
        for (int64_t i = 0; i < count; ++i)
          addLane(i, reinterpret_cast<const decltype(zero) *>(buffer.bytes)[i]);
    });
  };
  for (int64_t row = 0; row < dims.numReduced; ++row)
    for (int64_t start = 0; start < dims.numKept; start += maxLanes)
      addRuns(row * dims.numKept + start, std::min(maxLanes, dims.numKept - start),
              [&](int64_t i, double x) { sums[size_t(start + i)] += x; });
  for (size_t i = 0; i < sums.size(); ++i)
    setSum(result, int64_t(i), sums[i]);
}

/// Same for operands in the order [kept, reduced]: better when few results are made of many elements.
void sumFloatRows(const Literal &operand, const ReduceDims &dims, double init, Literal &result) {
  ElementType type = operand.shape().elementType();
  LaneBuffer buffer;
  Load load = loadFunction(type);
  for (int64_t row = 0; row < dims.numKept; ++row) {
    double sum = init;
    for (int64_t start = 0; start < dims.numReduced; start += maxLanes) {
      int64_t count = std::min(maxLanes, dims.numReduced - start);
      load(operand.bytes().data() + (row * dims.numReduced + start) * hostBytes(type), buffer.bytes, count);
      withLaneType(computeType(type), [&](auto zero) {
        if constexpr (RealLane<decltype(zero)>)
          for (int64_t i = 0; i < count; ++i)
            sum += reinterpret_cast<const decltype(zero) *>(buffer.bytes)[i];
      });
    }
    setSum(result, row, sum);
  }
}

void reduceAll(ScalarFunction &function, llvm::ArrayRef<Literal> operands, llvm::ArrayRef<const Literal *> inits,
               const ReduceDims &dims, llvm::MutableArrayRef<Literal> results) {
  size_t n = operands.size();
  std::vector<ParameterReader> readers, initReaders;
  for (size_t i = 0; i < n; ++i) {
    readers.emplace_back(operands[i], function.parameterType(unsigned(n + i)));
    initReaders.emplace_back(*inits[i], function.parameterType(unsigned(i)));
  }
  std::vector<LaneBuffer> accumulators(n);
  llvm::SmallVector<const void *, 4> parameters(2 * n);
  llvm::SmallVector<void *, 2> outputs(n);
  for (size_t i = 0; i < n; ++i)
    parameters[i] = outputs[i] = accumulators[i].bytes;
  for (int64_t start = 0; start < dims.numKept; start += maxLanes) {
    int64_t count = std::min(maxLanes, dims.numKept - start);
    for (size_t i = 0; i < n; ++i) {
      const void *init = initReaders[i].read(0, 1);
      size_t bytes = laneBytes(computeType(function.parameterType(unsigned(i))));
      for (int64_t lane = 0; lane < count; ++lane)
        std::memcpy(accumulators[i].bytes + size_t(lane) * bytes, init, bytes);
    }
    for (int64_t row = 0; row < dims.numReduced; ++row) {
      for (size_t i = 0; i < n; ++i)
        parameters[n + i] = readers[i].read(row * dims.numKept + start, count);
      function.run(parameters, outputs, count);
    }
    for (size_t i = 0; i < n; ++i) {
      ElementType type = results[i].shape().elementType();
      storeFunction(type)(accumulators[i].bytes, results[i].mutableBytes().data() + start * hostBytes(type), count);
    }
  }
}

/// Combining in another order changes nothing: integers wrap, max and min pick one of their operands.
bool orderIsFree(const ScalarFunction &function) {
  if (!function.commutativeOp())
    return false;
  bool rounds = *function.commutativeOp() == Opcode::Add || *function.commutativeOp() == Opcode::Multiply;
  return !rounds || isInteger(function.resultType(0)) || isPred(function.resultType(0));
}

/// One result of very many elements: first combine rows of lanes, then the lanes.
void reduceToOne(ScalarFunction &function, const Literal &operand, const Literal &init, Literal &result) {
  int64_t rows = operand.numElements() / maxLanes, covered = rows * maxLanes;
  Literal partial(Shape::array(function.resultType(0), {maxLanes}));
  ElementType type = operand.shape().elementType();
  LaneBuffer accumulator;
  ParameterReader reader(operand, function.parameterType(1));
  std::memcpy(accumulator.bytes, reader.read(0, maxLanes), maxLanes * laneBytes(computeType(type)));
  for (int64_t row = 1; row < rows; ++row)
    function.run({accumulator.bytes, reader.read(row * maxLanes, maxLanes)}, {accumulator.bytes}, maxLanes);
  LaneBuffer one;
  loadFunction(init.shape().elementType())(init.bytes().data(), one.bytes, 1);
  size_t bytes = laneBytes(computeType(type));
  for (int64_t lane = 0; lane < maxLanes; ++lane)
    function.run({one.bytes, accumulator.bytes + size_t(lane) * bytes}, {one.bytes}, 1);
  for (int64_t i = covered; i < operand.numElements(); ++i)
    function.run({one.bytes, reader.read(i, 1)}, {one.bytes}, 1);
  storeFunction(result.shape().elementType())(one.bytes, result.mutableBytes().data(), 1);
}

} // namespace

llvm::FailureOr<Value> evaluateReduce(Step &step) {
  llvm::FailureOr<ScalarFunction> function =
      ScalarFunction::compile(*step.instr.computation(AttributeKey::ToApply), step);
  if (llvm::failed(function))
    return llvm::failure();
  auto n = unsigned(step.operands.size() / 2);
  if (function->numParameters() != 2 * n || function->numResults() != n)
    return step.unsupported("the reducer's signature does not fit", DiagnosticKind::InvalidCallee);
  ReduceDims dims(step);
  std::vector<Literal> results = newResults(step.shape());
  const Literal &first = step.array(0), &init = step.array(n);
  bool sumsFloats = n == 1 && function->commutativeOp() == Opcode::Add && isFloat(function->resultType(0)) &&
                    isFloat(first.shape().elementType());
  if (sumsFloats && dims.numKept < 16) {
    sumFloatRows(transposed(first, dims.keptFirst()), dims, init.getDouble(0), results[0]);
  } else if (sumsFloats) {
    sumFloats(transposed(first, dims.reducedFirst()), dims, init.getDouble(0), results[0]);
  } else if (dims.numKept == 1 && dims.numReduced >= 2 * maxLanes && orderIsFree(*function) &&
             first.shape().elementType() == function->resultType(0)) {
    reduceToOne(*function, first, init, results[0]);
  } else {
    std::vector<Literal> operands;
    llvm::SmallVector<const Literal *, 2> inits;
    for (unsigned i = 0; i < n; ++i) {
      operands.push_back(transposed(step.array(i), dims.reducedFirst()));
      inits.push_back(&step.array(n + i));
    }
    reduceAll(*function, operands, inits, dims, results);
  }
  return Value::ofResults(step.shape(), std::move(results));
}

llvm::FailureOr<Value> evaluateMap(Step &step) {
  llvm::FailureOr<ScalarFunction> function =
      ScalarFunction::compile(*step.instr.computation(AttributeKey::ToApply), step);
  if (llvm::failed(function))
    return llvm::failure();
  if (function->numParameters() != step.operands.size() || function->numResults() != 1)
    return step.unsupported("the mapped computation's signature does not fit", DiagnosticKind::InvalidCallee);
  std::vector<ParameterReader> readers;
  for (unsigned i = 0; i < step.operands.size(); ++i)
    readers.emplace_back(step.array(i), function->parameterType(i));
  Literal result(step.shape());
  LaneBuffer output;
  llvm::SmallVector<const void *, 4> parameters(readers.size());
  for (int64_t start = 0; start < result.numElements(); start += maxLanes) {
    int64_t count = std::min(maxLanes, result.numElements() - start);
    for (size_t i = 0; i < readers.size(); ++i)
      parameters[i] = readers[i].read(start, count);
    function->run(parameters, {output.bytes}, count);
    ElementType type = step.shape().elementType();
    storeFunction(type)(output.bytes, result.mutableBytes().data() + start * hostBytes(type), count);
  }
  return Value(std::move(result));
}

} // namespace hloc::interp
