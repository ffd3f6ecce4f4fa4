#include "emitters/CodeBuilder.h"

using namespace mlir;

namespace hloc {

Value CodeBuilder::index(int64_t value) { return arith::ConstantIndexOp::create(*this, value); }

Value CodeBuilder::integer(Type type, int64_t value) {
  if (type.isIndex())
    return index(value);
  unsigned width = type.getIntOrFloatBitWidth();
  llvm::APInt bits(64, static_cast<uint64_t>(value), true);
  return arith::ConstantOp::create(*this, IntegerAttr::get(type, width <= 64 ? bits.trunc(width) : bits.sext(width)));
}

Value CodeBuilder::floating(Type type, double value) {
  return arith::ConstantOp::create(*this, FloatAttr::get(type, value));
}

Value CodeBuilder::quietNan(Type type) {
  const llvm::fltSemantics &semantics = cast<FloatType>(type).getFloatSemantics();
  llvm::APFloat nan = llvm::APFloat::getQNaN(semantics);
  if (!type.isF64())
    nan = llvm::APFloat(semantics, llvm::APInt::getSignedMaxValue(type.getIntOrFloatBitWidth()));
  return arith::ConstantOp::create(*this, FloatAttr::get(type, nan));
}

/// Of two zeros MLIR's folding of constants makes NaN.
Value CodeBuilder::atan2(Value y, Value x) {
  const int64_t sign = int64_t(1) << (y.getType().getIntOrFloatBitWidth() - 1);
  Value yBits = bitcast(y, intTypeOf(y)), xBits = bitcast(x, intTypeOf(x));
  Value half = select(cmpI(IPred::slt, xBits, 0), floatingLike(y, llvm::numbers::pi), floatingLike(y, 0.0));
  Value ofZeros = bitcast(orI(bitcast(half, intTypeOf(y)), andI(yBits, sign)), y.getType());
  Value areZero = andI(cmpF(FPred::OEQ, y, 0.0), cmpF(FPred::OEQ, x, 0.0));
  return select(areZero, ofZeros, mlir::math::Atan2Op::create(*this, y, x, flags));
}

Value CodeBuilder::infinity(Type type, bool negative) {
  const llvm::fltSemantics &semantics = cast<FloatType>(type).getFloatSemantics();
  return arith::ConstantOp::create(*this, FloatAttr::get(type, llvm::APFloat::getInf(semantics, negative)));
}

Value CodeBuilder::minI(Value a, Value b, bool isSigned) { return isSigned ? minS(a, b) : minU(a, b); }

Value CodeBuilder::maxI(Value a, Value b, bool isSigned) {
  return isSigned ? maxS(a, b) : arith::MaxUIOp::create(*this, a, b).getResult();
}

Value CodeBuilder::castI(Value a, Type type, bool isSigned) {
  unsigned from = a.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from == to)
    return a;
  if (from > to)
    return arith::TruncIOp::create(*this, type, a);
  if (isSigned)
    return arith::ExtSIOp::create(*this, type, a);
  return arith::ExtUIOp::create(*this, type, a);
}

Value CodeBuilder::toIndex(Value a, bool isSigned) {
  if (isSigned)
    return arith::IndexCastOp::create(*this, getIndexType(), a);
  return arith::IndexCastUIOp::create(*this, getIndexType(), a);
}

Value CodeBuilder::castF(Value a, Type type) {
  unsigned from = a.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (a.getType() == type)
    return a;
  if (from < to) {
    Value extended = arith::ExtFOp::create(*this, type, a);
    if (!isa<Float8E8M0FNUType>(a.getType()))
      return extended;
    // LLVM's APFloat takes this type's NaN for infinity, and constants are folded by it.
    Value bits = arith::BitcastOp::create(*this, getI8Type(), a);
    Value isNan = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, bits,
                                        arith::ConstantOp::create(*this, getI8IntegerAttr(-1)));
    auto floatType = cast<FloatType>(type);
    Value nan =
        arith::ConstantOp::create(*this, FloatAttr::get(type, llvm::APFloat::getQNaN(floatType.getFloatSemantics())));
    return arith::SelectOp::create(*this, isNan, nan, extended);
  }
  return arith::TruncFOp::create(*this, type, a);
}

} // namespace hloc
