// Functions of the special function units, as branch-free vector code that is as accurate as is cheap. Where
// `deviation` is given the result is moved by that part of what PTX allows (LowerDeviation.cpp).
#include "WarpCode.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Intrinsics.h"

namespace hloc::emulator {

using namespace llvm;

static constexpr Type singleType{TypeClass::Float, 32, 1};

/// Horner's scheme, highest coefficient first, fused.
llvm::Value *WarpCode::polynomial(Value *x, ArrayRef<double> coefficients) {
  Value *sum = fp(x, coefficients.front());
  for (double c : coefficients.drop_front())
    sum = ir.CreateIntrinsic(x->getType(), Intrinsic::fma, {sum, x, fp(x, c)});
  return sum;
}

/// 2^x of f32, 1 ulp: x = n + f with |f| <= 1/2; 2^f by its Taylor series to f^7 (next term 5e-9); 2^n in two factors,
/// so that subnormal results are rounded once and overflow gives infinity.
llvm::Value *WarpCode::exp2(Value *x) {
  static constexpr double taylor[] = {
      1.5252733804059841e-05, 1.5403530393381609e-04, 1.3333558146428443e-03, 9.6181291076284772e-03,
      5.5504108664821580e-02, 2.4022650695910072e-01, 6.9314718055994531e-01, 1.0};
  Value *bounded = ir.CreateBinaryIntrinsic(Intrinsic::minnum, x, fp(x, 130));
  bounded = ir.CreateBinaryIntrinsic(Intrinsic::maxnum, bounded, fp(x, -155));
  Value *whole = unary(Intrinsic::rint, bounded);
  Value *power = polynomial(ir.CreateFSub(bounded, whole), taylor);
  Value *n = ir.CreateFPToSI(whole, intLanes(32));
  Value *first = ir.CreateAShr(n, splatInt(32, 1)), *second = ir.CreateSub(n, first);
  auto scale = [&](Value *exponent) {
    Value *bits = ir.CreateShl(ir.CreateAdd(exponent, splatInt(32, 127)), splatInt(32, 23));
    return ir.CreateBitCast(bits, x->getType());
  };
  Value *result = ir.CreateFMul(ir.CreateFMul(power, scale(first)), scale(second));
  return ir.CreateSelect(ir.CreateFCmpUNO(x, x), x, result);
}

/// The same as f64, to 40 bits, of finite f32 with results of ordinary size: to f^11 (next term 6e-15).
llvm::Value *WarpCode::exp2InDouble(Value *x) {
  static constexpr double taylor[] = {4.4455382718708116e-10, 7.0549116208011233e-09, 1.0178086009239701e-07,
                                      1.3215486790144310e-06, 1.5252733804059841e-05, 1.5403530393381609e-04,
                                      1.3333558146428443e-03, 9.6181291076284772e-03, 5.5504108664821580e-02,
                                      2.4022650695910072e-01, 6.9314718055994531e-01, 1.0};
  IrType *doubles = lanes(ir.getDoubleTy());
  Value *bounded = ir.CreateBinaryIntrinsic(Intrinsic::minnum, x, fp(x, 130));
  bounded = ir.CreateBinaryIntrinsic(Intrinsic::maxnum, bounded, fp(x, -155));
  Value *whole = unary(Intrinsic::rint, bounded);
  Value *power = polynomial(ir.CreateFPExt(ir.CreateFSub(bounded, whole), doubles), taylor);
  Value *n = ir.CreateFPToSI(whole, intLanes(64));
  Value *scale = ir.CreateShl(ir.CreateAdd(n, splatInt(64, 1023)), splatInt(64, 52));
  return ir.CreateFMul(power, ir.CreateBitCast(scale, doubles));
}

/// log2 of f32 through f64: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), log(m) = 2 atanh(s) with s = (m - 1) / (m + 1).
llvm::Value *WarpCode::log2(Value *x, Value *deviation) {
  static constexpr double series[] = {2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0};
  IrType *doubles = lanes(ir.getDoubleTy());
  Value *wide = ir.CreateFPExt(x, doubles);
  Value *bits = ir.CreateBitCast(wide, intLanes(64));
  Value *offset = ir.CreateSub(bits, splatInt(64, 0x3fe6a09e667f3bcdull)); // sqrt(1/2)
  Value *exponent = ir.CreateAShr(offset, splatInt(64, 52));
  Value *mantissa = ir.CreateBitCast(ir.CreateSub(bits, ir.CreateShl(exponent, splatInt(64, 52))), doubles);
  Value *s = ir.CreateFDiv(ir.CreateFSub(mantissa, fp(wide, 1)), ir.CreateFAdd(mantissa, fp(wide, 1)));
  Value *log = ir.CreateFMul(s, polynomial(ir.CreateFMul(s, s), series));
  Value *scaled = ir.CreateFMul(log, fp(wide, 1.4426950408889634));
  Value *result = ir.CreateFAdd(scaled, ir.CreateSIToFP(exponent, doubles));
  Value *magnitude = unary(Intrinsic::fabs, result);
  Value *atLeastOne = ir.CreateBinaryIntrinsic(Intrinsic::maxnum, magnitude, fp(wide, 1));
  Value *allowed = ir.CreateFMul(atLeastOne, fp(wide, boundOf(Opcode::Lg2, singleType)));
  Value *single = deviating(result, allowed, deviation);
  double infinity = std::numeric_limits<double>::infinity();
  single = ir.CreateSelect(ir.CreateFCmpOEQ(x, fp(x, infinity)), x, single);
  single = ir.CreateSelect(ir.CreateFCmpOEQ(x, fp(x, 0)), fp(x, -infinity), single);
  Value *invalid = ir.CreateFCmpULT(x, fp(x, 0)); // negative or NaN
  return ir.CreateSelect(invalid, fp(x, std::numeric_limits<double>::quiet_NaN()), single);
}

/// sin and cos of f32 through f64: x = n * pi/2 + r; Taylor series to r^13 and r^14. Of operands so large that nothing
/// of r is left the result is some number in [-1, 1]. Beyond 100 pi PTX promises nothing: the error that it allows
/// there, 2^-23 of the operand, goes on growing.
llvm::Value *WarpCode::sine(Value *x, bool cosine, Value *deviation) {
  static constexpr double sines[] = {1.6059043836821613e-10,
                                     -2.5052108385441720e-08,
                                     2.7557319223985893e-06,
                                     -1.9841269841269841e-04,
                                     8.3333333333333332e-03,
                                     -1.6666666666666666e-01,
                                     1.0};
  static constexpr double cosines[] = {-1.1470745597729725e-11,
                                       2.0876756987868099e-09,
                                       -2.7557319223985888e-07,
                                       2.4801587301587302e-05,
                                       -1.3888888888888889e-03,
                                       4.1666666666666664e-02,
                                       -0.5,
                                       1.0};
  IrType *doubles = lanes(ir.getDoubleTy());
  Value *wide = ir.CreateFPExt(x, doubles);
  Value *n = unary(Intrinsic::rint, ir.CreateFMul(wide, fp(wide, 0.63661977236758134)));
  Value *r = ir.CreateIntrinsic(doubles, Intrinsic::fma, {n, fp(wide, -1.5707963267948966), wide});
  r = ir.CreateIntrinsic(doubles, Intrinsic::fma, {n, fp(wide, -6.1232339957367660e-17), r});
  constexpr double reduced = 0.8; // a little over pi/4
  r = ir.CreateBinaryIntrinsic(Intrinsic::minnum, r, fp(wide, reduced));
  r = ir.CreateBinaryIntrinsic(Intrinsic::maxnum, r, fp(wide, -reduced));
  Value *square = ir.CreateFMul(r, r);
  Value *sin = ir.CreateFMul(r, polynomial(square, sines)), *cos = polynomial(square, cosines);
  Value *quadrant = ir.CreateIntrinsic(Intrinsic::fptosi_sat, {intLanes(64), doubles}, {n});
  if (cosine)
    quadrant = ir.CreateAdd(quadrant, splatInt(64, 1));
  Value *odd = ir.CreateTrunc(quadrant, intLanes(1));
  Value *negative = ir.CreateTrunc(ir.CreateLShr(quadrant, splatInt(64, 1)), intLanes(1));
  Value *result = ir.CreateSelect(odd, cos, sin);
  result = ir.CreateSelect(negative, ir.CreateFNeg(result), result);
  Value *single = ir.CreateFPTrunc(result, x->getType());
  if (deviation)
    single = deviatingSine(cosine ? Opcode::Cos : Opcode::Sin, wide, result, deviation);
  if (!cosine) // -0 stays
    single = ir.CreateSelect(ir.CreateFCmpOEQ(x, fp(x, 0)), x, single);
  Value *finite = ir.CreateFCmpOLT(unary(Intrinsic::fabs, x), fp(x, std::numeric_limits<double>::infinity()));
  return ir.CreateSelect(finite, single, fp(x, std::numeric_limits<double>::quiet_NaN()));
}

/// tanh of f32: (1 - e) / (1 + e) with e = 2^(-2 |x| log2(e)), and its Taylor series to x^11 near zero, where the
/// difference cancels.
llvm::Value *WarpCode::tanh(Value *x) {
  static constexpr double series[] = {-0.0088632355299021973, 0.021869488536155203, -0.053968253968253971,
                                      0.13333333333333333,    -0.33333333333333331, 1.0};
  Value *magnitude = unary(Intrinsic::fabs, x);
  Value *e = exp2(ir.CreateFMul(magnitude, fp(x, -2.8853900817779268)));
  Value *large = ir.CreateFDiv(ir.CreateFSub(fp(x, 1), e), ir.CreateFAdd(fp(x, 1), e));
  Value *small = ir.CreateFMul(magnitude, polynomial(ir.CreateFMul(x, x), series));
  Value *result = ir.CreateSelect(ir.CreateFCmpOLT(magnitude, fp(x, 0.25)), small, large);
  result = ir.CreateBinaryIntrinsic(Intrinsic::copysign, result, x);
  return ir.CreateSelect(ir.CreateFCmpUNO(x, x), x, result);
}

} // namespace hloc::emulator
