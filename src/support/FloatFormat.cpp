#include "hloc/support/FloatFormat.h"

#include <bit>
#include <cmath>
#include <limits>

namespace hloc {

namespace {

uint64_t lowMask(unsigned bits) { return bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }

/// 2^exponent, of exponents that normal numbers of f64 have; ldexp takes several times as long.
double powerOfTwo(int exponent) { return std::bit_cast<double>(uint64_t(exponent + 1023) << 52); }

uint64_t signBit(const FloatFormat &format) { return uint64_t(1) << (format.bits - 1); }

/// Pattern of the largest finite magnitude.
uint64_t largestPattern(const FloatFormat &format) {
  uint64_t all = lowMask(format.exponentBits + format.mantissaBits);
  switch (format.specials) {
  case FloatFormat::Specials::Ieee:
    return all - (uint64_t(1) << format.mantissaBits);
  case FloatFormat::Specials::NanAllOnes:
  case FloatFormat::Specials::PowerOfTwo:
    return all - 1;
  case FloatFormat::Specials::NanNegativeZero:
  case FloatFormat::Specials::None:
    return all;
  }
  return all;
}

uint64_t overflowPattern(const FloatFormat &format) {
  switch (format.specials) {
  case FloatFormat::Specials::Ieee:
    return largestPattern(format) + 1;
  case FloatFormat::Specials::None:
    return largestPattern(format);
  default:
    return canonicalNan(format);
  }
}

uint64_t encodePowerOfTwo(double value) {
  // Through f32 bits, as HLO defines it: b <= 0 or b >= bits of 1.5*2^127 is NaN, then nearest exponent, ties up.
  auto b = std::bit_cast<int32_t>(static_cast<float>(value));
  if (b <= 0 || b >= 0x7F400000)
    return 0xFF;
  if (b <= 0x400000)
    return 0;
  return (uint32_t(b) + 0x400000) >> 23;
}

} // namespace

uint64_t canonicalNan(const FloatFormat &format) {
  switch (format.specials) {
  case FloatFormat::Specials::Ieee: // all-ones exponent, top mantissa bit
    return (lowMask(format.exponentBits) << format.mantissaBits) | (uint64_t(1) << (format.mantissaBits - 1));
  case FloatFormat::Specials::NanAllOnes:
  case FloatFormat::Specials::PowerOfTwo:
    return lowMask(format.exponentBits + format.mantissaBits);
  case FloatFormat::Specials::NanNegativeZero:
  case FloatFormat::Specials::None:
    return signBit(format);
  }
  return 0;
}

double largestFinite(const FloatFormat &format) { return decodeFloat(format, largestPattern(format)); }

double decodeFloat(const FloatFormat &format, uint64_t pattern) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  pattern &= lowMask(format.bits);
  if (format.bits == 64)
    return std::bit_cast<double>(pattern);
  if (format.specials == FloatFormat::Specials::PowerOfTwo)
    return pattern == 0xFF ? nan : powerOfTwo(int(pattern) - format.bias);
  uint64_t magnitude = pattern & lowMask(format.exponentBits + format.mantissaBits);
  bool negative = (pattern & signBit(format)) != 0;
  double sign = negative ? -1.0 : 1.0;
  if (format.specials == FloatFormat::Specials::NanNegativeZero && negative && magnitude == 0)
    return nan;
  if (magnitude > largestPattern(format)) {
    bool infinite = format.hasInfinity() && magnitude == largestPattern(format) + 1;
    return std::copysign(infinite ? std::numeric_limits<double>::infinity() : nan, sign);
  }
  auto exponent = int(magnitude >> format.mantissaBits);
  auto mantissa = double(magnitude & lowMask(format.mantissaBits));
  if (exponent == 0)
    return sign * mantissa * powerOfTwo(1 - format.bias - format.mantissaBits);
  mantissa += double(uint64_t(1) << format.mantissaBits);
  return sign * mantissa * powerOfTwo(exponent - format.bias - format.mantissaBits);
}

uint64_t encodeFloat(const FloatFormat &format, double value) {
  if (format.specials == FloatFormat::Specials::PowerOfTwo)
    return encodePowerOfTwo(value);
  if (format.bits == 64)
    return std::bit_cast<uint64_t>(value);
  uint64_t sign = std::signbit(value) ? signBit(format) : 0;
  bool unsignedZero = format.specials == FloatFormat::Specials::NanNegativeZero;
  if (std::isnan(value))
    return canonicalNan(format) |
           (format.specials == FloatFormat::Specials::Ieee || format.specials == FloatFormat::Specials::NanAllOnes
                ? sign
                : 0);
  double magnitude = std::fabs(value);
  if (std::isinf(value))
    return unsignedZero ? canonicalNan(format) : overflowPattern(format) | sign;
  if (magnitude == 0)
    return unsignedZero ? 0 : sign;
  // Scale so that one unit is the last place of the result, round there, and let a carry bump the exponent field.
  // What is subnormal in f64 is below the least normal number of any format here.
  int exponent = std::max(int(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023, 1 - format.bias);
  double scaled = magnitude * powerOfTwo(format.mantissaBits - exponent);
  auto rounded = uint64_t(std::nearbyint(scaled));
  uint64_t pattern = (uint64_t(exponent + format.bias - 1) << format.mantissaBits) + rounded;
  if (pattern > largestPattern(format))
    return unsignedZero ? canonicalNan(format) : overflowPattern(format) | sign;
  return pattern == 0 && unsignedZero ? 0 : pattern | sign;
}

} // namespace hloc
