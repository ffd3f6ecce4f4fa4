#pragma once
// FloatGrid: the numbers of a float type as a grid in f64: rounding to it in every direction, and how far its
// neighbours are apart.

#include "hloc/hlo/ElementType.h"

#include <bit>
#include <cmath>
#include <limits>

namespace hloc::interp {

class FloatGrid {
public:
  explicit FloatGrid(ElementType type)
      : elementType(type), format(floatFormat(type)), largest(largestFinite(format)), smallestExponent(1 - format.bias),
        smallestNormal(std::ldexp(1.0, smallestExponent)),
        quantum(std::ldexp(1.0, smallestExponent - format.mantissaBits)),
        regular(format.specials != FloatFormat::Specials::PowerOfTwo) {}

  ElementType type() const { return elementType; }
  double largestNumber() const { return largest; }
  double smallestNormalNumber() const { return smallestNormal; }
  /// Half the distance of 1 to its upper neighbour: the largest relative error of a rounding.
  double unitRoundoff() const { return std::ldexp(1.0, -1 - int(format.mantissaBits)); }
  unsigned precision() const { return format.mantissaBits + 1u; }

  /// To nearest even, with the type's rules for what is too large.
  double nearest(double x) const {
    if (elementType == ElementType::F64)
      return x;
    if (elementType == ElementType::F32)
      return double(float(x));
    double magnitude = std::fabs(x);
    if (!regular || !(magnitude < largest))
      return decodeFloat(format, encodeFloat(format, x));
    double rounded;
    if (magnitude < smallestNormal) {
      rounded = std::nearbyint(x / quantum) * quantum;
    } else {
      unsigned dropped = 52u - format.mantissaBits;
      auto bits = std::bit_cast<uint64_t>(x);
      bits += ((uint64_t(1) << (dropped - 1)) - 1) + ((bits >> dropped) & 1);
      rounded = std::bit_cast<double>(bits & ~((uint64_t(1) << dropped) - 1));
    }
    return rounded == 0 && format.specials == FloatFormat::Specials::NanNegativeZero ? 0.0 : rounded;
  }
  /// The largest number of the type that is at most x, the smallest that is at least x. NaN where there is none.
  double below(double x) const {
    double rounded = nearest(x);
    if (rounded <= x || std::isnan(x))
      return rounded;
    return std::isnan(rounded) ? (x > 0 ? largest : rounded) : before(rounded);
  }
  double above(double x) const { return regular ? -below(-x) : nearest(x); }

  /// Distance of neighbours at x; infinite at infinity.
  double ulp(double x) const {
    auto field = int(std::bit_cast<uint64_t>(x) >> 52 & 0x7FF);
    if (field == 0x7FF)
      return std::numeric_limits<double>::infinity();
    int exponent = field - 1023;
    if (exponent <= smallestExponent)
      return quantum;
    exponent -= format.mantissaBits;
    return exponent < -1022 ? std::ldexp(1.0, exponent) : std::bit_cast<double>(uint64_t(exponent + 1023) << 52);
  }

private:
  double before(double x) const {
    if (std::isinf(x))
      return x > 0 ? largest : x;
    if (x <= 0)
      return -(x == 0 ? quantum : -x >= largest ? std::numeric_limits<double>::infinity() : -x + ulp(x));
    bool atPower = x > smallestNormal && (std::bit_cast<uint64_t>(x) << 12) == 0;
    return x - (atPower ? ulp(x) / 2 : ulp(x));
  }

  ElementType elementType;
  const FloatFormat &format;
  double largest;
  int smallestExponent;
  double smallestNormal, quantum;
  bool regular;
};

} // namespace hloc::interp
