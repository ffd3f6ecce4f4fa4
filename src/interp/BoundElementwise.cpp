#include "interp/BoundElementwise.h"

#include "interp/Accuracy.h"

#include "hloc/hlo/OnlineSoftmax.h"

#include <cstring>

namespace hloc::interp {

int order(const Literal &a, const Literal &b, int64_t element) {
  ElementType type = a.shape().elementType();
  if (isFloat(type)) {
    double x = a.getDouble(element), y = b.getDouble(element);
    if (x == 0 && y == 0) // of zeros, the negative one is the lesser
      return int(std::signbit(y)) - int(std::signbit(x));
    return x < y ? -1 : x > y;
  }
  int64_t x = a.getInt(element), y = b.getInt(element);
  bool less = type == ElementType::U64 ? uint64_t(x) < uint64_t(y) : x < y;
  return less ? -1 : x != y;
}

void copyElement(const Literal &from, int64_t source, Literal &to, int64_t target) {
  size_t width = hostBytes(to.shape().elementType());
  std::memcpy(to.mutableBytes().data() + size_t(target) * width, from.bytes().data() + size_t(source) * width, width);
}

namespace {

bool isReal(const Bounded &operand) { return isFloat(operand.array().shape().elementType()); }

int64_t indexIn(const Literal &literal, int64_t element) { return literal.numElements() == 1 ? 0 : element; }

/// `select`: what is chosen, or both where the predicate is open.
llvm::FailureOr<BoundsPtr> boundSelect(const BoundStep &step) {
  const Bounded &which = step.operands[0];
  BoundsPtr yes = boundsOrPoint(step.operands[1]), no = boundsOrPoint(step.operands[2]);
  llvm::FailureOr<Literal> low = step.evaluate({which.array(), yes->low, no->low}, true);
  llvm::FailureOr<Literal> high = step.evaluate({which.array(), yes->high, no->high}, true);
  if (failed(low) || failed(high))
    return llvm::failure();
  auto made = std::make_shared<Bounds>(Bounds{std::move(*low), std::move(*high)});
  if (!which.bounds)
    return nullIfExact(std::move(made));
  bool complex = isComplex(step.value.shape().elementType());
  BoundsPtr unknown = unknownBounds(step.value);
  for (int64_t i = 0; i < step.value.numElements(); ++i) {
    if (!isSpread(*which.bounds, indexIn(which.array(), i)))
      continue;
    int64_t y = indexIn(yes->low, i), n = indexIn(no->low, i);
    if (complex || isUnknown(*yes, y) || isUnknown(*no, n)) {
      copyElement(unknown->low, i, made->low, i);
      copyElement(unknown->high, i, made->high, i);
      continue;
    }
    const Literal *least = &yes->low, *greatest = &yes->high;
    bool isNan = isFloat(yes->low.shape().elementType()) &&
                 (std::isnan(yes->low.getDouble(y)) != std::isnan(no->low.getDouble(n)));
    if (isNan) {
      copyElement(unknown->low, i, made->low, i);
      copyElement(unknown->high, i, made->high, i);
      continue;
    }
    copyElement(*least, y, made->low, i);
    copyElement(*greatest, y, made->high, i);
    Literal one(Shape::array(no->low.shape().elementType(), {1})), other = one;
    copyElement(no->low, n, one, 0);
    copyElement(made->low, i, other, 0);
    if (order(one, other, 0) < 0)
      copyElement(no->low, n, made->low, i);
    copyElement(no->high, n, one, 0);
    copyElement(made->high, i, other, 0);
    if (order(one, other, 0) > 0)
      copyElement(no->high, n, made->high, i);
  }
  return nullIfExact(std::move(made));
}

/// The same of what was not rounded, where it is a product, and of what it is where it is none.
llvm::FailureOr<BoundsPtr> boundSelectedProducts(const BoundStep &step) {
  llvm::SmallVector<Bounded, 3> operands(step.operands.begin(), step.operands.end());
  for (Bounded &operand : llvm::MutableArrayRef(operands).drop_front())
    if (operand.unrounded)
      operand.bounds = operand.unrounded;
  return boundSelect({step.instr, operands, step.value, step.machine, step.backend, step.keepUnrounded});
}

/// Is what an instruction has computed, and not only handed on?
bool isComputed(const HloInstruction &instr, unsigned depth = 0) {
  constexpr unsigned most = 20;
  if (llvm::is_contained({Opcode::Parameter, Opcode::Constant, Opcode::GetTupleElement}, instr.opcode()) ||
      depth > most)
    return false;
  if (instr.opcode() == Opcode::Select)
    return isComputed(*instr.operand(1), depth + 1) || isComputed(*instr.operand(2), depth + 1);
  if (!hasTrait(instr.opcode(), OpcodeTrait::Moves) && !hasTrait(instr.opcode(), OpcodeTrait::PassesOn))
    return true;
  return llvm::any_of(instr.operands(), [&](const HloInstruction *operand) { return isComputed(*operand, depth + 1); });
}

/// Bits of floats: numbers of one sign are ordered as their bits are, up or down; nothing else can be said.
llvm::FailureOr<BoundsPtr> boundBits(const BoundStep &step) {
  const Bounded &operand = step.operands[0];
  const Shape &from = operand.array().shape();
  // Of a NaN that is computed the bits are the machine's, or the compiler's if it computes with constants.
  const bool makesNans = isFloat(from.elementType()) && isComputed(*step.instr.operand(0));
  if (!operand.bounds && !makesNans)
    return BoundsPtr();
  BoundsPtr unknown = unknownBounds(step.value);
  auto made = std::make_shared<Bounds>(Bounds{asBound(step.value), asBound(step.value)});
  int64_t ratioDown = step.value.numElements() / std::max<int64_t>(1, from.numElements());
  int64_t ratioUp = from.numElements() / std::max<int64_t>(1, step.value.numElements());
  bool sameCount = from.numElements() == step.value.numElements();
  bool ordered = sameCount && isFloat(from.elementType()) && isInteger(step.value.shape().elementType());
  std::optional<Literal> lowBits, highBits;
  if (ordered && operand.bounds) {
    Literal low = asValue(operand.bounds->low, from), high = asValue(operand.bounds->high, from);
    llvm::FailureOr<Literal> lowResult = step.evaluate({low}, false), highResult = step.evaluate({high}, false);
    if (failed(lowResult) || failed(highResult))
      return llvm::failure();
    lowBits = std::move(*lowResult);
    highBits = std::move(*highResult);
  }
  for (int64_t i = 0; i < from.numElements(); ++i) {
    const bool isSpreadOut = operand.bounds && isSpread(*operand.bounds, i);
    const bool isMadeNan = !isSpreadOut && makesNans && std::isnan(operand.array().getDouble(i));
    if (!isSpreadOut && !isMadeNan)
      continue;
    int64_t first = sameCount ? i : ratioUp > 1 ? i / ratioUp : i * ratioDown;
    int64_t count = ratioUp > 1 || sameCount ? 1 : ratioDown;
    bool keepsOrder = ordered && isSpreadOut && !isUnknown(*operand.bounds, i) &&
                      std::signbit(operand.bounds->low.getDouble(i)) == std::signbit(operand.bounds->high.getDouble(i));
    for (int64_t k = first; k < first + count; ++k) {
      const Literal &one = keepsOrder ? *lowBits : unknown->low, &other = keepsOrder ? *highBits : unknown->high;
      bool swapped = order(one, other, k) > 0;
      copyElement(swapped ? other : one, k, made->low, k);
      copyElement(swapped ? one : other, k, made->high, k);
    }
  }
  return nullIfExact(std::move(made));
}

/// In total order a NaN's sign decides, which is not known of one that is computed. Null: there is none.
BoundsPtr openNanOrder(const BoundStep &step) {
  const HloInstruction &instr = step.instr;
  if (instr.opcode() != Opcode::Compare || instr.comparisonType() != ComparisonType::TotalOrder)
    return nullptr;
  std::vector<const Literal *> computed;
  for (auto [number, operand] : llvm::enumerate(step.operands))
    if (isFloat(operand.array().shape().elementType()) && operand.array().numElements() == step.value.numElements() &&
        isComputed(*instr.operand(unsigned(number))))
      computed.push_back(&operand.array());
  return openWhere(Bounded(Value(step.value)), [&](int64_t i) {
    return llvm::any_of(computed, [&](const Literal *array) { return std::isnan(array->getDouble(i)); });
  });
}

} // namespace

llvm::FailureOr<Literal> BoundStep::evaluate(std::vector<Literal> operands, bool asBounds) const {
  std::vector<Value> values;
  for (Literal &operand : operands)
    values.emplace_back(std::move(operand));
  Shape shape = asBounds ? boundsShape(value.shape()) : Shape::array(value.shape().elementType(), value.shape().dims());
  llvm::FailureOr<Value> result = machine.evaluate(instr, values, &shape);
  if (failed(result))
    return llvm::failure();
  return result->take();
}

namespace {

/// Of numbers, zeros with their signs; nothing is known if only one of two is a NaN.
void admitNumbers(Bounds &bounds, const Bounds &more) {
  auto low = bounds.low.mutableData<double>(), high = bounds.high.mutableData<double>();
  auto least = more.low.data<double>(), greatest = more.high.data<double>();
  for (size_t i = 0; i < low.size(); ++i) {
    const bool isOpen = isUnknown(low[i], high[i]) || isUnknown(least[i], greatest[i]);
    if (isOpen || std::isnan(low[i]) != std::isnan(least[i])) {
      setUnknown(low[i], high[i]);
      continue;
    }
    low[i] = least[i] < low[i] || (least[i] == low[i] && std::signbit(least[i])) ? least[i] : low[i];
    high[i] = greatest[i] > high[i] || (greatest[i] == high[i] && !std::signbit(greatest[i])) ? greatest[i] : high[i];
  }
}

} // namespace

void admit(Bounded &value, const Bounded &other) {
  if (value.value.isTuple()) {
    for (auto [element, wanted] : llvm::zip_equal(value.elements, other.elements))
      admit(element, wanted);
    return;
  }
  if (!value.bounds && !other.bounds && value.array().bytes() == other.array().bytes())
    return;
  value.unrounded = nullptr;
  auto made = std::make_shared<Bounds>(*boundsOrPoint(value));
  BoundsPtr more = boundsOrPoint(other);
  const ElementType type = value.array().shape().elementType();
  if (isFloat(type) || isComplex(type)) {
    admitNumbers(*made, *more);
  } else {
    for (int64_t i = 0, count = value.array().numElements(); i < count; ++i) {
      if (order(more->low, made->low, i) < 0)
        copyElement(more->low, i, made->low, i);
      if (order(more->high, made->high, i) > 0)
        copyElement(more->high, i, made->high, i);
    }
  }
  value.bounds = nullIfExact(std::move(made));
}

BoundsPtr openWhere(const Bounded &known, llvm::function_ref<bool(int64_t)> isOpen) {
  std::shared_ptr<Bounds> made;
  BoundsPtr unknown;
  for (int64_t i = 0, count = known.array().numElements(); i < count; ++i) {
    if (!isOpen(i))
      continue;
    if (!made) {
      made = std::make_shared<Bounds>(*boundsOrPoint(known));
      unknown = unknownBounds(known.array());
    }
    copyElement(unknown->low, i, made->low, i);
    copyElement(unknown->high, i, made->high, i);
  }
  return made ? BoundsPtr(std::move(made)) : known.bounds;
}

BoundsPtr nullIfExact(std::shared_ptr<Bounds> bounds) {
  // NaNs may differ in their bits and are no more than a NaN.
  if (bounds->low.bytes() == bounds->high.bytes())
    return nullptr;
  ElementType type = bounds->low.shape().elementType();
  if (!isFloat(type) && !isComplex(type))
    return bounds;
  auto low = bounds->low.data<double>(), high = bounds->high.data<double>();
  for (size_t i = 0; i < low.size(); ++i)
    if (!(std::isnan(low[i]) && std::isnan(high[i])) && std::memcmp(&low[i], &high[i], sizeof(double)) != 0)
      return bounds;
  return nullptr;
}

llvm::FailureOr<BoundsPtr> boundsAtCorners(const BoundStep &step) {
  llvm::SmallVector<BoundsPtr, 3> bounds;
  unsigned spread = 0;
  for (const Bounded &operand : step.operands) {
    spread |= unsigned(bool(operand.bounds)) << bounds.size();
    bounds.push_back(operand.bounds);
  }
  std::shared_ptr<Bounds> made;
  for (unsigned corner = 0; corner < 1u << bounds.size(); ++corner) {
    if (corner & ~spread)
      continue;
    std::vector<Literal> operands;
    for (size_t i = 0; i < bounds.size(); ++i) {
      const Literal &value = step.operands[i].array();
      operands.push_back(!bounds[i] ? value
                                    : asValue(corner >> i & 1 ? bounds[i]->high : bounds[i]->low, value.shape()));
    }
    llvm::FailureOr<Literal> result = step.evaluate(std::move(operands), false);
    if (failed(result))
      return llvm::failure();
    Literal ends = asBound(*result);
    if (!made) {
      made = std::make_shared<Bounds>(Bounds{ends, ends});
      continue;
    }
    bool real = isFloat(ends.shape().elementType());
    for (int64_t i = 0; i < ends.numElements(); ++i) {
      if (real && std::isnan(ends.getDouble(i)) != std::isnan(made->low.getDouble(i)))
        setUnknown(made->low.mutableData<double>()[size_t(i)], made->high.mutableData<double>()[size_t(i)]);
      if (order(ends, made->low, i) < 0)
        copyElement(ends, i, made->low, i);
      if (order(ends, made->high, i) > 0)
        copyElement(ends, i, made->high, i);
    }
  }
  return nullIfExact(std::move(made));
}

bool choosesOfOne(const HloInstruction &instr) {
  return (instr.opcode() == Opcode::Maximum || instr.opcode() == Opcode::Minimum) &&
         instr.operand(0) == instr.operand(1);
}

llvm::FailureOr<BoundsPtr> boundElementwise(const BoundStep &step, BoundsPtr &unrounded) {
  const HloInstruction &instr = step.instr;
  ElementType type = step.value.shape().elementType();
  bool anyBounds = llvm::any_of(step.operands, [](const Bounded &operand) { return bool(operand.bounds); });
  bool sums = instr.opcode() == Opcode::Add || instr.opcode() == Opcode::Subtract;
  bool anyUnrounded = llvm::any_of(step.operands, [](const Bounded &operand) { return bool(operand.unrounded); });
  bool floating = isFloat(type) || isComplex(type), allReal = llvm::all_of(step.operands, isReal);
  bool isFunction = floating && permitted(instr, step.backend).ulps > 0.5;
  if (instr.opcode() == Opcode::BitcastConvert || instr.opcode() == Opcode::Bitcast)
    return boundBits(step);
  if (BoundsPtr open = anyBounds ? nullptr : openNanOrder(step))
    return open;
  if (instr.opcode() == Opcode::Negate && anyUnrounded) { // -(a * b) + c contracts as well
    auto negated = std::make_shared<Bounds>(Bounds{step.operands[0].unrounded->high, step.operands[0].unrounded->low});
    for (Literal *end : {&negated->low, &negated->high})
      for (double &x : end->mutableData<double>())
        x = -x;
    unrounded = std::move(negated);
  }
  if (isOnlineSoftmax(instr) && isFloat(type) && allReal)
    return boundRescaled(step);
  if (choosesOfOne(instr))
    unrounded = step.operands[0].unrounded;
  if (instr.opcode() == Opcode::Select && anyUnrounded &&
      isFloat(type)) { // one that folds away, or moves behind the sum
    llvm::FailureOr<BoundsPtr> chosen = boundSelectedProducts(step);
    if (failed(chosen))
      return llvm::failure();
    unrounded = std::move(*chosen);
  }
  bool keepsProduct = instr.opcode() == Opcode::Multiply && step.keepUnrounded && isFloat(type) && bitWidth(type) > 8;
  bool eitherZero =
      step.backend == Backend::Other && isFloat(type) &&
      (instr.opcode() == Opcode::Maximum || instr.opcode() == Opcode::Minimum || instr.opcode() == Opcode::Clamp);
  bool inFold = step.orderRoundings > 0 && floating && (sums || instr.opcode() == Opcode::Multiply);
  if (!anyBounds && !isFunction && !(adds(instr) && anyUnrounded) && !keepsProduct && !inFold && !eitherZero)
    return BoundsPtr(); // rounded once to nearest, or not at all
  if (instr.opcode() == Opcode::Select)
    return boundSelect(step);
  if (instr.opcode() == Opcode::Compare || instr.opcode() == Opcode::IsFinite) {
    if (allReal && instr.comparisonType() != ComparisonType::TotalOrder)
      return boundRealCompare(step);
    if (isComplex(step.operands[0].array().shape().elementType())) {
      BoundsPtr unknown = unknownBounds(step.value);
      return unknown; // equality of complex numbers that are open; hardly ever asked
    }
    return boundInteger(step);
  }
  if (instr.opcode() == Opcode::ReducePrecision || (instr.opcode() == Opcode::Convert && !(floating && allReal)))
    if (!isComplex(type) && !isComplex(step.operands[0].array().shape().elementType()))
      return isFloat(type) ? boundsAtCorners(step) : boundInteger(step);
  bool anyComplex = isComplex(type) || llvm::any_of(step.operands, [](const Bounded &operand) {
                      return isComplex(operand.array().shape().elementType());
                    });
  if (anyComplex)
    return boundComplex(step);
  if (isFloat(type) && allReal)
    return boundReal(step, unrounded);
  return boundInteger(step);
}

} // namespace hloc::interp
