#include "interp/BoundMachine.h"

#include "interp/Accuracy.h"
#include "interp/BoundIndices.h"
#include "interp/BoundScatter.h"
#include "interp/BoundSums.h"
#include "interp/Convolution.h"
#include "interp/MixedTypes.h"
#include "interp/Ops.h"
#include "interp/Strided.h"

#include "llvm/ADT/ScopeExit.h"

#include <utility>

namespace hloc::interp {

namespace {

/// Operands before those that say where, which must be known.
unsigned numDataOperands(const HloInstruction &instr) {
  return firstIndexOperand(instr.opcode()).value_or(instr.numOperands());
}

bool isMovement(Opcode opcode) { return hasTrait(opcode, OpcodeTrait::Moves); }
bool isIdentity(Opcode opcode) { return hasTrait(opcode, OpcodeTrait::PassesOn); }

bool hasOpenElement(const Bounded &operand) {
  if (!operand.bounds)
    return false;
  for (int64_t i = 0; i < operand.array().numElements(); ++i)
    if (isSpread(*operand.bounds, i))
      return true;
  return false;
}

/// Everything in a value is open.
void forget(Bounded &value) {
  if (value.value.isTuple()) {
    for (Bounded &element : value.elements)
      forget(element);
    return;
  }
  value.bounds = unknownBounds(value.array());
  value.unrounded = nullptr;
}

bool isChoice(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Maximum || instr.opcode() == Opcode::Minimum;
}

/// Of `x = max(x, y)`, `y = min(x, y)`: the number that is compared and the other one; nulls for all else.
std::pair<const HloInstruction *, const HloInstruction *> comparedNumbers(const HloInstruction &instr) {
  if (instr.opcode() != Opcode::Compare || !isFloat(instr.operand(0)->shape().elementType()) ||
      instr.enumOr(AttributeKey::Direction, ComparisonDirection::Eq) != ComparisonDirection::Eq ||
      instr.comparisonType() == ComparisonType::TotalOrder)
    return {};
  for (unsigned side : {0u, 1u}) {
    const HloInstruction *number = instr.operand(side), *chosen = instr.operand(1 - side);
    if (!isChoice(*chosen) || !llvm::is_contained(chosen->operands(), number))
      continue;
    const HloInstruction *other = chosen->operand(chosen->operand(0) == number ? 1 : 0);
    if (llvm::all_of(std::array{number, other, chosen},
                     [&](const HloInstruction *x) { return x->shape().compatible(number->shape()); }))
      return {number, other};
  }
  return {};
}

} // namespace

BoundMachine::Facts::Facts(const HloComputation &computation) {
  // Whatever leaves the computation may be added to outside.
  mayBeAddedTo.insert(computation.root());
  for (const HloInstruction *instr : computation.instructions())
    if (auto numbers = comparedNumbers(*instr); numbers.first) {
      choices[instr] = numbers;
      compared.insert(numbers.first);
      compared.insert(numbers.second);
    }
  for (const HloInstruction *instr : llvm::reverse(computation.instructions())) {
    bool passesOn = isMovement(instr->opcode()) || isIdentity(instr->opcode()) ||
                    receivesOperands(*instr, instr->shape()) || instr->opcode() == Opcode::Negate ||
                    instr->opcode() == Opcode::Tuple || instr->opcode() == Opcode::GetTupleElement ||
                    instr->opcode() == Opcode::Select || choosesOfOne(*instr);
    bool takesProducts = !passesOn && (adds(*instr) || !isElementwise(instr->opcode()));
    if (takesProducts || (passesOn && mayBeAddedTo.contains(instr)))
      mayBeAddedTo.insert(instr->operands().begin(), instr->operands().end());
  }
}

const BoundMachine::Facts &BoundMachine::factsOf(const HloComputation &computation) {
  std::unique_ptr<Facts> &known = facts[&computation];
  if (!known)
    known = std::make_unique<Facts>(computation);
  return *known;
}

/// Of a value with its bounds that the instruction has made.
static uint64_t heldBytes(const HloInstruction &instr, const Bounded &value) {
  if (!ownBytes(instr) || value.value.isTuple())
    return 0;
  uint64_t bytes = value.array().bytes().size();
  for (const BoundsPtr &bounds : {value.bounds, value.unrounded})
    if (bounds)
      bytes += bounds->low.bytes().size() + bounds->high.bytes().size();
  return bytes;
}

BoundMachine::Result BoundMachine::run(const HloComputation &computation, std::vector<Bounded> arguments,
                                       const Shape *lift) {
  // The interpreter has run the module before, but maybe not this branch of it.
  if (depth >= Machine::maxDepth) {
    machine.diagnostics.report(DiagnosticKind::UnsupportedFeature, computation.range(),
                               "calls are nested too deeply for the interpreter");
    return llvm::failure();
  }
  ++depth;
  auto leave = llvm::scope_exit([&] { --depth; });
  const Machine::Schedule &schedule = machine.scheduleOf(computation);
  std::vector<Bounded> values(computation.instructions().size());
  std::vector<uint64_t> held(values.size(), 0); // bytes counted in liveBytes for each value
  std::vector<Bounded> operands;
  const bool isCounted = machine.meter.counts(computation);
  const Facts &known = factsOf(computation);
  for (const HloInstruction *instr : computation.instructions()) {
    if (instr->opcode() == Opcode::Parameter) {
      values[instr->id()] = std::move(arguments[size_t(instr->parameterNumber())]);
      continue;
    }
    operands.clear();
    for (const HloInstruction *operand : instr->operands()) {
      operands.push_back(values[operand->id()]);
      if (draws() && draw->isPerUse())
        draw->apply(*operand, operands.back());
    }
    for (const HloInstruction *operand : instr->operands())
      if (schedule.lastUse[operand->id()] == instr->id() && !known.compared.contains(operand)) {
        values[operand->id()] = Bounded();
        liveBytes -= std::exchange(held[operand->id()], 0);
      }
    auto choice = known.choices.find(instr);
    Result value = choice == known.choices.end() || !isBounded
                       ? evaluate(*instr, operands, lift)
                       : evaluateChoice(*instr, operands, values[choice->second.first->id()],
                                        values[choice->second.second->id()], lift);
    if (failed(value))
      return llvm::failure();
    if (fused && !lift) {
      fused->apply(*instr, operands, *value);
      for (const HloInstruction *operand : instr->operands())
        if (schedule.lastUse[operand->id()] == instr->id())
          fused->forget(*operand);
    }
    if (isCounted)
      machine.meter.done(*instr);
    if (schedule.lastUse[instr->id()] == instr->id())
      continue;
    held[instr->id()] = heldBytes(*instr, *value);
    if (fused && !lift && known.mayBeAddedTo.contains(instr) && instr != computation.root())
      held[instr->id()] += fused->keep(*instr, operands);
    liveBytes += held[instr->id()];
    if (liveBytes > machine.options.maxBytes)
      return machine.refuseForMemory(*instr);
    values[instr->id()] = std::move(*value);
  }
  for (uint64_t bytes : held)
    liveBytes -= bytes;
  Bounded &result = values[computation.root()->id()];
  if (draws() && draw->isPerUse())
    draw->apply(*computation.root(), result);
  return std::move(result);
}

llvm::FailureOr<Value> BoundMachine::valueOf(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                             const Shape *lift) {
  std::vector<Value> values;
  for (const Bounded &operand : operands)
    values.push_back(operand.value);
  if (!lift || !instr.shape().isArray())
    return machine.evaluate(instr, values);
  Shape shape = Shape::array(instr.shape().elementType(), lift->dims());
  return machine.evaluate(instr, values, &shape);
}

/// Is it a bitcast that does what a bitcast-convert of equal sizes does?
static bool convertsBits(const HloInstruction &instr) {
  if (instr.opcode() != Opcode::Bitcast)
    return false;
  const Shape &from = instr.operand(0)->shape(), &to = instr.shape();
  const bool isInPlace = from.sameDims(to) && from.hasDefaultLayout() && to.hasDefaultLayout();
  return from.elementType() != to.elementType() && bitWidth(from.elementType()) == bitWidth(to.elementType()) &&
         (isInPlace || (from.numElements() == 1 && to.numElements() == 1));
}

BoundMachine::Result BoundMachine::evaluate(const HloInstruction &instr, std::vector<Bounded> &operands,
                                            const Shape *lift) {
  Result result = evaluateBounds(instr, operands, lift);
  if (draws() && !draw->isPerUse() && succeeded(result))
    draw->apply(instr, *result);
  return result;
}

BoundMachine::Result BoundMachine::evaluateChoice(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                                  const Bounded &one, const Bounded &other, const Shape *lift) {
  llvm::FailureOr<Value> value = valueOf(instr, operands, lift);
  if (failed(value))
    return llvm::failure();
  const HloInstruction &chosen = isChoice(*instr.operand(0)) ? *instr.operand(0) : *instr.operand(1);
  Bounded result(std::move(*value));
  const Bounded numbers[] = {one, other};
  const BoundStep step{instr, numbers, result.array(), machine, backend, /*keepUnrounded=*/false};
  result.bounds =
      boundRealCompare(step, chosen.opcode() == Opcode::Maximum ? ComparisonDirection::Ge : ComparisonDirection::Le);
  if (draws() && !draw->isPerUse())
    draw->apply(instr, result);
  return result;
}

BoundMachine::Result BoundMachine::evaluateBounds(const HloInstruction &instr, std::vector<Bounded> &operands,
                                                  const Shape *lift) {
  for (auto [operand, type] : llvm::zip(operands, typesTaken(instr)))
    operand = converted(operand, type);
  switch (instr.opcode()) {
  case Opcode::Tuple:
    return Bounded::tuple(std::move(operands));
  case Opcode::GetTupleElement:
    return operands[0].elements[size_t(instr.intOr(AttributeKey::Index, 0))];
  case Opcode::Call:
  case Opcode::Fusion:
    return callee(instr, operands, lift);
  case Opcode::While:
    return whileLoop(instr, operands);
  case Opcode::Conditional:
    return conditional(instr, operands);
  case Opcode::Map:
    return map(instr, operands, lift);
  case Opcode::Reduce:
    return reduce(instr, operands);
  case Opcode::BatchNormInference:
  case Opcode::BatchNormTraining:
  case Opcode::BatchNormGrad:
    return batchNorm(instr, operands);
  case Opcode::CopyDone:
    return operands[0].elements[0];
  case Opcode::AsyncDone:
    return operands[0].elements[1];
  default:
    break;
  }
  if (isIdentity(instr.opcode()))
    return operands[0];
  if (receivesOperands(instr, instr.shape()))
    return instr.shape().isTuple() ? Bounded::tuple(std::move(operands)) : operands[0];
  // One element to one element.
  if (lift &&
      (llvm::is_contained({Opcode::Reshape, Opcode::Broadcast, Opcode::Transpose, Opcode::Reverse}, instr.opcode()) ||
       (instr.opcode() == Opcode::Bitcast && !convertsBits(instr))))
    return operands[0];
  if (instr.opcode() == Opcode::Constant)
    return Bounded(Value::borrow(instr.literal()));
  if (instr.opcode() == Opcode::AsyncStart) {
    Bounded arguments = Bounded::tuple(operands);
    Result result = callee(instr, operands, lift);
    if (failed(result))
      return llvm::failure();
    std::vector<Bounded> elements{std::move(arguments), std::move(*result)};
    for (const Shape &context : instr.shape().elements().drop_front(2))
      elements.emplace_back(Value::zero(context));
    return Bounded::tuple(std::move(elements));
  }
  // The elementwise ops whose functions take no scalars for arrays.
  if (lift && llvm::is_contained({Opcode::Select, Opcode::BitcastConvert, Opcode::Bitcast}, instr.opcode()))
    for (Bounded &operand : operands)
      if (operand.array().numElements() != lift->numElements())
        operand = repeated(operand, lift->numElements());
  llvm::FailureOr<Value> value = valueOf(instr, operands, lift);
  if (failed(value))
    return llvm::failure();
  Bounded result(std::move(*value));
  if (!isBounded)
    return result;
  if (failed(boundOp(instr, operands, result, factsOf(*instr.parent()).mayBeAddedTo.contains(&instr))))
    return llvm::failure();
  if (instr.opcode() == Opcode::ReduceWindow)
    admitEitherZero(instr, result);
  return result;
}

/// What is computed in f64 of finite numbers, and leaves them: another order of the same steps may stay within them.
static void openOverflows(llvm::ArrayRef<Bounded> operands, Bounded &result) {
  auto isFinite = [](double value) { return std::isfinite(value); };
  auto isWide = [](const Literal &array) { return array.shape().elementType() == ElementType::F64; };
  for (const Bounded &operand : operands)
    if (!isWide(operand.array()) || !llvm::all_of(operand.array().data<double>(), isFinite))
      return;
  for (Bounded *leaf : leavesOf(result))
    if (isWide(leaf->array()))
      leaf->bounds = openWhere(*leaf, [&](int64_t i) { return !isFinite(leaf->array().getDouble(i)); });
}

llvm::LogicalResult BoundMachine::boundOp(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                          Bounded &result, bool keepUnrounded) {
  const llvm::StringRef target = instr.string(AttributeKey::CustomCallTarget);
  if (isSumScan(instr)) {
    boundScan(instr, operands, result);
    return llvm::success();
  }
  if (instr.opcode() == Opcode::Sort)
    return boundSort(instr, operands, result);
  if (instr.opcode() == Opcode::TopK || target == "TopK" || target == "__gpu$TopK")
    return boundTopK(instr, operands, result);
  if (failed(result.value.isTuple() ? boundByEnds(instr, operands, result)
                                    : boundArray(instr, operands, result, keepUnrounded)))
    return llvm::failure();
  if (instr.opcode() == Opcode::Scatter)
    admitZerosForSubnormals(instr, operands, hasOpenElement(operands[operands.size() / 2]), result);
  return llvm::success();
}

/// The carry is the sum at the last position that the scan is at.
void BoundMachine::boundScan(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result) {
  Bounded &sums = result.elements[0], &carry = result.elements[1];
  sums.bounds = boundScanSum({instr, operands, sums.array(), machine, backend, false});
  const auto dim = unsigned(instr.ints(AttributeKey::Dimensions)[0]);
  const int64_t length = sums.array().shape().dim(dim);
  if (length == 0) {
    carry.bounds = operands[1].bounds;
  } else if (sums.bounds) {
    const int64_t last = instr.flag(AttributeKey::IsReverse) ? 0 : length - 1;
    carry.bounds =
        std::make_shared<Bounds>(Bounds{sliceAt(sums.bounds->low, dim, last), sliceAt(sums.bounds->high, dim, last)});
  }
}

/// Does the combiner return the update, whatever is there?
static bool overwrites(const HloComputation &combiner) {
  return combiner.root()->opcode() == Opcode::Parameter && combiner.root()->parameterNumber() == 1;
}

/// Of a convolution: nothing is known where what is no number meets padding.
static llvm::FailureOr<BoundsPtr> boundOpenPadding(const BoundStep &step, llvm::FailureOr<BoundsPtr> bounds) {
  if (failed(bounds) || step.instr.opcode() != Opcode::Convolution || !isFloat(step.value.shape().elementType()))
    return bounds;
  const std::vector<bool> padded = paddedSpecials(step.instr, step.operands[1].array());
  if (padded.empty())
    return bounds;
  return openWhere(Bounded(Value(step.value), *bounds), [&](int64_t i) { return padded[size_t(i)]; });
}

llvm::LogicalResult BoundMachine::boundArray(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                             Bounded &result, bool keepUnrounded) {
  BoundStep step{instr, operands, result.array(), machine, backend, keepUnrounded, orderRoundings};
  auto take = [&](llvm::FailureOr<BoundsPtr> bounds) -> llvm::LogicalResult {
    if (failed(bounds))
      return llvm::failure();
    result.bounds = std::move(*bounds);
    return llvm::success();
  };
  if (isMovement(instr.opcode()) && !convertsBits(instr)) {
    llvm::FailureOr<BoundsPtr> products = boundMovement(step, true);
    if (failed(products))
      return llvm::failure();
    result.unrounded = std::move(*products);
    return take(boundMovement(step, false));
  }
  if (isElementwise(instr.opcode()) || convertsBits(instr))
    return take(boundElementwise(step, result.unrounded));
  ElementType type = result.array().shape().elementType();
  bool floating = isFloat(type) || isComplex(type);
  const bool areSizesKnown = instr.opcode() != Opcode::RaggedDot || !hasOpenElement(operands[2]);
  if (floating && llvm::is_contained({Opcode::Dot, Opcode::Convolution, Opcode::RaggedDot}, instr.opcode()))
    return areSizesKnown ? take(boundOpenPadding(step, boundProducts(step))) : take(unknownBounds(step.value));
  const HloComputation *function = instr.computation(AttributeKey::ToApply);
  bool sums = function && isFloat(type) && plainOp(*function) == Opcode::Add;
  if (instr.opcode() == Opcode::ReduceWindow && sums)
    return take(boundWindowSum(step));
  const bool multiplies = function && isFloat(type) && plainOp(*function) == Opcode::Multiply;
  if (instr.opcode() == Opcode::ReduceWindow && multiplies && operands.size() == 2) {
    if (failed(boundByEnds(instr, operands, result)))
      return llvm::failure();
    return take(boundWindowProduct(step, result.bounds));
  }
  if (instr.opcode() == Opcode::Scatter && operands.size() == 3 && hasOpenElement(operands[1])) {
    llvm::SmallVector<Bounded, 3> known(operands.begin(), operands.end());
    known[1].bounds = nullptr; // as the reference's
    if (failed(boundArray(instr, known, result, keepUnrounded)))
      return llvm::failure();
    return take(boundOpenTargets(step, result.bounds));
  }
  if (instr.opcode() == Opcode::Scatter && sums && operands.size() == 3)
    return take(boundScatterSum(step));
  if (instr.opcode() == Opcode::Scatter && operands.size() == 3) {
    if (overwrites(*function))
      return take(boundOverwritten(step));
    if (failed(boundByEnds(instr, operands, result)))
      return llvm::failure();
    if (floating)
      result.bounds = boundAnyOrder(step, result.bounds);
    return llvm::success();
  }
  return boundByEnds(instr, operands, result);
}

/// Of data movement: both ends are moved as the value is. `ofProducts`: bounds of unrounded products instead.
llvm::FailureOr<BoundsPtr> BoundMachine::boundMovement(const BoundStep &step, bool ofProducts) {
  auto boundsOf = [&](const Bounded &operand) {
    return ofProducts && operand.unrounded ? operand.unrounded : operand.bounds;
  };
  unsigned numData = numDataOperands(step.instr);
  if (llvm::any_of(step.operands.drop_front(numData), hasOpenElement))
    return boundOpenMovement(step, ofProducts);
  llvm::ArrayRef<Bounded> data = step.operands.take_front(numData);
  bool wanted = llvm::any_of(
      data, [&](const Bounded &operand) { return ofProducts ? bool(operand.unrounded) : bool(operand.bounds); });
  if (!wanted)
    return BoundsPtr();
  const Shape &from = step.instr.operand(0)->shape();
  bool isBytes =
      step.instr.opcode() == Opcode::Bitcast && !(from.elementType() == step.instr.shape().elementType() &&
                                                  from.hasDefaultLayout() && step.instr.shape().hasDefaultLayout());
  if (isBytes) {
    if (ofProducts)
      return BoundsPtr();
    if (from.elementType() != step.instr.shape().elementType())
      return unknownBounds(step.value);
  }
  Literal ends[2];
  for (bool high : {false, true}) {
    std::vector<Literal> operands;
    for (const Bounded &operand : data) {
      BoundsPtr bounds = boundsOf(operand);
      Literal end = !bounds ? asBound(operand.array()) : high ? bounds->high : bounds->low;
      operands.push_back(isBytes ? asValue(end, operand.array().shape()) : std::move(end));
    }
    for (const Bounded &index : step.operands.drop_front(numData))
      operands.push_back(index.array());
    if (step.instr.opcode() == Opcode::Bitcast && !isBytes) {
      ends[high] = Literal(boundsShape(step.value.shape()));
      llvm::copy(operands[0].bytes(), ends[high].mutableBytes().begin());
      continue;
    }
    llvm::FailureOr<Literal> moved = llvm::failure();
    if (isBytes) {
      std::vector<Value> values{Value(std::move(operands[0]))};
      llvm::FailureOr<Value> value = machine.evaluate(step.instr, values);
      if (succeeded(value))
        moved = asBound(value->take());
    } else {
      moved = step.evaluate(std::move(operands), true);
    }
    if (failed(moved))
      return llvm::failure();
    ends[high] = std::move(*moved);
  }
  return nullIfExact(std::make_shared<Bounds>(Bounds{std::move(ends[0]), std::move(ends[1])}));
}

/// Where indices are open: what is moved for any of them.
llvm::FailureOr<BoundsPtr> BoundMachine::boundOpenMovement(const BoundStep &step, bool ofProducts) {
  llvm::ArrayRef<Bounded> data = step.operands.take_front(numDataOperands(step.instr));
  if (ofProducts && llvm::none_of(data, [](const Bounded &operand) { return bool(operand.unrounded); }))
    return BoundsPtr();
  auto runs = possibleIndices(step.instr, step.operands.drop_front(data.size()));
  constexpr int64_t mostElements = int64_t(1) << 24;
  if (!runs || int64_t(runs->size()) * step.value.numElements() > mostElements)
    return unknownBounds(step.value);
  Bounded hull{Value(step.value)};
  for (const std::vector<Bounded> &indices : *runs) {
    std::vector<Bounded> operands(data);
    operands.insert(operands.end(), indices.begin(), indices.end());
    std::vector<Literal> values;
    for (const Bounded &operand : operands)
      values.push_back(operand.array());
    llvm::FailureOr<Literal> value = step.evaluate(std::move(values), false);
    if (failed(value))
      return llvm::failure();
    llvm::FailureOr<BoundsPtr> bounds = boundMovement(
        {step.instr, operands, *value, step.machine, step.backend, step.keepUnrounded, step.orderRoundings},
        ofProducts);
    if (failed(bounds))
      return llvm::failure();
    admit(hull, Bounded(Value(std::move(*value)), std::move(*bounds)));
  }
  return hull.bounds;
}

BoundMachine::Result BoundMachine::callee(const HloInstruction &instr, std::vector<Bounded> &operands,
                                          const Shape *lift) {
  return run(*instr.calledComputations()[0], std::move(operands), lift);
}

/// Where it is open whether the loop ends, it may end there: its result is any of the states that it may end with. What
/// may go on longer than the reference does so here, too, for some steps.
BoundMachine::Result BoundMachine::whileLoop(const HloInstruction &instr, std::vector<Bounded> &operands) {
  const HloComputation *condition = instr.computation(AttributeKey::Condition);
  const HloComputation *body = instr.computation(AttributeKey::Body);
  Bounded state = std::move(operands[0]);
  std::optional<Bounded> early; // what it may end with before the reference ends
  std::optional<Bounded> end;   // and in all
  uint64_t mostSteps = machine.options.maxLoopSteps;
  for (uint64_t steps = 0; steps < mostSteps; ++steps) {
    Result goOn = run(*condition, {state});
    if (failed(goOn))
      return llvm::failure();
    const bool isOpen = hasOpenElement(*goOn), goesOn = goOn->array().getInt(0) != 0;
    if (!goesOn && !end) {
      end = state;
      if (early)
        admit(*end, *early);
      constexpr uint64_t most = 64;
      mostSteps = std::min(mostSteps, 2 * steps + most);
    } else if (end && (isOpen || !goesOn)) {
      admit(*end, state);
    } else if (isOpen && early) {
      admit(*early, state);
    } else if (isOpen) {
      early = state;
    }
    if (end && !isOpen && !goesOn)
      return std::move(*end);
    std::vector<Bounded> arguments;
    arguments.push_back(std::move(state));
    Result next = run(*body, std::move(arguments));
    if (failed(next))
      return llvm::failure();
    state = std::move(*next);
    if (!end)
      loopSteps = std::max(loopSteps, steps + 1);
  }
  if (end) { // it may go on for ever
    forget(*end);
    return std::move(*end);
  }
  // The interpreter has ended this loop, but others may not.
  machine.diagnostics.report(DiagnosticKind::UnsupportedFeature, instr.range(),
                             "the loop did not end within the limit of steps");
  return llvm::failure();
}

BoundMachine::Result BoundMachine::conditional(const HloInstruction &instr, std::vector<Bounded> &operands) {
  llvm::SmallVector<HloComputation *, 2> branches = instr.calledComputations();
  size_t chosen = chosenBranch(operands[0].array(), branches.size());
  std::vector<Bounded> arguments;
  arguments.push_back(operands[chosen + 1]);
  Result result = run(*branches[chosen], std::move(arguments));
  if (succeeded(result) && hasOpenElement(operands[0]))
    forget(*result);
  return result;
}

BoundMachine::Result BoundMachine::map(const HloInstruction &instr, std::vector<Bounded> &operands, const Shape *lift) {
  if (lift)
    return run(*instr.computation(AttributeKey::ToApply), std::move(operands), lift);
  llvm::FailureOr<Value> value = valueOf(instr, operands, lift);
  if (failed(value))
    return llvm::failure();
  Bounded result(std::move(*value));
  Result mapped = run(*instr.computation(AttributeKey::ToApply), std::move(operands), &instr.shape());
  if (failed(mapped))
    return llvm::failure();
  if (mapped->array().numElements() == result.array().numElements()) {
    result.bounds = mapped->bounds;
    result.unrounded = mapped->unrounded;
  }
  return result;
}

BoundMachine::Result BoundMachine::batchNorm(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands) {
  llvm::FailureOr<Value> value = valueOf(instr, operands, nullptr);
  if (failed(value))
    return llvm::failure();
  Bounded result(std::move(*value));
  if (!isBounded)
    return result;
  if (instr.opcode() != Opcode::BatchNormInference) {
    if (failed(boundByEnds(instr, operands, result)))
      return llvm::failure();
    openOverflows(operands, result);
  }
  auto [ways, isNew] = normSteps.try_emplace(&instr);
  if (isNew)
    ways->second = normStepsOf(instr);
  for (const std::unique_ptr<HloModule> &way : ways->second) {
    Result one = run(*way->entry(), operands.vec());
    if (failed(one) || draws())
      return one;
    for (auto [leaf, other] : llvm::zip_equal(leavesOf(result), leavesOf(*one)))
      admit(*leaf, *other);
  }
  return result;
}

} // namespace hloc::interp
