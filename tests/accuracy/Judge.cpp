#include "Judge.h"

#include <bit>
#include <cmath>

namespace hloc::accuracy {

using Kind = Verdict::Kind;

static constexpr double oddTie = 0x1p-20; ///< what rounding half a unit to the odd number counts more

Judge::Judge(ElementType type) : format(floatFormat(type)) {
  largest = largestFinite(format);
  smallestExponent = 1 - format.bias;
  if (format.specials == FloatFormat::Specials::PowerOfTwo)
    smallestExponent = -format.bias;
  largestExponent = std::ilogb(largest);
  double step = std::ldexp(1.0, largestExponent - format.mantissaBits);
  // 2^1024 is no double; twice the step less is still beyond every result.
  beyond = format.specials == FloatFormat::Specials::None ? largest : largest + step;
  if (format.bits == 64)
    beyond = std::numeric_limits<double>::infinity();
  for (uint64_t pattern = 0; format.bits <= 16 && pattern < 1u << format.bits; ++pattern)
    values.push_back(decodeFloat(format, pattern));
}

double Judge::slowDecode(uint64_t pattern) const {
  return format.bits == 32 ? double(std::bit_cast<float>(uint32_t(pattern))) : decodeFloat(format, pattern);
}

static int64_t exponentOf(double x) { return std::ilogb(x); }
static int64_t exponentOf(const Real &x) { return x.exponent(); }
static bool isZero(double x) { return x == 0; }
static bool isZero(const Real &x) { return x.isZero(); }
static bool isNegative(double x) { return std::signbit(x); }
static bool isNegative(const Real &x) { return x.isNegative(); }
static double scaled(double x, int64_t exponent) { return std::ldexp(x, int(exponent)); }
static double toDouble(double x) { return x; }
static double toDouble(const Real &x) { return x.toDouble(); }
/// 2^1024 for infinity in types of 64 bits.
static void makeBeyond(double &x, double beyond) { x = beyond; }
static void makeBeyond(Real &x, double beyond) { x = std::isinf(beyond) ? scaled(Real(1.0), 1024) : Real(beyond); }

/// Of two results that are half a unit away only one is correctly rounded.
bool Judge::isRoundedToEven(double exact, double actual) const {
  double nearest = decode(encodeFloat(format, exact));
  return nearest == actual || (std::isnan(nearest) && std::isnan(actual));
}

template <typename T> Verdict Judge::judgeReal(const T &exact, uint64_t pattern) const {
  double actual = decode(pattern);
  bool saturates = format.specials == FloatFormat::Specials::None;
  bool onlyPositive = format.specials == FloatFormat::Specials::PowerOfTwo;
  bool isBad = std::isnan(actual);
  if (isNan(exact) || (onlyPositive && !(T(0.0) < exact))) // types without NaN have 0 for it
    return {Kind::Special, isBad || (saturates && actual == 0) ? 0.0 : 1.0};
  T top;
  makeBeyond(top, beyond);
  T value = top < exact ? top : exact < -top ? -top : exact;
  double smallest = std::ldexp(1.0, smallestExponent);
  if (onlyPositive && value < T(2 * smallest)) {
    if (value < T(0x1p-148)) // on the way through f32 it may have become zero
      return {};
    value = T(T(smallest) < value ? 2 * smallest : smallest); // by definition up
  }
  T found(actual);
  if (isBad) { // what is too large is NaN in types without infinity
    if (format.hasInfinity() || saturates)
      return {Kind::Special, 1};
    found = isNegative(exact) ? -top : top;
  } else if (std::isinf(actual)) {
    found = actual < 0 ? -top : top;
  }
  if (isZero(value)) {
    bool hasSignedZero = format.specials != FloatFormat::Specials::NanNegativeZero && !onlyPositive;
    if (actual == 0)
      return {Kind::ZeroSign, hasSignedZero && isNegative(value) != std::signbit(actual) ? 1.0 : 0.0};
    return {Kind::Subnormal, std::fabs(std::ldexp(actual, format.mantissaBits - smallestExponent))};
  }
  int64_t exponent = std::min<int64_t>(exponentOf(value), largestExponent);
  bool isSubnormal = exponent < smallestExponent;
  exponent = std::max<int64_t>(exponent, smallestExponent);
  T difference = found - value;
  T distance = fabs(scaled(difference, format.mantissaBits - exponent));
  double ulps = toDouble(distance);
  bool isTie = !(distance < T(0.5)) && !(T(0.5) < distance); // as a double it would often be one
  if (isTie && !isRoundedToEven(toDouble(value), actual))
    ulps += oddTie;
  return {isSubnormal ? Kind::Subnormal : Kind::Normal, ulps};
}

Verdict Judge::judge(double exact, uint64_t pattern) const { return judgeReal(exact, pattern); }
Verdict Judge::judge(const Real &exact, uint64_t pattern) const { return judgeReal(exact, pattern); }

Verdict Judge::judge(const ComplexReal &exact, uint64_t re, uint64_t im) const {
  double actual[] = {decode(re), decode(im)};
  const Real *parts[] = {&exact.re, &exact.im};
  bool isOpen = exact.re.isNan() || exact.im.isNan() || exact.re.isInfinite() || exact.im.isInfinite();
  if (isOpen) {
    bool isFinite = std::isfinite(actual[0]) && std::isfinite(actual[1]);
    return {Kind::Special, isFinite ? 1.0 : 0.0};
  }
  Real top;
  makeBeyond(top, beyond);
  Real larger = compare(fabs(exact.re), fabs(exact.im)) < 0 ? fabs(exact.im) : fabs(exact.re);
  int64_t exponent = larger.isZero() ? smallestExponent : larger.exponent();
  bool isSubnormal = exponent < smallestExponent;
  // Of a number beyond the range, units of what it would be: the smaller part may be within.
  exponent = std::max<int64_t>(exponent, smallestExponent);
  if (compare(larger, top) <= 0)
    exponent = std::min<int64_t>(exponent, largestExponent);
  double worst = 0;
  for (unsigned i = 0; i < 2; ++i) {
    if (std::isnan(actual[i]))
      return {Kind::Special, 1};
    Real value = *parts[i], found(actual[i]);
    if (std::isinf(actual[i])) {
      value = top < value ? top : value < -top ? -top : value;
      found = actual[i] < 0 ? -top : top;
    }
    worst = std::max(worst, std::fabs(scaled(found - value, format.mantissaBits - exponent).toDouble()));
  }
  return {isSubnormal ? Kind::Subnormal : Kind::Normal, worst};
}

} // namespace hloc::accuracy
