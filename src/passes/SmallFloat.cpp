#include "passes/SmallFloat.h"

#include "passes/PassDetail.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace hloc;

namespace {

constexpr unsigned f32Mantissa = 23;
constexpr int f32Bias = 127;
constexpr uint32_t f32Infinity = 0x7F800000, f32Nan = 0x7FC00000;

/// 2^exponent, which must be a normal f32.
float powerOfTwo(int exponent) { return llvm::bit_cast<float>(uint32_t(exponent + f32Bias) << f32Mantissa); }

/// Emits i32 and f32 arithmetic.
class Bits {
public:
  Bits(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value integer(uint32_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int32_t(value)));
  }
  Value real(float value) { return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(value)); }
  Value bitsOf(Value value) { return arith::BitcastOp::create(builder, loc, builder.getI32Type(), value); }
  Value realOf(Value bits) { return arith::BitcastOp::create(builder, loc, builder.getF32Type(), bits); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value bitAnd(Value a, uint32_t b) { return arith::AndIOp::create(builder, loc, a, integer(b)); }
  Value bitOr(Value a, Value b) { return arith::OrIOp::create(builder, loc, a, b); }
  Value shiftLeft(Value a, uint32_t by) { return arith::ShLIOp::create(builder, loc, a, integer(by)); }
  Value shiftRight(Value a, uint32_t by) { return arith::ShRUIOp::create(builder, loc, a, integer(by)); }
  Value select(Value condition, Value a, Value b) { return arith::SelectOp::create(builder, loc, condition, a, b); }
  Value compare(arith::CmpIPredicate predicate, Value a, uint32_t b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, integer(b));
  }
  Value multiply(Value a, float b) { return arith::MulFOp::create(builder, loc, a, real(b)); }

  OpBuilder &builder;
  Location loc;
};

Value extendExponentOnly(Bits b, Value raw) {
  Value wide = b.shiftLeft(raw, f32Mantissa);
  // 2^-127 is subnormal in f32; 255 is NaN.
  wide = b.select(b.compare(arith::CmpIPredicate::eq, raw, 0), b.integer(0x00400000), wide);
  return b.realOf(b.select(b.compare(arith::CmpIPredicate::eq, raw, 255), b.integer(f32Nan), wide));
}

Value roundToExponentOnly(Bits b, Value value) {
  Value bits = b.bitsOf(value);
  Value rounded = b.shiftRight(b.add(bits, b.integer(0x00400000)), f32Mantissa);
  rounded = b.select(b.compare(arith::CmpIPredicate::ule, bits, 0x00400000), b.integer(0), rounded);
  // Zero, negatives (the sign bit), and what rounds to 2^128 or is no number.
  Value zero = b.compare(arith::CmpIPredicate::sle, bits, 0);
  Value tooLarge = b.compare(arith::CmpIPredicate::sge, bits, 0x7F400000);
  Value invalid = arith::OrIOp::create(b.builder, b.loc, zero, tooLarge);
  return b.select(invalid, b.integer(255), rounded);
}

} // namespace

uint32_t SmallFloat::firstNonFinite() const {
  switch (special) {
  case Special::Ieee:
    return magnitudeMask() & ~((1u << mantissaBits) - 1);
  case Special::Nan:
    return magnitudeMask();
  case Special::NegativeZero:
  case Special::None:
    return magnitudeMask() + 1;
  case Special::ExponentOnly:
    return 255;
  }
  HLOC_UNREACHABLE("unknown small float");
}

uint32_t SmallFloat::largestFinite() const {
  uint32_t magnitude = firstNonFinite() - 1;
  return (magnitude << (f32Mantissa - mantissaBits)) + (uint32_t(f32Bias - bias) << f32Mantissa);
}

uint32_t SmallFloat::largestRoundingToFinite() const {
  // Half a step above; the tie goes to the even neighbour, which is the finite one if its last bit is 0.
  uint32_t half = 1u << (f32Mantissa - mantissaBits - 1);
  bool finiteIsEven = ((firstNonFinite() - 1) & 1) == 0;
  return largestFinite() + half - (finiteIsEven ? 0 : 1);
}

std::optional<SmallFloat> hloc::smallFloatOf(Type type) {
  using Special = SmallFloat::Special;
  if (isa<Float8E5M2Type>(type))
    return SmallFloat{8, 2, 15, Special::Ieee};
  if (isa<Float8E4M3Type>(type))
    return SmallFloat{8, 3, 7, Special::Ieee};
  if (isa<Float8E3M4Type>(type))
    return SmallFloat{8, 4, 3, Special::Ieee};
  if (isa<Float8E4M3FNType>(type))
    return SmallFloat{8, 3, 7, Special::Nan};
  if (isa<Float8E5M2FNUZType>(type))
    return SmallFloat{8, 2, 16, Special::NegativeZero};
  if (isa<Float8E4M3FNUZType>(type))
    return SmallFloat{8, 3, 8, Special::NegativeZero};
  if (isa<Float8E4M3B11FNUZType>(type))
    return SmallFloat{8, 3, 11, Special::NegativeZero};
  if (isa<Float8E8M0FNUType>(type))
    return SmallFloat{8, 0, 127, Special::ExponentOnly};
  if (isa<Float6E3M2FNType>(type))
    return SmallFloat{6, 2, 3, Special::None};
  if (isa<Float6E2M3FNType>(type))
    return SmallFloat{6, 3, 1, Special::None};
  if (isa<Float4E2M1FNType>(type))
    return SmallFloat{4, 1, 1, Special::None};
  return std::nullopt;
}

Value hloc::extendSmallFloat(OpBuilder &builder, Location loc, Value raw, const SmallFloat &format) {
  Bits b(builder, loc);
  Value bits = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), raw);
  if (format.special == SmallFloat::Special::ExponentOnly)
    return extendExponentOnly(b, bits);
  // The mantissa and exponent in place, then the exponent rebased by a multiplication: that is exact, and turns
  // subnormals of the format (subnormals of f32 here) into normal numbers.
  Value magnitude = b.bitAnd(bits, format.magnitudeMask());
  Value placed = b.shiftLeft(magnitude, f32Mantissa - format.mantissaBits);
  Value wide = b.bitsOf(b.multiply(b.realOf(placed), powerOfTwo(f32Bias - format.bias)));
  if (format.special == SmallFloat::Special::Ieee)
    wide = b.select(b.compare(arith::CmpIPredicate::uge, magnitude, format.firstNonFinite()),
                    b.bitOr(placed, b.integer(f32Infinity)), wide);
  else if (format.special == SmallFloat::Special::Nan)
    wide = b.select(b.compare(arith::CmpIPredicate::eq, magnitude, format.firstNonFinite()), b.integer(f32Nan), wide);
  Value sign = b.shiftLeft(b.bitAnd(bits, format.signBit()), 32 - format.bits);
  wide = b.bitOr(wide, sign);
  if (format.special == SmallFloat::Special::NegativeZero)
    wide = b.select(b.compare(arith::CmpIPredicate::eq, bits, format.signBit()), b.integer(f32Nan), wide);
  return b.realOf(wide);
}

bool hloc::becomesHalves(Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(type); }

/// Of f8E5M2 they are the upper bytes of f16. Of f8E4M3FN, too, with one bit of the exponent less: moved down by one
/// they are f16 of another bias, subnormals included, and rebased by a product that is exact. Its NaN is the only
/// number that another product makes infinite, of which nothing times infinity makes NaN again.
static Value halvesOf(Bits b, Value upperBytes, Type type) {
  auto halves = VectorType::get({2}, b.builder.getF16Type());
  auto asHalves = [&](Value word) -> Value { return LLVM::BitcastOp::create(b.builder, b.loc, halves, word); };
  if (isa<Float8E5M2Type>(type))
    return asHalves(upperBytes);
  constexpr uint32_t signs = 0x80008000, magnitudes = 0x3F803F80;
  constexpr double rebase = 256, toInfinity = 36864; // 1.75 times it is 64512, 1.875 times it is beyond f16
  auto both = [&](double value) -> Value {
    auto attribute = DenseElementsAttr::get(halves, b.builder.getF16FloatAttr(value).getValue());
    return arith::ConstantOp::create(b.builder, b.loc, attribute);
  };
  auto multiply = [&](Value x, double by) -> Value { return arith::MulFOp::create(b.builder, b.loc, x, both(by)); };
  Value moved = asHalves(b.bitOr(b.bitAnd(b.shiftRight(upperBytes, 1), magnitudes), b.bitAnd(upperBytes, signs)));
  return math::FmaOp::create(b.builder, b.loc, multiply(moved, toInfinity), both(0), multiply(moved, rebase));
}

SmallVector<Value> hloc::extendToHalves(OpBuilder &builder, Location loc, ValueRange raw, Type type) {
  Bits b(builder, loc);
  Value word = b.integer(0);
  for (auto [lane, byte] : llvm::enumerate(raw))
    word = b.bitOr(word, b.shiftLeft(arith::ExtUIOp::create(builder, loc, builder.getI32Type(), byte), 8 * lane));
  SmallVector<Value> result;
  for (size_t pair = 0; 2 * pair < raw.size(); ++pair) {
    /// Bytes of zero and of the word, from the lowest of the result on: byte 4 is the lowest of zero.
    const Value places = b.integer(pair == 0 ? 0x1404 : 0x3424);
    Value upperBytes =
        LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(), builder.getStringAttr("llvm.nvvm.prmt"),
                                      ValueRange{word, b.integer(0), places})
            .getResult(0);
    Value halves = halvesOf(b, upperBytes, type);
    for (size_t lane = 2 * pair; lane < std::min(raw.size(), 2 * pair + 2); ++lane)
      result.push_back(vector::ExtractOp::create(builder, loc, halves, int64_t(lane % 2)));
  }
  return result;
}

Value hloc::roundToSmallFloat(OpBuilder &builder, Location loc, Value value, const SmallFloat &format) {
  Bits b(builder, loc);
  Type narrow = builder.getIntegerType(format.bits);
  if (format.special == SmallFloat::Special::ExponentOnly)
    return arith::TruncIOp::create(builder, loc, narrow, roundToExponentOnly(b, value));
  Value bits = b.bitsOf(value);
  Value magnitude = b.bitAnd(bits, 0x7FFFFFFF);
  unsigned shift = f32Mantissa - format.mantissaBits;

  // Normal results: round to nearest even on the bits; a carry moves into the exponent as it should.
  Value lastKept = b.bitAnd(b.shiftRight(magnitude, shift), 1);
  Value rounded = b.shiftRight(b.add(b.add(magnitude, b.integer((1u << (shift - 1)) - 1)), lastKept), shift);
  Value normal = b.sub(rounded, b.integer(uint32_t(f32Bias - format.bias) << format.mantissaBits));
  // Subnormal results: adding a number whose last bit is worth the format's smallest one makes the hardware round.
  float aligner = powerOfTwo(1 - format.bias - int(format.mantissaBits) + int(f32Mantissa));
  Value aligned = arith::AddFOp::create(builder, loc, b.realOf(magnitude), b.real(aligner));
  Value subnormal = b.sub(b.bitsOf(aligned), b.integer(llvm::bit_cast<uint32_t>(aligner)));
  uint32_t smallestNormal = uint32_t(f32Bias - format.bias + 1) << f32Mantissa;
  Value result = b.select(b.compare(arith::CmpIPredicate::ult, magnitude, smallestNormal), subnormal, normal);

  Value overflows = b.compare(arith::CmpIPredicate::ugt, magnitude, format.largestRoundingToFinite());
  Value isNan = b.compare(arith::CmpIPredicate::ugt, magnitude, f32Infinity);
  Value sign = b.shiftRight(b.bitAnd(bits, 0x80000000), 32 - format.bits);
  switch (format.special) {
  case SmallFloat::Special::Ieee: {
    // The NaN of the conversions in hardware: all ones, without a sign.
    result = b.bitOr(b.select(overflows, b.integer(format.firstNonFinite()), result), sign);
    result = b.select(isNan, b.integer(format.magnitudeMask()), result);
    break;
  }
  case SmallFloat::Special::Nan: // infinity overflows too
    result = b.bitOr(b.select(overflows, b.integer(format.firstNonFinite()), result), sign);
    result = b.select(isNan, b.integer(format.firstNonFinite()), result);
    break;
  case SmallFloat::Special::NegativeZero: {
    Value isZero = b.compare(arith::CmpIPredicate::eq, result, 0);
    result = b.select(isZero, result, b.bitOr(result, sign));
    result = b.select(overflows, b.integer(format.signBit()), result);
    break;
  }
  case SmallFloat::Special::None:
    result = b.bitOr(b.select(overflows, b.integer(format.firstNonFinite() - 1), result), sign);
    result = b.select(isNan, b.integer(format.signBit()), result);
    break;
  case SmallFloat::Special::ExponentOnly:
    HLOC_UNREACHABLE("handled above");
  }
  return arith::TruncIOp::create(builder, loc, narrow, result);
}
