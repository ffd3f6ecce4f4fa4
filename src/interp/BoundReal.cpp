// Elementwise ops on real floats: the op is evaluated in f64 at the corners of its operands' bounds, widened by its
// budget, and rounded to its type.
//
//   bf16 y = exp(x), x in [1, 1.0078125]: exp at both ends is 2.71828 and 2.73960; a budget of 0.6 ULP (0.0156) widens
//   that to [2.7089, 2.7490], in which the bf16 numbers 2.71875, 2.734375 are the admissible results.

#include "interp/Accuracy.h"
#include "interp/BoundElementwise.h"
#include "interp/FloatGrid.h"
#include "interp/LaneOp.h"

#include "hloc/hlo/OpcodeTable.h"

#include <bit>
#include <cstring>
#include <numbers>

namespace hloc::interp {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Delivers real elements, or bounds of them, as runs of f64. Scalars are repeated.
class RealReader {
public:
  explicit RealReader(const Literal &literal)
      : elements(literal.bytes().data()), type(literal.shape().elementType()), load(loadFunction(type)),
        repeat(literal.numElements() == 1) {
    if (!repeat)
      return;
    const double one = *convert(0, 1);
    for (double &lane : lanes)
      lane = one;
  }
  const double *read(int64_t start, int64_t count) {
    if (repeat)
      return lanes;
    if (type == ElementType::F64)
      return reinterpret_cast<const double *>(elements) + start;
    return convert(start, count);
  }

private:
  const double *convert(int64_t start, int64_t count) {
    const uint8_t *from = elements + start * hostBytes(type);
    if (type == ElementType::F64) {
      std::memcpy(lanes, from, size_t(count) * sizeof(double));
      return lanes;
    }
    if (type != ElementType::F32) {
      load(from, loaded.bytes, count);
      from = reinterpret_cast<const uint8_t *>(loaded.bytes);
    }
    auto *singles = reinterpret_cast<const float *>(from);
    for (int64_t i = 0; i < count; ++i)
      lanes[i] = singles[i];
    return lanes;
  }

  const uint8_t *elements;
  ElementType type;
  Load load;
  bool repeat;
  double lanes[maxLanes];
  LaneBuffer loaded;
};

/// Bounds of one operand: where both are one array, it is read once.
struct OperandReader {
  RealReader low;
  std::optional<RealReader> high;
  explicit OperandReader(const Bounds *bounds, const Literal &value) : low(bounds ? bounds->low : value) {
    if (bounds)
      high.emplace(bounds->high);
  }
};

Kernel realKernel(const HloInstruction &instr) {
  const Opcode opcode = instr.opcode();
  if (opcode == Opcode::Convert) // between floats: the value itself
    return nullptr;
  if (opcode == Opcode::Clamp)
    return clampKernel(ComputeType::Double);
  return family(opcode) == OpcodeFamily::Unary ? unaryKernel(opcode, ComputeType::Double)
                                               : binaryKernel(opcode, ComputeType::Double);
}

bool holdsZero(double low, double high) { return low <= 0 && high >= 0; }

/// Is a quotient of numbers that are not known too large to tell in which multiple of the divisor they lie?
bool isBeyondWholeNumbers(const double (&low)[3], const double (&high)[3]) {
  constexpr double consecutive = 0x1p52; // up to here there are also numbers between the whole ones
  bool isKnown = low[0] == high[0] && low[1] == high[1];
  double divisor = std::min(std::fabs(low[1]), std::fabs(high[1]));
  return !isKnown && std::isfinite(low[0]) && std::isfinite(high[0]) && divisor > 0 &&
         std::max(std::fabs(low[0]), std::fabs(high[0])) / divisor >= consecutive;
}

/// What an op is between the ends of its operands' bounds: makes the least and the greatest of its values at the
/// corners those of all values.
using Inside = void (*)(const double (&low)[3], const double (&high)[3], double &least, double &greatest);

/// The column `reals` of ElementwiseRules.def.
namespace inside {

/// In each operand: the corners have the extremes.
void monotone(const double (&)[3], const double (&)[3], double &, double &) {}

void zeroAtZero(const double (&low)[3], const double (&high)[3], double &least, double &) {
  if (holdsZero(low[0], high[0]))
    least = 0;
}
void oneAtZero(const double (&low)[3], const double (&high)[3], double &least, double &) {
  if (holdsZero(low[0], high[0]))
    least = 1;
}

/// No steeper than 1, and from -1 to 1.
void wave(const double (&low)[3], const double (&high)[3], double &least, double &greatest) {
  double width = high[0] - low[0];
  least = std::max(-1.0, least - width / 2);
  greatest = std::min(1.0, greatest + width / 2);
}

/// Numbers in between, NaN at the ends.
void betweenPoles(const double (&low)[3], const double (&high)[3], double &least, double &greatest) {
  if (low[0] < -1 && high[0] > 1)
    setUnknown(least, greatest);
}

/// A pole in between.
void tangent(const double (&low)[3], const double (&high)[3], double &least, double &greatest) {
  if (high[0] - low[0] >= std::numbers::pi || std::tan(low[0]) > std::tan(high[0]))
    setUnknown(least, greatest);
}

/// Zero in between, times infinity.
void product(const double (&low)[3], const double (&high)[3], double &least, double &greatest) {
  for (unsigned i : {0U, 1U})
    if (low[i] != high[i] && holdsZero(low[i], high[i]) && (std::isinf(low[1 - i]) || std::isinf(high[1 - i])))
      setUnknown(least, greatest);
}

void quotient(const double (&low)[3], const double (&high)[3], double &least, double &greatest) {
  if (low[1] != high[1] && holdsZero(low[1], high[1]))
    setUnknown(least, greatest);
}

void remainder(const double (&low)[3], const double (&high)[3], double &least, double &greatest) {
  double limit = std::max(std::fabs(low[1]), std::fabs(high[1]));
  if (low[1] != high[1] && holdsZero(low[1], high[1])) {
    setUnknown(least, greatest);
  } else if (isBeyondWholeNumbers(low, high) || std::trunc(low[0] / low[1]) != std::trunc(high[0] / high[1]) ||
             std::trunc(low[0] / high[1]) != std::trunc(high[0] / low[1])) {
    least = low[0] < 0 ? -limit : 0;
    greatest = high[0] > 0 ? limit : 0;
  }
}

/// Anything, a NaN as well, to the power of 0 is 1, and so is 1 to the power of anything. What is negative has powers
/// of whole numbers only.
void power(const double (&low)[3], const double (&high)[3], double &least, double &greatest) {
  if ((std::isnan(low[0]) && low[1] != high[1] && holdsZero(low[1], high[1])) ||
      (std::isnan(low[1]) && low[0] < 1 && high[0] > 1) ||
      (low[0] < 0 && low[1] != high[1] && std::floor(high[1]) >= low[1]))
    setUnknown(least, greatest);
  if (low[0] < 0 && !(std::isnan(least) && std::isnan(greatest)) && (low[1] != high[1] || holdsZero(low[0], high[0])))
    setUnknown(least, greatest);
}

void angle(const double (&low)[3], const double (&high)[3], double &least, double &greatest) {
  if (low[1] < 0 && low[0] != high[0] && holdsZero(low[0], high[0])) {
    least = -std::numbers::pi;
    greatest = std::numbers::pi;
  }
}

/// Of ops without bounds of floats, or whose bounds boundElementwise makes otherwise.
constexpr Inside elsewhere = nullptr;

} // namespace inside

Inside insideOf(Opcode opcode) {
  static constexpr OpcodeTable<Inside> table(isElementwise, {
#define HLOC_ELEMENTWISE_RULE(name, integers, reals, products, ties, nan) {{Opcode::name}, inside::reals},
#include "interp/ElementwiseRules.def"
                                                            });
  HLOC_CHECK(table[opcode], "an op on floats whose bounds are not made of its corners");
  return table[opcode];
}

/// One op over arrays of real numbers.
class RealBounds {
public:
  explicit RealBounds(const BoundStep &step)
      : step(step), opcode(step.instr.opcode()), grid(step.value.shape().elementType()), kernel(realKernel(step.instr)),
        inside(insideOf(opcode)), allowed(permitted(step.instr, step.backend)) {
    bool sums = opcode == Opcode::Add || opcode == Opcode::Subtract, takesProducts = adds(step.instr);
    for (const Bounded &operand : step.operands) {
      bounds.push_back(takesProducts && operand.unrounded ? operand.unrounded.get() : operand.bounds.get());
      contracts |= sums && operand.unrounded;
    }
  }

  BoundsPtr run(BoundsPtr &unrounded) {
    result = newBounds();
    if (opcode == Opcode::Multiply && step.keepUnrounded)
      product = newBounds();
    inParallel(step.value.numElements(), maxLanes, [&](int64_t begin, int64_t end) { runRange(begin, end); });
    if (product)
      unrounded = nullIfExact(std::move(product));
    return nullIfExact(std::move(result));
  }

private:
  std::shared_ptr<Bounds> newBounds() const {
    Shape shape = boundsShape(step.value.shape());
    return std::make_shared<Bounds>(Bounds{Literal(shape), Literal(shape)});
  }

  void runRange(int64_t begin, int64_t end) {
    auto readers = std::make_unique<std::vector<OperandReader>>();
    readers->reserve(bounds.size());
    for (size_t i = 0; i < bounds.size(); ++i)
      readers->emplace_back(bounds[i], step.operands[i].array());
    auto reference = std::make_unique<RealReader>(step.value);
    for (int64_t start = begin; start < end; start += maxLanes) {
      int64_t count = std::min(maxLanes, end - start);
      const double *low[3] = {}, *high[3] = {};
      for (size_t i = 0; i < bounds.size(); ++i) {
        low[i] = (*readers)[i].low.read(start, count);
        high[i] = (*readers)[i].high ? (*readers)[i].high->read(start, count) : low[i];
      }
      evaluateCorners(low, high, count);
      finish(low, high, reference->read(start, count), start, count);
    }
  }

  void evaluateCorners(const double *const (&low)[3], const double *const (&high)[3], int64_t count) {
    thread_local double computed[maxLanes];
    Lanes lanes;
    lanes.count = count;
    lanes.result = computed;
    lanes.bits = 64;
    unsigned spread = 0; // operands with two ends
    for (size_t i = 0; i < bounds.size(); ++i)
      spread |= unsigned(low[i] != high[i]) << i;
    numCorners = 0;
    for (unsigned corner = 0; corner < 8; ++corner) {
      if (corner & ~spread || (squares && corner != 0 && corner != spread))
        continue;
      for (size_t i = 0; i < bounds.size(); ++i)
        lanes.operands[i] = corner >> i & 1 ? high[i] : low[i];
      const double *values = computed;
      if (kernel)
        kernel(lanes);
      else
        values = static_cast<const double *>(lanes.operands[0]);
      for (int64_t i = 0; i < count; ++i) {
        double y = values[i];
        if (numCorners == 0) {
          least[i] = greatest[i] = y;
          numNan[i] = y != y;
        } else {
          // Of zeros, the negative one is the lesser.
          bool negative = std::signbit(y);
          least[i] = y < least[i] || (y == least[i] && negative) ? y : least[i];
          greatest[i] = y > greatest[i] || (y == greatest[i] && !negative) ? y : greatest[i];
          numNan[i] = uint8_t(numNan[i] + (y != y));
        }
      }
      ++numCorners;
    }
  }

  void finish(const double *const (&low)[3], const double *const (&high)[3], const double *reference, int64_t start,
              int64_t count) {
    auto lowest = result->low.mutableData<double>(), highest = result->high.mutableData<double>();
    for (int64_t i = 0; i < count; ++i) {
      double from[3] = {}, to[3] = {};
      bool unknown = numNan[i] != 0 && numNan[i] != numCorners, isSpread = false;
      for (size_t k = 0; k < bounds.size(); ++k) {
        from[k] = low[k][i];
        to[k] = high[k][i];
        unknown |= isUnknown(from[k], to[k]);
        isSpread |= from[k] != to[k] && !std::isnan(from[k]);
      }
      double a = least[i], b = greatest[i];
      if (isSpread && !unknown && squares)
        a = holdsZero(from[0], to[0]) ? 0 : a;
      else if (isSpread && !unknown)
        inside(from, to, a, b);
      if (unknown)
        setUnknown(a, b);
      auto at = size_t(start + i);
      double rawLow = a, rawHigh = b;
      if (contracts && !unknown && grid.type() != ElementType::F64) {
        double sign = opcode == Opcode::Subtract ? -1 : 1;
        a = sumTowardExact(a, from[0], sign * (sign < 0 ? to[1] : from[1]));
        b = sumTowardExact(b, to[0], sign * (sign < 0 ? from[1] : to[1]));
      }
      // Of hloc 1; what of others is close to it also makes up for narrow floats that they leave unrounded.
      const bool isPowerOfZero =
          opcode == Opcode::Exponential && from[0] == 0 && to[0] == 0 && step.backend == Backend::Hloc;
      if (!std::isnan(a) && !std::isnan(b) && !isPowerOfZero)
        round(a, b);
      admitReference(reference[i], a, b);
      if (eitherZero && a == 0 && b == 0) {
        a = -0.0;
        b = 0.0;
      }
      if (contracts) { // what cancels to zero when rounded has a sign when it is not
        a = a == 0 ? -0.0 : a;
        b = b == 0 ? 0.0 : b;
      }
      lowest[at] = a;
      highest[at] = b;
      if (product)
        keepProduct(at, rawLow, rawHigh, a, b, from, to);
    }
  }

  /// A product that was not rounded has more bits than the type: with something tiny added, a sum in f64 may be a tie
  /// of a narrower type where the exact one lies beside it. Of the two numbers of f64 around the exact sum, the odd one
  /// is no tie of any narrower type, and rounds as the sum does ("round to odd"). A sum that is f64 itself is rounded
  /// already. `sum` is x + y, or another end that is left as it is.
  static double sumTowardExact(double sum, double x, double y) {
    if (sum != x + y || !std::isfinite(sum))
      return sum;
    double rest = sum - x, error = (x - (sum - rest)) + (y - rest);
    bool isOdd = (std::bit_cast<uint64_t>(sum) & 1) != 0;
    return error == 0 || isOdd ? sum : std::nextafter(sum, error < 0 ? -infinity : infinity);
  }

  /// From exact values to admissible results.
  void round(double &a, double &b) const {
    if (allowed.ulps == 0)
      return;
    if (step.orderRoundings > 0 &&
        (opcode == Opcode::Add || opcode == Opcode::Subtract || opcode == Opcode::Multiply)) {
      bool exact = a == b && grid.type() != ElementType::F64 && grid.nearest(a) == a; // f64 is rounded already
      double error = exact ? 0 : step.orderRoundings * grid.unitRoundoff() * std::max(std::fabs(a), std::fabs(b));
      a -= error;
      b += error;
    }
    double first = grid.nearest(a), last = a == b && a != 0 ? first : grid.nearest(b); // zeros have signs
    if (allowed.ulps <= 0.5) {
      // Narrow floats may be computed in f32 and rounded again.
      if (bitWidth(grid.type()) < 32) {
        first = std::min(first, grid.nearest(double(float(a))));
        last = std::max(last, grid.nearest(double(float(b))));
      }
    } else {
      if (std::isfinite(a) && (a != 0 || allowed.leastUnit > 0))
        first = std::min(first, grid.above(leastOf(a, b)));
      if (std::isfinite(b) && (b != 0 || allowed.leastUnit > 0))
        last = std::max(last, grid.below(greatestOf(a, b)));
    }
    if (std::isnan(first) != std::isnan(last))
      setUnknown(first, last);
    a = first;
    b = last;
  }

  /// How far a result may be from the exact value. What underflows becomes zero or the smallest number, no more: its
  /// error is not counted in units that are larger than itself.
  double error(double exact) const {
    // exp(x) = 2^(x log2 e) by the GPU's own power of two: CUDA grants __expf 2 + 1.173 |x| units.
    const bool isFastPower = step.backend == Backend::Other && opcode == Opcode::Exponential &&
                             grid.type() == ElementType::F32 && exact > 0 && std::isfinite(exact);
    const double ofPower = isFastPower ? 2 + 1.173 * std::fabs(std::log(exact)) : 0;
    const double ulps = std::max(allowed.ulps, ofPower);
    if (allowed.leastUnit > grid.ulp(exact))
      return ulps * allowed.leastUnit;
    bool subnormal = std::fabs(exact) < grid.smallestNormalNumber();
    double unit = subnormal ? std::min(grid.ulp(0), std::fabs(exact)) : grid.ulp(exact);
    return subnormal ? std::min(allowed.subnormalUlps * unit, std::max(std::fabs(exact), ulps * unit)) : ulps * unit;
  }

  /// The least and the greatest results of exact values from a to b. Errors are counted in units, which double at
  /// powers of two: results of 1 may be less than those of the number before it.
  double leastOf(double a, double b) const {
    const double least = a - error(a), power = a > 0 && a < b ? powerFrom(a) : infinity;
    return power <= b ? std::min(least, power - error(power)) : least;
  }
  double greatestOf(double a, double b) const {
    const double greatest = b + error(b), power = b < 0 && a < b ? -powerFrom(-b) : -infinity;
    return power >= a ? std::max(greatest, power + error(power)) : greatest;
  }

  /// The smallest power of two that is at least x and has units of its own.
  double powerFrom(double x) const {
    const auto bits = std::bit_cast<uint64_t>(std::max(x, grid.smallestNormalNumber()));
    const auto mantissa = (uint64_t(1) << 52) - 1;
    return std::bit_cast<double>((bits + mantissa) & ~mantissa);
  }

  /// What the reference gives is admissible: its functions are a rounding off now and then.
  static void admitReference(double reference, double &a, double &b) {
    if (isUnknown(a, b))
      return;
    if (std::isnan(reference) != std::isnan(a)) {
      setUnknown(a, b);
      return;
    }
    if (reference < a || (reference == 0 && a == 0 && std::signbit(reference)))
      a = reference;
    if (reference > b || (reference == 0 && b == 0 && !std::signbit(reference)))
      b = reference;
  }

  void keepProduct(size_t at, double rawLow, double rawHigh, double a, double b, const double (&from)[3],
                   const double (&to)[3]) {
    constexpr double errorsAreNumbers = 0x1p-969; // the error of a lesser product may be less than any number
    bool exactInF64 = grid.type() != ElementType::F64 || from[0] == 0 || from[1] == 0 ||
                      (from[0] == to[0] && from[1] == to[1] && std::fabs(rawLow) >= errorsAreNumbers &&
                       std::fma(from[0], from[1], -rawLow) == 0);
    if (!exactInF64) {
      rawLow = std::nextafter(rawLow, -infinity);
      rawHigh = std::nextafter(rawHigh, infinity);
    }
    if (squares)
      rawLow = std::max(rawLow, 0.0);
    bool isFinite = std::isfinite(rawLow) && std::isfinite(rawHigh) && !isUnknown(a, b);
    product->low.mutableData<double>()[at] = isFinite ? std::min(a, rawLow) : a;
    product->high.mutableData<double>()[at] = isFinite ? std::max(b, rawHigh) : b;
  }

  const BoundStep &step;
  Opcode opcode;
  FloatGrid grid;
  Kernel kernel;
  Inside inside;
  Permitted allowed;
  /// Which zero a maximum or minimum of zeros is: hloc has a rule (SEMANTICS.md), others need not.
  bool eitherZero = step.backend == Backend::Other &&
                    (opcode == Opcode::Maximum || opcode == Opcode::Minimum || opcode == Opcode::Clamp);
  llvm::SmallVector<const Bounds *, 3> bounds;
  /// Its two factors are the same number, whichever it is.
  bool squares = opcode == Opcode::Multiply && step.instr.operand(0) == step.instr.operand(1);
  bool contracts = false; ///< a sum with a product that was not rounded
  std::shared_ptr<Bounds> result, product;
  // Of the run of lanes at hand, in each thread.
  static thread_local double least[maxLanes], greatest[maxLanes];
  static thread_local uint8_t numNan[maxLanes];
  static thread_local unsigned numCorners;
};

thread_local double RealBounds::least[maxLanes], RealBounds::greatest[maxLanes];
thread_local uint8_t RealBounds::numNan[maxLanes];
thread_local unsigned RealBounds::numCorners;

/// Can the comparison come out true, can it come out false?
void compareIntervals(ComparisonDirection direction, double a, double b, double c, double d, bool &canHold,
                      bool &canFail) {
  switch (direction) {
  case ComparisonDirection::Eq:
    canHold = a <= d && c <= b;
    canFail = !(a == b && c == d && a == c);
    return;
  case ComparisonDirection::Ne:
    canFail = a <= d && c <= b;
    canHold = !(a == b && c == d && a == c);
    return;
  case ComparisonDirection::Lt:
    canHold = a < d;
    canFail = b >= c;
    return;
  case ComparisonDirection::Le:
    canHold = a <= d;
    canFail = b > c;
    return;
  case ComparisonDirection::Gt:
    canHold = b > c;
    canFail = a <= d;
    return;
  case ComparisonDirection::Ge:
    canHold = b >= c;
    canFail = a < d;
    return;
  }
}

} // namespace

BoundsPtr boundReal(const BoundStep &step, BoundsPtr &unrounded) { return RealBounds(step).run(unrounded); }

BoundsPtr boundRealCompare(const BoundStep &step, std::optional<ComparisonDirection> given) {
  bool isFinite = step.instr.opcode() == Opcode::IsFinite;
  auto direction = given.value_or(step.instr.enumOr(AttributeKey::Direction, ComparisonDirection::Eq));
  auto made = std::make_shared<Bounds>(Bounds{step.value, step.value});
  auto lowest = made->low.mutableData<uint8_t>(), highest = made->high.mutableData<uint8_t>();
  std::vector<OperandReader> readers;
  readers.reserve(2);
  for (const Bounded &operand : step.operands)
    readers.emplace_back(operand.bounds.get(), operand.array());
  for (int64_t start = 0, total = step.value.numElements(); start < total; start += maxLanes) {
    int64_t count = std::min(maxLanes, total - start);
    const double *low[2] = {}, *high[2] = {};
    for (size_t i = 0; i < readers.size(); ++i) {
      low[i] = readers[i].low.read(start, count);
      high[i] = readers[i].high ? readers[i].high->read(start, count) : low[i];
    }
    for (int64_t i = 0; i < count; ++i) {
      double a = low[0][i], b = high[0][i], c = isFinite ? 0 : low[1][i], d = isFinite ? 0 : high[1][i];
      bool spread = (a != b && !(std::isnan(a) && std::isnan(b))) || (c != d && !(std::isnan(c) && std::isnan(d)));
      if (!spread)
        continue; // the reference's value
      bool canHold = true, canFail = true;
      if (isFinite && !isUnknown(a, b)) {
        canHold = std::isfinite(a) || std::isfinite(b);
        canFail = !std::isfinite(a) || !std::isfinite(b);
      } else if (!isFinite && !isUnknown(a, b) && !isUnknown(c, d) && !std::isnan(a) && !std::isnan(c)) {
        compareIntervals(direction, a, b, c, d, canHold, canFail);
      } else if (!isUnknown(a, b) && !isUnknown(c, d)) {
        continue; // one is NaN whatever the other
      }
      lowest[size_t(start + i)] = !canFail;
      highest[size_t(start + i)] = canHold;
    }
  }
  return nullIfExact(std::move(made));
}

} // namespace hloc::interp
