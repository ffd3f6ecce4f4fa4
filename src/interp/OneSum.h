#pragma once
// What one sum of floats may be, as BoundSums.cpp says it: from its terms, one after the other.

#include "interp/Accuracy.h"
#include "interp/AlikeRoundings.h"
#include "interp/BoundedValue.h"
#include "interp/FloatGrid.h"

#include <bit>
#include <cmath>
#include <limits>

namespace hloc::interp {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// The lowest bit of 0, which has none.
inline constexpr int noLowestBit = std::numeric_limits<int>::max();

/// The exponent of the lowest bit of a number.
inline int exponentOfLowestBit(double x) {
  auto bits = std::bit_cast<uint64_t>(x);
  uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  auto field = int(bits >> 52 & 0x7FF);
  if (field == 0 && fraction == 0)
    return noLowestBit;
  if (field != 0)
    fraction |= uint64_t(1) << 52;
  return std::max(field, 1) - 1075 + std::countr_zero(fraction);
}

/// From the exact ends of a sum and the error of its order to admissible results; all by part of a number.
struct SumEnds {
  const FloatGrid &accumulator, &result;

  /// `finiteMagnitude`: that of the finite terms.
  void finish(double value, double low, double high, double magnitude, double finiteMagnitude, double error,
              double &least, double &greatest) const {
    if (std::isnan(value) || std::isinf(value)) {
      // Not finite through its terms: so in any order, unless finite terms overflow in some. Through the sum: that is a
      // rounding like any other.
      if (!std::isfinite(magnitude) && finiteMagnitude < accumulator.largestNumber()) {
        least = greatest = value;
        return;
      }
    }
    if (!std::isfinite(magnitude) || magnitude + error >= accumulator.largestNumber()) {
      setUnknown(least, greatest); // some orders overflow on the way
      return;
    }
    least = result.nearest(low - error);
    greatest = result.nearest(high + error);
    if (bitWidth(result.type()) < bitWidth(accumulator.type())) {
      least = std::min(least, result.nearest(accumulator.nearest(low - error)));
      greatest = std::max(greatest, result.nearest(accumulator.nearest(high + error)));
    }
    if (std::isnan(least) || std::isnan(greatest)) {
      if (std::isnan(least) != std::isnan(greatest))
        setUnknown(least, greatest);
      return;
    }
    if (!std::isnan(value)) {
      least = std::min(least, value);
      greatest = std::max(greatest, value);
    }
    if (least == 0 && greatest == 0 && magnitude != 0) { // what cancels or underflows has no sign
      least = -0.0;
      greatest = 0.0;
    }
  }
};

/// One sum of terms, some with bounds.
class Sum {
public:
  explicit Sum(const FloatGrid &accumulator) : single(accumulator.type() == ElementType::F32) {}

  void add(double low, double high) {
    unknown |= isUnknown(low, high);
    finite &= std::isfinite(low) && std::isfinite(high);
    spread |= low != high;
    anyNegative |= low < 0;
    anyPositive |= high > 0;
    if (finite) { // else SumEnds, of an infinite magnitude, asks for neither; and infinities and NaN take the x87 two
                  // hundred times as long
      least += low;
      greatest += high;
    }
    if (double larger = std::max(std::fabs(low), std::fabs(high)); std::isfinite(larger))
      magnitude += larger;
    lowest = std::min(lowest, exponentOfLowestBit(low));
    if (single) {
      serialSingle[0] += float(low);
      serialSingle[1] += float(high);
    } else {
      serialDouble[0] += low;
      serialDouble[1] += high;
    }
    ++count;
  }

  /// Terms up to this size are lost in the sum, or nearly so.
  double lostSize(const FloatGrid &accumulator) const {
    constexpr double nearly = 0x1p-6;
    return nearly * accumulator.unitRoundoff() * double(magnitude);
  }
  /// So many of the terms are that small, together of this magnitude.
  void setLost(int64_t number, double together) {
    numLost = number;
    lost = together;
  }
  /// (Of a few terms the worst case is admissible.)
  void findAlike(const TermsOfSum &terms, const FloatGrid &accumulator) {
    constexpr int64_t few = 4;
    if (count > few && finite && !unknown && !isExact(accumulator))
      alike = alikeRoundings(terms, double(magnitude), accumulator);
  }

  void finish(const SumEnds &ends, double value, double termRoundings, double &low, double &high) const {
    if (unknown) {
      setUnknown(low, high);
      return;
    }
    const bool exact = isExact(ends.accumulator);
    const double unit = ends.accumulator.unitRoundoff();
    const double ofOrder = std::max(sumRoundings(double(count - numLost)) * unit * double(magnitude), alike) +
                           lost * (1 + double(count) * unit);
    const double error = exact ? 0 : ofOrder + termRoundings * unit * double(magnitude);
    double first = double(least), last = double(greatest);
    // Rounding is monotonic: between these two lies the serial sum of any admissible terms.
    double serialLow = single ? double(serialSingle[0]) : serialDouble[0];
    double serialHigh = single ? double(serialSingle[1]) : serialDouble[1];
    if (!exact && std::isfinite(serialLow) && std::isfinite(serialHigh)) {
      first = std::min(first, serialLow);
      last = std::max(last, serialHigh);
    }
    ends.finish(value, first, last, finite ? double(magnitude) : infinity, double(magnitude), error, low, high);
    if (isUnknown(low, high))
      return;
    if (!anyNegative && low < 0) // rounding keeps signs
      low = 0;
    if (!anyPositive && high > 0)
      high = 0;
  }

private:
  bool isExact(const FloatGrid &accumulator) const {
    return !spread && finite &&
           (lowest == noLowestBit || double(magnitude) < std::ldexp(1.0, lowest + int(accumulator.precision())));
  }

  bool single, unknown = false, finite = true, spread = false, anyNegative = false, anyPositive = false;
  long double least = 0, greatest = 0, magnitude = 0;
  float serialSingle[2] = {}; ///< of the least and of the greatest terms
  double serialDouble[2] = {}, lost = 0, alike = 0;
  int lowest = noLowestBit; ///< exponent of the lowest bit of all terms
  int64_t count = 0, numLost = 0;
};

} // namespace hloc::interp
