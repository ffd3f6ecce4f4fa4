#pragma once
// CodeBuilder: short names for the scalar ops that elementwise code is made of. Integer ops work on any width, float
// ops on f32 and f64; constants take the type of the value they meet. Arithmetic carries the `contract` flag.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace hloc {

class CodeBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using Value = mlir::Value;
  using Type = mlir::Type;
  using IPred = mlir::arith::CmpIPredicate;
  using FPred = mlir::arith::CmpFPredicate;

  /// Flags of arithmetic: products and sums may become one fma.
  static constexpr mlir::arith::FastMathFlags flags = mlir::arith::FastMathFlags::contract;

  // Constants.
  Value index(int64_t value);
  Value integer(Type type, int64_t value); ///< truncated to the width
  Value integerLike(Value like, int64_t value) { return integer(like.getType(), value); }
  Value floating(Type type, double value);
  Value floatingLike(Value like, double value) { return floating(like.getType(), value); }
  Value boolean(bool value) { return integer(getI1Type(), value); }
  Value quietNan(Type type); ///< with the bits that the machine's arithmetic gives it
  Value infinity(Type type, bool negative = false);

  // Integers.
  Value addI(Value a, Value b) { return mlir::arith::AddIOp::create(*this, a, b); }
  Value subI(Value a, Value b) { return mlir::arith::SubIOp::create(*this, a, b); }
  Value mulI(Value a, Value b) { return mlir::arith::MulIOp::create(*this, a, b); }
  Value andI(Value a, Value b) { return mlir::arith::AndIOp::create(*this, a, b); }
  Value orI(Value a, Value b) { return mlir::arith::OrIOp::create(*this, a, b); }
  Value xorI(Value a, Value b) { return mlir::arith::XOrIOp::create(*this, a, b); }
  Value shl(Value a, Value b) { return mlir::arith::ShLIOp::create(*this, a, b); }
  Value shrU(Value a, Value b) { return mlir::arith::ShRUIOp::create(*this, a, b); }
  Value shrS(Value a, Value b) { return mlir::arith::ShRSIOp::create(*this, a, b); }
  Value shl(Value a, int64_t amount) { return shl(a, integerLike(a, amount)); }
  Value shrU(Value a, int64_t amount) { return shrU(a, integerLike(a, amount)); }
  Value andI(Value a, int64_t mask) { return andI(a, integerLike(a, mask)); }
  Value addI(Value a, int64_t constant) { return addI(a, integerLike(a, constant)); }
  Value orI(Value a, int64_t mask) { return orI(a, integerLike(a, mask)); }
  Value minU(Value a, Value b) { return mlir::arith::MinUIOp::create(*this, a, b); }
  Value minS(Value a, Value b) { return mlir::arith::MinSIOp::create(*this, a, b); }
  Value maxS(Value a, Value b) { return mlir::arith::MaxSIOp::create(*this, a, b); }
  Value minI(Value a, Value b, bool isSigned);
  Value maxI(Value a, Value b, bool isSigned);
  Value cmpI(IPred predicate, Value a, Value b) { return mlir::arith::CmpIOp::create(*this, predicate, a, b); }
  Value cmpI(IPred predicate, Value a, int64_t b) { return cmpI(predicate, a, integerLike(a, b)); }
  Value notI(Value a) { return xorI(a, integerLike(a, -1)); }
  /// Extends or truncates; `isSigned` speaks of `a`.
  Value castI(Value a, Type type, bool isSigned);
  Value toIndex(Value a, bool isSigned);
  Value select(Value condition, Value a, Value b) { return mlir::arith::SelectOp::create(*this, condition, a, b); }
  Value bitcast(Value a, Type type) {
    return a.getType() == type ? a : mlir::arith::BitcastOp::create(*this, type, a).getResult();
  }
  Type intTypeOf(Value a) { return getIntegerType(a.getType().getIntOrFloatBitWidth()); }

  // Floats.
  Value addF(Value a, Value b) { return mlir::arith::AddFOp::create(*this, a, b, flags); }
  Value subF(Value a, Value b) { return mlir::arith::SubFOp::create(*this, a, b, flags); }
  /// Of numbers rounded as they are: where one is a product, no fma with what it was before.
  Value differenceF(Value a, Value b) { return mlir::arith::SubFOp::create(*this, a, b); }
  Value mulF(Value a, Value b) { return mlir::arith::MulFOp::create(*this, a, b, flags); }
  Value divF(Value a, Value b) { return mlir::arith::DivFOp::create(*this, a, b, flags); }
  Value negF(Value a) { return mlir::arith::NegFOp::create(*this, a); }
  Value absF(Value a) { return mlir::math::AbsFOp::create(*this, a); }
  Value addF(Value a, double b) { return addF(a, floatingLike(a, b)); }
  Value mulF(Value a, double b) { return mulF(a, floatingLike(a, b)); }
  Value fma(Value a, Value b, Value c) { return mlir::math::FmaOp::create(*this, a, b, c); }
  Value sqrt(Value a) { return mlir::math::SqrtOp::create(*this, a); }
  Value copySign(Value magnitude, Value sign) { return mlir::math::CopySignOp::create(*this, magnitude, sign); }
  Value cmpF(FPred predicate, Value a, Value b) { return mlir::arith::CmpFOp::create(*this, predicate, a, b); }
  Value cmpF(FPred predicate, Value a, double b) { return cmpF(predicate, a, floatingLike(a, b)); }
  Value isNan(Value a) { return cmpF(FPred::UNO, a, a); }
  Value maxF(Value a, Value b) { return mlir::arith::MaximumFOp::create(*this, a, b); } ///< NaN wins
  Value minF(Value a, Value b) { return mlir::arith::MinimumFOp::create(*this, a, b); } ///< NaN wins
  Value castF(Value a, Type type);
  Value atan2(Value y, Value x);

  // Complex.
  Value real(Value a) { return mlir::complex::ReOp::create(*this, a); }
  Value imag(Value a) { return mlir::complex::ImOp::create(*this, a); }
  Value complex(Value re, Value im) {
    return mlir::complex::CreateOp::create(*this, mlir::ComplexType::get(re.getType()), re, im);
  }
};

} // namespace hloc
