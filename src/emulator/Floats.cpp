#include "Floats.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>

namespace hloc::emulator {
namespace {

int hostMode(Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return FE_TONEAREST;
  case Rounding::Zero:
    return FE_TOWARDZERO;
  case Rounding::Down:
    return FE_DOWNWARD;
  case Rounding::Up:
    return FE_UPWARD;
  }
  __builtin_unreachable();
}

/// Holds a host rounding mode; only directed modes cost the switch.
class ModeScope {
public:
  explicit ModeScope(Rounding rounding) : directed(rounding != Rounding::Nearest) {
    if (directed)
      std::fesetround(hostMode(rounding));
  }
  ~ModeScope() {
    if (directed)
      std::fesetround(FE_TONEAREST);
  }

private:
  bool directed;
};

/// In the host's rounding mode. Volatile operands and result pin the operation between two mode switches.
template <typename T> T computeInMode(FloatOp op, T a, T b, T c) {
  volatile T x = a, y = b, z = c, result = 0;
  switch (op) {
  case FloatOp::Add:
    result = x + y;
    break;
  case FloatOp::Sub:
    result = x - y;
    break;
  case FloatOp::Mul:
    result = x * y;
    break;
  case FloatOp::Div:
    result = x / y;
    break;
  case FloatOp::Fma:
    result = std::fma(T(x), T(y), T(z));
    break;
  case FloatOp::Sqrt:
    result = std::sqrt(T(x));
    break;
  }
  return result;
}

} // namespace

template <typename T>
void computeEach(FloatOp op, unsigned count, const T *a, const T *b, const T *c, Rounding rounding, T *results) {
  ModeScope scope(rounding);
  for (unsigned i = 0; i < count; ++i)
    results[i] = computeInMode(op, a[i], b[i], c[i]);
}
template void computeEach(FloatOp, unsigned, const float *, const float *, const float *, Rounding, float *);
template void computeEach(FloatOp, unsigned, const double *, const double *, const double *, Rounding, double *);

float compute(FloatOp op, float a, float b, float c, Rounding rounding) {
  float result;
  computeEach(op, 1, &a, &b, &c, rounding, &result);
  return result;
}
double compute(FloatOp op, double a, double b, double c, Rounding rounding) {
  double result;
  computeEach(op, 1, &a, &b, &c, rounding, &result);
  return result;
}

double roundToIntegral(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(value);
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  }
  __builtin_unreachable();
}

uint32_t encode(double value, SmallFormat format, Rounding rounding) {
  const int width = 1 + format.exponentBits + format.mantissaBits;
  const int bias = (1 << (format.exponentBits - 1)) - 1;
  const uint32_t infinity = ((1u << format.exponentBits) - 1) << format.mantissaBits;
  if (std::isnan(value))
    return (1u << (width - 1)) - 1;
  const bool negative = std::signbit(value);
  const uint32_t sign = negative ? 1u << (width - 1) : 0;
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | infinity;
  if (magnitude == 0)
    return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  double scaled = std::ldexp(magnitude, format.mantissaBits - exponent); // exact
  Rounding towards = rounding;
  if (negative && (rounding == Rounding::Down || rounding == Rounding::Up))
    towards = rounding == Rounding::Down ? Rounding::Up : Rounding::Down;
  uint64_t mantissa = uint64_t(roundToIntegral(scaled, towards));
  // A mantissa that reached the next power of two carries into the exponent field; a subnormal has field 0.
  uint64_t bits = (uint64_t(exponent + bias - 1) << format.mantissaBits) + mantissa;
  if (bits >= infinity)
    bits = towards == Rounding::Zero || towards == Rounding::Down ? infinity - 1 : infinity;
  return sign | uint32_t(bits);
}

double decode(uint32_t bits, SmallFormat format) {
  const int bias = (1 << (format.exponentBits - 1)) - 1;
  const uint32_t mantissa = bits & ((1u << format.mantissaBits) - 1);
  const int exponent = int(bits >> format.mantissaBits) & ((1 << format.exponentBits) - 1);
  const bool negative = (bits >> (format.exponentBits + format.mantissaBits)) & 1;
  double magnitude;
  if (exponent == (1 << format.exponentBits) - 1)
    magnitude = mantissa ? NAN : INFINITY;
  else if (exponent == 0)
    magnitude = std::ldexp(double(mantissa), 1 - bias - format.mantissaBits);
  else
    magnitude = std::ldexp(double(mantissa | (1u << format.mantissaBits)), exponent - bias - format.mantissaBits);
  return negative ? -magnitude : magnitude;
}

uint8_t encodeE4m3(double value) {
  constexpr double smallestOfLastBinade = 256, largest = 448;
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value))
    return 0x7f;
  if (std::fabs(value) < smallestOfLastBinade) // rounds up to 256 at most, which has the bits of encode's infinity
    return sign | uint8_t(encode(std::fabs(value), {4, 3}, Rounding::Nearest));
  return sign | uint8_t(0x70 + int(std::nearbyint(std::min(std::fabs(value), largest) / 32)));
}

uint8_t encodeE5m2(double value) {
  constexpr uint8_t largest = 0x7b;
  if (std::isnan(value))
    return 0x7f;
  const uint8_t bits = uint8_t(encode(std::fabs(value), {5, 2}, Rounding::Nearest));
  return (std::signbit(value) ? 0x80 : 0) | std::min(bits, largest);
}

double decodeE4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7)
    return NAN;
  const double magnitude = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(double(mantissa), -9);
  return bits & 0x80 ? -magnitude : magnitude;
}

double fmaToOdd(double a, double b, double c) {
  double product = a * b; // exact: both factors have at most 26 significant bits
  double sum = product + c;
  if (!std::isfinite(sum))
    return sum;
  double virtualC = sum - product;
  double error = (product - (sum - virtualC)) + (c - virtualC);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1))
    return sum;
  bool away = (error > 0) == (sum > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

} // namespace hloc::emulator
