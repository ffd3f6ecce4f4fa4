// Approximate instructions. PTX promises error bounds for them, not bits (Approximations.def): with a seed the results
// are any values within those bounds, so that a kernel which relies on more is found out. A result is a function of
// instruction and operands, as on a GPU: threads with the same operands get the same bits. Zeros, infinities, NaN and
// subnormal operands give what PTX says, always.
//
//   deviation   a number in [-1, 1] a lane, hashed of seed, instruction and operands
//   steps       of results that a reciprocal or root gives correctly rounded: the next number on the other side of the
//               exact value, which the sign of the residual tells, is less than a unit away as well
//   deviating   of results that are known in f64: exact + deviation * bound, rounded so that it stays within
#include "WarpCode.h"

#include "hloc/emulator/Emulator.h"
#include "hloc/support/Check.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/Support/DJB.h"

#include <limits>

namespace hloc::emulator {

using namespace llvm;

namespace {

uint64_t mix(uint64_t x) { // the finalizer of SplitMix64
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

StringRef nameOf(Opcode opcode) {
  static constexpr StringLiteral names[] = {
#define HLOC_PTX_OPCODE(name, text, family, counted, execution) text,
#include "Opcodes.def"
  };
  return names[size_t(opcode)];
}

constexpr Type singleType{TypeClass::Float, 32, 1};

} // namespace

double WarpCode::boundOf(Opcode opcode, Type type) {
#define HLOC_PTX_APPROXIMATION(name, kindOfType, width, measure, bound)                                                \
  if (opcode == Opcode::name && type.kind == TypeClass::kindOfType && type.bits == width)                              \
    return bound;
#include "Approximations.def"
  HLOC_UNREACHABLE("an approximate instruction without a row in Approximations.def");
}

/// Null without a seed: then results are as accurate as is cheap. Operands are integers of up to 32 bits. Every second
/// operand gets a result at one of both ends of what is allowed, the others anywhere between.
llvm::Value *WarpCode::deviationOf(const Decoded &d, ArrayRef<Value *> operands) {
  if (!options.approximationSeed || *options.approximationSeed == EmulatorOptions::hopperApproximations)
    return nullptr;
  IrType *floats = lanes(ir.getFloatTy());
  const uint64_t seed = *options.approximationSeed;
  if (seed == EmulatorOptions::largestApproximations || seed == EmulatorOptions::smallestApproximations)
    return ConstantFP::get(floats, seed == EmulatorOptions::largestApproximations ? 1 : -1);
  // By name: opcodes that are added leave the others' results as they are.
  const unsigned kind = djbHash(nameOf(d.opcode)) << 16 | unsigned(d.type.kind) << 8 | d.type.bits;
  Value *hash = splatInt(32, uint32_t(mix(seed + mix(kind))));
  for (Value *operand : operands) {
    hash = ir.CreateMul(ir.CreateXor(hash, resize(operand, 32, false)), splatInt(32, 0x9e3779b1));
    hash = ir.CreateXor(hash, ir.CreateLShr(hash, splatInt(32, 15)));
  }
  hash = ir.CreateMul(hash, splatInt(32, 0x85ebca6b));
  Value *wide = ir.CreateFMul(ir.CreateSIToFP(hash, floats), ConstantFP::get(floats, 0x1p-30));
  wide = ir.CreateBinaryIntrinsic(Intrinsic::minnum, wide, fp(wide, 1));
  return ir.CreateBinaryIntrinsic(Intrinsic::maxnum, wide, fp(wide, -1));
}

/// least <= |x| < limit, both powers of two and normal.
llvm::Value *WarpCode::isOrdinary(Value *x, double least, double limit) {
  auto bitsOf = [](double power) { return uint64_t(APFloat(float(power)).bitcastToAPInt().getZExtValue()); };
  Value *magnitude = ir.CreateAnd(ir.CreateBitCast(x, intLanes(32)), splatInt(32, 0x7fffffff));
  return ir.CreateICmpULT(ir.CreateSub(magnitude, splatInt(32, bitsOf(least))),
                          splatInt(32, bitsOf(limit) - bitsOf(least)));
}

/// `steps` numbers further from zero, if they are of ordinary size and not of a larger binade, where they lie further
/// apart.
llvm::Value *WarpCode::stepped(Value *x, Value *steps) {
  Value *bits = ir.CreateBitCast(x, intLanes(32)), *moved = ir.CreateAdd(bits, steps);
  auto exponent = [&](Value *value) { return ir.CreateAnd(value, splatInt(32, 0x7f800000)); };
  Value *same = ir.CreateICmpULE(exponent(moved), exponent(bits));
  return ir.CreateSelect(ir.CreateAnd(isOrdinary(x, 0x1p-125, 0x1p127), same), ir.CreateBitCast(moved, x->getType()),
                         x);
}

/// A step of 1 or -1 to the other side of the exact value if the deviation points there, else 0. `residual` is positive
/// where the exact value is further from zero; either direction will do where it is 0.
llvm::Value *WarpCode::stepAcross(Value *residual, Value *deviation) {
  Value *sign = ir.CreateBinaryIntrinsic(Intrinsic::copysign, fp(deviation, 1), deviation);
  Value *agrees = ir.CreateFCmpOGE(ir.CreateFMul(residual, sign), fp(residual, 0));
  return ir.CreateSelect(agrees, ir.CreateFPToSI(sign, intLanes(32)), splatInt(32, 0));
}

/// The f32 next to `wanted`, which is within `allowed` of an f64 that counts as exact. Where rounding leaves that, the
/// next number is inside.
llvm::Value *WarpCode::roundedWithin(Value *allowed, Value *exact, Value *wanted) {
  IrType *floats = lanes(ir.getFloatTy()), *doubles = exact->getType();
  Value *single = ir.CreateFPTrunc(wanted, floats);
  Value *error = ir.CreateFSub(ir.CreateFPExt(single, doubles), exact);
  Value *outside = ir.CreateFCmpOGT(unary(Intrinsic::fabs, error), allowed);
  Value *tooLarge = ir.CreateFCmpOGT(ir.CreateFMul(error, exact), fp(exact, 0));
  Value *back = ir.CreateSelect(tooLarge, splatInt(32, uint32_t(-1)), splatInt(32, 1));
  Value *inside = ir.CreateBitCast(ir.CreateAdd(ir.CreateBitCast(single, intLanes(32)), back), floats);
  return ir.CreateSelect(outside, inside, single);
}

/// An f32 within `allowed` of an f64 that counts as exact.
llvm::Value *WarpCode::deviating(Value *exact, Value *allowed, Value *deviation) {
  IrType *doubles = exact->getType();
  if (!deviation)
    return ir.CreateFPTrunc(exact, lanes(ir.getFloatTy()));
  Value *wanted = ir.CreateIntrinsic(doubles, Intrinsic::fma, {ir.CreateFPExt(deviation, doubles), allowed, exact});
  return roundedWithin(allowed, exact, wanted);
}

/// The same by units in the last place of the exact value, and of its sign, where the result is at least `least` and
/// below 2^127; else `nearest`. A subnormal result has the error that a normal one would have, and is rounded.
llvm::Value *WarpCode::deviatingByUnits(Opcode opcode, Value *exact, Value *nearest, Value *deviation, double least) {
  const double bound = boundOf(opcode, singleType);
  IrType *doubles = exact->getType();
  Value *exponent = ir.CreateAnd(ir.CreateBitCast(exact, intLanes(64)), splatInt(64, 0x7ffull << 52));
  Value *allowed = ir.CreateFMul(ir.CreateBitCast(exponent, doubles), fp(exact, bound * 0x1p-23));
  Value *isSubnormal = ir.CreateFCmpOLT(unary(Intrinsic::fabs, exact), fp(exact, 0x1p-126));
  allowed = ir.CreateSelect(isSubnormal, ir.CreateFAdd(allowed, fp(exact, 0x1p-150)), allowed);
  Value *outwards = ir.CreateBinaryIntrinsic(Intrinsic::copysign, allowed, exact);
  Value *wanted = ir.CreateIntrinsic(doubles, Intrinsic::fma, {ir.CreateFPExt(deviation, doubles), outwards, exact});
  wanted = ir.CreateBinaryIntrinsic(Intrinsic::copysign, wanted, exact);
  return ir.CreateSelect(isOrdinary(nearest, least, 0x1p127), roundedWithin(allowed, exact, wanted), nearest);
}

/// See Approximations.def for the three ranges of the operand. The result stays in [-1, 1].
llvm::Value *WarpCode::deviatingSine(Opcode opcode, Value *x, Value *exact, Value *deviation) {
  constexpr double twoPi = 6.283185307179586, hundredPi = 314.1592653589793, farBound = 0x1.3b2c47bff832cp-15;
  constexpr double halfUnit = 0x1p-25; // of f32 below 1: rounding adds no more
  Value *magnitude = unary(Intrinsic::fabs, x);
  Value *allowed = ir.CreateSelect(ir.CreateFCmpOLE(magnitude, fp(x, twoPi)),
                                   fp(x, boundOf(opcode, singleType) - halfUnit), fp(x, farBound - halfUnit));
  allowed =
      ir.CreateSelect(ir.CreateFCmpOLE(magnitude, fp(x, hundredPi)), allowed, ir.CreateFMul(magnitude, fp(x, 0x1p-23)));
  Value *moved =
      ir.CreateIntrinsic(x->getType(), Intrinsic::fma, {ir.CreateFPExt(deviation, x->getType()), allowed, exact});
  moved = ir.CreateBinaryIntrinsic(Intrinsic::minnum, moved, fp(x, 1));
  moved = ir.CreateBinaryIntrinsic(Intrinsic::maxnum, moved, fp(x, -1));
  IrType *floats = lanes(ir.getFloatTy());
  Value *operand = ir.CreateFPTrunc(x, floats);
  return ir.CreateFPTrunc(
      ir.CreateSelect(isOrdinary(operand, 0x1p-126, std::numeric_limits<float>::infinity()), moved, exact), floats);
}

/// div.approx is a * (1 / b): the reciprocal of |b| > 2^126 is flushed. div.full scales, and so does rcp.
llvm::Value *WarpCode::approximateQuotient(const Decoded &d, Value *a, Value *b, Value *deviation) {
  Value *quotient = ir.CreateFDiv(a, b);
  if (deviation) {
    Value *ordinary = isOrdinary(b, 0x1p-126, std::numeric_limits<float>::infinity()), *moved;
    if (d.opcode == Opcode::Div) {
      IrType *doubles = lanes(ir.getDoubleTy());
      Value *exact = ir.CreateFDiv(ir.CreateFPExt(a, doubles), ir.CreateFPExt(b, doubles));
      moved = deviatingByUnits(d.opcode, exact, quotient, deviation, 0x1p-149);
    } else {
      Value *residual = ir.CreateIntrinsic(a->getType(), Intrinsic::fma, {ir.CreateFNeg(quotient), b, a});
      Value *upwards = ir.CreateFMul(ir.CreateBinaryIntrinsic(Intrinsic::copysign, fp(a, 1), a), residual);
      moved = stepped(quotient, stepAcross(upwards, deviation));
    }
    quotient = ir.CreateSelect(ordinary, moved, quotient);
  }
  if (d.opcode != Opcode::Div || d.mode == Mode::Full)
    return quotient;
  Value *magnitude = unary(Intrinsic::fabs, b);
  Value *flushes = ir.CreateAnd(ir.CreateFCmpOGT(magnitude, fp(b, 0x1p126)),
                                ir.CreateFCmpOLT(magnitude, fp(b, std::numeric_limits<double>::infinity())));
  Value *zero = ir.CreateBinaryIntrinsic(Intrinsic::copysign, fp(b, 0), b);
  return ir.CreateSelect(flushes, ir.CreateFMul(a, zero), quotient);
}

llvm::Value *WarpCode::approximateRoot(Value *x, Value *deviation) {
  Value *root = unary(Intrinsic::sqrt, x);
  Value *invalid = ir.CreateFCmpULT(x, fp(x, 0));
  if (deviation) {
    Value *residual = ir.CreateIntrinsic(x->getType(), Intrinsic::fma, {ir.CreateFNeg(root), root, x});
    // The residual of smaller operands may not be exact.
    Value *known = isOrdinary(x, 0x1p-100, std::numeric_limits<float>::infinity());
    root = stepped(root, ir.CreateSelect(known, stepAcross(residual, deviation), splatInt(32, 0)));
  }
  return ir.CreateSelect(invalid, canonicalNan(x->getType()), root);
}

llvm::Value *WarpCode::approximateReciprocalRoot(Value *x, Value *deviation) {
  Value *root = unary(Intrinsic::sqrt, ir.CreateFPExt(x, lanes(ir.getDoubleTy())));
  Value *exact = ir.CreateFDiv(fp(root, 1), root);
  Value *nearest = ir.CreateFPTrunc(exact, x->getType());
  if (!deviation)
    return nearest;
  Value *allowed = ir.CreateFMul(exact, fp(exact, boundOf(Opcode::Rsqrt, singleType)));
  return ir.CreateSelect(isOrdinary(x, 0x1p-126, std::numeric_limits<float>::infinity()),
                         deviating(exact, allowed, deviation), nearest);
}

llvm::Value *WarpCode::approximateSingle(const Decoded &d, ArrayRef<Value *> v) {
  SmallVector<Value *, 2> bits;
  for (Value *operand : v)
    bits.push_back(ir.CreateBitCast(operand, intLanes(32)));
  Value *deviation = deviationOf(d, bits), *x = v[0];
  switch (d.opcode) {
  case Opcode::Ex2: {
    Value *power = exp2(x);
    if (!deviation)
      return power;
    // All GPUs give powers of two for whole numbers, and libdevice's tanh and erf of f64 scale with them.
    Value *isWhole = ir.CreateFCmpOEQ(unary(Intrinsic::rint, x), x);
    Value *moves = ir.CreateAnd(isOrdinary(x, 0x1p-126, 0x1p8), ir.CreateNot(isWhole));
    return ir.CreateSelect(moves, deviatingByUnits(d.opcode, exp2InDouble(x), power, deviation, 0x1p-125), power);
  }
  case Opcode::Lg2:
    return log2(x, deviation);
  case Opcode::Sin:
  case Opcode::Cos:
    return sine(x, d.opcode == Opcode::Cos, deviation);
  case Opcode::Rsqrt:
    return approximateReciprocalRoot(x, deviation);
  case Opcode::Sqrt:
    return approximateRoot(x, deviation);
  case Opcode::Rcp:
    return approximateQuotient(d, fp(x, 1), x, deviation);
  case Opcode::Div:
    return approximateQuotient(d, x, v[1], deviation);
  case Opcode::Tanh: {
    Value *value = tanh(x);
    if (!deviation)
      return value;
    constexpr double ownError = 0x1p-20;
    Value *part = ir.CreateFMul(deviation, fp(x, boundOf(Opcode::Tanh, singleType) - ownError));
    Value *moved = ir.CreateIntrinsic(x->getType(), Intrinsic::fma, {value, part, value});
    moved = ir.CreateBinaryIntrinsic(Intrinsic::minnum, moved, fp(x, 1));
    moved = ir.CreateBinaryIntrinsic(Intrinsic::maxnum, moved, fp(x, -1));
    return ir.CreateSelect(isOrdinary(x, 0x1p-126, std::numeric_limits<float>::infinity()), moved, value);
  }
  default:
    return nullptr;
  }
}

/// ex2 and tanh of f16 and bf16, as bits.
llvm::Value *WarpCode::approximateHalf(const Decoded &d, Value *bits) {
  const bool isHalf = d.type.kind == TypeClass::Float, isTanh = d.opcode == Opcode::Tanh;
  if (d.ftz)
    bits = flushHalf(bits, d.type);
  Value *x = fromHalf(bits, d.type), *exact = isTanh ? tanh(x) : exp2(x), *nearest = toHalf(exact, d.type);
  auto finished = [&](Value *result) { return d.ftz ? flushHalf(result, d.type) : result; };
  Value *deviation = deviationOf(d, bits);
  if (!deviation)
    return finished(nearest);
  constexpr double ownError = 0x1p-10; // of the bound, since `exact` is an f32
  Value *bound = fp(x, boundOf(d.opcode, d.type) * (1 - ownError));
  Value *allowed = isTanh ? bound : ir.CreateFMul(exact, bound);
  Value *moved = ir.CreateIntrinsic(x->getType(), Intrinsic::fma, {deviation, allowed, exact});
  if (isTanh) { // towards the other side of zero no instruction of any machine goes, nor beyond 1
    Value *magnitude = ir.CreateFMul(moved, ir.CreateBinaryIntrinsic(Intrinsic::copysign, fp(x, 1), x));
    magnitude = ir.CreateBinaryIntrinsic(Intrinsic::maxnum, magnitude, fp(x, 0));
    magnitude = ir.CreateBinaryIntrinsic(Intrinsic::minnum, magnitude, fp(x, 1));
    moved = ir.CreateBinaryIntrinsic(Intrinsic::copysign, magnitude, x);
  }
  Value *rounded = toHalf(moved, d.type), *value = fromHalf(rounded, d.type);
  Value *error = unary(Intrinsic::fabs, ir.CreateFSub(value, exact));
  Value *tooLarge = ir.CreateFCmpOGT(unary(Intrinsic::fabs, value), unary(Intrinsic::fabs, exact));
  Value *back = ir.CreateSelect(tooLarge, splatInt(16, 0xffff), splatInt(16, 1));
  Value *inside = ir.CreateSelect(ir.CreateFCmpOGT(error, allowed), ir.CreateAdd(rounded, back), rounded);
  Value *ordinary =
      isOrdinary(x, isHalf ? 0x1p-14 : 0x1p-126, isHalf ? 0x1p16 : std::numeric_limits<float>::infinity());
  if (!isTanh)
    ordinary = ir.CreateAnd(ordinary, isOrdinary(exact, isHalf ? 0x1p-13 : 0x1p-125, isHalf ? 0x1p15 : 0x1p127));
  return finished(ir.CreateSelect(ordinary, inside, nearest));
}

/// rcp and rsqrt .approx.ftz.f64 know the upper words of operand and result only; NaN is 0x7fffffff00000000.
llvm::Value *WarpCode::upperWord(const Decoded &d) {
  constexpr uint64_t upper = 0xffffffff00000000ull, canonical = 0x7fffffff00000000ull;
  IrType *doubles = lanes(ir.getDoubleTy());
  Value *word = ir.CreateAnd(read(d.operands[1], 64), splatInt(64, upper));
  Value *x = flush(ir.CreateBitCast(word, doubles), d.type);
  Value *divisor = d.opcode == Opcode::Rsqrt ? unary(Intrinsic::sqrt, x) : x;
  Value *exact = flush(ir.CreateFDiv(fp(x, 1), divisor), d.type);
  Value *bits = ir.CreateAnd(ir.CreateBitCast(exact, intLanes(64)), splatInt(64, upper));
  Value *high = ir.CreateTrunc(ir.CreateLShr(word, splatInt(64, 32)), intLanes(32));
  if (Value *deviation = deviationOf(d, high)) {
    Value *part = ir.CreateFMul(ir.CreateFPExt(deviation, doubles), fp(exact, boundOf(d.opcode, d.type)));
    Value *wanted = ir.CreateIntrinsic(doubles, Intrinsic::fma, {exact, part, exact});
    Value *rounded = ir.CreateAdd(ir.CreateBitCast(wanted, intLanes(64)), splatInt(64, 1ull << 31));
    rounded = ir.CreateAnd(rounded, splatInt(64, upper));
    // Where rounding leaves the bound, the next number is inside.
    Value *error = ir.CreateFSub(ir.CreateBitCast(rounded, doubles), exact);
    Value *allowed = ir.CreateFMul(unary(Intrinsic::fabs, exact), fp(exact, boundOf(d.opcode, d.type)));
    Value *outside = ir.CreateFCmpOGT(unary(Intrinsic::fabs, error), allowed);
    Value *sign = ir.CreateBinaryIntrinsic(Intrinsic::copysign, fp(exact, 1), exact);
    Value *tooLarge = ir.CreateFCmpOGT(ir.CreateFMul(error, sign), fp(exact, 0));
    Value *back = ir.CreateSelect(tooLarge, splatInt(64, ~0ull << 32), splatInt(64, 1ull << 32));
    rounded = ir.CreateSelect(outside, ir.CreateAdd(rounded, back), rounded);
    Value *magnitude = ir.CreateAnd(bits, splatInt(64, ~0ull >> 1));
    Value *ordinary = ir.CreateICmpULT(ir.CreateSub(magnitude, splatInt(64, 2ull << 52)), splatInt(64, 2043ull << 52));
    bits = ir.CreateSelect(ordinary, rounded, bits);
  }
  return ir.CreateSelect(ir.CreateFCmpUNO(exact, exact), splatInt(64, canonical), bits);
}

/// Of all approximate instructions of the kernel of this kind, `build` makes one function.
llvm::Value *WarpCode::outOfLine(const Decoded &d, IrType *result, ArrayRef<Value *> operands,
                                 function_ref<Value *(ArrayRef<Value *>)> build) {
  const auto known = llvm::find(approximations, static_cast<const Operation &>(d));
  const auto index = known - approximations.begin();
  if (known == approximations.end())
    approximations.push_back(d);
  return outOfLine("approximate" + Twine(index), result, operands, build);
}

bool WarpCode::lowerApproximate(const Decoded &d) {
  if (d.type.lanes == 2)
    return lowerPacked(d);
  if (d.type.bits == 16) {
    write(d.operands[0], outOfLine(d, intLanes(16), read(d.operands[1], 16),
                                   [&](ArrayRef<Value *> v) { return approximateHalf(d, v[0]); }));
    return true;
  }
  if (d.type.bits == 64) {
    if (d.ftz) {
      write(d.operands[0], upperWord(d));
      return true;
    }
    if (d.opcode != Opcode::Rsqrt)
      return false;
    Value *root = unary(Intrinsic::sqrt, readFloat(d.operands[1], d.type));
    writeFloat(d, ir.CreateFDiv(fp(root, 1), root));
    return true;
  }
  SmallVector<Value *, 2> operands;
  for (const Source &operand : ArrayRef(d.operands).drop_front())
    operands.push_back(readFloat(operand, d.type));
  auto flushed = [&](Value *value) { return d.ftz ? flush(value, d.type) : value; };
  Value *result = outOfLine(d, lanes(ir.getFloatTy()), operands, [&](ArrayRef<Value *> v) -> Value * {
    SmallVector<Value *, 2> arguments(map_range(v, flushed));
    Value *value = approximateSingle(d, arguments);
    return value ? flushed(value) : nullptr;
  });
  if (result)
    writeFlushed(d, result);
  return result != nullptr;
}

} // namespace hloc::emulator
