// Reductions, windows and contractions of one result element as a loop in one thread: right for everything, fast for
// short loops. Heroes do better where it matters.
#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/Elementwise.h"
#include "emitters/FunctionEmitter.h"
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

FunctionEmitter::Result FunctionEmitter::emitDot(const HloInstruction &instr, ValueRange indices) {
  ElementType type = instr.shape().elementType();
  std::optional<OperandIndexing> left = operandIndexing(instr, 0, b.getContext());
  std::optional<OperandIndexing> right = operandIndexing(instr, 1, b.getContext());
  auto operandAt = [&](unsigned number, ValueRange at) -> llvm::FailureOr<Value> {
    const HloInstruction &operand = *instr.operand(number);
    llvm::FailureOr<Value> value = emitOne(operand, at);
    if (failed(value))
      return failure();
    locate(instr);
    Value converted = convertElement(b, *value, operand.shape().elementType(), type);
    return isFloat(type) ? toCompute(b, converted, type) : converted;
  };
  auto multiplyAdd = [&](Value sum, Value x, Value y) -> Value {
    if (isFloat(type))
      return b.addF(sum, b.mulF(x, y));
    if (isComplex(type))
      return complexArithmetic(b, Opcode::Add, sum, complexArithmetic(b, Opcode::Multiply, x, y));
    if (isPred(type))
      return b.orI(sum, b.andI(x, y));
    return b.addI(sum, b.mulI(x, y));
  };
  locate(instr);
  Value zero;
  if (isFloat(type))
    zero = b.floating(computeType(type, b.getContext()), 0.0);
  else
    zero = convertElement(b, b.boolean(false), ElementType::Pred, type);
  if (instr.operand(0)->shape().numElements() == 0)
    return Values{isFloat(type) ? fromCompute(b, zero, type) : zero};
  auto results =
      sequentialLoop(b, left->map, indices, zero, [&](ValueRange ranges, ValueRange at, ValueRange carried) -> Result {
        SmallVector<Value> variables(indices);
        llvm::append_range(variables, ranges);
        llvm::FailureOr<Value> x = operandAt(0, at);
        if (failed(x))
          return failure();
        llvm::FailureOr<Value> y = operandAt(1, applyMap(b, right->map, variables));
        if (failed(y))
          return failure();
        return Values{multiplyAdd(carried[0], *x, *y)};
      });
  if (failed(results))
    return failure();
  return Values{isFloat(type) ? fromCompute(b, results->front(), type) : results->front()};
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
