// The error of a sum: with E = roundings * u * (sum of magnitudes), what is between (least sum - E) and (greatest sum +
// E) is admissible. Short sums get the worst case for E, long ones a statistical bound (Accuracy.h), or what roundings
// come to that are not random because terms are alike (AlikeRoundings.h). The serial sum in the accumulator's precision
// is admissible anyway.
//
// Terms that are lost beside the sum count by their own size instead: an addition is off by no more than the lesser of
// the two, so all in which terms smaller than some bound meet what is larger are off by no more than these terms
// together.
//
// Tensor cores round nothing: they cut off (TensorCores.h).
//
// Sums of which every partial sum is a number of the accumulator have no error at all: all terms are multiples of some
// 2^k, and the magnitudes sum up to less than 2^precision of these.

#include "interp/BoundSums.h"

#include "interp/Accuracy.h"
#include "interp/LaneOp.h"
#include "interp/OneSum.h"
#include "interp/Ops.h"
#include "interp/Strided.h"
#include "interp/TensorCores.h"

#include "hloc/hlo/OnlineSoftmax.h"

namespace hloc::interp {

namespace {

/// What sums of this type are carried in: narrow floats in f32.
FloatGrid accumulatorOf(ElementType type) {
  ElementType part = componentType(type);
  return FloatGrid(part == ElementType::F64 ? ElementType::F64 : ElementType::F32);
}

/// The value of the lowest bit of all finite numbers; infinite if these are zeros.
double lowestBitOf(const Literal &bound) {
  int least = noLowestBit;
  for (double x : bound.data<double>())
    if (std::isfinite(x))
      least = std::min(least, exponentOfLowestBit(x));
  return least == noLowestBit ? infinity : std::ldexp(1.0, least);
}

bool isAllFinite(const Literal &bound) {
  return llvm::all_of(bound.data<double>(), [](double x) { return std::isfinite(x); });
}

/// Infinities and NaNs replaced by 0.
Literal finiteOnly(Literal bound) {
  for (double &x : bound.mutableData<double>())
    x = std::isfinite(x) ? x : 0;
  return bound;
}

bool hasUnknown(const Bounds &bounds) {
  auto low = bounds.low.data<double>(), high = bounds.high.data<double>();
  for (size_t i = 0; i < low.size(); ++i)
    if (isUnknown(low[i], high[i]))
      return true;
  return false;
}

/// The terms of a sum that are lost in it.
void findLost(Sum &sum, const FloatGrid &accumulator, llvm::function_ref<double(int64_t)> magnitudeOf, int64_t count) {
  const double most = sum.lostSize(accumulator);
  int64_t number = 0;
  double together = 0;
  for (int64_t i = 0; i < count; ++i)
    if (double size = magnitudeOf(i); size <= most) {
      ++number;
      together += size;
    }
  sum.setLost(number, together);
}

/// What of an operand is added: of a product also what it is before it is rounded.
BoundsPtr termsOf(const Bounded &operand) { return operand.unrounded ? operand.unrounded : boundsOrPoint(operand); }

/// Roundings of a term that is a product, beside those of the sum.
double termRoundings(const BoundStep &step) {
  return llvm::any_of(step.operands, [](const Bounded &operand) { return bool(operand.unrounded); }) ? 1 : 0;
}

double partOf(const Literal &value, int64_t i, unsigned part) {
  if (!isComplex(value.shape().elementType()))
    return value.getDouble(i);
  std::complex<double> z = value.getComplex(i);
  return part ? z.imag() : z.real();
}

/// Is it an op of these two parameters, in either order?
bool combinesParameters(const HloInstruction &instr, int64_t one, int64_t other) {
  auto areOperands = [&](int64_t first, int64_t second) {
    auto isParameter = [](const HloInstruction &operand, int64_t number) {
      return operand.opcode() == Opcode::Parameter && operand.parameterNumber() == number;
    };
    return isParameter(*instr.operand(0), first) && isParameter(*instr.operand(1), second);
  };
  return instr.numOperands() == 2 && (areOperands(one, other) || areOperands(other, one));
}

} // namespace

Literal magnitudes(const Bounds &bounds) {
  Literal made(bounds.low.shape());
  auto low = bounds.low.data<double>(), high = bounds.high.data<double>();
  auto to = made.mutableData<double>();
  for (size_t i = 0; i < low.size(); ++i)
    to[i] = isUnknown(low[i], high[i]) ? std::numeric_limits<double>::quiet_NaN()
                                       : std::max(std::fabs(low[i]), std::fabs(high[i]));
  return made;
}

std::optional<Opcode> plainOp(const HloComputation &computation) {
  const HloInstruction &root = *computation.root();
  bool isPlain = computation.instructions().size() == 3 && combinesParameters(root, 0, 1);
  return isPlain ? std::optional(root.opcode()) : std::nullopt;
}

bool combinesAlone(const HloComputation &reducer, unsigned i, Opcode opcode) {
  const HloInstruction &root = *reducer.root();
  if (root.opcode() != Opcode::Tuple || i >= root.numOperands())
    return i == 0 && plainOp(reducer) == opcode;
  const HloInstruction &sum = *root.operand(i);
  return sum.opcode() == opcode && combinesParameters(sum, i, root.numOperands() + i);
}

BoundsPtr boundReduceSum(const BoundStep &step) {
  const Shape &operand = step.operands[0].array().shape();
  Index order, reduced;
  int64_t numReduced = 1;
  for (unsigned i = 0; i < operand.rank(); ++i)
    if (!llvm::is_contained(step.instr.ints(AttributeKey::Dimensions), int64_t(i))) {
      order.push_back(i);
    } else {
      reduced.push_back(i);
      numReduced *= operand.dim(i);
    }
  order.append(reduced);
  BoundsPtr terms = termsOf(step.operands[0]), init = termsOf(step.operands[1]);
  bool spread = step.operands[0].unrounded || step.operands[0].bounds;
  Literal low = transposed(terms->low, order), high = spread ? transposed(terms->high, order) : Literal();
  auto lows = low.data<double>(), highs = spread ? high.data<double>() : lows;
  unsigned parts = isComplex(operand.elementType()) ? 2 : 1;
  Shape shape = boundsShape(step.value.shape());
  auto made = std::make_shared<Bounds>(Bounds{Literal(shape), Literal(shape)});
  auto least = made->low.mutableData<double>(), greatest = made->high.mutableData<double>();
  FloatGrid result(componentType(step.value.shape().elementType()));
  // One of several results may be rounded after each step, as its reducer says.
  FloatGrid accumulator = step.instr.shape().isTuple() ? result : accumulatorOf(step.value.shape().elementType());
  SumEnds ends{accumulator, result};
  const double ofTerms = termRoundings(step);
  int64_t numResults = step.value.numElements();
  int64_t grain = std::max<int64_t>(1, maxLanes / std::max<int64_t>(1, numReduced));
  // Rows go to threads by the number of terms.
  inParallel(numResults * std::max<int64_t>(1, numReduced), grain * std::max<int64_t>(1, numReduced),
             [&](int64_t begin, int64_t end) {
               int64_t each = std::max<int64_t>(1, numReduced);
               for (int64_t row = (begin + each - 1) / each; row * each < end; ++row)
                 for (unsigned part = 0; part < parts; ++part) {
                   Sum sum(accumulator);
                   sum.add(init->low.data<double>()[part], init->high.data<double>()[part]);
                   for (int64_t i = 0; i < numReduced; ++i) {
                     auto at = size_t((row * numReduced + i) * parts + part);
                     sum.add(lows[at], highs[at]);
                   }
                   findLost(
                       sum, accumulator,
                       [&](int64_t i) {
                         auto at = size_t((row * numReduced + i) * parts + part);
                         return std::max(std::fabs(lows[at]), std::fabs(highs[at]));
                       },
                       numReduced);
                   const auto first = size_t(row * numReduced * parts + part), at = size_t(row * parts + part);
                   sum.findAlike({lows.data() + first, highs.data() + first, numReduced, parts}, accumulator);
                   sum.finish(ends, partOf(step.value, row, part), ofTerms, least[at], greatest[at]);
                   // A sum of nothing but -0, to which others do not add the +0 it starts from; and products that
                   // underflow, as in finishLinear.
                   if ((step.backend == Backend::Other && least[at] == 0 && greatest[at] == 0) || ofTerms > 0) {
                     least[at] = least[at] == 0 ? -0.0 : least[at];
                     greatest[at] = greatest[at] == 0 ? 0.0 : greatest[at];
                   }
                 }
             });
  return nullIfExact(std::move(made));
}

namespace {

/// The error of a product that underflows: half of the smallest number, or that, where half of it is none of f64.
double underflowOf(const FloatGrid &grid) {
  const double smallest = grid.ulp(0);
  return smallest / 2 > 0 ? smallest / 2 : smallest;
}

/// Bounds of an op that is linear in its operands, from its f64 values on exact ends, on magnitudes, and on radii.
struct LinearParts {
  Literal low, high; ///< exact sums of the lowest and of the highest terms
  Literal magnitude;
  Literal finiteMagnitude; ///< of the finite terms; without elements where all are
  double quantum;          ///< all terms are multiples of this
  double roundings;
  Literal cut = Literal();     ///< what tensor cores may cut off besides; without elements: nothing
  unsigned bits = 0xffffffffu; ///< of a partial sum, that they keep
};

BoundsPtr finishLinear(const BoundStep &step, const LinearParts &parts) {
  FloatGrid accumulator = accumulatorOf(step.value.shape().elementType());
  FloatGrid result(componentType(step.value.shape().elementType()));
  SumEnds ends{accumulator, result};
  Shape shape = boundsShape(step.value.shape());
  auto made = std::make_shared<Bounds>(Bounds{Literal(shape), Literal(shape)});
  auto least = made->low.mutableData<double>(), greatest = made->high.mutableData<double>();
  auto low = parts.low.data<double>(), high = parts.high.data<double>(), magnitude = parts.magnitude.data<double>();
  auto finite = parts.finiteMagnitude.data<double>(), cut = parts.cut.data<double>();
  unsigned numParts = isComplex(step.value.shape().elementType()) ? 2 : 1;
  for (size_t i = 0; i < low.size(); ++i) {
    double sum = magnitude[i];
    if (numParts == 2 && !std::isfinite(sum)) { // products of infinite parts differ by formula
      setUnknown(least[i], greatest[i]);
      continue;
    }
    const auto bits = int(std::min(parts.bits, accumulator.precision()));
    bool exact = low[i] == high[i] && sum < std::ldexp(parts.quantum, bits) &&
                 parts.quantum >= accumulator.ulp(0); // no product underflows
    // Products that underflow are off by half of the smallest number each.
    double error = exact ? 0 : parts.roundings * (accumulator.unitRoundoff() * sum + underflowOf(accumulator));
    if (!exact && !cut.empty())
      error += cut[i];
    double ofFinite = std::isfinite(sum) ? sum : finite[i];
    ends.finish(partOf(step.value, int64_t(i / numParts), unsigned(i % numParts)), low[i], high[i], sum, ofFinite,
                error, least[i], greatest[i]);
    // Products that underflow leave their sign in a contracted sum, and 0 + -0 is 0 in another.
    least[i] = least[i] == 0 ? -0.0 : least[i];
    greatest[i] = greatest[i] == 0 ? 0.0 : greatest[i];
  }
  return nullIfExact(std::move(made));
}

/// Operands of products are converted to the result's type first.
BoundsPtr asFactor(const Bounded &operand, ElementType type) {
  BoundsPtr bounds = boundsOrPoint(operand);
  ElementType from = operand.array().shape().elementType();
  if (from == type || isComplex(type) || (isFloat(from) && isFloat(type) && bitWidth(from) < bitWidth(type)))
    return bounds;
  Shape rounded = Shape::array(type, operand.array().shape().dims());
  return std::make_shared<Bounds>(
      Bounds{asBound(asValue(bounds->low, rounded)), asBound(asValue(bounds->high, rounded))});
}

/// Literals as complex numbers where the product is complex.
Literal asComplexBound(const Literal &bound) {
  if (isComplex(bound.shape().elementType()))
    return bound;
  Literal made(bound.shape().withElementType(ElementType::C128));
  for (int64_t i = 0; i < bound.numElements(); ++i)
    made.setComplex(i, bound.getDouble(i));
  return made;
}

Literal combine(const Literal &a, const Literal &b, double (*op)(double, double)) {
  Literal made(a.shape());
  auto x = a.data<double>(), y = b.data<double>();
  auto to = made.mutableData<double>();
  for (size_t i = 0; i < x.size(); ++i)
    to[i] = op(x[i], y[i]);
  return made;
}

double middleOf(double low, double high) { return low == high ? low : low + (high - low) / 2; }
double radiusOf(double low, double high) { return low == high ? 0 : (high - low) / 2 * (1 + 0x1p-50); }
double sumOf(double a, double b) { return a + b; }
double differenceOf(double a, double b) { return a - b; }
double productOf(double a, double b) { return a * b; }

/// |ab - a'b'| <= ra |b'| + |a| rb for a' within ra of a, with |b'| at most its largest magnitude.
llvm::FailureOr<Literal>
spreadOfProducts(const Literal &ra, const Literal &aMagnitude, const Literal &rb, const Literal &bMagnitude,
                 llvm::function_ref<llvm::FailureOr<Literal>(const Literal &, const Literal &)> product) {
  llvm::FailureOr<Literal> first = product(ra, bMagnitude), second = product(aMagnitude, rb);
  if (failed(first) || failed(second))
    return llvm::failure();
  return combine(*first, *second, sumOf);
}

/// Factors are off by so much of themselves at most: all the same way, which is that much of the sum, or each its own
/// way. `squares`: sums of squares of what products are off.
void limitNarrowing(double narrowing, const Literal &sums, const Literal &squares, Literal &radius) {
  constexpr double deviations = 6;
  auto sum = sums.data<double>(), square = squares.data<double>();
  auto to = radius.mutableData<double>();
  for (size_t i = 0; i < to.size(); ++i)
    if (const double likely = 2 * narrowing * std::fabs(sum[i]) + deviations * std::sqrt(square[i]); likely < to[i])
      to[i] = likely;
}

/// (|re| + |im|, the same): magnitudes of the four products of complex numbers, for either part.
Literal spreadMagnitude(const Literal &magnitude) {
  Literal made(magnitude.shape());
  auto from = magnitude.data<double>();
  auto to = made.mutableData<double>();
  for (size_t i = 0; i + 1 < from.size(); i += 2)
    to[i] = from[i] + from[i + 1]; // imaginary parts stay 0
  return made;
}

void copyRealParts(Literal &literal) {
  auto parts = literal.mutableData<double>();
  for (size_t i = 0; i + 1 < parts.size(); i += 2)
    parts[i + 1] = parts[i];
}

double productTerms(const HloInstruction &instr) {
  if (instr.opcode() == Opcode::Convolution)
    return double(instr.operand(1)->shape().numElements());
  double depth = 1;
  for (int64_t dim : instr.ints(AttributeKey::LhsContractingDims))
    depth *= double(instr.operand(0)->shape().dim(unsigned(dim)));
  return depth;
}

} // namespace

namespace {

/// Which elements of a factor are of some kind: 1 or 0.
Literal indicator(const Bounds &bounds, bool (*isOfKind)(double low, double high)) {
  Literal made(bounds.low.shape());
  auto low = bounds.low.data<double>(), high = bounds.high.data<double>();
  auto to = made.mutableData<double>();
  for (size_t i = 0; i < low.size(); ++i)
    to[i] = isOfKind(low[i], high[i]);
  return made;
}

bool isAnything(double low, double high) {
  return isUnknown(low, high) || (low != high && (std::isinf(low) || std::isinf(high)));
}
bool mayBeZero(double low, double high) { return low < high && low <= 0 && high >= 0; }
bool isInfinite(double low, double high) { return std::isinf(low) && low == high; }
bool isWhatever(double, double) { return true; }
bool isZero(double low, double high) { return low == 0 && high == 0; }
bool isNoNumber(double low, double high) {
  return !isUnknown(low, high) && !(std::isfinite(low) && std::isfinite(high));
}

/// Sums of products of which nothing is known: a term has an unknown factor, or is an infinity times what may be zero
/// and may be not. An online softmax may leave out terms whose weight is zero, whatever they are times. Above 0 there;
/// nothing if there are none.
llvm::FailureOr<std::optional<Literal>>
openProducts(const Bounds &left, const Bounds &right, bool leavesOut,
             llvm::function_ref<llvm::FailureOr<Literal>(Literal, Literal)> product) {
  using Kind = bool (*)(double, double);
  llvm::SmallVector<std::pair<Kind, Kind>> kinds = {
      {isAnything, isWhatever}, {isWhatever, isAnything}, {mayBeZero, isInfinite}, {isInfinite, mayBeZero}};
  if (leavesOut)
    kinds.append({{isZero, isNoNumber}, {isNoNumber, isZero}});
  std::optional<Literal> found;
  for (auto [ofLeft, ofRight] : kinds) {
    Literal a = indicator(left, ofLeft), b = indicator(right, ofRight);
    auto isThere = [](const Literal &x) { return llvm::is_contained(x.data<double>(), 1.0); };
    if (!isThere(a) || !isThere(b))
      continue;
    llvm::FailureOr<Literal> counts = product(std::move(a), std::move(b));
    if (failed(counts))
      return llvm::failure();
    found = found ? combine(*found, *counts, sumOf) : std::move(*counts);
  }
  return found;
}

/// At another scale an online softmax's weights are up to as large as there are numbers of them: sums are open that
/// would overflow if all terms had such a weight.
llvm::FailureOr<std::optional<Literal>>
withOverflows(std::optional<Literal> open, const Bounds &left, const Bounds &right,
              llvm::function_ref<llvm::FailureOr<Literal>(Literal, Literal)> product) {
  constexpr double most = 0x1p128, mostWeight = 0x1p12;
  for (bool weightsAreLeft : {true, false}) {
    const Bounds &terms = weightsAreLeft ? right : left, &weights = weightsAreLeft ? left : right;
    Literal sizes = finiteOnly(magnitudes(terms));
    double all = 0;
    for (double size : sizes.data<double>())
      all += size;
    if (all * mostWeight < most)
      continue;
    Literal ones = indicator(weights, isWhatever);
    llvm::FailureOr<Literal> sums =
        weightsAreLeft ? product(std::move(ones), std::move(sizes)) : product(std::move(sizes), std::move(ones));
    if (failed(sums))
      return llvm::failure();
    for (double &sum : sums->mutableData<double>())
      sum = sum * mostWeight >= most;
    open = open ? combine(*open, *sums, sumOf) : std::move(*sums);
  }
  return open;
}

/// What is unknown in a factor does not disturb other sums.
BoundsPtr withoutUnknown(const BoundsPtr &bounds) {
  if (!hasUnknown(*bounds))
    return bounds;
  auto made = std::make_shared<Bounds>(*bounds);
  auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
  for (size_t i = 0; i < low.size(); ++i)
    if (isUnknown(low[i], high[i]))
      low[i] = high[i] = 0;
  return made;
}

/// Nothing is known of sums that are open.
BoundsPtr withOpenSums(const BoundStep &step, BoundsPtr bounds, const std::optional<Literal> &open) {
  if (!open)
    return bounds;
  auto made = std::make_shared<Bounds>(bounds ? *bounds : *pointBounds(step.value));
  auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
  auto counts = open->data<double>();
  for (size_t i = 0; i < low.size(); ++i)
    if (counts[i] > 0)
      setUnknown(low[i], high[i]);
  return made;
}

/// As the instruction makes them, of other factors; a ragged-dot's groups have the sizes that they have.
llvm::FailureOr<Literal> sumsOfProducts(const BoundStep &step, const Literal &a, const Literal &b) {
  std::vector<Literal> operands = {a, b};
  for (const Bounded &sizes : step.operands.drop_front(2))
    operands.push_back(sizes.array());
  return step.evaluate(std::move(operands), true);
}

} // namespace

llvm::FailureOr<BoundsPtr> boundProducts(const BoundStep &step) {
  ElementType type = step.value.shape().elementType();
  bool complex = isComplex(type);
  const BoundsPtr wide[] = {asFactor(step.operands[0], type), asFactor(step.operands[1], type)};
  BoundsPtr left = TensorCores::asFactor(step.instr, wide[0]), right = TensorCores::asFactor(step.instr, wide[1]);
  auto product = [&](const Literal &a, const Literal &b) { return sumsOfProducts(step, a, b); };
  std::optional<Literal> open;
  if (complex && (hasUnknown(*left) || hasUnknown(*right)))
    return unknownBounds(step.value);
  const bool areBounded = step.operands[0].bounds || step.operands[1].bounds;
  const bool spread = areBounded || left != wide[0] || right != wide[1], isOnline = isOnlineSoftmax(step.instr);
  if (!complex && (spread || isOnline)) {
    llvm::FailureOr<std::optional<Literal>> found = openProducts(*left, *right, isOnline, product);
    if (succeeded(found) && isOnline)
      found = withOverflows(std::move(*found), *left, *right, product);
    if (failed(found))
      return llvm::failure();
    open = std::move(*found);
    left = withoutUnknown(left);
    right = withoutUnknown(right);
  }
  if (complex)
    for (BoundsPtr *side : {&left, &right})
      *side = std::make_shared<Bounds>(Bounds{asComplexBound((*side)->low), asComplexBound((*side)->high)});
  Literal a = spread ? combine(left->low, left->high, middleOf) : left->low;
  Literal b = spread ? combine(right->low, right->high, middleOf) : right->low;
  Literal aMagnitude = magnitudes(*left), bMagnitude = magnitudes(*right);
  if (complex) {
    aMagnitude = spreadMagnitude(aMagnitude);
    bMagnitude = spreadMagnitude(bMagnitude);
  }
  llvm::FailureOr<Literal> middle = product(a, b), magnitude = product(aMagnitude, bMagnitude);
  if (failed(middle) || failed(magnitude))
    return llvm::failure();
  llvm::FailureOr<Literal> finite = Literal();
  if (!isAllFinite(*magnitude))
    finite = product(finiteOnly(aMagnitude), finiteOnly(bMagnitude));
  if (failed(finite))
    return llvm::failure();
  LinearParts parts{*middle,
                    *middle,
                    std::move(*magnitude),
                    std::move(*finite),
                    lowestBitOf(a) * lowestBitOf(b),
                    sumRoundingsOfLarge(productTerms(step.instr)) + (complex ? 3 : 1)};
  if (TensorCores cores(step.instr, productTerms(step.instr)); !complex && cores.mayMultiply()) {
    llvm::FailureOr<Literal> cut = cores.cut(*middle, a, b, parts.magnitude, product);
    if (failed(cut))
      return llvm::failure();
    parts.cut = std::move(*cut);
    parts.bits = cores.bits();
  }
  if (complex)
    copyRealParts(parts.magnitude);
  if (spread) {
    Literal ra = combine(left->low, left->high, radiusOf), rb = combine(right->low, right->high, radiusOf);
    if (complex) {
      ra = spreadMagnitude(ra);
      rb = spreadMagnitude(rb);
    }
    llvm::FailureOr<Literal> radius = spreadOfProducts(ra, aMagnitude, rb, bMagnitude, product);
    if (failed(radius))
      return llvm::failure();
    if (complex)
      copyRealParts(*radius);
    if (!areBounded) { // of known factors that an algorithm narrows
      auto squared = [](const Literal &x) { return combine(x, x, productOf); };
      llvm::FailureOr<Literal> squares =
          spreadOfProducts(squared(ra), squared(aMagnitude), squared(rb), squared(bMagnitude), product);
      if (failed(squares))
        return llvm::failure();
      limitNarrowing(TensorCores::narrowing(step.instr), *middle, *squares, *radius);
    }
    parts.low = combine(*middle, *radius, differenceOf);
    parts.high = combine(*middle, *radius, sumOf);
  }
  return withOpenSums(step, finishLinear(step, parts), open);
}

llvm::FailureOr<BoundsPtr> boundWindowSum(const BoundStep &step) {
  BoundsPtr terms = termsOf(step.operands[0]), init = termsOf(step.operands[1]);
  if (hasUnknown(*terms))
    return unknownBounds(step.value);
  llvm::FailureOr<Literal> low = step.evaluate({terms->low, init->low}, true),
                           high = step.evaluate({terms->high, init->high}, true),
                           magnitude = step.evaluate({magnitudes(*terms), magnitudes(*init)}, true), finite = Literal();
  if (succeeded(magnitude) && !isAllFinite(*magnitude))
    finite = step.evaluate({finiteOnly(magnitudes(*terms)), finiteOnly(magnitudes(*init))}, true);
  if (failed(low) || failed(high) || failed(magnitude) || failed(finite))
    return llvm::failure();
  double size = 1;
  for (const WindowDim &dim : step.instr.windowOr(step.operands[0].array().shape().rank()).dims)
    size *= double(dim.size);
  double quantum = std::min(lowestBitOf(terms->low), lowestBitOf(init->low));
  return finishLinear(step, {std::move(*low), std::move(*high), std::move(*magnitude), std::move(*finite), quantum,
                             sumRoundings(size + 1) + termRoundings(step)});
}

bool isSumScan(const HloInstruction &instr) {
  if (instr.opcode() != Opcode::Scan || !instr.flag(AttributeKey::IsAssociative) || instr.numOperands() != 2 ||
      instr.intOr(AttributeKey::NumCarries, 0) != 1)
    return false;
  const HloInstruction &root = *instr.computation(AttributeKey::ToApply)->root();
  if (root.opcode() != Opcode::Tuple || root.numOperands() != 2 || root.operand(0) != root.operand(1))
    return false;
  const HloInstruction &sum = *root.operand(0);
  const ElementType type = sum.shape().elementType();
  return sum.opcode() == Opcode::Add && (isFloat(type) || isComplex(type)) && combinesParameters(sum, 0, 1);
}

namespace {

/// The sums that a scan along `dim` gives out: of `first` and of the slices of `terms` that it has been at.
Literal runningSums(const Literal &terms, const Literal &first, unsigned dim, bool isReverse) {
  llvm::ArrayRef<int64_t> dims = terms.shape().dims();
  Literal made(terms.shape());
  auto from = terms.data<double>(), start = first.data<double>();
  auto to = made.mutableData<double>();
  const auto length = size_t(dims[dim]);
  const size_t parts = isComplex(terms.shape().elementType()) ? 2 : 1;
  const size_t inner = size_t(product(dims.drop_front(dim + 1))) * parts;
  const auto outer = size_t(product(dims.take_front(dim)));
  for (size_t i = 0; i < outer; ++i)
    for (size_t t = 0; t < length; ++t) {
      const size_t row = (i * length + (isReverse ? length - 1 - t : t)) * inner;
      const size_t before = isReverse ? row + inner : row - inner;
      for (size_t k = 0; k < inner; ++k)
        to[row + k] = (t == 0 ? start[i * inner + k] : to[before + k]) + from[row + k];
    }
  return made;
}

} // namespace

BoundsPtr boundScanSum(const BoundStep &step) {
  BoundsPtr terms = termsOf(step.operands[0]), init = termsOf(step.operands[1]);
  if (hasUnknown(*terms) || hasUnknown(*init))
    return unknownBounds(step.value);
  const auto dim = unsigned(step.instr.ints(AttributeKey::Dimensions)[0]);
  auto sums = [&](const Literal &each, const Literal &first) {
    return runningSums(each, first, dim, step.instr.flag(AttributeKey::IsReverse));
  };
  Literal magnitude = sums(magnitudes(*terms), magnitudes(*init)), finite;
  if (!isAllFinite(magnitude))
    finite = sums(finiteOnly(magnitudes(*terms)), finiteOnly(magnitudes(*init)));
  const auto count = double(step.value.shape().dim(dim) + 1);
  return finishLinear(step, {sums(terms->low, init->low), sums(terms->high, init->high), std::move(magnitude),
                             std::move(finite), std::min(lowestBitOf(terms->low), lowestBitOf(init->low)),
                             sumRoundings(count) + termRoundings(step)});
}

llvm::FailureOr<BoundsPtr> boundWindowProduct(const BoundStep &step, const BoundsPtr &ends) {
  BoundsPtr factors = boundsOrPoint(step.operands[0]), init = boundsOrPoint(step.operands[1]);
  // Exponents of the products of all large factors and of all small ones. (Zeros, infinities and NaN decide alone.)
  auto sizes = [](const Bounds &bounds, bool large) {
    Literal made(bounds.low.shape());
    auto low = bounds.low.data<double>(), high = bounds.high.data<double>();
    auto to = made.mutableData<double>();
    for (size_t i = 0; i < to.size(); ++i) {
      const double far = std::max(std::fabs(low[i]), std::fabs(high[i])),
                   near = std::min(std::fabs(low[i]), std::fabs(high[i])), size = large ? far : near;
      to[i] = !(std::isfinite(size) && size > 0) ? 1 : large ? std::max(1.0, size) : std::min(1.0, size);
    }
    return made;
  };
  llvm::FailureOr<Literal> grown = step.evaluate({sizes(*factors, true), sizes(*init, true)}, true),
                           shrunk = step.evaluate({sizes(*factors, false), sizes(*init, false)}, true);
  if (failed(grown) || failed(shrunk))
    return llvm::failure();
  FloatGrid grid(step.value.shape().elementType());
  auto made = std::make_shared<Bounds>(ends ? *ends : *pointBounds(step.value));
  auto least = made->low.mutableData<double>(), greatest = made->high.mutableData<double>();
  for (size_t i = 0; i < least.size(); ++i) {
    const double most = grown->data<double>()[i], fewest = shrunk->data<double>()[i];
    const bool mayOverflow = !(most <= grid.largestNumber()) && fewest < 1;
    const bool mayVanish = fewest < grid.smallestNormalNumber() && most > 1;
    if ((mayOverflow || mayVanish) && !std::isnan(least[i]))
      setUnknown(least[i], greatest[i]);
  }
  return nullIfExact(std::move(made));
}

/// How many updates one element may get. (Index vectors may be empty, which puts all windows at the start.)
static double mostUpdates(const HloInstruction &scatter) {
  const Shape &indices = scatter.operand(1)->shape();
  const int64_t vectorDim = scatter.intOr(AttributeKey::IndexVectorDim, indices.rank());
  double count = 1;
  for (unsigned i = 0; i < indices.rank(); ++i)
    if (i != vectorDim)
      count *= double(indices.dim(i));
  return count;
}

llvm::FailureOr<BoundsPtr> boundScatterSum(const BoundStep &step) {
  ElementType type = step.value.shape().elementType();
  BoundsPtr into = boundsOrPoint(step.operands[0]), updates = boundsOrPoint(step.operands[2]);
  if (hasUnknown(*into) || hasUnknown(*updates))
    return unknownBounds(step.value);
  const Literal &indices = step.operands[1].array();
  // The op adds in the reducer's own type, as memory does; numbers of it are exact as such.
  auto scatter = [&](const Literal &a, const Literal &b) -> llvm::FailureOr<Literal> {
    llvm::FailureOr<Literal> sums = step.evaluate(
        {asValue(a, step.operands[0].array().shape()), indices, asValue(b, step.operands[2].array().shape())}, false);
    if (failed(sums))
      return llvm::failure();
    return asBound(*sums);
  };
  llvm::FailureOr<Literal> low = scatter(into->low, updates->low), high = scatter(into->high, updates->high);
  if (failed(low) || failed(high))
    return llvm::failure();
  // In the type itself a sum of magnitudes soon stands still.
  Literal magnitude = scatterNumbers(step.instr, magnitudes(*into), indices, magnitudes(*updates), std::plus<double>());
  Literal finite = scatterNumbers(step.instr, finiteOnly(magnitudes(*into)), indices, finiteOnly(magnitudes(*updates)),
                                  std::plus<double>());
  FloatGrid grid(type);
  auto least = low->mutableData<double>(), greatest = high->mutableData<double>(),
       sum = magnitude.mutableData<double>();
  double quantum = std::min(lowestBitOf(into->low), lowestBitOf(updates->low));
  // Products that are added may not have been rounded before.
  const bool ofProducts = bool(step.operands[2].unrounded);
  const double count = mostUpdates(step.instr);
  double roundings = sumRoundings(1 + count) + (ofProducts ? 1 : 0);
  double underflow = ofProducts ? count * underflowOf(grid) : 0;
  auto made = std::make_shared<Bounds>(Bounds{Literal(low->shape()), Literal(low->shape())});
  for (size_t i = 0; i < least.size(); ++i) {
    bool exact = !ofProducts && least[i] == greatest[i] && sum[i] < std::ldexp(quantum, int(grid.precision()));
    // Elements that nothing was added to are moved, not computed.
    bool untouched = sum[i] == std::fabs(into->low.data<double>()[i]) && into->low.data<double>()[i] == least[i];
    double error = exact || untouched ? 0 : roundings * grid.unitRoundoff() * sum[i] + underflow;
    SumEnds{grid, grid}.finish(step.value.getDouble(int64_t(i)), least[i], greatest[i], sum[i],
                               finite.data<double>()[i], error, made->low.mutableData<double>()[i],
                               made->high.mutableData<double>()[i]);
  }
  return nullIfExact(std::move(made));
}

} // namespace hloc::interp
