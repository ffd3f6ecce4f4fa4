#include "passes/Trigonometry.h"

#include "passes/PassDetail.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace hloc {
namespace {

constexpr double halfPi = 1.5707963267948966;

using Reduced = ReducedArgument;

class TrigonometryBuilder {
public:
  TrigonometryBuilder(OpBuilder &builder, Location loc) : b(loc, builder) {}

  Reduced reduce(Value x) {
    Reduced near = reduceNear(x);
    Value magnitude = math::AbsFOp::create(b, x);
    Value isFar = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, magnitude, f32(largestNear));
    auto branch = scf::IfOp::create(b, TypeRange{b.getF32Type(), b.getI32Type()}, isFar, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(branch.thenBlock());
    Reduced far = reduceFar(x);
    scf::YieldOp::create(b, ValueRange{far.rest, far.quadrant});
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, ValueRange{near.rest, near.quadrant});
    return {branch.getResult(0), branch.getResult(1)};
  }

  /// The sine of k pi/2 + r.
  Value sine(Reduced reduced) {
    Value one = i32(1), two = i32(2);
    Value isOdd = equal(arith::AndIOp::create(b, reduced.quadrant, one), one);
    Value value = ofRest(reduced.rest, isOdd);
    Value isNegative = equal(arith::AndIOp::create(b, reduced.quadrant, two), two);
    return arith::SelectOp::create(b, isNegative, arith::NegFOp::create(b, value), value);
  }

  Value cosine(Reduced reduced) { return sine({reduced.rest, arith::AddIOp::create(b, reduced.quadrant, i32(1))}); }

  /// sin(r) / cos(r) in even quadrants, -cos(r) / sin(r) in odd ones.
  Value tangent(Reduced reduced) {
    Value one = i32(1);
    Value isOdd = equal(arith::AndIOp::create(b, reduced.quadrant, one), one);
    Value isEven = arith::XOrIOp::create(b, isOdd, arith::ConstantOp::create(b, b.getBoolAttr(true)));
    Value numerator = ofRest(reduced.rest, isOdd), denominator = ofRest(reduced.rest, isEven);
    numerator = arith::SelectOp::create(b, isOdd, arith::NegFOp::create(b, numerator), numerator);
    return arith::DivFOp::create(b, numerator, denominator);
  }

private:
  /// Up to here k has 17 bits, and the first product of the reduction below is exact where it cancels.
  static constexpr double largestNear = 105615.0;

  Value f32(double value) { return arith::ConstantOp::create(b, b.getF32FloatAttr(float(value))); }
  Value i32(uint32_t value) { return arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(value))); }
  Value i64(int64_t value) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
  Value equal(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y); }
  Value wide(Value x) { return arith::ExtUIOp::create(b, b.getI64Type(), x); }

  /// Cody and Waite: pi/2 in three floats, taken off one after the other.
  Reduced reduceNear(Value x) {
    Value rounded = math::RoundEvenOp::create(b, arith::MulFOp::create(b, x, f32(1 / halfPi)).getResult());
    Value quadrant = arith::FPToSIOp::create(b, b.getI32Type(), rounded);
    // Through an integer, so that zero has no sign: taken off -0, it leaves -0.
    Value count = arith::SIToFPOp::create(b, b.getF32Type(), quadrant);
    // All three are positive, which the sign of zero needs, too.
    const double high = 1.57079625129699707, middle = 7.54978941586159635e-08, low = 5.39030285815811905e-15;
    Value rest = fma(count, f32(-high), x);
    rest = fma(count, f32(-middle), rest);
    rest = fma(count, f32(-low), rest);
    return {rest, quadrant};
  }

  /// Payne and Hanek: of the product with 2/pi, only the bits below 4 matter, so only 96 bits of 2/pi do, from a place
  /// that the exponent tells.
  Reduced reduceFar(Value x) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), x);
    Value mantissa = arith::OrIOp::create(b, arith::ShLIOp::create(b, bits, i32(8)), i32(0x80000000));
    Value exponent = arith::AndIOp::create(b, arith::ShRUIOp::create(b, bits, i32(23)), i32(255));
    // x = mantissa 2^(first - 30). Bits of 2/pi before `first - 32` give multiples of 4; the sequence starts with 32
    // zeros.
    Value first = arith::SubIOp::create(b, exponent, i32(128));
    SmallVector<Value, 3> window = bitsOfTwoOverPi(first);
    Value low = arith::MulIOp::create(b, wide(mantissa), wide(window[2]));
    Value middle = arith::MulIOp::create(b, wide(mantissa), wide(window[1]));
    Value high = arith::ShLIOp::create(b, wide(arith::MulIOp::create(b, mantissa, window[0])), i64(32));
    // Units of 2^-62.
    Value product = arith::AddIOp::create(b, arith::ShRUIOp::create(b, low, i64(32)), middle);
    product = arith::AddIOp::create(b, product, high);
    return finishFar(x, product);
  }

  /// 96 bits of 0.00000000 a2f9836e 4e441529 ... (hexadecimal), from bit `first` on; 0 <= first < 127.
  SmallVector<Value, 3> bitsOfTwoOverPi(Value first) {
    static constexpr uint32_t words[] = {0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041};
    Value word = arith::ShRUIOp::create(b, first, i32(5));
    Value shift = arith::AndIOp::create(b, first, i32(31));
    SmallVector<Value, 4> chosen;
    for (unsigned i = 0; i < 4; ++i) {
      Value choice = i32(words[i + 3]);
      for (unsigned k = 0; k < 3; ++k)
        choice = arith::SelectOp::create(b, equal(word, i32(k)), i32(words[i + k]), choice);
      chosen.push_back(choice);
    }
    SmallVector<Value, 3> window;
    for (unsigned i = 0; i < 3; ++i)
      window.push_back(LLVM::FshlOp::create(b, b.getI32Type(), chosen[i], chosen[i + 1], shift));
    return window;
  }

  /// From the product in units of 2^-62: two bits of quadrant, 62 bits of fraction, rounded to the nearest quadrant.
  Reduced finishFar(Value x, Value product) {
    auto narrow = [&](Value value) -> Value { return arith::TruncIOp::create(b, b.getI32Type(), value); };
    Value quadrant = narrow(arith::ShRUIOp::create(b, product, i64(62)));
    Value half = narrow(arith::ShRUIOp::create(b, product, i64(61)));
    quadrant = arith::AddIOp::create(b, quadrant, arith::AndIOp::create(b, half, i32(1)));
    Value fraction = arith::ShLIOp::create(b, product, i64(2));
    Value exact = arith::SIToFPOp::create(b, b.getF64Type(), fraction);
    Value unit = arith::ConstantOp::create(b, b.getF64FloatAttr(halfPi * 0x1p-64));
    exact = arith::MulFOp::create(b, exact, unit);
    Value rest = arith::TruncFOp::create(b, b.getF32Type(), exact);

    Value isNegative = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, f32(0));
    rest = arith::SelectOp::create(b, isNegative, arith::NegFOp::create(b, rest), rest);
    Value negated = arith::SubIOp::create(b, i32(0), quadrant);
    quadrant = arith::SelectOp::create(b, isNegative, negated, quadrant);
    // Infinities and NaN have no rest.
    Value magnitude = math::AbsFOp::create(b, x);
    Value infinity = f32(std::numeric_limits<double>::infinity());
    Value hasNone = arith::CmpFOp::create(b, arith::CmpFPredicate::UGE, magnitude, infinity);
    Value nan = f32(std::numeric_limits<double>::quiet_NaN());
    return {arith::SelectOp::create(b, hasNone, nan, rest), quadrant};
  }

  /// sin(r), or cos(r) where `cosine`: minimax polynomials in r^2.
  Value ofRest(Value rest, Value cosine) {
    constexpr double sineTerms[] = {2.71827434e-06, -1.98393303e-04, 8.33332911e-03, -1.66666672e-01};
    constexpr double cosineTerms[] = {2.43900413e-05, -1.38867600e-03, 4.16666232e-02, -0.5};
    Value square = arith::MulFOp::create(b, rest, rest);
    Value terms;
    for (auto [ofSine, ofCosine] : llvm::zip_equal(sineTerms, cosineTerms)) {
      Value term = arith::SelectOp::create(b, cosine, f32(ofCosine), f32(ofSine));
      terms = terms ? fma(terms, square, term) : term;
    }
    Value leading = arith::SelectOp::create(b, cosine, f32(1), rest);
    // The added zero makes the correction of -0 a negative zero, so that its sine is -0.
    return fma(terms, fma(leading, square, f32(0)), leading);
  }

  ImplicitLocOpBuilder b;
};

} // namespace

ReducedArgument reduceArgument(OpBuilder &builder, Location loc, Value x) {
  return TrigonometryBuilder(builder, loc).reduce(x);
}

Value trigonometric(Trigonometric function, OpBuilder &builder, Location loc, ReducedArgument argument) {
  TrigonometryBuilder trigonometry(builder, loc);
  switch (function) {
  case Trigonometric::Sine:
    return trigonometry.sine(argument);
  case Trigonometric::Cosine:
    return trigonometry.cosine(argument);
  case Trigonometric::Tangent:
    return trigonometry.tangent(argument);
  }
  llvm_unreachable("unknown function");
}

} // namespace hloc
