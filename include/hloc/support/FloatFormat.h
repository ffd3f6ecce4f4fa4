#pragma once
// Narrow binary float formats as data, and exact decoding and round-to-nearest-even encoding of any of them.
// Source of the format table: the IEEE 754 and OCP 8-bit / microscaling definitions, as HLO uses them.

#include <cstdint>

namespace hloc {

struct FloatFormat {
  /// Which bit patterns are not finite numbers.
  enum class Specials : uint8_t {
    Ieee,            ///< all-ones exponent: infinity (mantissa 0) and NaNs
    NanAllOnes,      ///< "fn": no infinity; only S.1..1.1..1 is NaN
    NanNegativeZero, ///< "fnuz": no infinity, no -0; only the pattern of -0 is NaN
    None,            ///< f4/f6: every pattern is a finite number
    PowerOfTwo,      ///< e8m0: unsigned, no zero, 0xFF is NaN
  };
  uint8_t bits;
  uint8_t exponentBits;
  uint8_t mantissaBits;
  int16_t bias;
  Specials specials;

  constexpr bool hasInfinity() const { return specials == Specials::Ieee; }
  constexpr bool hasNan() const { return specials != Specials::None; }
};

/// The exact value of a bit pattern of any format up to 64 bits (f64 itself included).
double decodeFloat(const FloatFormat &format, uint64_t pattern);

/// Nearest value, ties to even, subnormals kept. Too large: infinity, NaN (fn, fnuz, e8m0) or the largest finite value
/// (f4/f6), see hlo-text numerics. NaN becomes the canonical quiet NaN with the sign of `value`; for f4/f6 it becomes
/// -0. e8m0: zero, negatives, NaN and values of 1.5*2^127 and above give NaN; ties go up.
uint64_t encodeFloat(const FloatFormat &format, double value);

/// Largest finite value of the format.
double largestFinite(const FloatFormat &format);
/// Pattern of the canonical quiet NaN, or of -0 for formats without one.
uint64_t canonicalNan(const FloatFormat &format);

} // namespace hloc
