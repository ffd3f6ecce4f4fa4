#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/Elementwise.h"

#include "hloc/hlo/BesideOne.h"
#include "hloc/hlo/OpcodeTable.h"
#include "hloc/support/FloatFormat.h"

using namespace mlir;

namespace hloc {
namespace {

using IPred = CodeBuilder::IPred;
using FPred = CodeBuilder::FPred;

/// An op on f32 or f64, and the flags it may use: results that are rounded to bf16 tolerate the hardware's approximate
/// functions, whose errors are far below half a unit of the last place of bf16.
struct FloatOp {
  const ElementwiseOp &op;
  CodeBuilder &b;
  Value x, y;
  arith::FastMathFlags flags;
};

template <typename MathOp> Value call(const FloatOp &f) {
  if constexpr (MathOp::template hasTrait<OpTrait::NOperands<2>::Impl>())
    return MathOp::create(f.b, f.x, f.y, f.flags);
  else
    return MathOp::create(f.b, f.x, f.flags);
}

Value sign(CodeBuilder &b, Value x) {
  Value one = b.select(b.cmpF(FPred::ONE, x, 0.0), b.floatingLike(x, 1.0), b.floatingLike(x, 0.0));
  return b.select(b.isNan(x), b.quietNan(x.getType()), b.copySign(one, x));
}

Value logistic(const FloatOp &f) {
  CodeBuilder &b = f.b;
  Value exponential = math::ExpOp::create(b, b.negF(f.x), f.flags);
  return b.divF(b.floatingLike(f.x, 1.0), b.addF(exponential, 1.0));
}

/// f16 and narrower types divide by a reciprocal and a correction: the passes' ExpandMath has the proof. Bounded to 2
/// ulp, as divisions of f32 are, a quotient could come out beside the middle of two subnormal numbers that it is.
/// f8e8m0fnu has the exponents of f32, for which there is no reciprocal at both ends, and of what is above its smallest
/// number all becomes the next one: it divides exactly, which LLVM sees that `div.rn.f32` does.
Value quotient(const FloatOp &f) {
  ElementType type = f.op.operandType();
  if (type == ElementType::F8E8M0FNU) {
    Type wide = f.b.getF64Type();
    return f.b.castF(f.b.divF(f.b.castF(f.x, wide), f.b.castF(f.y, wide)), f.x.getType());
  }
  bool isNarrow = type == ElementType::F16 || isPatternFloat(type);
  if (!isNarrow)
    return f.b.divF(f.x, f.y);
  return arith::DivFOp::create(f.b, f.x, f.y, f.flags | arith::FastMathFlags::arcp);
}

/// powf, but 1^y and x^0 are 1 even for NaN, whatever the library does.
Value power(const FloatOp &f) {
  CodeBuilder &b = f.b;
  Value result = math::PowFOp::create(b, f.x, f.y, CodeBuilder::flags);
  Value isOne = b.orI(b.cmpF(FPred::OEQ, f.x, 1.0), b.cmpF(FPred::OEQ, f.y, 0.0));
  return b.select(isOne, b.floatingLike(f.x, 1.0), result);
}

Value isFinite(CodeBuilder &b, Value x) { return b.cmpF(FPred::ONE, b.absF(x), b.infinity(x.getType())); }

Value remainder(const FloatOp &f) { return arith::RemFOp::create(f.b, f.x, f.y); }

Value withReducedPrecision(const FloatOp &f) {
  return reducePrecision(f.b, f.x, f.op.instr.intOr(AttributeKey::ExponentBits, 0),
                         f.op.instr.intOr(AttributeKey::MantissaBits, 0));
}

/// The op on values in their compute type.
using Compute = Value (*)(const FloatOp &);

/// Null if the opcode has no meaning for floats.
Compute computeOf(Opcode opcode) {
  using enum Opcode;
  static constexpr OpcodeTable<Compute> table(
      [](Opcode each) { return isDefinedOn(each, TypeSet::Float); },
      {
          {{Add}, [](const FloatOp &f) { return f.b.addF(f.x, f.y); }},
          {{Subtract}, [](const FloatOp &f) { return f.b.subF(f.x, f.y); }},
          {{Multiply}, [](const FloatOp &f) { return f.b.mulF(f.x, f.y); }},
          {{Divide}, quotient},
          {{Remainder}, remainder},
          {{Maximum}, [](const FloatOp &f) { return f.b.maxF(f.x, f.y); }},
          {{Minimum}, [](const FloatOp &f) { return f.b.minF(f.x, f.y); }},
          {{Negate}, [](const FloatOp &f) { return f.b.negF(f.x); }},
          {{Abs}, [](const FloatOp &f) { return f.b.absF(f.x); }},
          {{Sign}, [](const FloatOp &f) { return sign(f.b, f.x); }},
          {{Power}, power},
          {{Logistic}, logistic},
          {{ReducePrecision}, withReducedPrecision},
          {{Atan2}, [](const FloatOp &f) { return f.b.atan2(f.x, f.y); }},
          {{Floor}, call<math::FloorOp>},
          {{Ceil}, call<math::CeilOp>},
          {{RoundNearestAfz}, call<math::RoundOp>},
          {{RoundNearestEven}, call<math::RoundEvenOp>},
          {{Acos}, call<math::AcosOp>},
          {{Acosh}, call<math::AcoshOp>},
          {{Asin}, call<math::AsinOp>},
          {{Asinh}, call<math::AsinhOp>},
          {{Atanh}, call<math::AtanhOp>},
          {{Cbrt}, call<math::CbrtOp>},
          {{Cosine}, call<math::CosOp>},
          {{Cosh}, call<math::CoshOp>},
          {{Erf}, call<math::ErfOp>},
          {{Exponential}, call<math::ExpOp>},
          {{ExponentialMinusOne}, call<math::ExpM1Op>},
          {{Log}, call<math::LogOp>},
          {{LogPlusOne}, call<math::Log1pOp>},
          {{Rsqrt}, call<math::RsqrtOp>},
          {{Sine}, call<math::SinOp>},
          {{Sinh}, call<math::SinhOp>},
          {{Sqrt}, call<math::SqrtOp>},
          {{Tan}, call<math::TanOp>},
          {{Tanh}, call<math::TanhOp>},
          {{Real, Imag, IsFinite, Complex}, nullptr}, // emitFloatOp, emitElementwise: of the elements as they are
      });
  return table.contains(opcode) ? table[opcode] : nullptr;
}

/// exp, log and tanh have hardware approximations that are exact enough for bf16, exp also for f16: log's error near 1
/// and tanh's of 2^-11 are more than half an ulp of f16.
bool approximate(Opcode opcode, ElementType type) {
  if (opcode == Opcode::Exponential || opcode == Opcode::Logistic)
    return type == ElementType::BF16 || type == ElementType::F16;
  return type == ElementType::BF16 && (opcode == Opcode::Log || opcode == Opcode::Tanh);
}

} // namespace

Value reducePrecision(CodeBuilder &b, Value x, unsigned exponentBits, unsigned mantissaBits) {
  bool isDouble = x.getType().isF64();
  unsigned sourceMantissa = isDouble ? 52 : 23;
  unsigned sourceExponent = isDouble ? 11 : 8;
  int64_t sourceBias = isDouble ? 1023 : 127;
  Type type = b.intTypeOf(x);
  Value bits = b.bitcast(x, type);
  int64_t signMask = int64_t(uint64_t(1) << (sourceMantissa + sourceExponent));
  int64_t infinity = ((int64_t(1) << sourceExponent) - 1) << sourceMantissa;
  Value sign = b.andI(bits, signMask);
  Value magnitude = b.andI(bits, ~signMask);
  Value isNan = b.cmpI(IPred::ugt, magnitude, infinity);

  if (mantissaBits < sourceMantissa) {
    unsigned dropped = sourceMantissa - mantissaBits;
    Value odd = b.andI(b.shrU(magnitude, dropped), 1);
    Value rounded = b.addI(b.addI(magnitude, (int64_t(1) << (dropped - 1)) - 1), odd);
    magnitude = b.andI(rounded, ~((int64_t(1) << dropped) - 1));
  }
  if (exponentBits < sourceExponent) {
    int64_t bias = (int64_t(1) << (exponentBits - 1)) - 1;
    int64_t largestExponent = sourceBias + bias;
    int64_t smallestExponent = sourceBias - bias;
    // Exponents above the range become infinity; at or below the smallest, which the format has no numbers for, zero.
    Value exponent = b.andI(magnitude, infinity);
    Value tooLarge = b.cmpI(IPred::ugt, exponent, largestExponent << sourceMantissa);
    Value tooSmall = b.cmpI(IPred::ule, exponent, smallestExponent << sourceMantissa);
    magnitude = b.select(tooLarge, b.integer(type, infinity), magnitude);
    magnitude = b.select(tooSmall, b.integer(type, 0), magnitude);
  }
  Value result = b.bitcast(b.orI(magnitude, sign), x.getType());
  Value nan = mantissaBits > 0 ? x : b.infinity(x.getType());
  return b.select(isNan, nan, result);
}

/// The sign of a pattern is a bit of its own, but for the formats that have something else in the place of -0.
static bool hasSignBit(ElementType type) {
  FloatFormat::Specials specials = floatFormat(type).specials;
  return specials != FloatFormat::Specials::NanNegativeZero && specials != FloatFormat::Specials::PowerOfTwo;
}

llvm::FailureOr<Value> emitFloatOp(const ElementwiseOp &op) {
  CodeBuilder &b = op.b;
  ElementType type = op.operandType();
  bool changesSign = op.opcode() == Opcode::Negate || op.opcode() == Opcode::Abs;
  if (changesSign && isPatternFloat(type) && hasSignBit(type)) {
    int64_t sign = int64_t(1) << (floatFormat(type).bits - 1);
    Value pattern = op.operand();
    return op.opcode() == Opcode::Negate ? b.xorI(pattern, b.integerLike(pattern, sign)) : b.andI(pattern, sign - 1);
  }
  // Of bf16 itself: the passes' ExpandMath has the form, since a quotient may be subnormal in f32.
  if (op.opcode() == Opcode::Divide && type == ElementType::BF16)
    return b.divF(op.operand(0), op.operand(1));
  if (op.opcode() == Opcode::Real)
    return op.operand();
  if (op.opcode() == Opcode::Imag)
    return fromCompute(b, b.floating(computeType(type, b.getContext()), 0.0), type);
  if (op.opcode() == Opcode::IsFinite)
    return isFinite(b, toCompute(b, op.operand(), type));
  const Compute compute = computeOf(op.opcode());
  if (!compute)
    return op.unsupportedType();
  arith::FastMathFlags flags = CodeBuilder::flags;
  if (approximate(op.opcode(), type))
    flags = flags | arith::FastMathFlags::afn;
  if (isTanhBesideOne(op.instr))
    flags = flags | arith::FastMathFlags::reassoc;
  Value y = op.operands.size() > 1 ? toCompute(b, op.operand(1), type) : Value();
  return fromCompute(b, compute(FloatOp{op, b, toCompute(b, op.operand(0), type), y, flags}), op.resultType());
}

} // namespace hloc
