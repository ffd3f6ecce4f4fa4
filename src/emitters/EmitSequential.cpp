// Reductions, windows and contractions of one result element as a loop in one thread: right for everything, fast for
// short loops. Heroes do better where it matters.
#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/Elementwise.h"
#include "emitters/FunctionEmitter.h"
#include "emitters/ProductArithmetic.h"
#include "emitters/RaggedGroups.h"
#include "emitters/ScalarComputation.h"
#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace hloc {
namespace {

/// Builds a loop over the range variables of `map` at `dims`; `body` gets range variables, map results and the carried
/// values, and gives the next carried values.
llvm::FailureOr<SmallVector<Value>>
sequentialLoop(CodeBuilder &b, const IndexingMap &map, ValueRange dims, ValueRange inits,
               llvm::function_ref<llvm::FailureOr<SmallVector<Value, 1>>(ValueRange, ValueRange, ValueRange)> body) {
  // The body is filled when the loop is in place: what is remembered depends on the regions around it.
  auto loop = xla_gpu::LoopOp::create(b, map, dims, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  llvm::FailureOr<SmallVector<Value, 1>> next =
      body(loop.rangeArguments(), loop.mapResultArguments(), loop.iterArguments());
  bool good = succeeded(next);
  xla_gpu::YieldOp::create(b, good ? ValueRange(*next) : loop.iterArguments());
  if (!good)
    return failure();
  return SmallVector<Value>(loop.getResults());
}

/// A plain sum of floats narrower than f32. Rounded at every step it would soon stand still, so it is carried in f32.
bool isNarrowSum(const HloInstruction &instr) {
  const HloComputation &reducer = *instr.computation(AttributeKey::ToApply);
  const HloInstruction &root = *reducer.root();
  return instr.numOperands() == 2 && root.opcode() == Opcode::Add && isFloat(root.shape().elementType()) &&
         bitWidth(root.shape().elementType()) < 32 && root.operand(0)->opcode() == Opcode::Parameter &&
         root.operand(1)->opcode() == Opcode::Parameter && root.operand(0) != root.operand(1);
}

/// Of index `index` of an array from `start` on, which may be negative.
Value offsetInWindow(CodeBuilder &b, Value index, Value start, int64_t size, int64_t highestStart) {
  AffineExpr difference = b.getAffineDimExpr(0) - b.getAffineDimExpr(1);
  IndexingVariable variables[] = {{Interval{0, size - 1}, {}}, {Interval{0, highestStart}, {}}};
  return applyMap(b, IndexingMap(AffineMap::get(2, 0, difference, b.getContext()), variables, {}, {}), {index, start})
      .front();
}

} // namespace

/// `thenBranch()` if the condition holds, else `otherwise`.
FunctionEmitter::Result FunctionEmitter::emitIfElse(Value condition, ValueRange otherwise,
                                                    llvm::function_ref<Result()> thenBranch) {
  auto branch = scf::IfOp::create(b, otherwise.getTypes(), condition, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, otherwise);
  b.setInsertionPointToEnd(branch.thenBlock());
  Result values = thenBranch();
  scf::YieldOp::create(b, succeeded(values) ? ValueRange(*values) : otherwise);
  if (failed(values))
    return failure();
  return Values(branch.getResults());
}

FunctionEmitter::Result FunctionEmitter::emitNarrowSum(const HloInstruction &instr, Value init,
                                                       const IndexingMap &elements, ValueRange indices) {
  ElementType type = instr.shape().elementType();
  ElementType elementType = instr.operand(0)->shape().elementType();
  Value wide = toCompute(b, init, instr.operand(1)->shape().elementType());
  auto results =
      sequentialLoop(b, elements, indices, wide, [&](ValueRange, ValueRange element, ValueRange carried) -> Result {
        llvm::FailureOr<Value> value = emitOne(*instr.operand(0), element);
        if (failed(value))
          return failure();
        locate(instr);
        return Values{b.addF(carried[0], toCompute(b, *value, elementType))};
      });
  if (failed(results))
    return failure();
  return Values{fromCompute(b, results->front(), type)};
}

FunctionEmitter::Result FunctionEmitter::emitReduction(const HloInstruction &instr, ValueRange indices) {
  unsigned count = instr.numOperands() / 2;
  SmallVector<Value> inits;
  for (unsigned i = 0; i < count; ++i) {
    llvm::FailureOr<Value> init = emitOne(*instr.operand(count + i), {});
    if (failed(init))
      return failure();
    inits.push_back(*init);
  }
  std::optional<OperandIndexing> indexing = operandIndexing(instr, 0, b.getContext());
  if (indexing->map.isKnownEmpty() || instr.operand(0)->shape().numElements() == 0)
    return Values(inits.begin(), inits.end());
  locate(instr);
  if (isNarrowSum(instr))
    return emitNarrowSum(instr, inits.front(), indexing->map, indices);
  auto results = sequentialLoop(
      b, indexing->map, indices, inits, [&](ValueRange, ValueRange element, ValueRange carried) -> Result {
        SmallVector<Value> arguments(carried);
        for (unsigned i = 0; i < count; ++i) {
          llvm::FailureOr<Value> value = emitOne(*instr.operand(i), element);
          if (failed(value))
            return failure();
          arguments.push_back(*value);
        }
        return emitScalarComputation(*instr.computation(AttributeKey::ToApply), arguments, b, code.diagnostics);
      });
  if (failed(results))
    return failure();
  return Values(results->begin(), results->end());
}

/// All of a row is needed for one element of the result.
FunctionEmitter::Result FunctionEmitter::refuseInnerSort(const HloInstruction &instr, ValueRange) {
  return unsupportedFeature(instr, "a sort whose results the fusion goes on to compute with, or not all in one order");
}

/// dot, scaled-dot and convolution: the map of the first operand says what is summed, those of all operands have the
/// same range variables. The operands are factors.
FunctionEmitter::Result FunctionEmitter::emitProducts(const HloInstruction &instr, ValueRange indices) {
  if (instr.opcode() == Opcode::Convolution && instr.numOperands() != 2)
    return unsupportedFeature(instr, "a convolution of sparse operands");
  ProductArithmetic arithmetic(b, instr.shape().elementType());
  std::vector<IndexingMap> maps;
  bool isEmpty = false;
  for (unsigned i = 0; i < instr.numOperands(); ++i) {
    maps.push_back(operandIndexing(instr, i, b.getContext())->map);
    isEmpty |= maps.back().isKnownEmpty() || instr.operand(i)->shape().numElements() == 0;
  }
  locate(instr);
  Value zero = arithmetic.zero();
  if (isEmpty)
    return Values{arithmetic.result(zero)};
  auto results = sequentialLoop(
      b, maps.front(), indices, zero, [&](ValueRange ranges, ValueRange at, ValueRange carried) -> Result {
        SmallVector<Value> variables(indices);
        llvm::append_range(variables, ranges);
        Value product;
        for (auto [i, operand] : llvm::enumerate(instr.operands())) {
          llvm::FailureOr<Value> value =
              emitOne(*operand, i == 0 ? SmallVector<Value>(at) : applyMap(b, maps[i], variables));
          if (failed(value))
            return failure();
          locate(instr);
          Value factor = arithmetic.factor(*value, operand->shape().elementType());
          product = product ? arithmetic.multiply(product, factor) : factor;
        }
        return Values{arithmetic.add(carried[0], product)};
      });
  if (failed(results))
    return failure();
  return Values{arithmetic.result(results->front())};
}

/// The group that index `position` of the ragged dimension belongs to, or the part of that dimension that is group
/// `group`'s: sizes are added up, what they have beyond the dimension is cut off. Null: not asked for.
llvm::FailureOr<FunctionEmitter::RaggedGroup>
FunctionEmitter::emitRaggedGroup(const HloInstruction &instr, int64_t extent, Value position, Value group) {
  const HloInstruction &sizes = *instr.operand(2);
  ElementType type = sizes.shape().elementType();
  MLIRContext *context = b.getContext();
  IndexingMap each =
      IndexingMap::fromSizes(AffineMap::get(0, 1, getAffineSymbolExpr(0, context)), {}, sizes.shape().dims());
  Value none = b.integer(b.getI64Type(), 0);
  if (sizes.shape().numElements() == 0)
    return RaggedGroup{none, none, none, none};
  // Where the next group begins, groups that end up to the position, limits of the group asked for.
  auto results = sequentialLoop(b, each, {}, {none, none, none, none},
                                [&](ValueRange, ValueRange at, ValueRange carried) -> Result {
                                  llvm::FailureOr<Value> size = emitOne(sizes, at);
                                  if (failed(size))
                                    return failure();
                                  locate(instr);
                                  Value rest = b.subI(b.integer(b.getI64Type(), extent), carried[0]);
                                  Value end = b.addI(carried[0], elementsOfGroup(b, *size, type, rest));
                                  Values next = {end, carried[1], carried[2], carried[3]};
                                  if (position) {
                                    Value before = b.cmpI(CodeBuilder::IPred::sle, end, position);
                                    next[1] = b.addI(carried[1], b.castI(before, b.getI64Type(), false));
                                  }
                                  if (group) {
                                    Value isIt = b.cmpI(CodeBuilder::IPred::eq, at[0], group);
                                    next[2] = b.select(isIt, carried[0], carried[2]);
                                    next[3] = b.select(isIt, end, carried[3]);
                                  }
                                  return next;
                                });
  if (failed(results))
    return failure();
  return RaggedGroup{(*results)[0], (*results)[1], (*results)[2], (*results)[3]};
}

/// Products as in dot. Rows beyond all groups are zero, as are the products of a group with what is not its own.
FunctionEmitter::Result FunctionEmitter::emitRaggedDot(const HloInstruction &instr, ValueRange indices) {
  using Kind = RaggedDims::Kind;
  if (instr.operand(2)->shape().rank() != 1)
    return unsupportedFeature(instr, "a ragged-dot whose group sizes have batch dimensions");
  RaggedDims ragged = raggedDims(instr);
  const HloInstruction &left = *instr.operand(0), &right = *instr.operand(1);
  int64_t extent = left.shape().dim(instr.ints(AttributeKey::LhsRaggedDims).front());
  if (ragged.kind == Kind::Free && instr.ints(AttributeKey::RhsGroupDims).size() != 1)
    return unsupportedFeature(instr, "a ragged-dot of a free dimension without one group dimension");
  if (ragged.kind == Kind::Free &&
      right.shape().dim(instr.ints(AttributeKey::RhsGroupDims).front()) != instr.operand(2)->shape().dim(0))
    return unsupportedFeature(instr, "a ragged-dot with other than one right side a group");
  ProductArithmetic arithmetic(b, instr.shape().elementType());
  locate(instr);
  Value zero = arithmetic.zero();
  if (left.shape().numElements() == 0 || right.shape().numElements() == 0)
    return Values{arithmetic.result(zero)};
  auto wide = [&](Value index) -> Value { return arith::IndexCastOp::create(b, b.getI64Type(), index); };
  bool contracted = ragged.kind == Kind::Contracted;
  Value position = contracted ? Value() : wide(indices[ragged.position]);
  llvm::FailureOr<RaggedGroup> group = emitRaggedGroup(instr, extent, position, contracted ? indices[0] : Value());
  if (failed(group))
    return failure();
  IndexingMap rows = raggedDotMap(instr, 0, b.getContext()), columns = raggedDotMap(instr, 1, b.getContext());
  auto product = [&](ValueRange ranges, ValueRange at, Value sum) -> Result {
    SmallVector<Value> variables(indices);
    llvm::append_range(variables, ranges);
    if (!columns.runtimes().empty())
      variables.push_back(clampStart(b, group->number, ElementType::S64, columns.runtimes().front().bounds.upper));
    llvm::FailureOr<Value> x = emitOne(left, at);
    llvm::FailureOr<Value> y = succeeded(x) ? emitOne(right, applyMap(b, columns, variables)) : x;
    if (failed(x) || failed(y))
      return failure();
    locate(instr);
    return Values{arithmetic.add(sum, arithmetic.multiply(arithmetic.factor(*x, left.shape().elementType()),
                                                          arithmetic.factor(*y, right.shape().elementType())))};
  };
  auto unchanged = [](Value sum) { return [sum]() -> FunctionEmitter::Result { return Values{sum}; }; };
  auto sums = [&]() -> Result {
    auto results =
        sequentialLoop(b, rows, indices, zero, [&](ValueRange ranges, ValueRange at, ValueRange carried) -> Result {
          if (!contracted)
            return product(ranges, at, carried[0]);
          Value depth = wide(ranges[ragged.position]);
          Value isOwn = b.andI(b.cmpI(CodeBuilder::IPred::sge, depth, group->begin),
                               b.cmpI(CodeBuilder::IPred::slt, depth, group->end));
          return emitIf(isOwn, zero.getType(), [&] { return product(ranges, at, carried[0]); }, unchanged(carried[0]));
        });
    if (failed(results))
      return failure();
    return Values{results->front()};
  };
  Result sum =
      contracted ? sums()
                 : emitIf(b.cmpI(CodeBuilder::IPred::slt, position, group->all), zero.getType(), sums, unchanged(zero));
  if (failed(sum))
    return failure();
  return Values{arithmetic.result(sum->front())};
}

/// Element p of the result: `scatter` of the initial value and, in order, the sources of which p is the element of
/// their window that `select` prefers. Every element asks the windows that contain it.
FunctionEmitter::Result FunctionEmitter::emitSelectAndScatter(const HloInstruction &instr, ValueRange indices) {
  const HloInstruction &source = *instr.operand(1);
  for (AttributeKey key : {AttributeKey::Select, AttributeKey::Scatter})
    for (const HloInstruction *parameter : instr.computation(key)->parameters())
      if (!parameter->shape().isArray() || parameter->shape().elementType() != instr.shape().elementType() ||
          source.shape().elementType() != instr.shape().elementType())
        return unsupportedFeature(instr, "a `select-and-scatter` of several element types");
  llvm::FailureOr<Value> init = emitOne(*instr.operand(2), {});
  if (failed(init))
    return failure();
  IndexingMap sources = sourcesOfElement(instr, b.getContext()), elements = elementsOfSource(instr, b.getContext());
  if (sources.isKnownEmpty() || elements.isKnownEmpty())
    return Values{*init};
  locate(instr);
  auto results =
      sequentialLoop(b, sources, indices, *init, [&](ValueRange, ValueRange window, ValueRange carried) -> Result {
        llvm::FailureOr<Value> chosen = emitIsSelected(instr, elements, window, indices);
        if (failed(chosen))
          return failure();
        return emitIf(
            *chosen, carried[0].getType(),
            [&]() -> Result {
              llvm::FailureOr<Value> value = emitOne(source, window);
              if (failed(value))
                return failure();
              locate(instr);
              return emitScalarComputation(*instr.computation(AttributeKey::Scatter), {carried[0], *value}, b,
                                           code.diagnostics);
            },
            [&]() -> Result { return Values{carried[0]}; });
      });
  if (failed(results))
    return failure();
  return Values{results->front()};
}

/// Is the element at `indices` the one that the window of the source at `window` selects? The first of those that none
/// after them is preferred to.
llvm::FailureOr<Value> FunctionEmitter::emitIsSelected(const HloInstruction &instr, const IndexingMap &elements,
                                                       ValueRange window, ValueRange indices) {
  const HloInstruction &operand = *instr.operand(0);
  ElementType type = operand.shape().elementType();
  // What is selected so far: nothing yet, its value, whether it is the element.
  SmallVector<Value> inits = {b.boolean(false), convertElement(b, b.boolean(false), ElementType::Pred, type),
                              b.boolean(false)};
  auto results =
      sequentialLoop(b, elements, window, inits, [&](ValueRange, ValueRange at, ValueRange carried) -> Result {
        llvm::FailureOr<Value> value = emitOne(operand, at);
        if (failed(value))
          return failure();
        locate(instr);
        Result keeps =
            emitScalarComputation(*instr.computation(AttributeKey::Select), {carried[1], *value}, b, code.diagnostics);
        if (failed(keeps))
          return failure();
        Value isIt;
        for (auto [index, own] : llvm::zip_equal(at, indices)) {
          Value same = b.cmpI(CodeBuilder::IPred::eq, index, own);
          isIt = isIt ? b.andI(isIt, same) : same;
        }
        Value stays = b.andI(carried[0], keeps->front());
        return Values{b.boolean(true), b.select(stays, carried[1], *value),
                      b.select(stays, carried[2], isIt ? isIt : b.boolean(true))};
      });
  if (failed(results))
    return failure();
  return (*results)[2];
}

FunctionEmitter::Result FunctionEmitter::emitUpdate(const HloInstruction &instr, const GatherDims &dims,
                                                    ValueRange indices, ValueRange window, ValueRange current) {
  const unsigned count = instr.numResults();
  const HloInstruction &startVectors = *instr.operand(count);
  ElementType startType = startVectors.shape().elementType();
  ArrayRef<int64_t> windows = instr.operands().back()->shape().dims();
  // First: is the whole window inside? Only then are differences of indices small.
  SmallVector<Value> starts(dims.component.size());
  SmallVector<int64_t> highest(dims.component.size(), 0);
  Value inside = b.boolean(true);
  for (unsigned dim = 0; dim < starts.size(); ++dim) {
    if (dims.component[dim] < 0)
      continue;
    IndexingMap at = scatterIndexMap(instr, dims.component[dim], b.getContext());
    llvm::FailureOr<Value> start = emitOne(startVectors, applyMap(b, at, window));
    if (failed(start))
      return failure();
    locate(instr);
    starts[dim] = *start;
    highest[dim] = instr.resultShape().dim(dim) - dims.windowSize(dim, windows);
    inside = b.andI(inside, startIsInside(b, *start, startType, highest[dim]));
  }
  return emitIfElse(inside, current, [&]() -> Result {
    SmallVector<Value> own(window);
    Value covered = b.boolean(true);
    for (auto [dim, index] : llvm::enumerate(indices)) {
      if (dims.batchOfOperand[dim] >= 0)
        continue;
      Value start = starts[dim] ? startAsIndex(b, starts[dim], startType, highest[dim]) : b.index(0);
      int64_t size = dims.windowSize(dim, windows);
      Value offset = offsetInWindow(b, index, start, instr.resultShape().dim(dim), highest[dim]);
      covered = b.andI(covered, b.cmpI(CodeBuilder::IPred::sge, offset, 0));
      covered = b.andI(covered, b.cmpI(CodeBuilder::IPred::slt, offset, size));
      if (dims.offset[dim] >= 0)
        own[dims.offset[dim]] = offset;
    }
    return emitIfElse(covered, current, [&]() -> Result {
      SmallVector<Value> arguments(current);
      for (unsigned i = 0; i < count; ++i) {
        llvm::FailureOr<Value> update = emitOne(*instr.operand(count + 1 + i), own);
        if (failed(update))
          return failure();
        arguments.push_back(*update);
      }
      locate(instr);
      return emitScalarComputation(*instr.computation(AttributeKey::ToApply), arguments, b, code.diagnostics);
    });
  });
}

/// The updates one after the other, as the text has them: right for every reducer, but a loop over all of them.
FunctionEmitter::Result FunctionEmitter::emitScatter(const HloInstruction &instr, ValueRange indices) {
  const unsigned count = instr.numResults();
  const Shape &windows = instr.operands().back()->shape(), &array = instr.resultShape();
  GatherDims dims = scatterDims(instr);
  SmallVector<Value> operands;
  for (unsigned i = 0; i < count; ++i) {
    llvm::FailureOr<Value> operand = emitOne(*instr.operand(i), indices);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
  }
  if (windows.numElements() == 0)
    return Values(operands.begin(), operands.end());
  locate(instr);

  // Over the windows: dims that are batching have the element's own index.
  MLIRContext *context = b.getContext();
  SmallVector<AffineExpr> batch(windows.rank(), getAffineConstantExpr(0, context));
  SmallVector<int64_t> loopSizes;
  for (int64_t dim : dims.batch) {
    auto batching = llvm::find(dims.batchOfOperand, dim);
    if (batching != dims.batchOfOperand.end()) {
      batch[dim] = getAffineDimExpr(unsigned(batching - dims.batchOfOperand.begin()), context);
      continue;
    }
    batch[dim] = getAffineSymbolExpr(unsigned(loopSizes.size()), context);
    loopSizes.push_back(windows.dim(dim));
  }
  IndexingMap all = IndexingMap::fromSizes(AffineMap::get(array.rank(), unsigned(loopSizes.size()), batch, context),
                                           array.dims(), loopSizes);
  auto results = sequentialLoop(b, all, indices, operands, [&](ValueRange, ValueRange window, ValueRange carried) {
    return emitUpdate(instr, dims, indices, window, carried);
  });
  if (failed(results))
    return failure();
  return Values(results->begin(), results->end());
}

} // namespace hloc
