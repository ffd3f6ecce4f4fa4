#include "interp/BoundMachine.h"

#include "hloc/support/Check.h"
#include "interp/Accuracy.h"
#include "interp/BoundSums.h"
#include "interp/FloatGrid.h"
#include "interp/Strided.h"

#include "llvm/ADT/ScopeExit.h"

namespace hloc::interp {

namespace {

/// Operands that say where, not what: they must be known.
unsigned firstIndexOperand(const HloInstruction &instr) {
  switch (instr.opcode()) {
  case Opcode::DynamicSlice:
  case Opcode::Gather:
    return 1;
  case Opcode::DynamicUpdateSlice:
    return 2;
  default:
    return instr.numOperands();
  }
}

bool isMovement(Opcode opcode) {
  switch (opcode) {
  case Opcode::Broadcast:
  case Opcode::Transpose:
  case Opcode::Reshape:
  case Opcode::Bitcast:
  case Opcode::Slice:
  case Opcode::Reverse:
  case Opcode::Concatenate:
  case Opcode::Pad:
  case Opcode::DynamicSlice:
  case Opcode::DynamicUpdateSlice:
  case Opcode::Gather:
    return true;
  default:
    return false;
  }
}

bool isIdentity(Opcode opcode) {
  return opcode == Opcode::Copy || opcode == Opcode::OptimizationBarrier || opcode == Opcode::Domain ||
         opcode == Opcode::AddDependency || opcode == Opcode::AsyncUpdate;
}

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

/// Ops whose result no order of evaluation and no rounding changes.
bool isExactOp(const HloInstruction &instr) {
  if (!instr.shape().isArray() || (!isFloat(instr.shape().elementType()) && !isComplex(instr.shape().elementType())))
    return true;
  return instr.opcode() == Opcode::Parameter || instr.opcode() == Opcode::Constant || !isElementwise(instr.opcode()) ||
         !rounds(instr.opcode());
}

bool isExactComputation(const HloComputation &computation) {
  return llvm::all_of(computation.instructions(), [](const HloInstruction *instr) {
    return isExactOp(*instr) && llvm::all_of(instr->calledComputations(),
                                             [](const HloComputation *callee) { return isExactComputation(*callee); });
  });
}

/// The elements [from, from + count) of a one-dimensional array with bounds.
Literal part(const Literal &literal, int64_t from, int64_t count) {
  Literal made(Shape::array(literal.shape().elementType(), {count}));
  size_t width = hostBytes(literal.shape().elementType());
  std::copy_n(literal.bytes().begin() + size_t(from) * width, size_t(count) * width, made.mutableBytes().begin());
  return made;
}
Bounded part(const Bounded &bounded, int64_t from, int64_t count) {
  BoundsPtr bounds;
  if (bounded.bounds)
    bounds = std::make_shared<Bounds>(
        Bounds{part(bounded.bounds->low, from, count), part(bounded.bounds->high, from, count)});
  return Bounded(Value(part(bounded.array(), from, count)), std::move(bounds));
}
Literal joined(const Literal &a, const Literal &b) {
  Literal made(Shape::array(a.shape().elementType(), {a.numElements() + b.numElements()}));
  std::copy(b.bytes().begin(), b.bytes().end(),
            std::copy(a.bytes().begin(), a.bytes().end(), made.mutableBytes().begin()));
  return made;
}
Bounded joined(const Bounded &a, const Bounded &b) {
  BoundsPtr bounds;
  if (a.bounds || b.bounds) {
    BoundsPtr first = boundsOrPoint(a), second = boundsOrPoint(b);
    bounds = std::make_shared<Bounds>(Bounds{joined(first->low, second->low), joined(first->high, second->high)});
  }
  return Bounded(Value(joined(a.array(), b.array())), std::move(bounds));
}
/// A scalar as `count` elements.
Literal repeated(const Literal &scalar, int64_t count) {
  Literal made(Shape::array(scalar.shape().elementType(), {count}));
  size_t width = hostBytes(scalar.shape().elementType());
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(scalar.bytes().begin(), width, made.mutableBytes().begin() + size_t(i) * width);
  return made;
}
Bounded repeated(const Bounded &scalar, int64_t count) {
  BoundsPtr bounds;
  if (scalar.bounds)
    bounds =
        std::make_shared<Bounds>(Bounds{repeated(scalar.bounds->low, count), repeated(scalar.bounds->high, count)});
  return Bounded(Value(repeated(scalar.array(), count)), std::move(bounds));
}
Literal flat(Literal literal) {
  Literal made(Shape::array(literal.shape().elementType(), {literal.numElements()}));
  std::copy(literal.bytes().begin(), literal.bytes().end(), made.mutableBytes().begin());
  return made;
}

std::vector<Bounded *> leavesOf(Bounded &value) {
  if (!value.value.isTuple())
    return {&value};
  std::vector<Bounded *> leaves;
  for (Bounded &element : value.elements)
    llvm::append_range(leaves, leavesOf(element));
  return leaves;
}

/// Moves an end of a bound so that it holds another number; nothing is known if only one of them is a NaN.
void include(double &low, double &high, double value) {
  if (isUnknown(low, high))
    return;
  if (std::isnan(value) != std::isnan(low)) {
    setUnknown(low, high);
    return;
  }
  low = std::min(low, value);
  high = std::max(high, value);
}

} // namespace

BoundMachine::Facts::Facts(const HloComputation &computation) : lastUse(computation.instructions().size()) {
  for (const HloInstruction *instr : computation.instructions()) {
    lastUse[instr->id()] = instr->id();
    for (const HloInstruction *operand : instr->operands())
      lastUse[operand->id()] = instr->id();
  }
  lastUse[computation.root()->id()] = ~0u;
  // Whatever leaves the computation may be added to outside.
  mayBeAddedTo.insert(computation.root());
  for (const HloInstruction *instr : llvm::reverse(computation.instructions())) {
    bool passesOn = isMovement(instr->opcode()) || isIdentity(instr->opcode()) || instr->opcode() == Opcode::Negate ||
                    instr->opcode() == Opcode::Tuple || instr->opcode() == Opcode::GetTupleElement ||
                    instr->opcode() == Opcode::Select;
    bool adds = !passesOn && (instr->opcode() == Opcode::Add || instr->opcode() == Opcode::Subtract ||
                              !isElementwise(instr->opcode()));
    if (adds || (passesOn && mayBeAddedTo.contains(instr)))
      mayBeAddedTo.insert(instr->operands().begin(), instr->operands().end());
  }
}

const BoundMachine::Facts &BoundMachine::factsOf(const HloComputation &computation) {
  std::unique_ptr<Facts> &known = facts[&computation];
  if (!known)
    known = std::make_unique<Facts>(computation);
  return *known;
}

BoundMachine::Result BoundMachine::run(const HloComputation &computation, std::vector<Bounded> arguments,
                                       const Shape *lift) {
  constexpr unsigned maxDepth = 500; // as Machine's, which has run the module before
  HLOC_CHECK(depth < maxDepth, "calls nested deeper than the interpreter takes");
  ++depth;
  auto leave = llvm::scope_exit([&] { --depth; });
  const Facts &known = factsOf(computation);
  std::vector<Bounded> values(computation.instructions().size());
  std::vector<Bounded> operands;
  for (const HloInstruction *instr : computation.instructions()) {
    if (instr->opcode() == Opcode::Parameter) {
      values[instr->id()] = std::move(arguments[size_t(instr->parameterNumber())]);
      continue;
    }
    operands.clear();
    for (const HloInstruction *operand : instr->operands())
      operands.push_back(values[operand->id()]);
    for (const HloInstruction *operand : instr->operands())
      if (known.lastUse[operand->id()] == instr->id())
        values[operand->id()] = Bounded();
    Result value = evaluate(*instr, operands, lift);
    if (failed(value))
      return llvm::failure();
    if (known.lastUse[instr->id()] != instr->id())
      values[instr->id()] = std::move(*value);
  }
  return std::move(values[computation.root()->id()]);
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

BoundMachine::Result BoundMachine::evaluate(const HloInstruction &instr, std::vector<Bounded> &operands,
                                            const Shape *lift) {
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
  case Opcode::CopyDone:
    return operands[0].elements[0];
  case Opcode::AsyncDone:
    return operands[0].elements[1];
  default:
    break;
  }
  if (isIdentity(instr.opcode()))
    return operands[0];
  // One element to one element.
  if (lift && (instr.opcode() == Opcode::Reshape || instr.opcode() == Opcode::Broadcast ||
               instr.opcode() == Opcode::Transpose || instr.opcode() == Opcode::Reverse))
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
  if (lift && instr.opcode() == Opcode::Select) // the one elementwise op whose function takes no scalars for arrays
    for (Bounded &operand : operands)
      if (operand.array().numElements() != lift->numElements())
        operand = repeated(operand, lift->numElements());
  llvm::FailureOr<Value> value = valueOf(instr, operands, lift);
  if (failed(value))
    return llvm::failure();
  Bounded result(std::move(*value));
  bool keepUnrounded = factsOf(*instr.parent()).mayBeAddedTo.contains(&instr);
  if (failed(result.value.isTuple() ? boundByEnds(instr, operands, result)
                                    : boundArray(instr, operands, result, keepUnrounded)))
    return llvm::failure();
  if (instr.opcode() == Opcode::ReduceWindow)
    admitEitherZero(instr, result);
  return result;
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
  if (isMovement(instr.opcode())) {
    llvm::FailureOr<BoundsPtr> products = boundMovement(step, true);
    if (failed(products))
      return llvm::failure();
    result.unrounded = std::move(*products);
    return take(boundMovement(step, false));
  }
  if (instr.opcode() == Opcode::Map || isElementwise(instr.opcode()) || family(instr.opcode()) == OpcodeFamily::Convert)
    return take(boundElementwise(step, result.unrounded));
  ElementType type = result.array().shape().elementType();
  bool floating = isFloat(type) || isComplex(type);
  if (floating && (instr.opcode() == Opcode::Dot || instr.opcode() == Opcode::Convolution))
    return take(boundProducts(step));
  const HloComputation *function = instr.computation(AttributeKey::ToApply);
  bool sums = function && isFloat(type) && plainOp(*function) == Opcode::Add;
  if (instr.opcode() == Opcode::ReduceWindow && sums)
    return take(boundWindowSum(step));
  if (instr.opcode() == Opcode::Scatter && sums && operands.size() == 3 && !hasOpenElement(operands[1]))
    return take(boundScatterSum(step));
  return boundByEnds(instr, operands, result);
}

/// Of data movement: both ends are moved as the value is. `ofProducts`: bounds of unrounded products instead.
llvm::FailureOr<BoundsPtr> BoundMachine::boundMovement(const BoundStep &step, bool ofProducts) {
  auto boundsOf = [&](const Bounded &operand) {
    return ofProducts && operand.unrounded ? operand.unrounded : operand.bounds;
  };
  unsigned numData = firstIndexOperand(step.instr);
  for (const Bounded &index : step.operands.drop_front(numData))
    if (hasOpenElement(index))
      return unknownBounds(step.value);
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

BoundMachine::Result BoundMachine::callee(const HloInstruction &instr, std::vector<Bounded> &operands,
                                          const Shape *lift) {
  return run(*instr.calledComputations()[0], std::move(operands), lift);
}

BoundMachine::Result BoundMachine::whileLoop(const HloInstruction &instr, std::vector<Bounded> &operands) {
  const HloComputation *condition = instr.computation(AttributeKey::Condition);
  const HloComputation *body = instr.computation(AttributeKey::Body);
  Bounded state = std::move(operands[0]);
  for (uint64_t steps = 0; steps < machine.options.maxLoopSteps; ++steps) {
    Result goOn = run(*condition, {state});
    if (failed(goOn))
      return llvm::failure();
    bool isOpen = hasOpenElement(*goOn);
    if (!goOn->array().getInt(0)) {
      if (isOpen)
        forget(state);
      return state;
    }
    std::vector<Bounded> arguments;
    arguments.push_back(std::move(state));
    Result next = run(*body, std::move(arguments));
    if (failed(next))
      return llvm::failure();
    state = std::move(*next);
    if (isOpen)
      forget(state);
  }
  HLOC_UNREACHABLE("the interpreter has ended this loop before");
}

BoundMachine::Result BoundMachine::conditional(const HloInstruction &instr, std::vector<Bounded> &operands) {
  llvm::SmallVector<HloComputation *, 2> branches = instr.calledComputations();
  const Literal &selector = operands[0].array();
  auto last = int64_t(branches.size()) - 1;
  int64_t chosen = selector.getInt(0);
  if (isPred(selector.shape().elementType()))
    chosen = chosen ? 0 : 1;
  else if (chosen < 0 || chosen > last)
    chosen = last;
  std::vector<Bounded> arguments;
  arguments.push_back(operands[size_t(chosen) + 1]);
  Result result = run(*branches[size_t(chosen)], std::move(arguments));
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
  if (mapped->bounds && mapped->array().numElements() == result.array().numElements())
    result.bounds = mapped->bounds;
  return result;
}

BoundMachine::Result BoundMachine::reduce(const HloInstruction &instr, std::vector<Bounded> &operands) {
  llvm::FailureOr<Value> value = valueOf(instr, operands, nullptr);
  if (failed(value))
    return llvm::failure();
  Bounded result(std::move(*value));
  const HloComputation &reducer = *instr.computation(AttributeKey::ToApply);
  bool anyBounds = llvm::any_of(operands, [](const Bounded &operand) { return operand.isBounded(); });
  std::optional<Opcode> plain = plainOp(reducer);
  if (operands.size() == 2 && plain == Opcode::Add && !result.value.isTuple() &&
      (isFloat(result.array().shape().elementType()) || isComplex(result.array().shape().elementType()))) {
    BoundStep step{instr, operands, result.array(), machine, backend, false};
    result.bounds = boundReduceSum(step);
    return result;
  }
  if ((anyBounds || !isExactComputation(reducer)) && failed(fold(instr, operands, result)))
    return llvm::failure();
  admitEitherZero(instr, result);
  // A tree knows the partial sums of one order; of plain sums the bounds hold for all.
  unsigned n = operands.size() / 2;
  for (unsigned i = 0; i < n && result.value.isTuple(); ++i) {
    Bounded &sum = result.elements[i];
    if (!addsAlone(reducer, i) || !isFloat(sum.array().shape().elementType()))
      continue;
    Bounded ofSum[] = {operands[i], operands[n + i]};
    sum.bounds = boundReduceSum({instr, ofSum, sum.array(), machine, backend, false});
  }
  return result;
}

/// Which zero the largest or smallest of zeros is, other compilers decide for themselves.
void BoundMachine::admitEitherZero(const HloInstruction &instr, Bounded &result) const {
  std::optional<Opcode> plain = plainOp(*instr.computation(AttributeKey::ToApply));
  if (backend != Backend::Other || (plain != Opcode::Maximum && plain != Opcode::Minimum) || result.value.isTuple() ||
      !isFloat(result.array().shape().elementType()))
    return;
  auto made = std::make_shared<Bounds>(*boundsOrPoint(result));
  for (double &low : made->low.mutableData<double>())
    low = low == 0 ? -0.0 : low;
  for (double &high : made->high.mutableData<double>())
    high = high == 0 ? 0.0 : high;
  result.bounds = nullIfExact(std::move(made));
}

llvm::LogicalResult BoundMachine::fold(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result) {
  const HloComputation &reducer = *instr.computation(AttributeKey::ToApply);
  size_t n = operands.size() / 2;
  const Shape &shape = operands[0].array().shape();
  Index order, kept;
  int64_t rows = 1, width = 1;
  for (unsigned i = 0; i < shape.rank(); ++i) {
    bool isReduced = llvm::is_contained(instr.ints(AttributeKey::Dimensions), int64_t(i));
    (isReduced ? order : kept).push_back(i);
    (isReduced ? rows : width) *= shape.dim(i);
  }
  order.append(kept);
  std::vector<Bounded> state;
  for (size_t i = 0; i < n; ++i) {
    const Bounded &operand = operands[i];
    BoundsPtr bounds;
    if (operand.bounds)
      bounds = std::make_shared<Bounds>(
          Bounds{flat(transposed(operand.bounds->low, order)), flat(transposed(operand.bounds->high, order))});
    state.emplace_back(Value(flat(transposed(operand.array(), order))), std::move(bounds));
  }
  double before = orderRoundings;
  auto restore = llvm::scope_exit([&] { orderRoundings = before; });
  orderRoundings = sumRoundings(double(rows + 1)) / std::max(1.0, std::log2(double(rows + 1)));
  // reducer(a..., b...) on `count` elements at once
  auto combine = [&](llvm::ArrayRef<Bounded> a, llvm::ArrayRef<Bounded> b,
                     int64_t count) -> llvm::FailureOr<std::vector<Bounded>> {
    std::vector<Bounded> arguments(a.begin(), a.end());
    arguments.insert(arguments.end(), b.begin(), b.end());
    Shape lift = Shape::array(ElementType::Pred, {count});
    Result combined = run(reducer, std::move(arguments), &lift);
    if (failed(combined))
      return llvm::failure();
    std::vector<Bounded> made;
    for (Bounded *leaf : leavesOf(*combined))
      made.push_back(leaf->array().numElements() == count ? std::move(*leaf) : repeated(*leaf, count));
    return made;
  };
  while (rows > 1) {
    int64_t half = rows / 2, left = rows - 2 * half;
    std::vector<Bounded> a, b;
    for (const Bounded &operand : state) {
      a.push_back(part(operand, 0, half * width));
      b.push_back(part(operand, half * width, half * width));
    }
    llvm::FailureOr<std::vector<Bounded>> combined = combine(a, b, half * width);
    if (failed(combined) || combined->size() != n)
      return llvm::failure();
    for (size_t i = 0; i < n; ++i)
      (*combined)[i] = left ? joined((*combined)[i], part(state[i], 2 * half * width, width)) : (*combined)[i];
    state = std::move(*combined);
    rows = half + left;
  }
  std::vector<Bounded> inits;
  for (size_t i = 0; i < n; ++i)
    inits.push_back(repeated(operands[n + i], width));
  if (rows == 1) {
    llvm::FailureOr<std::vector<Bounded>> combined = combine(inits, state, width);
    if (failed(combined) || combined->size() != n)
      return llvm::failure();
    inits = std::move(*combined);
  }
  std::vector<Bounded *> leaves = leavesOf(result);
  for (size_t i = 0; i < n; ++i) {
    BoundsPtr folded = boundsOrPoint(inits[i]);
    const Literal &value = leaves[i]->array();
    Literal reference = asBound(value);
    auto made = std::make_shared<Bounds>(Bounds{Literal(reference.shape()), Literal(reference.shape())});
    llvm::copy(folded->low.bytes(), made->low.mutableBytes().begin());
    llvm::copy(folded->high.bytes(), made->high.mutableBytes().begin());
    if (isFloat(value.shape().elementType()) || isComplex(value.shape().elementType())) {
      auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
      for (size_t k = 0; k < low.size(); ++k)
        include(low[k], high[k], reference.data<double>()[k]);
    }
    leaves[i]->bounds = nullIfExact(std::move(made));
  }
  return llvm::success();
}

llvm::LogicalResult BoundMachine::boundByEnds(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                              Bounded &result) {
  bool anyBounds = llvm::any_of(operands, [](const Bounded &operand) { return operand.isBounded(); });
  bool moves = instr.opcode() == Opcode::Sort || instr.opcode() == Opcode::TopK || instr.opcode() == Opcode::Iota ||
               instr.opcode() == Opcode::RngBitGenerator || instr.opcode() == Opcode::Rng ||
               (family(instr.opcode()) != OpcodeFamily::Structured && instr.opcode() != Opcode::CustomCall);
  const HloComputation *function = instr.computation(AttributeKey::ToApply);
  if (function && isExactComputation(*function))
    moves = true; // a maximum, an overwrite, a comparator
  if (!anyBounds && (moves || instr.operands().empty()))
    return llvm::success();
  std::vector<Bounded> ends;
  for (bool high : {false, true}) {
    if (!anyBounds)
      break;
    std::vector<Value> values;
    for (const Bounded &operand : operands)
      values.push_back(
          !operand.bounds ? operand.value
                          : Value(asValue(high ? operand.bounds->high : operand.bounds->low, operand.array().shape())));
    llvm::FailureOr<Value> end = machine.evaluate(instr, values);
    if (failed(end))
      return llvm::failure();
    ends.emplace_back(std::move(*end));
  }
  // Errors of factorisations and transforms are in proportion to the largest element.
  double terms =
      instr.numOperands() && instr.operand(0)->shape().isArray() ? double(instr.operand(0)->shape().numElements()) : 1;
  double ulps = moves ? 0 : 4 + 2 * std::log2(std::max(terms, 2.0));
  for (auto [number, leaf] : llvm::enumerate(leavesOf(result))) {
    if (leaf->value.isTuple())
      continue;
    const Literal &value = leaf->array();
    ElementType type = value.shape().elementType();
    bool floating = isFloat(type) || isComplex(type);
    Literal reference = asBound(value);
    auto made = std::make_shared<Bounds>(Bounds{reference, reference});
    BoundsPtr unknown = unknownBounds(value);
    for (Bounded &end : ends) {
      Literal other = asBound(leavesOf(end)[number]->array());
      if (floating) {
        auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
        for (size_t k = 0; k < low.size(); ++k)
          include(low[k], high[k], other.data<double>()[k]);
        continue;
      }
      for (int64_t k = 0; k < value.numElements(); ++k)
        if (other.getBits(k) != reference.getBits(k)) {
          made->low.setBits(k, unknown->low.getBits(k));
          made->high.setBits(k, unknown->high.getBits(k));
        }
    }
    if (floating && ulps > 0) {
      double largest = 0;
      for (double x : reference.data<double>())
        largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
      double error = ulps * FloatGrid(componentType(type)).ulp(largest);
      for (double &x : made->low.mutableData<double>())
        x -= error;
      for (double &x : made->high.mutableData<double>())
        x += error;
    }
    leaf->bounds = nullIfExact(std::move(made));
  }
  return llvm::success();
}

} // namespace hloc::interp

namespace hloc {

namespace {

/// `count`: the arrays are of one dimension of this size, whatever the shape says.
void collect(const interp::Bounded &value, const Shape &shape, std::optional<int64_t> count,
             llvm::SmallVector<int64_t, 2> &path, std::vector<AdmissibleArray> &leaves) {
  if (shape.isTuple()) {
    for (unsigned i = 0; i < shape.elements().size(); ++i) {
      path.push_back(i);
      collect(value.elements[i], shape.element(i), count, path, leaves);
      path.pop_back();
    }
    return;
  }
  if (!shape.isArray())
    return;
  AdmissibleArray leaf;
  leaf.path = path;
  interp::Bounded array(value.value, value.bounds);
  if (count && array.array().numElements() != *count) // the same for all elements
    array = interp::repeated(array, *count);
  leaf.value = array.value.toLiteral(count ? Shape::array(shape.elementType(), {*count}) : shape);
  if (array.bounds) {
    leaf.low = array.bounds->low;
    leaf.high = array.bounds->high;
  }
  leaves.push_back(std::move(leaf));
}

bool admitsPart(double low, double high, double actual) {
  if (std::isnan(low) || std::isnan(high))
    return std::isnan(actual) || interp::isUnknown(low, high);
  if (actual == 0 && low == 0 && high == 0) // which zero it is
    return std::signbit(low) != std::signbit(high) || std::signbit(low) == std::signbit(actual);
  return actual >= low && actual <= high;
}

} // namespace

bool AdmissibleArray::isUndecided(int64_t element) const { return !isExact() && interp::isUnknown(low, high, element); }

bool AdmissibleArray::isBranched(int64_t element) const { return !isExact() && interp::isSpread(low, high, element); }

bool AdmissibleArray::admits(int64_t element, const Literal &actual, int64_t position) const {
  ElementType type = value.shape().elementType();
  auto at = size_t(element);
  if (isComplex(type)) {
    std::complex<double> x = actual.getComplex(position);
    std::complex<double> a = isExact() ? value.getComplex(element) : low.getComplex(element);
    std::complex<double> b = isExact() ? a : high.getComplex(element);
    return admitsPart(a.real(), b.real(), x.real()) && admitsPart(a.imag(), b.imag(), x.imag());
  }
  if (isFloat(type)) {
    double a = isExact() ? value.getDouble(element) : low.data<double>()[at];
    return admitsPart(a, isExact() ? a : high.data<double>()[at], actual.getDouble(position));
  }
  if (isPred(type)) { // any other byte than 0 is true
    bool x = actual.getInt(position) != 0;
    bool least = (isExact() ? value : low).getInt(element) != 0,
         greatest = (isExact() ? value : high).getInt(element) != 0;
    return x >= least && x <= greatest;
  }
  int64_t x = actual.getInt(position), least = (isExact() ? value : low).getInt(element),
          greatest = (isExact() ? value : high).getInt(element);
  if (type == ElementType::U64)
    return uint64_t(x) >= uint64_t(least) && uint64_t(x) <= uint64_t(greatest);
  return x >= least && x <= greatest;
}

llvm::FailureOr<BoundedResult> interpretBounds(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                               Backend backend, DiagnosticEngine &diagnostics,
                                               const InterpreterOptions &options) {
  std::vector<interp::Bounded> values;
  for (const Literal &argument : arguments)
    values.emplace_back(interp::Value::borrow(argument));
  interp::BoundMachine machine(diagnostics, options, backend);
  llvm::FailureOr<interp::Bounded> result = machine.run(*module.entry(), std::move(values));
  if (failed(result))
    return llvm::failure();
  BoundedResult made;
  llvm::SmallVector<int64_t, 2> path;
  collect(*result, module.entry()->root()->shape(), std::nullopt, path, made.leaves);
  return made;
}

namespace {

bool isElementwise(const HloComputation &computation, llvm::ArrayRef<int64_t> dims) {
  return llvm::all_of(computation.instructions(), [&](const HloInstruction *instr) {
    if (instr->opcode() == Opcode::Tuple || instr->opcode() == Opcode::GetTupleElement)
      return true;
    if (!instr->shape().isArray() && instr->opcode() != Opcode::Fusion && instr->opcode() != Opcode::Call)
      return false;
    if (instr->shape().isArray() && instr->shape().rank() != 0 && instr->shape().dims() != dims)
      return false;
    switch (instr->opcode()) {
    case Opcode::Parameter:
    case Opcode::Copy:
      return true;
    case Opcode::Constant:
      return instr->shape().rank() == 0;
    case Opcode::Broadcast:
      return instr->operand(0)->shape().rank() == 0;
    case Opcode::Fusion:
    case Opcode::Call:
      return isElementwise(*instr->calledComputations()[0], dims);
    case Opcode::Convert:
      return true;
    default:
      return hloc::isElementwise(instr->opcode()) && instr->opcode() != Opcode::Map;
    }
  });
}

} // namespace

bool isElementwise(const HloModule &module) {
  const Shape &root = module.entry()->root()->shape();
  llvm::SmallVector<Shape::Leaf, 4> leaves = root.leaves();
  return !leaves.empty() && llvm::all_of(leaves, [&](const Shape::Leaf &leaf) {
    return leaf.shape.isArray() && leaf.shape.sameDims(leaves.front().shape);
  }) && isElementwise(*module.entry(), leaves.front().shape.dims());
}

llvm::FailureOr<BoundedResult> interpretBoundsAt(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                                 llvm::ArrayRef<int64_t> elements, Backend backend,
                                                 DiagnosticEngine &diagnostics) {
  auto count = int64_t(elements.size());
  std::vector<interp::Bounded> values;
  for (const Literal &argument : arguments) {
    if (argument.shape().rank() == 0) {
      values.emplace_back(interp::Value::borrow(argument));
      continue;
    }
    Literal taken(Shape::array(argument.shape().elementType(), {count}));
    size_t width = hostBytes(argument.shape().elementType());
    for (auto [i, element] : llvm::enumerate(elements))
      std::copy_n(argument.bytes().begin() + size_t(element) * width, width, taken.mutableBytes().begin() + i * width);
    values.emplace_back(interp::Value(std::move(taken)));
  }
  Shape lift = Shape::array(ElementType::Pred, {count});
  InterpreterOptions options;
  interp::BoundMachine machine(diagnostics, options, backend);
  llvm::FailureOr<interp::Bounded> result = machine.run(*module.entry(), std::move(values), &lift);
  if (failed(result))
    return llvm::failure();
  BoundedResult made;
  llvm::SmallVector<int64_t, 2> path;
  collect(*result, module.entry()->root()->shape(), count, path, made.leaves);
  return made;
}

} // namespace hloc
