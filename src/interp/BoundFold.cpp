// Reductions by any function, and ops without rules of their own.

#include "hloc/hlo/ConvolutionCall.h"
#include "hloc/hlo/GemmCall.h"
#include "hloc/hlo/SortCall.h"
#include "interp/Accuracy.h"
#include "interp/BoundMachine.h"
#include "interp/BoundSums.h"
#include "interp/FloatGrid.h"
#include "interp/MixedTypes.h"
#include "interp/Strided.h"

#include "llvm/ADT/ScopeExit.h"

#include <complex>

namespace hloc::interp {

namespace {

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
Literal flat(Literal literal) {
  Literal made(Shape::array(literal.shape().elementType(), {literal.numElements()}));
  std::copy(literal.bytes().begin(), literal.bytes().end(), made.mutableBytes().begin());
  return made;
}

/// Moves an end of a bound so that it holds another number; nothing is known if only one of them is a NaN.
void include(double &low, double &high, double value) {
  if (isUnknown(low, high))
    return;
  if (std::isnan(value) != std::isnan(low)) {
    setUnknown(low, high);
    return;
  }
  // Where another order gives something else by so much, others may by as much again: its own error is not in `value`.
  if (value < low)
    low = value + (value - low); // twice the value may overflow
  if (value > high)
    high = value + (value - high);
}

/// The dimensions of what is reduced, those that are kept first, or those that are not.
Index dimsInOrder(const HloInstruction &instr, const Shape &operand, bool keptFirst) {
  Index first, last;
  for (unsigned i = 0; i < operand.rank(); ++i)
    (llvm::is_contained(instr.ints(AttributeKey::Dimensions), int64_t(i)) == keptFirst ? last : first).push_back(i);
  first.append(last);
  return first;
}

/// What the order of factors decides. Those that overflow among themselves do not where small ones come between them;
/// they make a NaN of a 0 that comes after them, and 0 where it comes before; so do factors that vanish with an
/// infinity. And where some are rounded to a multiple of the smallest number, all that come after them enlarge the
/// error.
void admitOrdersOfProduct(const HloInstruction &instr, const Bounded &elements, const Bounded &start,
                          Bounded &product) {
  Index order = dimsInOrder(instr, elements.array().shape(), /*keptFirst=*/true);
  BoundsPtr factors = boundsOrPoint(elements), init = boundsOrPoint(start);
  Literal low = transposed(factors->low, order), high = transposed(factors->high, order);
  auto lows = low.data<double>(), highs = high.data<double>();
  FloatGrid grid(product.array().shape().elementType());
  double quantum = grid.ulp(0), overflow = std::log2(grid.largestNumber()), underflow = std::log2(quantum);
  auto made = std::make_shared<Bounds>(*boundsOrPoint(product));
  auto least = made->low.mutableData<double>(), greatest = made->high.mutableData<double>();
  size_t numFactors = least.empty() ? 0 : lows.size() / least.size();
  for (size_t k = 0; k < least.size(); ++k) {
    double grown = 0, shrunk = 0; // exponents of the largest and the smallest product of some factors
    bool hasZero = false, hasInfinity = false, hasNan = false, isZero = false;
    auto add = [&](double from, double to) {
      if (from == 0 && to == 0)
        isZero = hasZero = true;
      double near = from <= 0 && to >= 0 ? 0 : std::min(std::fabs(from), std::fabs(to));
      double far = std::max(std::fabs(from), std::fabs(to));
      hasZero |= near == 0;
      hasInfinity |= std::isinf(far);
      hasNan |= std::isnan(from) || std::isnan(to);
      grown += far > 1 && !std::isinf(far) ? std::log2(far) : 0;
      shrunk += near < 1 ? std::log2(near) : 0;
    };
    add(init->low.data<double>()[0], init->high.data<double>()[0]);
    for (size_t i = k * numFactors; i < (k + 1) * numFactors; ++i)
      add(lows[i], highs[i]);
    if (!hasNan && hasZero != hasInfinity && (hasZero ? grown >= overflow : shrunk <= underflow))
      setUnknown(least[k], greatest[k]);
    if (!hasNan && !isZero && !hasInfinity && grown >= overflow && shrunk < 0)
      setUnknown(least[k], greatest[k]);
    if (isUnknown(least[k], greatest[k]) || hasNan || isZero || hasInfinity ||
        shrunk >= std::log2(grid.smallestNormalNumber()))
      continue;
    double error = double(numFactors) * quantum / 2 * std::exp2(grown);
    least[k] -= error;
    greatest[k] += error;
  }
  product.bounds = nullIfExact(std::move(made));
}

/// Of complex factors each order rounds at other places: an error of sqrt(5) units of the product's magnitude a factor
/// (Brent, Percival, Zimmermann: Error bounds on complex floating-point multiplication), whatever the parts come to.
/// Where some of them vanish or overflow among themselves they do so in some orders only; and the sign of a part that
/// is 0 is that of the last product.
void admitOrdersOfComplexProduct(const HloInstruction &instr, const Bounded &elements, const Bounded &start,
                                 Bounded &product) {
  FloatGrid grid(componentType(product.array().shape().elementType()));
  Literal factors = asBound(elements.array()), init = asBound(start.array());
  if (elements.isBounded() || start.isBounded())
    return; // what their bounds make of it is in the tree's
  factors = transposed(factors, dimsInOrder(instr, elements.array().shape(), /*keptFirst=*/true));
  auto parts = factors.data<double>(), first = init.data<double>();
  auto made = std::make_shared<Bounds>(*boundsOrPoint(product));
  auto least = made->low.mutableData<double>(), greatest = made->high.mutableData<double>();
  size_t numProducts = least.size() / 2, numFactors = numProducts == 0 ? 0 : parts.size() / 2 / numProducts;
  double unit = grid.ulp(1) / 2, quantum = grid.ulp(0);
  double largest = grid.largestNumber(), smallest = grid.smallestNormalNumber();
  for (size_t k = 0; k < numProducts; ++k) {
    std::complex<double> exact(first[0], first[1]);
    double grown = std::max(1.0, std::abs(exact)), shrunk = std::min(1.0, std::abs(exact));
    for (size_t i = k * numFactors; i < (k + 1) * numFactors; ++i) {
      std::complex<double> factor(parts[2 * i], parts[2 * i + 1]);
      exact *= factor;
      grown *= std::max(1.0, std::abs(factor));
      shrunk *= std::min(1.0, std::abs(factor));
    }
    if (!(grown < largest / 4)) { // some order overflows
      for (unsigned part = 0; part < 2; ++part)
        if (double &low = least[2 * k + part], &high = greatest[2 * k + part];
            std::isfinite(grown) && shrunk < 1 && !std::isnan(low) && !std::isnan(high))
          setUnknown(low, high);
      continue;
    }
    double error = std::sqrt(5.0) * unit * double(numFactors) * std::abs(exact);
    if (shrunk < smallest * 4 && exact != 0.0) // some order rounds to multiples of the smallest number
      error += 4 * double(numFactors) * quantum * grown;
    double ends[] = {exact.real(), exact.imag()};
    for (unsigned part = 0; part < 2; ++part) {
      double &low = least[2 * k + part], &high = greatest[2 * k + part];
      if (isUnknown(low, high))
        continue;
      low = std::min(low, ends[part] - error);
      high = std::max(high, ends[part] + error);
      low = low == 0 ? -0.0 : low;
      high = high == 0 ? 0.0 : high;
    }
  }
  product.bounds = nullIfExact(std::move(made));
}

} // namespace

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
  if (!plain && operands[0].array().numElements() > 0) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    llvm::FailureOr<bool> ofNans = dependsOnOrder(instr, nan, 1), ofZeros = dependsOnOrder(instr, 0.0, -0.0);
    if (failed(ofNans) || failed(ofZeros))
      return llvm::failure();
    if (*ofNans)
      openResultsOfNans(instr, operands, result);
    if (*ofZeros)
      openSignsOfZeros(instr, operands, result);
  }
  admitEitherZero(instr, result);
  admitOrdersOfProducts(instr, operands, result);
  // A tree knows the partial sums of one order; of plain sums the bounds hold for all.
  unsigned n = operands.size() / 2;
  for (unsigned i = 0; i < n && result.value.isTuple(); ++i) {
    Bounded &sum = result.elements[i];
    ElementType type = sum.array().shape().elementType();
    if (!combinesAlone(reducer, i, Opcode::Add) || !(isFloat(type) || isComplex(type)))
      continue;
    Bounded ofSum[] = {operands[i], operands[n + i]};
    sum.bounds = boundReduceSum({instr, ofSum, sum.array(), machine, backend, false});
  }
  return result;
}

llvm::FailureOr<bool> BoundMachine::dependsOnOrder(const HloInstruction &instr, double one, double other) {
  const HloComputation &reducer = *instr.computation(AttributeKey::ToApply);
  bool anyFloat = false;
  std::vector<Bounded> ones, others;
  for (const HloInstruction *parameter : llvm::ArrayRef(reducer.parameters()).take_front(instr.numOperands() / 2)) {
    ElementType type = parameter->shape().elementType();
    Literal first(Shape::array(type, {1})), second(Shape::array(type, {1}));
    if (isComplex(type)) {
      first.setComplex(0, {one, 0});
      second.setComplex(0, {other, 0});
    } else if (isFloat(type)) {
      first.setDouble(0, one);
      second.setDouble(0, other);
    } else {
      second.setInt(0, 1);
    }
    anyFloat |= isFloat(type) || isComplex(type);
    ones.emplace_back(Value(std::move(first)), nullptr);
    others.emplace_back(Value(std::move(second)), nullptr);
  }
  if (!anyFloat)
    return false;
  Shape lift = Shape::array(ElementType::Pred, {1});
  auto apply = [&](llvm::ArrayRef<Bounded> a, llvm::ArrayRef<Bounded> b) {
    std::vector<Bounded> arguments(a.begin(), a.end());
    arguments.insert(arguments.end(), b.begin(), b.end());
    return run(reducer, std::move(arguments), &lift);
  };
  Result before = apply(ones, others), after = apply(others, ones);
  if (failed(before) || failed(after))
    return llvm::failure();
  const bool isOfNumbers = !std::isnan(one) && !std::isnan(other);
  for (auto [x, y] : llvm::zip_equal(leavesOf(*before), leavesOf(*after))) {
    Literal a = asBound(x->array()), b = asBound(y->array());
    bool floating = a.shape().elementType() == ElementType::F64;
    bool bothNan = floating && std::isnan(a.getDouble(0)) && std::isnan(b.getDouble(0));
    if (!bothNan && (floating || !isOfNumbers) && a.bytes() != b.bytes())
      return true;
  }
  return false;
}

/// Which results have an element for which `holds` among their operands, or an end of an element's bounds.
static std::vector<bool> resultsOf(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, int64_t numResults,
                                   llvm::function_ref<bool(double)> holds) {
  size_t n = operands.size() / 2;
  std::vector<bool> found(size_t(numResults), false);
  auto note = [&](const Literal &literal, bool isInit) {
    if (!isFloat(literal.shape().elementType()) && !isComplex(literal.shape().elementType()))
      return;
    // Element i is reduced into result i modulo their number.
    Literal numbers =
        asBound(isInit ? literal : flat(transposed(literal, dimsInOrder(instr, literal.shape(), /*keptFirst=*/false))));
    auto data = numbers.data<double>();
    size_t parts = isComplex(literal.shape().elementType()) ? 2 : 1;
    for (size_t i = 0; i < data.size(); ++i)
      if (holds(data[i])) {
        if (isInit)
          found.assign(found.size(), true);
        else
          found[i / parts % size_t(numResults)] = true;
      }
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    note(operands[i].array(), i >= n);
    if (operands[i].bounds) {
      note(operands[i].bounds->low, i >= n);
      note(operands[i].bounds->high, i >= n); // where nothing is known, a NaN
    }
  }
  return found;
}

void BoundMachine::openResultsOfNans(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                     Bounded &result) const {
  int64_t numResults = leavesOf(result).front()->array().numElements();
  std::vector<bool> hasNan = resultsOf(instr, operands, numResults, [](double x) { return std::isnan(x); });
  for (Bounded *leaf : leavesOf(result))
    leaf->bounds = openWhere(*leaf, [&](int64_t i) { return hasNan[size_t(i)]; });
}

/// A zero may be of either sign where both are among what is reduced.
void BoundMachine::openSignsOfZeros(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                    Bounded &result) const {
  int64_t numResults = leavesOf(result).front()->array().numElements();
  auto withZero = [&](bool isNegative) {
    return resultsOf(instr, operands, numResults, [&](double x) { return x == 0 && std::signbit(x) == isNegative; });
  };
  const std::vector<bool> negative = withZero(true), positive = withZero(false);
  for (Bounded *leaf : leavesOf(result)) {
    if (!isFloat(leaf->array().shape().elementType()))
      continue;
    auto made = std::make_shared<Bounds>(*boundsOrPoint(*leaf));
    auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
    for (size_t i = 0; i < low.size(); ++i)
      if (negative[i] && positive[i]) {
        low[i] = low[i] == 0 ? -0.0 : low[i];
        high[i] = high[i] == 0 ? 0.0 : high[i];
      }
    leaf->bounds = nullIfExact(std::move(made));
  }
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

void BoundMachine::admitOrdersOfProducts(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                         Bounded &result) const {
  size_t n = operands.size() / 2;
  for (size_t i = 0; i < n; ++i) {
    ElementType type = operands[i].array().shape().elementType();
    if (!combinesAlone(*instr.computation(AttributeKey::ToApply), unsigned(i), Opcode::Multiply))
      continue;
    if (isFloat(type))
      admitOrdersOfProduct(instr, operands[i], operands[n + i], *leavesOf(result)[i]);
    else if (isComplex(type))
      admitOrdersOfComplexProduct(instr, operands[i], operands[n + i], *leavesOf(result)[i]);
  }
}

llvm::LogicalResult BoundMachine::fold(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result) {
  const HloComputation &reducer = *instr.computation(AttributeKey::ToApply);
  size_t n = operands.size() / 2;
  const Shape &shape = operands[0].array().shape();
  Index order = dimsInOrder(instr, shape, /*keptFirst=*/false);
  int64_t rows = 1, width = 1;
  for (auto [place, dim] : llvm::enumerate(order))
    (place < instr.ints(AttributeKey::Dimensions).size() ? rows : width) *= shape.dim(unsigned(dim));
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
    // An element that is combined first may be of another type than what is combined so far.
    for (auto [argument, parameter] : llvm::zip_equal(arguments, reducer.parameters()))
      argument = converted(argument, parameter->shape().elementType());
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
    for (size_t i = 0; i < n && left; ++i) {
      Bounded &made = (*combined)[i];
      made = joined(made, converted(part(state[i], 2 * half * width, width), made.array().shape().elementType()));
    }
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

namespace {

/// Is it a product of real or complex numbers that a library computes?
bool callsProduct(const HloInstruction &instr) {
  const llvm::StringRef target = instr.string(AttributeKey::CustomCallTarget);
  return instr.opcode() == Opcode::CustomCall && (isGemmTarget(target) || convolutionCallKind(target)) &&
         !isInteger(instr.resultShape().elementType());
}

/// Is such a product of floats linear in either factor and in what is added, so that magnitudes of operands give
/// magnitudes of results? Its activation leaves positive numbers what they are and brings no two numbers further apart.
bool isLinear(const HloInstruction &instr) {
  auto isWide = [](const Shape &shape) { return isFloat(shape.elementType()) && bitWidth(shape.elementType()) >= 16; };
  if (!isWide(instr.resultShape()) ||
      !llvm::all_of(instr.operands(), [&](const HloInstruction *operand) { return isWide(operand->shape()); }))
    return false;
  if (std::optional<ConvolutionCall> call = ConvolutionCall::of(instr)) {
    using Activation = ConvolutionEpilogue::Activation;
    const ConvolutionEpilogue &epilogue = call->epilogue;
    return call->kind != ConvolutionCallKind::BiasActivation ||
           (epilogue.scale >= 0 && epilogue.sideScale >= 0 &&
            llvm::is_contained({Activation::None, Activation::Relu, Activation::Elu}, epilogue.activation));
  }
  std::optional<GemmCall> gemm = readGemmCall(instr);
  return gemm && gemm->alpha >= 0 && gemm->beta >= 0 &&
         llvm::is_contained({GemmCall::Activation::None, GemmCall::Activation::Relu}, gemm->activation);
}

/// How far elements of an operand may be from the reference's; NaN where nothing is known.
Literal errorsOf(const Bounded &operand) {
  Literal errors = asBound(operand.array());
  const BoundsPtr bounds = boundsOrPoint(operand);
  auto low = bounds->low.data<double>(), high = bounds->high.data<double>();
  auto to = errors.mutableData<double>();
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = isUnknown(low[i], high[i]) ? std::numeric_limits<double>::quiet_NaN()
                                       : std::max(high[i] - to[i], to[i] - low[i]);
  return errors;
}

} // namespace

/// |f(a', b', c') - f(a, b, c)| <= f(da, |b'|, dc) + f(|a|, db, 0), of a linear call.
llvm::FailureOr<Literal> BoundMachine::errorOfLinear(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands) {
  std::vector<Value> first, second;
  for (auto [number, operand] : llvm::enumerate(operands)) {
    const Shape &shape = operand.array().shape();
    Value errors(asValue(errorsOf(operand), shape)), sizes(asValue(magnitudes(*boundsOrPoint(operand)), shape));
    first.push_back(number == 1 ? sizes : errors);
    second.push_back(number == 0 ? sizes : number == 1 ? errors : Value::zero(shape));
  }
  auto evaluate = [&](std::vector<Value> &values) -> llvm::FailureOr<Literal> {
    llvm::FailureOr<Value> value = machine.evaluate(instr, values);
    if (failed(value))
      return llvm::failure();
    Bounded bounded(std::move(*value));
    return asBound(leavesOf(bounded).front()->array());
  };
  llvm::FailureOr<Literal> error = evaluate(first);
  if (failed(error))
    return llvm::failure();
  auto to = error->mutableData<double>();
  llvm::FailureOr<Literal> ofSecond = evaluate(second);
  if (failed(ofSecond))
    return llvm::failure();
  // Both were rounded, as their operands were.
  const FloatGrid grid(instr.resultShape().elementType());
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = (to[i] + ofSecond->data<double>()[i]) * (1 + 8 * grid.unitRoundoff()) + grid.ulp(0);
  return error;
}

/// Without errors for them nothing is known of the elements.
static void addErrors(const Literal &error, Bounds &bounds) {
  auto errors = error.data<double>();
  auto low = bounds.low.mutableData<double>(), high = bounds.high.mutableData<double>();
  for (size_t k = 0; k < low.size(); ++k) {
    if (errors.size() != low.size() || !std::isfinite(errors[k])) {
      setUnknown(low[k], high[k]);
      continue;
    }
    low[k] -= errors[k];
    high[k] += errors[k];
  }
}

llvm::LogicalResult BoundMachine::boundByEnds(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                              Bounded &result) {
  bool anyBounds = llvm::any_of(operands, [](const Bounded &operand) { return operand.isBounded(); });
  bool moves = instr.opcode() == Opcode::Sort || instr.opcode() == Opcode::TopK || instr.opcode() == Opcode::Iota ||
               instr.opcode() == Opcode::RngBitGenerator ||
               (family(instr.opcode()) != OpcodeFamily::Structured && instr.opcode() != Opcode::CustomCall &&
                instr.opcode() != Opcode::Rng) ||
               isSortTarget(instr.string(AttributeKey::CustomCallTarget));
  const HloComputation *function = instr.computation(AttributeKey::ToApply);
  if (function && isExactComputation(*function))
    moves = true; // a maximum, an overwrite, a comparator
  if (!anyBounds && (moves || instr.operands().empty()))
    return llvm::success();
  llvm::FailureOr<Literal> error = Literal(); // of the results of a product; without elements: unknown
  const bool isProduct = anyBounds && callsProduct(instr);
  if (isProduct && isLinear(instr) && failed(error = errorOfLinear(instr, operands)))
    return llvm::failure();
  std::vector<Bounded> ends;
  for (bool high : {false, true}) {
    if (!anyBounds || isProduct)
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
      // Libraries compute floats of fewer bits in f32 and round them once.
      const FloatGrid grid(componentType(type)), inner(ElementType::F32);
      const bool isRoundedOnce = instr.opcode() == Opcode::CustomCall && bitWidth(grid.type()) < 32;
      const double error = ulps * (isRoundedOnce ? inner : grid).ulp(largest);
      auto errorAt = [&](double x) { return isRoundedOnce && std::isfinite(x) ? error + grid.ulp(x) : error; };
      for (double &x : made->low.mutableData<double>())
        x -= errorAt(x);
      for (double &x : made->high.mutableData<double>())
        x += errorAt(x);
    }
    if (floating && isProduct)
      addErrors(*error, *made);
    leaf->bounds = nullIfExact(std::move(made));
  }
  return llvm::success();
}

} // namespace hloc::interp
