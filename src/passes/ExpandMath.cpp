// Elementary functions as arithmetic where that is shorter than libdevice and as accurate (bounds in the comments are
// against the exact value, in units in the last place of f32). f16 and bf16 are computed in f32.
#include "passes/PassDetail.h"
#include "passes/Trigonometry.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include <cmath>

namespace hloc {
#define GEN_PASS_DEF_EXPANDMATH
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;

namespace {

/// Emits f32 arithmetic before one op.
class F32 {
public:
  F32(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(double value) {
    return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(value)));
  }
  Value add(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(builder, loc, a, b); }
  Value widen(Value a) { return arith::ExtFOp::create(builder, loc, builder.getF32Type(), a); }
  Value narrow(Value a, Type type) { return arith::TruncFOp::create(builder, loc, type, a); }
  Value bits(Value a) { return arith::BitcastOp::create(builder, loc, builder.getI32Type(), a); }
  Value fromBits(Value a) { return arith::BitcastOp::create(builder, loc, builder.getF32Type(), a); }
  Value andI(Value a, uint32_t mask) {
    Value constant = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int32_t(mask)));
    return arith::AndIOp::create(builder, loc, a, constant);
  }
  Value neg(Value a) { return arith::NegFOp::create(builder, loc, a); }
  Value abs(Value a) { return math::AbsFOp::create(builder, loc, a); }
  Value fma(Value a, Value b, Value c) { return math::FmaOp::create(builder, loc, a, b, c); }
  Value select(Value condition, Value a, Value b) { return arith::SelectOp::create(builder, loc, condition, a, b); }
  Value less(Value a, Value b) { return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, a, b); }
  /// Neither equal nor unordered.
  Value differs(Value a, Value b) { return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ONE, a, b); }
  Value equal(Value a, Value b) { return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, a, b); }
  /// Limits `a` to [low, high]; NaN stays NaN.
  Value clamp(Value a, double low, double high) {
    a = arith::MaximumFOp::create(builder, loc, a, constant(low));
    return arith::MinimumFOp::create(builder, loc, a, constant(high));
  }
  /// The larger number; the other one of NaN.
  Value largerNumber(Value a, Value b) { return arith::MaxNumFOp::create(builder, loc, a, b); }
  /// 2^a by the hardware (ex2.approx): 2 ulp, subnormal results kept.
  Value exp2(Value a) { return LLVM::Exp2Op::create(builder, loc, builder.getF32Type(), a); }
  /// The same in one instruction where zero may stand for subnormal results (ex2.approx.ftz).
  Value flushedExp2(Value a) {
    auto name = builder.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32");
    return LLVM::CallIntrinsicOp::create(builder, loc, builder.getF32Type(), name, a).getResult(0);
  }
  /// log2(a) by the hardware (lg2.approx): error 2^-22 between 0.5 and 2, 2 ulp elsewhere; subnormal numbers too.
  Value log2(Value a) {
    auto name = builder.getStringAttr("llvm.nvvm.lg2.approx.f");
    return LLVM::CallIntrinsicOp::create(builder, loc, builder.getF32Type(), name, a).getResult(0);
  }
  /// 1/a by the hardware (rcp.approx.ftz): 1 ulp; of subnormal numbers infinity.
  Value reciprocal(Value a) {
    auto name = builder.getStringAttr("llvm.nvvm.rcp.approx.ftz.f");
    return LLVM::CallIntrinsicOp::create(builder, loc, builder.getF32Type(), name, a).getResult(0);
  }
  /// tanh(a) by the hardware (tanh.approx): relative error 2^-11. From sm_75 on.
  Value tanh(Value a) { return LLVM::TanhOp::create(builder, loc, builder.getF32Type(), a, LLVM::FastmathFlags::afn); }
  /// Coefficients from the highest power down.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value value = constant(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      value = fma(value, x, constant(coefficient));
    return value;
  }

  OpBuilder &builder;
  Location loc;
};

/// e^x in seven operations: 2^p of a rounded product p = x * log2(e), and e^(x - p * ln(2)) to first order, with ln(2)
/// in two floats. Error below 4 ulp; 0 and infinity where f32 ends, NaN for NaN.
Value expandExp(F32 f, Value x) {
  constexpr double ln2 = 0.6931471805599453;
  const double high = float(ln2), low = ln2 - high;
  Value product = f.mul(x, f.constant(1.4426950408889634));
  Value rest = f.fma(product, f.constant(-high), x);
  rest = f.fma(product, f.constant(-low), rest);
  Value power = f.exp2(product);
  // The rest of large numbers is large, and none where the product is infinite (`low` is negative). The power is 0 or
  // infinity then, and stays so times a positive number.
  return f.mul(power, f.largerNumber(f.add(rest, f.constant(1.0)), f.constant(0.5)));
}

/// Rational minimax approximation on [-7.99, 7.99]; beyond, tanh rounds to one. Error below 7 ulp, of which the
/// division may have 2.
Value expandTanh(F32 f, Value x) {
  Value small = f.less(f.abs(x), f.constant(0.0004));
  Value limited = f.clamp(x, -7.99881172180175781, 7.99881172180175781);
  Value square = f.mul(limited, limited);
  Value numerator =
      f.polynomial(square, {-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
                            1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03});
  numerator = f.mul(limited, numerator);
  Value denominator =
      f.polynomial(square, {1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03});
  // The quotient of two numbers that are nearly equal may exceed one by two ulp.
  Value quotient = f.clamp(f.div(numerator, denominator), -1.0, 1.0);
  return f.select(small, x, quotient);
}

/// Half of 1 + tanh(x) is 1 / (1 + e^-2x): where tanh cannot be seen but beside 1, it need not be right near 0. Off by
/// 2 ulp, and by |x| ulp of e^-2x, whose share in it is as small as e^-2|x|; near -1 this is more than 1 + tanh has,
/// which loses all digits there.
Value expandHalfOfOnePlusTanh(F32 f, Value x) {
  Value power = f.flushedExp2(f.mul(x, f.constant(-2 * 1.4426950408889634)));
  return f.reciprocal(f.add(power, f.constant(1.0)));
}

/// Rational approximation of odd numerator and even denominator on [-3.74, 3.74]; beyond, erf rounds to one. Error
/// below 7.5 ulp (of all 2^32 operands), of which the division may have 2.
Value expandErf(F32 f, Value x) {
  constexpr double limit = 3.7439211627767994;
  Value limited = f.clamp(x, -limit, limit);
  Value square = f.mul(limited, limited);
  Value numerator = f.polynomial(square, {2.2905065861350646e-4, 3.4082910107109506e-3, 5.0955695062380861e-2,
                                          0.18520832239976145, 1.128379143519084});
  Value denominator = f.polynomial(square, {-1.1791602954361697e-7, 2.3547966471313185e-5, 1.0179625278914885e-3,
                                            1.4070470171167667e-2, 0.11098505178285362, 0.49746925110067538, 1.0});
  Value quotient = f.div(f.mul(limited, numerator), denominator);
  // The quotient may exceed one.
  return f.clamp(quotient, -1.0, 1.0);
}

// The forms for results that are rounded to bf16, half of whose ulp is 2^-9 of the value; exp also to f16 (2^-12).

/// x * log2(e) is off by 2^-17 at most, in the exponent; by 2^-20 where the result is in the range of f16.
Value approximateExp(F32 f, Value x) { return f.exp2(f.mul(x, f.constant(1.4426950408889634))); }

/// The bf16 numbers next to 1 have logarithms above 2^-9, of which lg2's error is 2^-13. That of 1 may be off as far.
Value approximateLog(F32 f, Value x) {
  Value log = f.mul(f.log2(x), f.constant(0.6931471805599453));
  return f.select(f.equal(x, f.constant(1.0)), f.constant(0.0), log);
}

Value approximateTanh(F32 f, Value x) { return f.tanh(x); }

/// x / y of f16 numbers, f8 and narrower ones among them, for a result that is rounded to their type once more.
///
/// The product of x and an approximate reciprocal is off by up to two units, so it may lie beside x / y where that is
/// halfway between two numbers of the narrow type, as quotients that are subnormal there often are: 3 / 2 of the
/// smallest f8. With the remainder, which is exact, it becomes x / y within 2^-45 before it is rounded to f32. Then
/// quotients of few bits are exact, and all others stay on their side of what is halfway: a quotient of numbers of p
/// bits is at least 2^-(2p+1) of itself away from numbers of p + 1 bits, 2^-23 for f16.
///
/// Zeros, infinities and what is none have no remainder but zero or NaN; the product is right for them.
Value expandQuotient(F32 f, Value x, Value y) {
  Value reciprocal = f.reciprocal(y);
  Value product = f.mul(x, reciprocal);
  Value remainder = f.fma(f.neg(product), y, x);
  Value corrected = f.fma(remainder, reciprocal, product);
  return f.select(f.differs(remainder, f.constant(0.0)), corrected, product);
}

/// What several divisions of bf16 by one number share: a power of two that brings the number near enough to one for
/// `reciprocal`, and the reciprocal of the product, whose sign is the number's.
struct Divisor {
  Value scale, reciprocal;
};

/// By a scale of 2^64, 1 or 2^-64 the divisor comes to between 2^-69 and 2^64: no reciprocal is flushed. A dividend
/// that overflows by the same scale has no quotient within f32; one that becomes subnormal loses half a unit of 2^-149.
Divisor prepareDivisor(F32 f, Value y) {
  const double far = std::ldexp(1.0, 64);
  Value magnitude = f.abs(y), one = f.constant(1.0);
  Value down = f.select(f.less(f.constant(far), magnitude), f.constant(1 / far), one);
  Value scale = f.select(f.less(magnitude, f.constant(1 / far)), f.constant(far), down);
  return {scale, f.reciprocal(f.mul(y, scale))};
}

/// What is within a few units of a quotient of bf16 numbers, for rounding it to bf16, as the exact one would be
/// rounded.
///
/// A normal quotient of numbers of 8 bits is at least 2^-17 of itself away from what is halfway between two of them. A
/// subnormal one may be halfway, or is at least 2^-144 away from that, 32 units of f32. So it is put on multiples of 8
/// of these units, the last place of the number that is added and taken off, which moves it by no more than 4: what is
/// off by less than 4 from halfway is halfway again, and nothing else comes to the other side. Normal ones may lose
/// two bits by it. Zeros take the sign of `signedLike`, the quotient's, by bits, since LLVM would have it copied in
/// bf16.
Value settleQuotient(F32 f, Value quotient, Value signedLike) {
  Value last = f.constant(1.5 * std::ldexp(1.0, -123));
  Value settled = f.sub(f.add(quotient, last), last);
  Value sign = f.andI(f.bits(signedLike), 0x80000000);
  return f.fromBits(arith::OrIOp::create(f.builder, f.loc, f.bits(settled), sign));
}

/// 1 + tanh, in either order, or null.
math::TanhOp tanhBesideOne(arith::AddFOp sum) {
  for (auto [one, other] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())})
    if (auto tanh = other.getDefiningOp<math::TanhOp>(); tanh && matchPattern(one, m_OneFloat()))
      return tanh;
  return nullptr;
}

using Expansion = Value (*)(F32, Value);

bool hasFlag(Operation *op, arith::FastMathFlags flag) {
  auto interface = dyn_cast<arith::ArithFastMathInterface>(op);
  arith::FastMathFlagsAttr flags = interface ? interface.getFastMathFlagsAttr() : nullptr;
  return flags && bitEnumContainsAll(flags.getValue(), flag);
}

bool mayApproximate(Operation *op) { return hasFlag(op, arith::FastMathFlags::afn); }

Expansion expansionOf(Operation *op, int64_t computeCapability) {
  if (mayApproximate(op)) {
    if (isa<math::ExpOp>(op))
      return approximateExp;
    if (isa<math::LogOp>(op))
      return approximateLog;
    if (isa<math::TanhOp>(op) && computeCapability >= 75)
      return approximateTanh;
  }
  if (isa<math::ExpOp>(op))
    return expandExp;
  if (isa<math::TanhOp>(op))
    return expandTanh;
  if (isa<math::ErfOp>(op))
    return expandErf;
  return nullptr;
}

std::optional<Trigonometric> trigonometricOf(Operation *op) {
  if (isa<math::SinOp>(op))
    return Trigonometric::Sine;
  if (isa<math::CosOp>(op))
    return Trigonometric::Cosine;
  if (isa<math::TanOp>(op))
    return Trigonometric::Tangent;
  return std::nullopt;
}

class Expander {
public:
  explicit Expander(int64_t computeCapability) : computeCapability(computeCapability) {}

  void expand(Operation *op) {
    if (auto division = dyn_cast<arith::DivFOp>(op))
      return expandDivision(division);
    if (auto sum = dyn_cast<arith::AddFOp>(op))
      return expandOnePlusTanh(sum);
    if (auto tanh = dyn_cast<math::TanhOp>(op); tanh && isSeenBesideOneAlone(tanh))
      return; // with these sums
    Expansion expansion = expansionOf(op, computeCapability);
    std::optional<Trigonometric> function = trigonometricOf(op);
    if (!expansion && !function)
      return;
    Type type = op->getResult(0).getType();
    bool isNarrow = type.isF16() || type.isBF16();
    if (!type.isF32() && !isNarrow)
      return;
    OpBuilder builder(op);
    Location loc = op->getLoc();
    auto operand = [&]() -> Value {
      Value value = op->getOperand(0);
      return isNarrow ? arith::ExtFOp::create(builder, loc, builder.getF32Type(), value) : value;
    };
    Value result;
    if (expansion) {
      result = expansion(F32(builder, loc), operand());
    } else {
      // The reduction has a branch, so that none but this pass sees that two are the same.
      auto [place, isNew] = reductions.try_emplace({op->getBlock(), op->getOperand(0)});
      if (isNew)
        place->second = reduceArgument(builder, loc, operand());
      result = trigonometric(*function, builder, loc, place->second);
    }
    if (isNarrow)
      result = arith::TruncFOp::create(builder, loc, type, result);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

private:
  /// Those of bf16, and with `arcp` those of f32 whose operands are numbers of f16.
  void expandDivision(arith::DivFOp op) {
    OpBuilder builder(op);
    F32 f(builder, op.getLoc());
    if (op.getType().isF32() && hasFlag(op, arith::FastMathFlags::arcp))
      op.replaceAllUsesWith(expandQuotient(f, op.getLhs(), op.getRhs()));
    else if (op.getType().isBF16() && !isPowerOfTwo(op.getRhs()))
      op.replaceAllUsesWith(f.narrow(quotient(f, op), op.getType()));
    else
      return;
    op.erase();
  }

  /// Of numbers of bf16, in f32.
  Value quotient(F32 f, arith::DivFOp op) {
    Value x = f.widen(op.getLhs()), y = op.getRhs();
    // The inverse is right within 2^-24 of itself: from a subnormal quotient, below 2^23 units, the product is off by
    // less than half a unit before it is rounded, so that one that is halfway comes out exact.
    if (std::optional<double> constant = constantOf(y); constant && hasNormalInverse(*constant))
      return f.mul(x, f.constant(1 / *constant));
    if (!divisors.contains(y) && !isDivisorOfSeveral(op)) {
      Value quotient = f.div(x, f.widen(y));
      return settleQuotient(f, quotient, quotient);
    }
    auto [place, isNew] = divisors.try_emplace(y);
    if (isNew) {
      OpBuilder builder(op);
      builder.setInsertionPointAfterValue(y);
      F32 beside(builder, f.loc);
      place->second = prepareDivisor(beside, beside.widen(y));
    }
    auto [scale, reciprocal] = place->second;
    Value product = f.mul(f.mul(x, scale), reciprocal);
    return settleQuotient(f, product, isPower(x) ? reciprocal : product);
  }

  /// Rounded or not, here or in a function that is called, never negative.
  static bool isPower(Value x) {
    Operation *op = unrounded(x).getDefiningOp();
    if (auto call = dyn_cast_or_null<func::CallOp>(op)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (!callee || !callee.getBody().hasOneBlock() || call.getNumResults() != 1)
        return false;
      op = unrounded(callee.front().getTerminator()->getOperand(0)).getDefiningOp();
    }
    return isa_and_nonnull<math::ExpOp, LLVM::Exp2Op>(op);
  }
  static Value unrounded(Value x) {
    while (Operation *op = x.getDefiningOp()) {
      if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
        break;
      x = op->getOperand(0);
    }
    return x;
  }

  static std::optional<double> constantOf(Value value) {
    llvm::APFloat constant(0.0);
    if (!matchPattern(value, m_ConstantFloat(&constant)))
      return std::nullopt;
    return constant.convertToDouble();
  }
  static bool hasNormalInverse(double value) {
    return std::abs(value) > std::ldexp(1.0, -126) && std::abs(value) < std::ldexp(1.0, 126);
  }
  /// LLVM multiplies by its inverse, which is exact.
  static bool isPowerOfTwo(Value value) {
    std::optional<double> constant = constantOf(value);
    int exponent = 0;
    return constant && hasNormalInverse(*constant) && std::abs(std::frexp(*constant, &exponent)) == 0.5;
  }

  /// Whether the divisor comes from outside of the division's loop, or is that of others, too.
  static bool isDivisorOfSeveral(arith::DivFOp op) {
    Value y = op.getRhs();
    if (auto loop = op->getParentOfType<LoopLikeOpInterface>(); loop && loop.isDefinedOutsideOfLoop(y))
      return true;
    return llvm::count_if(y.getUses(), [](OpOperand &use) {
             return isa<arith::DivFOp>(use.getOwner()) && use.getOperandNumber() == 1;
           }) > 1;
  }

  static bool isSeenBesideOneAlone(math::TanhOp tanh) {
    return tanh.getType().isF32() && hasFlag(tanh, arith::FastMathFlags::reassoc) && !tanh->use_empty() &&
           llvm::all_of(tanh->getUsers(), [](Operation *user) {
             auto sum = dyn_cast<arith::AddFOp>(user);
             return sum && tanhBesideOne(sum);
           });
  }

  /// With `reassoc`: the reference knows of it then. A gelu multiplies it by a half.
  static void expandOnePlusTanh(arith::AddFOp sum) {
    math::TanhOp tanh = tanhBesideOne(sum);
    if (!tanh || !isSeenBesideOneAlone(tanh))
      return;
    OpBuilder builder(sum);
    F32 f(builder, sum.getLoc());
    Value half = expandHalfOfOnePlusTanh(f, tanh.getOperand());
    auto product = sum->hasOneUse() ? dyn_cast<arith::MulFOp>(*sum->getUsers().begin()) : nullptr;
    if (FloatAttr factor; product && matchPattern(product.getRhs(), m_Constant(&factor))) {
      builder.setInsertionPoint(product);
      product->setOperands({half, f.constant(2 * factor.getValueAsDouble())});
    } else {
      sum.replaceAllUsesWith(f.mul(half, f.constant(2.0)));
    }
    sum.erase();
    if (tanh->use_empty())
      tanh.erase();
  }

  int64_t computeCapability;
  /// By block: what is made earlier in one is there later in it.
  llvm::DenseMap<std::pair<Block *, Value>, ReducedArgument> reductions;
  llvm::DenseMap<Value, Divisor> divisors;
};

struct ExpandMathPass : hloc::impl::ExpandMathBase<ExpandMathPass> {
  using ExpandMathBase::ExpandMathBase;
  void runOnOperation() override {
    Expander expander(computeCapability);
    getOperation().walk([&](Operation *op) { expander.expand(op); });
  }
};

} // namespace
