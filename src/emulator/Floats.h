#pragma once
// Bit-level float formats and directed rounding for the emulator.

#include <cstdint>

namespace hloc::emulator {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

struct SmallFormat {
  int exponentBits, mantissaBits;
};
inline constexpr SmallFormat half{5, 10}, bfloat{8, 7}, single{8, 23};

/// Rounds to an IEEE-like format of at most 32 bits; overflow follows the rounding mode, NaN gives the canonical
/// 0x7fff...
uint32_t encode(double value, SmallFormat format, Rounding rounding);
double decode(uint32_t bits, SmallFormat format);

/// f8 of the OCP: e4m3 has no infinity, 0x7f is NaN; e5m2 is f16 cut short. Encoding rounds to nearest even and
/// saturates to the largest finite value, as cvt.rn.satfinite does.
uint8_t encodeE4m3(double value);
uint8_t encodeE5m2(double value);
double decodeE4m3(uint8_t bits);

/// a * b + c rounded to odd: rounding the result once more to half the precision or less equals rounding the exact
/// value.
double fmaToOdd(double a, double b, double c);

enum class FloatOp : uint8_t { Add, Sub, Mul, Div, Fma, Sqrt };
/// One correctly rounded operation in the given mode.
float compute(FloatOp op, float a, float b, float c, Rounding rounding);
double compute(FloatOp op, double a, double b, double c, Rounding rounding);
/// The same of `count` numbers: to switch the host's rounding mode takes longer than the arithmetic. T: float, double.
template <typename T>
void computeEach(FloatOp op, unsigned count, const T *a, const T *b, const T *c, Rounding rounding, T *results);
/// To an integral value in the given mode.
double roundToIntegral(double value, Rounding rounding);

} // namespace hloc::emulator
