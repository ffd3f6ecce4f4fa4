// Reductions, windows and contractions of one result element as a loop in one thread: right for everything, fast for
// short loops. Heroes do better where it matters.
#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/Elementwise.h"
#include "emitters/FunctionEmitter.h"
#include "emitters/ScalarComputation.h"
#include "hloc/dialect/XlaGpu.h"

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

} // namespace

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

} // namespace hloc
