// Floating-point arithmetic with PTX's rounding, flushing, saturation and NaN.
#include "WarpCode.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"

#include <bit>
#include <cmath>

namespace hloc::emulator {

using namespace llvm;

llvm::Value *WarpCode::fp(Value *like, double value) { return ConstantFP::get(like->getType(), value); }
llvm::Value *WarpCode::unary(Intrinsic::ID id, Value *x) { return ir.CreateUnaryIntrinsic(id, x); }

llvm::Value *WarpCode::fromHalf(Value *bits, Type type) {
  if (type.kind == TypeClass::Float)
    return ir.CreateFPExt(ir.CreateBitCast(bits, lanes(ir.getHalfTy())), lanes(ir.getFloatTy()));
  return ir.CreateBitCast(ir.CreateShl(resize(bits, 32, false), splatInt(32, 16)), lanes(ir.getFloatTy()));
}

/// Calls what `build` makes of the operands: one function of the module for each name. What takes many host
/// instructions and stands in a kernel hundreds of times is translated once this way. It may not touch memory. Null if
/// `build` gives null.
llvm::Value *WarpCode::outOfLine(const Twine &name, IrType *result, ArrayRef<Value *> operands,
                                 function_ref<Value *(ArrayRef<Value *>)> build) {
  const std::string symbol = ("shared." + name).str(); // none of LLVM's own
  Function *callee = module.getFunction(symbol);
  if (!callee) {
    IRBuilder<>::InsertPointGuard guard(ir);
    SmallVector<IrType *, 2> types(map_range(operands, [](Value *operand) { return operand->getType(); }));
    callee = Function::Create(FunctionType::get(result, types, false), GlobalValue::InternalLinkage, symbol, module);
    callee->setDoesNotAccessMemory();
    callee->setWillReturn();
    ir.SetInsertPoint(BasicBlock::Create(context, "", callee));
    Value *value = build(SmallVector<Value *, 2>(make_pointer_range(callee->args())));
    if (!value) {
      callee->eraseFromParent();
      return nullptr;
    }
    ir.CreateRet(value);
  }
  return ir.CreateCall(callee, operands);
}

/// f32 to the bits of f16 or bf16, to nearest even; NaN gives 0x7fff.
llvm::Value *WarpCode::toHalf(Value *value, Type type) {
  return outOfLine(type.kind == TypeClass::Float ? "to.f16" : "to.bf16", intLanes(16), value,
                   [&](ArrayRef<Value *> v) { return roundedToHalf(v[0], type); });
}

llvm::Value *WarpCode::roundedToHalf(Value *value, Type type) {
  Value *isNan = ir.CreateFCmpUNO(value, value);
  Value *bits;
  if (type.kind == TypeClass::Float) {
    bits = ir.CreateBitCast(ir.CreateFPTrunc(value, lanes(ir.getHalfTy())), intLanes(16));
  } else {
    Value *wide = ir.CreateBitCast(value, intLanes(32));
    Value *odd = ir.CreateAnd(ir.CreateLShr(wide, splatInt(32, 16)), splatInt(32, 1));
    Value *rounded = ir.CreateAdd(wide, ir.CreateAdd(odd, splatInt(32, 0x7fff)));
    bits = resize(ir.CreateLShr(rounded, splatInt(32, 16)), 16, false);
  }
  return ir.CreateSelect(isNan, splatInt(16, 0x7fff), bits);
}

llvm::Value *WarpCode::readFloat(const Source &source, Type type) {
  Value *bits = read(source, type.bits);
  if (type.bits == 16)
    return fromHalf(bits, type);
  return ir.CreateBitCast(bits, lanes(type.bits == 32 ? ir.getFloatTy() : ir.getDoubleTy()));
}

/// Subnormal numbers of the type become zeros of their sign; 16-bit ones come as f32. f64 converted to f32 stays.
llvm::Value *WarpCode::flush(Value *value, Type type) {
  bool isHalf = type.kind == TypeClass::Float && type.bits == 16, isDouble = type.bits == 64;
  if (value->getType()->getScalarType()->isFloatTy() == isDouble)
    return value;
  double smallest = isHalf ? 0x1p-14 : isDouble ? 0x1p-1022 : 0x1p-126;
  Value *tiny = ir.CreateFCmpOLT(unary(Intrinsic::fabs, value), fp(value, smallest));
  return ir.CreateSelect(tiny, ir.CreateBinaryIntrinsic(Intrinsic::copysign, fp(value, 0), value), value);
}

/// To [0, 1]; NaN gives +0.
llvm::Value *WarpCode::saturate(Value *value) {
  Value *positive = ir.CreateSelect(ir.CreateFCmpOGT(value, fp(value, 0)), value, fp(value, 0));
  return ir.CreateSelect(ir.CreateFCmpOGT(positive, fp(value, 1)), fp(value, 1), positive);
}

llvm::Value *WarpCode::canonicalNan(IrType *type) {
  bool isSingle = type->getScalarType()->isFloatTy();
  return ConstantFP::get(type, isSingle ? APFloat(APFloat::IEEEsingle(), APInt(32, 0x7fffffff))
                                        : APFloat(APFloat::IEEEdouble(), APInt(64, 0x7ff8000000000000ull)));
}

llvm::Value *WarpCode::canonicalNan(Value *value) {
  return ir.CreateSelect(ir.CreateFCmpUNO(value, value), canonicalNan(value->getType()), value);
}

/// Of 16-bit floats as bits.
llvm::Value *WarpCode::flushHalf(Value *bits, Type type) {
  uint64_t exponent = type.kind == TypeClass::Float ? 0x7c00 : 0x7f80;
  Value *tiny = ir.CreateICmpEQ(ir.CreateAnd(bits, splatInt(16, exponent)), splatInt(16, 0));
  return ir.CreateSelect(tiny, ir.CreateAnd(bits, splatInt(16, 0x8000)), bits);
}

void WarpCode::writeFloat(const Decoded &d, Value *value) {
  writeFlushed(d, d.ftz ? flush(value, {TypeClass::Float, 32, 1}) : value);
}

void WarpCode::writeFlushed(const Decoded &d, Value *value) {
  if (d.saturate)
    value = saturate(value);
  if (d.type.bits == 16) {
    Value *bits = toHalf(value, d.type);
    write(d.operands[0], d.ftz && d.opcode != Opcode::Cvt ? flushHalf(bits, d.type) : bits);
    return;
  }
  const Source &to = d.operands[0];
  if (to.kind != Source::Kind::Register || bitsSeen(to.slot))
    value = canonicalNan(value);
  write(to, ir.CreateBitCast(value, intLanes(d.type.bits)));
}

llvm::Value *WarpCode::compareFloats(Compare compare, Value *a, Value *b) {
  switch (compare) {
  case Compare::Eq:
    return ir.CreateFCmpOEQ(a, b);
  case Compare::Ne:
    return ir.CreateFCmpONE(a, b);
  case Compare::Lt:
    return ir.CreateFCmpOLT(a, b);
  case Compare::Le:
    return ir.CreateFCmpOLE(a, b);
  case Compare::Gt:
    return ir.CreateFCmpOGT(a, b);
  case Compare::Ge:
    return ir.CreateFCmpOGE(a, b);
  case Compare::Equ:
    return ir.CreateFCmpUEQ(a, b);
  case Compare::Neu:
    return ir.CreateFCmpUNE(a, b);
  case Compare::Ltu:
    return ir.CreateFCmpULT(a, b);
  case Compare::Leu:
    return ir.CreateFCmpULE(a, b);
  case Compare::Gtu:
    return ir.CreateFCmpUGT(a, b);
  case Compare::Geu:
    return ir.CreateFCmpUGE(a, b);
  case Compare::Num:
    return ir.CreateFCmpORD(a, b);
  case Compare::Nan:
    return ir.CreateFCmpUNO(a, b);
  }
  return nullptr;
}

/// -0 is less than +0. NaN loses, or with .NaN wins.
llvm::Value *WarpCode::minMax(const Decoded &d, Value *a, Value *b, Value *) {
  bool isMin = d.opcode == Opcode::Min;
  Intrinsic::ID id = d.nan ? (isMin ? Intrinsic::minimum : Intrinsic::maximum)
                           : (isMin ? Intrinsic::minimumnum : Intrinsic::maximumnum);
  return outOfLine(Intrinsic::getBaseName(id) + (d.type.bits == 64 ? ".f64" : ".f32"), a->getType(), {a, b},
                   [&](ArrayRef<Value *> v) { return ir.CreateBinaryIntrinsic(id, v[0], v[1]); });
}

/// One operation in its own precision, rounded to nearest. 16-bit operands come as f32: sum, difference and product of
/// two are exact enough for one more rounding, a fused multiply-add is done in f64.
llvm::Value *WarpCode::floatOp(const Decoded &d, ArrayRef<Value *> v, Type type) {
  switch (d.opcode) {
  case Opcode::Add:
    return ir.CreateFAdd(v[0], v[1]);
  case Opcode::Sub:
    return ir.CreateFSub(v[0], v[1]);
  case Opcode::Mul:
    return ir.CreateFMul(v[0], v[1]);
  case Opcode::Div:
    return ir.CreateFDiv(v[0], v[1]);
  case Opcode::Sqrt: // LLVM takes the liberty to keep the host's NaN of a negative number
    return ir.CreateSelect(ir.CreateFCmpULT(v[0], fp(v[0], 0)), canonicalNan(v[0]->getType()),
                           unary(Intrinsic::sqrt, v[0]));
  case Opcode::Rcp:
    return ir.CreateFDiv(fp(v[0], 1), v[0]);
  case Opcode::Neg:
    return ir.CreateFNeg(v[0]);
  case Opcode::Abs:
    return unary(Intrinsic::fabs, v[0]);
  case Opcode::Min:
  case Opcode::Max:
    return minMax(d, v[0], v[1]);
  case Opcode::Fma:
  case Opcode::Mad:
    return ir.CreateIntrinsic(v[0]->getType(), Intrinsic::fma, {v[0], v[1], v[2]});
  default:
    return nullptr;
  }
}

namespace {

FloatOp directedOp(Opcode opcode) {
  switch (opcode) {
  case Opcode::Add:
    return FloatOp::Add;
  case Opcode::Sub:
    return FloatOp::Sub;
  case Opcode::Mul:
    return FloatOp::Mul;
  case Opcode::Div:
  case Opcode::Rcp:
    return FloatOp::Div;
  case Opcode::Sqrt:
    return FloatOp::Sqrt;
  default:
    return FloatOp::Fma;
  }
}

template <typename T> void computeLanes(uint64_t op, uint64_t rounding, const T *a, const T *b, const T *c, T *out) {
  computeEach(FloatOp(op), warpLanes, a, b, c, Rounding(rounding), out);
}

/// One lane array after another.
struct FmaFrame {
  float result[warpLanes]; ///< in: a * b + c as f32; out: the bits of the 16-bit number in the upper half
  float a[warpLanes], b[warpLanes], c[warpLanes];
};

/// The exact way for 16-bit a * b + c where its f32 result is inexact and in the middle of two 16-bit numbers. The
/// product is exact in f64; where the sum is not, it is moved off the middle.
template <bool isHalf> void fmaExactly(FmaFrame *frame) {
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    double exact = fmaToOdd(frame->a[lane], frame->b[lane], frame->c[lane]);
    frame->result[lane] = std::bit_cast<float>(encode(exact, isHalf ? half : bfloat, Rounding::Nearest) << 16);
  }
}

} // namespace

/// Calls `function(scalars..., arrays..., out)`.
llvm::Value *WarpCode::callArrays(const void *target, ArrayRef<uint64_t> scalars, ArrayRef<Value *> arrays,
                                  IrType *result) {
  SmallVector<Value *, 8> arguments;
  for (uint64_t scalar : scalars)
    arguments.push_back(ir.getInt64(scalar));
  for (Value *array : arrays) {
    Value *memory = scratch(array->getType()->getScalarType(), warpLanes);
    ir.CreateAlignedStore(array, memory, Align(64));
    arguments.push_back(memory);
  }
  Value *out = scratch(result->getScalarType(), warpLanes);
  arguments.push_back(out);
  call(target, ir.getVoidTy(), arguments);
  return ir.CreateAlignedLoad(result, out, Align(64));
}

/// a * b + c of 16-bit floats, given as f32, rounded once. The f32 result differs from the exact one by less than half
/// a bit of f32; that matters only where it lies in the middle of two 16-bit numbers and is not exact itself. Warps
/// with such a lane go a slow way. The product is exact in f32 (of bf16: unless it is tiny), so the error of the sum is
/// the one of Knuth's TwoSum.
llvm::Value *WarpCode::fmaHalf(ArrayRef<Value *> v, Type type) {
  bool isHalf = type.kind == TypeClass::Float;
  Value *rounded = ir.CreateIntrinsic(v[0]->getType(), Intrinsic::fma, {v[0], v[1], v[2]});
  Value *bits = ir.CreateBitCast(rounded, intLanes(32));
  auto lowBits = [&](uint32_t low, uint32_t wanted) {
    return ir.CreateICmpEQ(ir.CreateAnd(bits, splatInt(32, low)), splatInt(32, wanted));
  };
  Value *middle = isHalf ? lowBits(0x1fff, 0x1000) : lowBits(0xffff, 0x8000);
  if (isHalf) { // subnormal halves have their middles elsewhere
    Value *small = ir.CreateFCmpOLT(unary(Intrinsic::fabs, rounded), fp(rounded, 0x1p-14));
    middle = ir.CreateOr(
        middle, ir.CreateAnd(ir.CreateAnd(small, lowBits(0xfff, 0)), ir.CreateFCmpONE(rounded, fp(rounded, 0))));
  }
  Value *product = ir.CreateFMul(v[0], v[1]), *addend = ir.CreateFSub(rounded, product);
  Value *error = ir.CreateFAdd(ir.CreateFSub(product, ir.CreateFSub(rounded, addend)), ir.CreateFSub(v[2], addend));
  Value *inexact = ir.CreateFCmpUNE(error, fp(error, 0));
  if (!isHalf)
    inexact = ir.CreateOr(inexact, ir.CreateFCmpOLT(unary(Intrinsic::fabs, product), fp(product, 0x1p-100)));
  Value *special = ir.CreateAnd(middle, inexact);
  BasicBlock *rare = BasicBlock::Create(context, "rare", function), *usual = BasicBlock::Create(context, "", function);
  BasicBlock *after = BasicBlock::Create(context, "", function);
  ir.CreateCondBr(ir.CreateICmpEQ(toBits(special), ir.getInt32(0)), usual, rare,
                  MDBuilder(context).createLikelyBranchWeights());
  ir.SetInsertPoint(rare);
  Value *fmaFrame = scratch(ir.getInt8Ty(), sizeof(FmaFrame));
  for (unsigned i = 0; i < 3; ++i)
    ir.CreateAlignedStore(v[i], ir.CreateConstInBoundsGEP1_64(ir.getFloatTy(), fmaFrame, (i + 1) * warpLanes),
                          Align(64));
  call(isHalf ? (const void *)&fmaExactly<true> : (const void *)&fmaExactly<false>, ir.getVoidTy(), {fmaFrame});
  Value *exact =
      resize(ir.CreateLShr(ir.CreateAlignedLoad(intLanes(32), fmaFrame, Align(64)), splatInt(32, 16)), 16, false);
  ir.CreateBr(after);
  ir.SetInsertPoint(usual);
  Value *nearest = toHalf(rounded, type);
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  PHINode *result = ir.CreatePHI(intLanes(16), 2);
  result->addIncoming(nearest, usual);
  result->addIncoming(exact, rare);
  return result;
}

/// One operation in a rounding that the host's vector code does not have.
llvm::Value *WarpCode::directed(const Decoded &d, ArrayRef<Value *> operands) {
  SmallVector<Value *, 3> arguments(operands);
  if (d.opcode == Opcode::Rcp)
    arguments.insert(arguments.begin(), fp(arguments[0], 1));
  while (arguments.size() < 3)
    arguments.push_back(fp(arguments[0], 0));
  const void *target = d.type.bits == 32 ? (const void *)&computeLanes<float> : (const void *)&computeLanes<double>;
  return callArrays(target, {uint64_t(directedOp(d.opcode)), uint64_t(d.rounding)}, arguments, arguments[0]->getType());
}

bool WarpCode::lowerFloat(const Decoded &d) {
  if (d.type.lanes == 2)
    return lowerPacked(d);
  if (d.opcode == Opcode::Copysign) { // the sign of the first operand with the magnitude of the second
    Value *sign = readFloat(d.operands[1], d.type), *magnitude = readFloat(d.operands[2], d.type);
    Value *value = ir.CreateBinaryIntrinsic(Intrinsic::copysign, magnitude, sign);
    write(d.operands[0], ir.CreateBitCast(value, intLanes(d.type.bits)));
    return d.type.bits >= 32;
  }
  if (d.opcode == Opcode::Selp) {
    unsigned bits = d.type.bits;
    write(d.operands[0],
          ir.CreateSelect(readPredicate(d.operands[3]), read(d.operands[1], bits), read(d.operands[2], bits)));
    return true;
  }
  SmallVector<Value *, 3> arguments;
  ArrayRef<Source> sources = ArrayRef(d.operands).drop_front();
  for (const Source &operand : sources) {
    bool isNarrow = d.from.bits == 16 && &operand != &sources.back(); // add.f32.bf16: all but the last
    Value *value = readFloat(operand, isNarrow ? d.from : d.type);
    arguments.push_back(d.ftz ? flush(value, d.type) : value);
  }
  if ((d.opcode == Opcode::Neg || d.opcode == Opcode::Abs) && !d.ftz) { // bit operations, NaN keeps its payload
    unsigned bits = d.type.bits;
    Value *raw = read(d.operands[1], bits), *sign = splatInt(bits, uint64_t(1) << (bits - 1));
    write(d.operands[0], d.opcode == Opcode::Neg ? ir.CreateXor(raw, sign) : ir.CreateAnd(raw, ir.CreateNot(sign)));
    return true;
  }
  bool isFma = d.opcode == Opcode::Fma || d.opcode == Opcode::Mad;
  if (d.type.bits == 16 && isFma) {
    Value *half = fmaHalf(arguments, d.type);
    if (d.ftz || d.saturate) {
      writeFloat(d, fromHalf(half, d.type));
      return true;
    }
    write(d.operands[0], half);
    return true;
  }
  bool rounds =
      d.opcode != Opcode::Min && d.opcode != Opcode::Max && d.opcode != Opcode::Neg && d.opcode != Opcode::Abs;
  if (rounds && d.rounding != Rounding::Nearest) {
    if (d.type.bits == 16)
      return false;
    writeFloat(d, directed(d, arguments));
    return true;
  }
  Value *result = floatOp(d, arguments, d.type);
  if (!result)
    return false;
  writeFloat(d, result);
  return true;
}

/// f32x2: the same instruction on both halves of a 64-bit register.
bool WarpCode::lowerPackedSingles(const Decoded &d) {
  if (d.saturate)
    return false;
  Type single = d.type;
  single.lanes = 1;
  Value *whole = splatInt(64, 0);
  for (unsigned part = 0; part < 2; ++part) {
    SmallVector<Value *, 3> arguments;
    for (const Source &operand : ArrayRef(d.operands).drop_front()) {
      Value *bits = resize(ir.CreateLShr(read(operand, 64), splatInt(64, 32 * part)), 32, false);
      Value *value = ir.CreateBitCast(bits, lanes(ir.getFloatTy()));
      arguments.push_back(d.ftz ? flush(value, single) : value);
    }
    Value *result = d.rounding == Rounding::Nearest ? floatOp(d, arguments, single) : directed(d, arguments);
    if (!result)
      return false;
    result = canonicalNan(d.ftz ? flush(result, single) : result);
    Value *bits = resize(ir.CreateBitCast(result, intLanes(32)), 64, false);
    whole = ir.CreateOr(whole, ir.CreateShl(bits, splatInt(64, 32 * part)));
  }
  write(d.operands[0], whole);
  return true;
}

/// f16x2, bf16x2, u16x2, s16x2: the same instruction on both halves.
bool WarpCode::lowerPacked(const Decoded &d) {
  if (d.type.bits == 32)
    return lowerPackedSingles(d);
  Value *whole = splatInt(32, 0);
  bool isFma = d.opcode == Opcode::Fma || d.opcode == Opcode::Mad;
  for (unsigned part = 0; part < 2; ++part) {
    auto bitsOf = [&](const Source &source) {
      return resize(ir.CreateLShr(read(source, 32), splatInt(32, 16 * part)), 16, false);
    };
    Value *result = nullptr;
    if (!d.type.isFloat()) {
      Value *a = bitsOf(d.operands[1]), *b = d.operands.size() > 2 ? bitsOf(d.operands[2]) : nullptr;
      bool isSigned = d.type.isSigned();
      switch (d.opcode) {
      case Opcode::Add:
        result = ir.CreateAdd(a, b);
        break;
      case Opcode::Sub:
        result = ir.CreateSub(a, b);
        break;
      case Opcode::Min:
        result = ir.CreateBinaryIntrinsic(isSigned ? Intrinsic::smin : Intrinsic::umin, a, b);
        break;
      case Opcode::Max:
        result = ir.CreateBinaryIntrinsic(isSigned ? Intrinsic::smax : Intrinsic::umax, a, b);
        break;
      default:
        return false;
      }
    } else if (d.approximate) {
      result = outOfLine(d, intLanes(16), bitsOf(d.operands[1]),
                         [&](ArrayRef<Value *> v) { return approximateHalf(d, v[0]); });
    } else {
      SmallVector<Value *, 3> arguments;
      for (const Source &operand : ArrayRef(d.operands).drop_front()) {
        Value *value = fromHalf(bitsOf(operand), d.type);
        arguments.push_back(d.ftz ? flush(value, d.type) : value);
      }
      if (d.opcode == Opcode::Neg)
        result = ir.CreateXor(bitsOf(d.operands[1]), splatInt(16, 0x8000));
      else if (d.opcode == Opcode::Abs)
        result = ir.CreateAnd(bitsOf(d.operands[1]), splatInt(16, 0x7fff));
      else if (isFma)
        result = fmaHalf(arguments, d.type);
      else if (Value *value = floatOp(d, arguments, d.type))
        result = toHalf(value, d.type);
      if (!result)
        return false;
      if (d.saturate)
        result = toHalf(saturate(fromHalf(result, d.type)), d.type);
      if (d.ftz)
        result = flushHalf(result, d.type);
    }
    whole = ir.CreateOr(whole, ir.CreateShl(resize(result, 32, false), splatInt(32, 16 * part)));
  }
  write(d.operands[0], whole);
  return true;
}

} // namespace hloc::emulator
