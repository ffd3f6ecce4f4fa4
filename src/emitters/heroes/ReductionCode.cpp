#include "emitters/heroes/ReductionCode.h"

#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/Elementwise.h"
#include "emitters/ScalarComputation.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/ShapeMaps.h"
#include "hloc/support/Check.h"
#include "hloc/support/Names.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace hloc {
namespace {

/// Is x with itself x?
bool isIdempotent(Opcode combiner) {
  return llvm::is_contained({Opcode::Maximum, Opcode::Minimum, Opcode::And, Opcode::Or}, combiner);
}

} // namespace

ReductionCode::ReductionCode(const ReductionFrame &frame, ReductionStage stage, KernelBuilder &kernel)
    : frame(frame), stage(stage), kernel(kernel), b(kernel.code()), context(kernel.context()) {}

// --- functions of the fusion

/// What is reduced and the side outputs, at an index of the first hero's operand.
FunctionRequest ReductionCode::elementRequest() const {
  FunctionRequest request;
  const Shape &space = frame.operandShape();
  request.indexSizes.assign(space.dims().begin(), space.dims().end());
  for (const Accumulator &accumulator : frame.accumulators) {
    const HloInstruction &operand = *frame.heroes[accumulator.hero].instr->operand(accumulator.result);
    request.roots.push_back({&operand, 0, bitcastIndexing(space, operand.shape(), context)});
  }
  for (unsigned side : frame.sideRoots) {
    const FusionRoot &root = kernel.graph().roots()[side];
    request.roots.push_back({root.instr, root.result, bitcastIndexing(space, root.shape, context)});
  }
  request.injected = earlier;
  return request;
}

FunctionRequest ReductionCode::initRequest() const {
  FunctionRequest request;
  for (const Accumulator &accumulator : frame.accumulators) {
    const HloInstruction &hero = *frame.heroes[accumulator.hero].instr;
    request.roots.push_back(
        {hero.operand(hero.numOperands() / 2 + accumulator.result), 0, IndexingMap::identity(context, {})});
  }
  return request;
}

/// The outputs at an index of the first hero's result, from the values of all heroes there.
FunctionRequest ReductionCode::outputRequest() const {
  FunctionRequest request;
  const Shape &space = frame.heroes.front().kept;
  request.indexSizes.assign(space.dims().begin(), space.dims().end());
  for (const ReducedRoot &reduced : frame.roots) {
    const FusionRoot &root = kernel.graph().roots()[reduced.root];
    request.roots.push_back({root.instr, root.result, bitcastIndexing(space, reduced.order, context)});
  }
  for (const Accumulator &accumulator : frame.accumulators)
    request.injected.push_back({frame.heroes[accumulator.hero].instr, accumulator.result});
  return request;
}

std::vector<FunctionRequest> ReductionCode::requests() const {
  std::vector<FunctionRequest> requests;
  if (stage != ReductionStage::Combine)
    requests.push_back(elementRequest());
  if (stage != ReductionStage::Partial)
    requests.push_back(initRequest());
  if (stage != ReductionStage::Partial && !frame.roots.empty())
    requests.push_back(outputRequest());
  return requests;
}

void ReductionCode::setFunctions(ArrayRef<func::FuncOp> functions) {
  if (stage != ReductionStage::Combine)
    elementFunction = functions.consume_front();
  if (stage != ReductionStage::Partial)
    initFunction = functions.consume_front();
  if (stage != ReductionStage::Partial && !frame.roots.empty())
    outputFunction = functions.consume_front();
}

llvm::LogicalResult ReductionCode::emitFunctions() {
  auto functions = kernel.emitFunctions(requests());
  if (failed(functions))
    return failure();
  setFunctions(*functions);
  return success();
}

// --- indices

SmallVector<AffineExpr> ReductionCode::mergedIndices(AffineExpr result, AffineExpr element) const {
  return mergedIndices(result, delinearize(element, frame.sizes(true), context));
}

SmallVector<AffineExpr> ReductionCode::mergedIndicesOfRun(AffineExpr result, AffineExpr run, AffineExpr element) const {
  SmallVector<AffineExpr> reduced = delinearize(run, ArrayRef(frame.sizes(true)).drop_back(), context);
  reduced.push_back(element);
  return mergedIndices(result, reduced);
}

SmallVector<AffineExpr> ReductionCode::mergedIndices(AffineExpr result, ArrayRef<AffineExpr> reduced) const {
  SmallVector<AffineExpr> kept = delinearize(result, frame.sizes(false), context);
  SmallVector<AffineExpr> merged;
  unsigned nextKept = 0, nextReduced = 0;
  for (unsigned i = 0; i < frame.dims.size(); ++i)
    merged.push_back(frame.isReduced(i) ? reduced[nextReduced++] : kept[nextKept++]);
  return merged;
}

SmallVector<AffineExpr> ReductionCode::indicesOf(const Shape &shape, ArrayRef<AffineExpr> merged) const {
  SmallVector<int64_t> rowMajor = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, frame.dims.size())));
  IndexingMap map = bitcastMap(frame.dims, rowMajor, shape.dims(), shape.minorToMajor(), context);
  return llvm::map_to_vector(map.affine().getResults(), [&](AffineExpr index) { return index.replaceDims(merged); });
}

SmallVector<AffineExpr> ReductionCode::elementIndices(ArrayRef<AffineExpr> merged) const {
  SmallVector<AffineExpr> indices = indicesOf(frame.operandShape(), merged);
  for (unsigned side : frame.sideRoots)
    llvm::append_range(indices, indicesOf(kernel.graph().roots()[side].shape, merged));
  return indices;
}

// --- elements

ReductionCode::Values ReductionCode::sideOutputs() {
  Values outputs;
  for (unsigned side : frame.sideRoots)
    outputs.push_back(kernel.outputs()[side]);
  return outputs;
}

void ReductionCode::setSideOutputs(ValueRange outputs) {
  for (auto [side, output] : llvm::zip_equal(frame.sideRoots, outputs))
    kernel.outputs()[side] = output;
}

ReductionCode::Values ReductionCode::start(llvm::function_ref<Values()> anyElement) {
  bool hasIdentities =
      llvm::all_of(frame.accumulators, [](const Accumulator &accumulator) { return accumulator.combiner; });
  Values values = hasIdentities ? Values(frame.accumulators.size()) : anyElement();
  for (auto [value, accumulator] : llvm::zip_equal(values, frame.accumulators))
    if (accumulator.combiner)
      value = identity(accumulator);
  return values;
}

ReductionCode::Values ReductionCode::element(ValueRange indices) {
  Values values;
  for (auto [value, accumulator] : llvm::zip(kernel.call(elementFunction, indices, earlierResults), frame.accumulators))
    values.push_back(toCarried(value, accumulator));
  return values;
}

void ReductionCode::storeSides(ValueRange values, ValueRange indices, Values &sideOutputs) {
  for (auto [value, side, output] : llvm::zip_equal(values, frame.sideRoots, sideOutputs)) {
    unsigned rank = kernel.graph().roots()[side].shape.rank();
    output = tensor::InsertOp::create(b, value, output, indices.take_front(rank));
    indices = indices.drop_front(rank);
  }
}

ReductionCode::Values ReductionCode::elementAt(ValueRange indices, Values &sideOutputs) {
  unsigned rank = frame.operandShape().rank();
  ValueRange all = kernel.call(elementFunction, indices.take_front(rank), earlierResults);
  Values values;
  for (auto [value, accumulator] : llvm::zip(all, frame.accumulators))
    values.push_back(toCarried(value, accumulator));
  storeSides(all.drop_front(values.size()), indices.drop_front(rank), sideOutputs);
  return values;
}

SmallVector<ReductionCode::Values> ReductionCode::elements(const IndexingMap &map, ValueRange dims,
                                                           Values &sideOutputs) {
  HLOC_CHECK(map.ranges().size() <= 1, "elements of more than one loop");
  const Shape &space = frame.operandShape();
  unsigned numValues = frame.accumulators.size();
  int64_t count = map.ranges().empty() ? 1 : map.ranges().front().bounds.size();
  CollectedElements collected(b, count);
  ArrayRef<Type> types = elementFunction.getResultTypes().take_front(numValues);
  SmallVector<Value> carried;
  for (Type type : types)
    collected.addEmpty(type, carried);
  size_t numVectors = carried.size();
  llvm::append_range(carried, sideOutputs);
  SmallVector<Value> results =
      kernel.loop(map, dims, carried, [&](ValueRange lanes, ValueRange indices, ValueRange state) {
        Values arguments(earlierResults);
        for (const CollectedLists &lists : earlierLists)
          llvm::append_range(arguments, lists.at(lanes));
        ValueRange values = kernel.call(elementFunction, indices.take_front(space.rank()), arguments);
        SmallVector<Value> next;
        unsigned vector = 0;
        Value lane = lanes.empty() ? b.index(0) : lanes.front();
        for (Value value : values.take_front(numValues))
          collected.insert(value, lane, state, vector, next);
        Values sides(state.drop_front(numVectors));
        storeSides(values.drop_front(numValues), indices.drop_front(space.rank()), sides);
        llvm::append_range(next, sides);
        return next;
      });
  sideOutputs.assign(results.begin() + ptrdiff_t(numVectors), results.end());
  SmallVector<Values> points(count);
  for (int64_t lane = 0; lane < count; ++lane) {
    unsigned vector = 0;
    for (auto [type, accumulator] : llvm::zip_equal(types, frame.accumulators))
      points[lane].push_back(toCarried(collected.extract(type, b.getIndexAttr(lane), results, vector), accumulator));
  }
  return points;
}

// --- numbers

Type ReductionCode::carriedType(const Accumulator &accumulator) const { return valueType(accumulator.type, context); }

Value ReductionCode::toCarried(Value stored, const Accumulator &accumulator) {
  ElementType type = frame.heroes[accumulator.hero].instr->resultShape(accumulator.result).elementType();
  Value value = fromStorage(b, stored, type);
  if (type == accumulator.type)
    return value;
  return isFloat(type) ? toCompute(b, value, type) : b.castI(value, carriedType(accumulator), isSigned(type));
}

Value ReductionCode::fromCarried(Value carried, const Accumulator &accumulator) {
  ElementType type = frame.heroes[accumulator.hero].instr->resultShape(accumulator.result).elementType();
  if (type != accumulator.type)
    carried = isFloat(type) ? fromCompute(b, carried, type)
                            : b.castI(carried, valueType(type, context), isSigned(accumulator.type));
  return toStorage(b, carried, type);
}

/// What changes no number it is combined with: -0 for sums, as 0 would turn a sum of nothing but -0 into 0.
Value ReductionCode::identity(const Accumulator &accumulator) {
  ElementType type = accumulator.type;
  Opcode combiner = *accumulator.combiner;
  Type valueType = carriedType(accumulator);
  if (isComplex(type)) {
    Value zero = b.floating(cast<ComplexType>(valueType).getElementType(), -0.0);
    return b.complex(zero, zero);
  }
  bool isLeast = combiner == Opcode::Maximum; // the identity is the least number
  if (isFloat(type)) {
    if (combiner == Opcode::Add || combiner == Opcode::Multiply)
      return b.floating(valueType, combiner == Opcode::Add ? -0.0 : 1.0);
    return b.infinity(valueType, isLeast);
  }
  switch (combiner) {
  case Opcode::Add:
  case Opcode::Or:
  case Opcode::Xor:
    return b.integer(valueType, 0);
  case Opcode::And:
    return b.integer(valueType, -1);
  case Opcode::Multiply:
    return b.integer(valueType, 1);
  case Opcode::Maximum:
  case Opcode::Minimum:
    break;
  default:
    HLOC_UNREACHABLE("an op that combines nothing");
  }
  unsigned bits = bitWidth(type);
  if (isPred(type))
    return b.boolean(!isLeast);
  llvm::APInt extreme = isSigned(type)
                            ? (isLeast ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits))
                            : (isLeast ? llvm::APInt::getMinValue(bits) : llvm::APInt::getMaxValue(bits));
  return b.integer(valueType, extreme.getSExtValue());
}

Value ReductionCode::combineNumbers(Value x, Value y, const Accumulator &accumulator) {
  ElementType type = accumulator.type;
  Opcode combiner = *accumulator.combiner;
  if (isComplex(type))
    return complexArithmetic(b, combiner, x, y);
  if (isFloat(type)) {
    return combiner == Opcode::Add        ? b.addF(x, y)
           : combiner == Opcode::Multiply ? b.mulF(x, y)
           : combiner == Opcode::Maximum  ? b.maxF(x, y)
                                          : b.minF(x, y);
  }
  bool isTruth = isPred(type);
  switch (combiner) {
  case Opcode::Add:
    return isTruth ? b.orI(x, y) : b.addI(x, y);
  case Opcode::Multiply:
    return isTruth ? b.andI(x, y) : b.mulI(x, y);
  case Opcode::Maximum:
    return isTruth ? b.orI(x, y) : b.maxI(x, y, isSigned(type));
  case Opcode::Minimum:
    return isTruth ? b.andI(x, y) : b.minI(x, y, isSigned(type));
  case Opcode::And:
    return b.andI(x, y);
  case Opcode::Or:
    return b.orI(x, y);
  case Opcode::Xor:
    return b.xorI(x, y);
  default:
    HLOC_UNREACHABLE("an op that combines nothing");
  }
}

// --- lists

template <typename Reducer>
ReductionCode::Values ReductionCode::combineWith(ValueRange a, ValueRange other, Reducer reducer) {
  Values combined;
  for (unsigned i = 0; i < frame.accumulators.size();) {
    const Accumulator &accumulator = frame.accumulators[i];
    if (accumulator.combiner) {
      combined.push_back(combineNumbers(a[i], other[i], accumulator));
      ++i;
      continue;
    }
    const ReductionHero &hero = frame.heroes[accumulator.hero];
    unsigned count = hero.instr->numResults();
    llvm::append_range(combined, reducer(hero, a.slice(i, count), other.slice(i, count)));
    i += count;
  }
  return combined;
}

ReductionCode::Values ReductionCode::callReducer(const ReductionHero &hero, ValueRange a, ValueRange other) {
  SmallVector<Value> arguments(a);
  llvm::append_range(arguments, other);
  Location before = b.getLoc();
  auto results =
      emitScalarComputation(*hero.instr->computation(AttributeKey::ToApply), arguments, b, kernel.diagnosticEngine());
  b.setLoc(before);
  good &= llvm::succeeded(results);
  return failed(results) ? Values(a) : Values(results->begin(), results->end());
}

ReductionCode::Values ReductionCode::apply(ValueRange accumulated, ValueRange element) {
  return combineWith(accumulated, element,
                     [&](const ReductionHero &hero, ValueRange x, ValueRange y) { return callReducer(hero, x, y); });
}

ReductionCode::Values ReductionCode::combine(ValueRange a, ValueRange other) {
  return combineWith(a, other, [&](const ReductionHero &hero, ValueRange x, ValueRange y) {
    unsigned position = *hero.position;
    bool isSignedNumber = isSigned(hero.instr->resultShape(position).elementType());
    Value inOrder =
        b.cmpI(isSignedNumber ? CodeBuilder::IPred::sle : CodeBuilder::IPred::ule, x[position], y[position]);
    Values first, second;
    for (auto [left, right] : llvm::zip_equal(x, y)) {
      first.push_back(b.select(inOrder, left, right));
      second.push_back(b.select(inOrder, right, left));
    }
    return callReducer(hero, first, second);
  });
}

ReductionCode::Values ReductionCode::combineAll(ArrayRef<Values> lists) {
  SmallVector<Values> left(lists);
  while (left.size() > 1) {
    SmallVector<Values> halved;
    for (size_t i = 0; i + 1 < left.size(); i += 2)
      halved.push_back(combine(left[i], left[i + 1]));
    if (left.size() % 2)
      halved.push_back(left.back());
    left = std::move(halved);
  }
  return left.front();
}

func::FuncOp ReductionCode::combiner() {
  if (combinerFunction)
    return combinerFunction;
  SmallVector<Type> results;
  for (const Accumulator &accumulator : frame.accumulators)
    results.push_back(carriedType(accumulator));
  SmallVector<Type> arguments(results);
  llvm::append_range(arguments, results);
  const HloInstruction &hero = *frame.heroes.front().instr;
  OpBuilder::InsertionGuard guard(b);
  combinerFunction = func::FuncOp::create(b.getLoc(), identifierOf(hero.computation(AttributeKey::ToApply)->name()),
                                          b.getFunctionType(arguments, results));
  combinerFunction.setPrivate();
  SymbolTable(kernel.moduleOp()).insert(combinerFunction);
  b.setInsertionPointToEnd(combinerFunction.addEntryBlock());
  ValueRange all = combinerFunction.getArguments();
  func::ReturnOp::create(b, combine(all.take_front(results.size()), all.drop_front(results.size())));
  return combinerFunction;
}

ReductionCode::Values ReductionCode::shuffle(ValueRange values, int64_t maxDistance, bool toAll) {
  auto op = xla_gpu::ShuffleReduceOp::create(b, combiner(), values, maxDistance, toAll);
  return Values(op.getResults());
}

ReductionCode::Values ReductionCode::where(Value condition, ValueRange values) {
  Values chosen;
  for (auto [value, accumulator] : llvm::zip_equal(values, frame.accumulators)) {
    Value neutral = identity(accumulator);
    if (isComplex(accumulator.type))
      chosen.push_back(b.complex(b.select(condition, b.real(value), b.real(neutral)),
                                 b.select(condition, b.imag(value), b.imag(neutral))));
    else
      chosen.push_back(b.select(condition, value, neutral));
  }
  return chosen;
}

ReductionCode::Values ReductionCode::whereNotRepeated(Value condition, ValueRange values) {
  Values chosen = where(condition, values);
  for (auto [result, value, accumulator] : llvm::zip_equal(chosen, values, frame.accumulators))
    if (isIdempotent(*accumulator.combiner))
      result = value;
  return chosen;
}

ReductionCode::Values ReductionCode::allocateShared(ArrayRef<int64_t> sizes) {
  Values tensors;
  for (const Accumulator &accumulator : frame.accumulators)
    tensors.push_back(
        xla_gpu::AllocateSharedOp::create(b, RankedTensorType::get(sizes, storageType(accumulator.type, context))));
  return tensors;
}

ReductionCode::Values ReductionCode::insert(ValueRange values, ValueRange tensors, ValueRange indices) {
  Values inserted;
  for (auto [value, tensor, accumulator] : llvm::zip_equal(values, tensors, frame.accumulators))
    inserted.push_back(tensor::InsertOp::create(b, toStorage(b, value, accumulator.type), tensor, indices));
  return inserted;
}

ReductionCode::Values ReductionCode::extract(ValueRange tensors, ValueRange indices) {
  Values values;
  for (auto [tensor, accumulator] : llvm::zip_equal(tensors, frame.accumulators))
    values.push_back(fromStorage(b, tensor::ExtractOp::create(b, tensor, indices), accumulator.type));
  return values;
}

// --- outputs

ReductionCode::Values ReductionCode::results(ValueRange values) {
  Values inits;
  for (auto [init, accumulator] : llvm::zip_equal(kernel.call(initFunction, {}), frame.accumulators))
    inits.push_back(toCarried(init, accumulator));
  Values stored;
  for (auto [value, accumulator] : llvm::zip_equal(apply(inits, values), frame.accumulators))
    stored.push_back(fromCarried(value, accumulator));
  return stored;
}

void ReductionCode::storeLists(const IndexingMap &where, ArrayRef<Values> lists) {
  CollectedLists collected(b, lists);
  store(where, [&](ValueRange variables) { return collected.at(variables); });
}

void ReductionCode::store(const IndexingMap &where, llvm::function_ref<Values(ValueRange)> values) {
  SmallVector<AffineExpr> indices(where.affine().getResults());
  SmallVector<Value> carried;
  bool isPartial = stage == ReductionStage::Partial;
  const Shape &space = frame.heroes.front().kept;
  if (isPartial) {
    llvm::append_range(carried, kernel.scratch());
  } else {
    AffineExpr number = indices.back();
    indices = memoryOrderIndices(space, number);
    for (const ReducedRoot &root : frame.roots) {
      llvm::append_range(indices, memoryOrderIndices(root.order, number));
      carried.push_back(kernel.outputs()[root.root]);
    }
  }
  IndexingMap map(AffineMap::get(where.dims().size(), where.ranges().size(), indices, context), where.dims(),
                  where.ranges(), {}, where.constraints());
  map.simplify();
  SmallVector<Value> stored = kernel.loop(map, carried, [&](ValueRange variables, ValueRange at, ValueRange state) {
    if (isPartial)
      return insert(values(variables), state, at);
    ValueRange outputs = kernel.call(outputFunction, at.take_front(space.rank()), results(values(variables)));
    at = at.drop_front(space.rank());
    Values next;
    for (auto [i, output] : llvm::enumerate(outputs)) {
      unsigned rank = frame.roots[i].order.rank();
      next.push_back(tensor::InsertOp::create(b, output, state[i], at.take_front(rank)));
      at = at.drop_front(rank);
    }
    return next;
  });
  if (isPartial)
    kernel.scratch().assign(stored.begin(), stored.end());
  else
    for (auto [root, output] : llvm::zip_equal(frame.roots, stored))
      kernel.outputs()[root.root] = output;
}

} // namespace hloc
