#pragma once
// Fast exact conversion between f32 and the float formats of at most 16 bits. The slow definition is
// support/FloatFormat.h; the tests compare the two on every pattern.

#include "hloc/support/FloatFormat.h"

#include <array>
#include <bit>

namespace hloc::interp {

/// Patterns of the largest finite magnitude and of what a larger one becomes (sign not included).
template <FloatFormat F> constexpr uint32_t largestPattern() {
  uint32_t all = (1u << (F.exponentBits + F.mantissaBits)) - 1;
  if (F.specials == FloatFormat::Specials::Ieee)
    return all - (1u << F.mantissaBits);
  return F.specials == FloatFormat::Specials::NanAllOnes ? all - 1 : all;
}
template <FloatFormat F> constexpr uint32_t nanPattern() {
  if (F.specials == FloatFormat::Specials::Ieee)
    return (((1u << F.exponentBits) - 1) << F.mantissaBits) | (1u << (F.mantissaBits - 1));
  if (F.specials == FloatFormat::Specials::NanAllOnes)
    return (1u << (F.exponentBits + F.mantissaBits)) - 1;
  return 1u << (F.bits - 1);
}
template <FloatFormat F> constexpr uint32_t overflowPattern() {
  if (F.specials == FloatFormat::Specials::Ieee)
    return largestPattern<F>() + 1;
  return F.specials == FloatFormat::Specials::None ? largestPattern<F>() : nanPattern<F>();
}

/// Nearest pattern of a format with a sign and a mantissa, ties to even; the rules of encodeFloat.
template <FloatFormat F> inline uint32_t encodeNarrow(float value) {
  constexpr bool fnuz = F.specials == FloatFormat::Specials::NanNegativeZero;
  constexpr bool keepsNanSign =
      F.specials == FloatFormat::Specials::Ieee || F.specials == FloatFormat::Specials::NanAllOnes;
  constexpr int dropped = 23 - F.mantissaBits;
  constexpr int smallestNormal = 128 - F.bias; // as an exponent field of f32
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 31) << (F.bits - 1);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) {
    uint32_t payload =
        F.specials == FloatFormat::Specials::Ieee ? magnitude >> dropped & ((1u << F.mantissaBits) - 1) : 0;
    return nanPattern<F>() | payload | (keepsNanSign ? sign : 0);
  }
  int exponent = int(magnitude >> 23);
  uint32_t pattern;
  if (exponent >= smallestNormal) {
    // Rounding may carry into the exponent field, which is what should happen.
    uint32_t rounded = magnitude + ((1u << (dropped - 1)) - 1) + ((magnitude >> dropped) & 1);
    pattern = (rounded >> dropped) - (uint32_t(smallestNormal - 1) << F.mantissaBits);
  } else {
    uint32_t significand = (magnitude & 0x7FFFFF) | (exponent ? 0x800000u : 0u);
    int shift = dropped + smallestNormal - (exponent ? exponent : 1);
    if (shift > 25)
      pattern = 0;
    else
      pattern = (significand + ((1u << (shift - 1)) - 1) + ((significand >> shift) & 1)) >> shift;
  }
  if (pattern > largestPattern<F>())
    return fnuz ? nanPattern<F>() : overflowPattern<F>() | sign;
  return fnuz && pattern == 0 ? 0 : pattern | sign;
}

/// e8m0: nearest power of two, ties up; zero, negatives and 1.5*2^127 or more have none and give NaN.
inline uint32_t encodePowerOfTwo(float value) {
  auto bits = std::bit_cast<int32_t>(value);
  if (bits <= 0 || bits >= 0x7F400000)
    return 0xFF;
  return bits <= 0x400000 ? 0 : (uint32_t(bits) + 0x400000) >> 23;
}

/// Exact value of an f16 or bf16 pattern.
inline float decodeHalf(uint16_t pattern) {
  uint32_t magnitude = uint32_t(pattern & 0x7FFF) << 13;
  // Multiplying moves the exponent bias from 15 to 127 and normalises subnormals; infinities and NaNs are left out.
  uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  uint32_t bits = magnitude >= 0x0F800000 ? magnitude | 0x7F800000 : finite;
  return std::bit_cast<float>(bits | uint32_t(pattern & 0x8000) << 16);
}
inline float decodeBrain(uint16_t pattern) { return std::bit_cast<float>(uint32_t(pattern) << 16); }

/// The value, with the payload of a NaN in the upper bits of the mantissa, so that a total order tells NaNs apart.
template <FloatFormat F> float decodeKeepingPayload(uint32_t pattern) {
  auto value = float(decodeFloat(F, pattern));
  if (F.specials != FloatFormat::Specials::Ieee || value == value)
    return value;
  uint32_t sign = pattern >> (F.bits - 1), mantissa = pattern & ((1u << F.mantissaBits) - 1);
  return std::bit_cast<float>(sign << 31 | 0x7F800000u | mantissa << (23 - F.mantissaBits));
}

/// Values of all patterns of a format of at most 8 bits; larger bytes repeat them.
template <FloatFormat F> const std::array<float, 256> &narrowValues() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> made;
    for (unsigned pattern = 0; pattern < 256; ++pattern)
      made[pattern] = decodeKeepingPayload<F>(pattern & ((1u << F.bits) - 1));
    return made;
  }();
  return values;
}

} // namespace hloc::interp
