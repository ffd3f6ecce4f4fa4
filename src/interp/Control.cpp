// Tuples, calls and loops; and the ops that are the identity or a constant on one device.

#include "interp/Ops.h"

#include "hloc/hlo/External.h"

namespace hloc::interp {

namespace {

std::vector<Value> takeAll(llvm::MutableArrayRef<Value> operands) {
  return {std::make_move_iterator(operands.begin()), std::make_move_iterator(operands.end())};
}

} // namespace

llvm::FailureOr<Value> evaluateConstant(Step &step) { return Value::borrow(step.instr.literal()); }

llvm::FailureOr<Value> evaluateIdentity(Step &step) { return step.operands[0]; }

llvm::FailureOr<Value> evaluateToken(Step &) { return Value::tuple({}); }

/// replica-id and partition-id of the only device.
llvm::FailureOr<Value> evaluateDeviceZero(Step &step) { return Value::zero(step.shape()); }

bool receivesOperands(const HloInstruction &collective, const Shape &result) {
  if (!isAlone(collective) || isSilent(collective))
    return false;
  const llvm::ArrayRef<Shape> received = result.isTuple() ? result.elements() : llvm::ArrayRef(result);
  return llvm::equal(collective.operands(), received, [](const HloInstruction *operand, const Shape &shape) {
    return operand->shape().compatible(shape);
  });
}

static llvm::FailureOr<Value> received(Step &step, const Shape &result) {
  if (!receivesOperands(step.instr, result))
    return step.unsupported("it exchanges data between devices, and the interpreter runs one");
  return result.isTuple() ? Value::tuple(std::vector<Value>(step.operands.begin(), step.operands.end()))
                          : step.operands[0];
}

llvm::FailureOr<Value> evaluateCollective(Step &step) {
  return isSilent(step.instr) ? Value::zero(step.shape()) : received(step, step.shape());
}

/// all-reduce-start: the result; all-gather-start, collective-permute-start: (operands, result, contexts...).
llvm::FailureOr<Value> evaluateCollectiveStart(Step &step) {
  if (step.instr.opcode() == Opcode::AllReduceStart)
    return received(step, step.shape());
  llvm::FailureOr<Value> result = received(step, step.shape().element(1));
  if (llvm::failed(result))
    return llvm::failure();
  const bool isTuple = step.shape().element(0).isTuple();
  std::vector<Value> elements{isTuple ? Value::tuple(std::vector<Value>(step.operands.begin(), step.operands.end()))
                                      : step.operands[0],
                              std::move(*result)};
  for (const Shape &context : step.shape().elements().drop_front(2))
    elements.push_back(Value::zero(context));
  return Value::tuple(std::move(elements));
}

llvm::FailureOr<Value> evaluateTuple(Step &step) { return Value::tuple(takeAll(step.operands)); }

llvm::FailureOr<Value> evaluateGetTupleElement(Step &step) {
  return step.operands[0].element(unsigned(step.instr.intOr(AttributeKey::Index, 0)));
}

/// call, fusion: the callee with the operands.
llvm::FailureOr<Value> evaluateCall(Step &step) {
  const HloComputation *callee = step.instr.calledComputations()[0];
  return step.machine.run(*callee, takeAll(step.operands));
}

llvm::FailureOr<Value> evaluateWhile(Step &step) {
  const HloComputation *condition = step.instr.computation(AttributeKey::Condition);
  const HloComputation *body = step.instr.computation(AttributeKey::Body);
  std::vector<Value> state = takeAll(step.operands);
  for (uint64_t steps = 0; steps < step.machine.options.maxLoopSteps; ++steps) {
    llvm::FailureOr<Value> goOn = step.machine.run(*condition, state);
    if (llvm::failed(goOn))
      return llvm::failure();
    if (!goOn->array().getInt(0))
      return std::move(state[0]);
    llvm::FailureOr<Value> next = step.machine.run(*body, std::move(state));
    if (llvm::failed(next))
      return llvm::failure();
    state = {std::move(*next)};
  }
  return step.unsupported("the loop did not end within the interpreter's limit of steps");
}

size_t chosenBranch(const Literal &selector, size_t numBranches) {
  auto last = int64_t(numBranches) - 1;
  int64_t chosen = selector.getInt(0);
  if (isPred(selector.shape().elementType()))
    return chosen ? 0 : 1;
  return size_t(chosen < 0 || chosen > last ? last : chosen);
}

llvm::FailureOr<Value> evaluateConditional(Step &step) {
  llvm::SmallVector<HloComputation *, 2> branches = step.instr.calledComputations();
  size_t chosen = chosenBranch(step.array(0), branches.size());
  return step.machine.run(*branches[chosen], {std::move(step.operands[chosen + 1])});
}

/// copy-start: (copy, original, context); copy-done takes the copy.
llvm::FailureOr<Value> evaluateCopyStart(Step &step) {
  return Value::tuple({step.operands[0], step.operands[0], Value::zero(step.shape().element(2))});
}
llvm::FailureOr<Value> evaluateCopyDone(Step &step) { return step.operands[0].element(0); }

/// Asynchronous work is done at the start: ((operands...), result, contexts...).
llvm::FailureOr<Value> evaluateAsyncStart(Step &step) {
  Value operands = Value::tuple(std::vector<Value>(step.operands.begin(), step.operands.end()));
  llvm::FailureOr<Value> result = evaluateCall(step);
  if (llvm::failed(result))
    return llvm::failure();
  std::vector<Value> elements{std::move(operands), std::move(*result)};
  for (const Shape &context : step.shape().elements().drop_front(2))
    elements.push_back(Value::zero(context));
  return Value::tuple(std::move(elements));
}
llvm::FailureOr<Value> evaluateAsyncDone(Step &step) { return step.operands[0].element(1); }

} // namespace hloc::interp
