#include "emitters/FloatPatterns.h"

#include <cmath>

using namespace mlir;

namespace hloc {
namespace {

constexpr int f32MantissaBits = 23;
constexpr int f32Bias = 127;
constexpr int64_t f32Infinity = 0x7F800000;
using IPred = CodeBuilder::IPred;

int64_t signBit(const FloatFormat &format) { return int64_t(1) << (format.bits - 1); }
int64_t magnitudeMask(const FloatFormat &format) { return signBit(format) - 1; }

Value decodePowerOfTwo(CodeBuilder &b, Value pattern) {
  Type f32 = b.getF32Type();
  Value smallest = b.integer(b.getI32Type(), 0x00400000); // 2^-127
  Value bits = b.select(b.cmpI(IPred::eq, pattern, 0), smallest, b.shl(pattern, f32MantissaBits));
  return b.select(b.cmpI(IPred::eq, pattern, 0xFF), b.quietNan(f32), b.bitcast(bits, f32));
}

Value encodePowerOfTwo(CodeBuilder &b, Value value) {
  Type i32 = b.getI32Type();
  Value bits = b.bitcast(value, i32);
  Value nearest = b.shrU(b.addI(bits, 0x400000), f32MantissaBits);
  Value result = b.select(b.cmpI(IPred::sle, bits, 0x400000), b.integer(i32, 0), nearest);
  Value invalid = b.orI(b.cmpI(IPred::sle, bits, 0), b.cmpI(IPred::sge, bits, 0x7F400000));
  return b.select(invalid, b.integer(i32, 0xFF), result);
}

/// |x| in units of the format's mantissa, exponent included: the magnitude pattern before overflow is looked at.
Value roundMagnitude(CodeBuilder &b, Value magnitudeBits, const FloatFormat &format) {
  int dropped = f32MantissaBits - format.mantissaBits;
  int64_t rebias = int64_t(f32Bias - format.bias) << format.mantissaBits;
  Value odd = b.andI(b.shrU(magnitudeBits, dropped), 1);
  Value rounded = b.addI(b.addI(magnitudeBits, (int64_t(1) << (dropped - 1)) - 1), odd);
  Value normal = b.addI(b.shrU(rounded, dropped), -rebias);

  // Below the smallest normal number the step is constant: adding a number whose last place is that step rounds.
  Type f32 = b.getF32Type();
  double step = std::ldexp(1.0, 1 - format.bias - format.mantissaBits);
  Value anchor = b.floating(f32, std::ldexp(step, f32MantissaBits));
  Value sum = arith::AddFOp::create(b, b.bitcast(magnitudeBits, f32), anchor);
  Value subnormal = b.subI(b.bitcast(sum, b.getI32Type()), b.bitcast(anchor, b.getI32Type()));
  int64_t smallestNormal = int64_t(f32Bias + 1 - format.bias) << f32MantissaBits;
  return b.select(b.cmpI(IPred::ult, magnitudeBits, smallestNormal), subnormal, normal);
}

} // namespace

Value decodePattern(CodeBuilder &b, Value pattern, const FloatFormat &format) {
  Type i32 = b.getI32Type();
  Type f32 = b.getF32Type();
  Value bits = b.castI(pattern, i32, false);
  if (format.specials == FloatFormat::Specials::PowerOfTwo)
    return decodePowerOfTwo(b, bits);

  Value magnitude = b.andI(bits, magnitudeMask(format));
  Value shifted = b.shl(magnitude, f32MantissaBits - format.mantissaBits);
  // As an f32 the shifted pattern has the wrong bias; scaling by a power of two repairs it, for subnormals too.
  Value scale = b.floating(f32, std::ldexp(1.0, f32Bias - format.bias));
  Value value = arith::MulFOp::create(b, b.bitcast(shifted, f32), scale);
  Value sign = b.shl(b.andI(bits, signBit(format)), 32 - format.bits);
  switch (format.specials) {
  case FloatFormat::Specials::Ieee: {
    int64_t infinity = ((int64_t(1) << format.exponentBits) - 1) << format.mantissaBits;
    Value special = b.bitcast(b.orI(shifted, f32Infinity), f32);
    value = b.select(b.cmpI(IPred::uge, magnitude, infinity), special, value);
    break;
  }
  case FloatFormat::Specials::NanAllOnes:
    value = b.select(b.cmpI(IPred::eq, magnitude, magnitudeMask(format)), b.quietNan(f32), value);
    break;
  case FloatFormat::Specials::NanNegativeZero:
    value = b.select(b.cmpI(IPred::eq, b.andI(bits, magnitudeMask(format) | signBit(format)), signBit(format)),
                     b.quietNan(f32), value);
    break;
  case FloatFormat::Specials::None:
  case FloatFormat::Specials::PowerOfTwo:
    break;
  }
  return b.bitcast(b.orI(b.bitcast(value, i32), sign), f32);
}

Value encodePattern(CodeBuilder &b, Value value, const FloatFormat &format, Type patternType) {
  Type i32 = b.getI32Type();
  if (format.specials == FloatFormat::Specials::PowerOfTwo)
    return b.castI(encodePowerOfTwo(b, value), patternType, false);

  Value bits = b.bitcast(value, i32);
  Value magnitudeBits = b.andI(bits, 0x7FFFFFFF);
  Value sign = b.andI(b.shrU(bits, 32 - format.bits), signBit(format));
  Value magnitude = roundMagnitude(b, magnitudeBits, format);
  Value isNan = b.cmpI(IPred::ugt, magnitudeBits, f32Infinity);
  Value largest = b.integer(i32, magnitudeMask(format));
  Value result;
  switch (format.specials) {
  case FloatFormat::Specials::Ieee: {
    int64_t infinity = ((int64_t(1) << format.exponentBits) - 1) << format.mantissaBits;
    Value finite = b.minU(magnitude, b.integer(i32, infinity));
    result = b.select(isNan, largest, b.orI(finite, sign)); // as the conversions in hardware: all ones, without sign
    break;
  }
  case FloatFormat::Specials::NanAllOnes:
    result = b.select(isNan, largest, b.orI(b.minU(magnitude, largest), sign));
    break;
  case FloatFormat::Specials::NanNegativeZero: {
    Value signedResult = b.select(b.cmpI(IPred::eq, magnitude, 0), magnitude, b.orI(magnitude, sign));
    Value tooLarge = b.cmpI(IPred::ugt, magnitude, largest);
    result = b.select(tooLarge, b.integer(i32, signBit(format)), signedResult);
    break;
  }
  case FloatFormat::Specials::None:
  case FloatFormat::Specials::PowerOfTwo:
    result = b.select(isNan, b.integer(i32, signBit(format)), b.orI(b.minU(magnitude, largest), sign));
    break;
  }
  return b.castI(result, patternType, false);
}

} // namespace hloc
