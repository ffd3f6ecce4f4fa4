// cvt between integers and floats, and the dispatch over all instructions.
#include "WarpCode.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Intrinsics.h"

#include <cstring>

namespace hloc::emulator {

using namespace llvm;

namespace {

/// f64 to the bits of a narrower float in any rounding.
void narrowLanes(uint64_t exponentBits, uint64_t mantissaBits, uint64_t rounding, const double *in, uint32_t *out) {
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    out[lane] = encode(in[lane], {int(exponentBits), int(mantissaBits)}, Rounding(rounding));
}

/// 64-bit integers to f32 or f64 in any rounding. The sum of two parts, each exact in f64, is what is rounded.
template <typename T> void integerLanes(uint64_t isSigned, uint64_t rounding, const uint64_t *in, T *out) {
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    double high = isSigned ? double(int64_t(in[lane]) >> 32) : double(in[lane] >> 32), low = double(uint32_t(in[lane]));
    double sum = compute(FloatOp::Fma, high, 4294967296.0, low, Rounding(rounding));
    if constexpr (std::is_same_v<T, float>) {
      double odd = fmaToOdd(high, 4294967296.0, low);
      uint32_t bits = encode(odd, single, Rounding(rounding));
      std::memcpy(&out[lane], &bits, sizeof bits);
    } else {
      out[lane] = sum;
    }
  }
}

/// 64-bit integers to the bits of a narrower float.
void integerHalfLanes(uint64_t isSigned, uint64_t isHalf, uint64_t rounding, const uint64_t *in, uint32_t *out) {
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    double high = isSigned ? double(int64_t(in[lane]) >> 32) : double(in[lane] >> 32), low = double(uint32_t(in[lane]));
    out[lane] = encode(fmaToOdd(high, 4294967296.0, low), isHalf ? half : bfloat, Rounding(rounding));
  }
}

Intrinsic::ID integralRounding(Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return Intrinsic::roundeven;
  case Rounding::Zero:
    return Intrinsic::trunc;
  case Rounding::Down:
    return Intrinsic::floor;
  case Rounding::Up:
    return Intrinsic::ceil;
  }
  return Intrinsic::not_intrinsic;
}

} // namespace

bool WarpCode::lowerConvert(const Decoded &d) {
  bool toFloat = d.type.isFloat(), fromFloat = d.from.isFloat();
  if (d.type.lanes == 2 || d.operands.size() == 3) { // two f32 to a pair, the first to the upper half
    if (!toFloat || d.type.bits != 16 || d.from.bits != 32 || d.operands.size() != 3 || !fromFloat)
      return false;
    Value *halves[2];
    for (unsigned i = 0; i < 2; ++i) {
      Value *value = readFloat(d.operands[2 - i], d.from);
      if (d.rounding == Rounding::Nearest) {
        halves[i] = toHalf(value, d.type);
      } else {
        SmallFormat format = d.type.kind == TypeClass::Float ? half : bfloat;
        Value *wide = ir.CreateFPExt(value, lanes(ir.getDoubleTy()));
        halves[i] =
            resize(callArrays((const void *)&narrowLanes,
                              {uint64_t(format.exponentBits), uint64_t(format.mantissaBits), uint64_t(d.rounding)},
                              {wide}, intLanes(32)),
                   16, false);
      }
    }
    write(d.operands[0],
          ir.CreateOr(resize(halves[0], 32, false), ir.CreateShl(resize(halves[1], 32, false), splatInt(32, 16))));
    return true;
  }
  unsigned bits = d.type.bits, fromBits = d.from.bits;
  if (!toFloat && !fromFloat) {
    Value *value = read(d.operands[1], fromBits);
    bool isSigned = d.from.isSigned(), toSigned = d.type.isSigned();
    if (d.saturate) {
      unsigned wide = std::max(bits, fromBits) + 1;
      value = resize(value, wide, isSigned);
      APInt low = toSigned ? APInt::getSignedMinValue(bits).sext(wide) : APInt(wide, 0);
      APInt high = toSigned ? APInt::getSignedMaxValue(bits).sext(wide) : APInt::getMaxValue(bits).zext(wide);
      value = ir.CreateBinaryIntrinsic(Intrinsic::smax, value, ConstantInt::get(intLanes(wide), low));
      value = ir.CreateBinaryIntrinsic(Intrinsic::smin, value, ConstantInt::get(intLanes(wide), high));
    }
    write(d.operands[0], resize(value, bits, isSigned), toSigned);
    return true;
  }
  if (!fromFloat) { // integer to float
    bool isSigned = d.from.isSigned();
    Value *value = read(d.operands[1], fromBits);
    if (bits == 16 || d.rounding != Rounding::Nearest) {
      Value *wide = resize(value, 64, isSigned);
      if (bits >= 32) {
        const void *target = bits == 32 ? (const void *)&integerLanes<float> : (const void *)&integerLanes<double>;
        writeFloat(d, callArrays(target, {isSigned, uint64_t(d.rounding)}, {wide},
                                 lanes(bits == 32 ? ir.getFloatTy() : ir.getDoubleTy())));
        return true;
      }
      Value *rounded =
          callArrays((const void *)&integerHalfLanes, {isSigned, d.type.kind == TypeClass::Float, uint64_t(d.rounding)},
                     {wide}, intLanes(32));
      write(d.operands[0], resize(rounded, 16, false));
      return true;
    }
    IrType *type = lanes(bits == 32 ? ir.getFloatTy() : ir.getDoubleTy());
    writeFloat(d, isSigned ? ir.CreateSIToFP(value, type) : ir.CreateUIToFP(value, type));
    return true;
  }
  Value *value = readFloat(d.operands[1], d.from);
  if (d.ftz)
    value = flush(value, {TypeClass::Float, 32, 1});
  if (!toFloat) { // NaN gives 0; what does not fit, the nearest that does
    Value *whole = unary(integralRounding(d.rounding), value);
    Intrinsic::ID id = d.type.isSigned() ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
    write(d.operands[0], ir.CreateIntrinsic(id, {intLanes(bits), whole->getType()}, {whole}), d.type.isSigned());
    return true;
  }
  if (d.integral || (bits == fromBits && d.type.kind == d.from.kind)) {
    if (bits != fromBits)
      return false;
    if (!d.integral && !d.ftz && !d.saturate) { // keeps the bits
      write(d.operands[0], read(d.operands[1], bits));
      return true;
    }
    writeFloat(d, d.integral ? unary(integralRounding(d.rounding), value) : value);
    return true;
  }
  if (bits > fromBits) {
    writeFloat(d, bits == 64 ? ir.CreateFPExt(value, lanes(ir.getDoubleTy())) : value);
    return true;
  }
  if (fromBits == 32 && d.rounding == Rounding::Nearest) {
    writeFloat(d, value);
    return true;
  }
  if (fromBits == 64 && bits == 32 && d.rounding == Rounding::Nearest) {
    writeFloat(d, ir.CreateFPTrunc(value, lanes(ir.getFloatTy())));
    return true;
  }
  if (fromBits == 16) { // f16 <-> bf16
    writeFloat(d, value);
    return d.rounding == Rounding::Nearest;
  }
  SmallFormat format = bits == 32 ? single : d.type.kind == TypeClass::Float ? half : bfloat;
  Value *wide = fromBits == 64 ? value : ir.CreateFPExt(value, lanes(ir.getDoubleTy()));
  Value *narrow = callArrays((const void *)&narrowLanes,
                             {uint64_t(format.exponentBits), uint64_t(format.mantissaBits), uint64_t(d.rounding)},
                             {wide}, intLanes(32));
  if (bits == 32)
    writeFloat(d, ir.CreateBitCast(narrow, lanes(ir.getFloatTy())));
  else if (d.saturate || d.ftz)
    writeFloat(d, fromHalf(resize(narrow, 16, false), d.type));
  else
    write(d.operands[0], resize(narrow, 16, false));
  return true;
}

bool WarpCode::lower(const Decoded &d) {
  if (isCollective(d))
    return lowerCollective(d);
  if (d.approximate)
    return lowerApproximate(d);
  switch (d.opcode) {
  case Opcode::Bra:
  case Opcode::Exit:
  case Opcode::Ret:
  case Opcode::Trap:
    return true; // ends its block
  case Opcode::Fence:
  case Opcode::Membar:
  case Opcode::Nop:
    return true; // memory is sequentially consistent, grids run one after the other
  case Opcode::Ld:
  case Opcode::St:
  case Opcode::Atom:
  case Opcode::Red:
    return lowerMemory(d);
  case Opcode::Bar:
  case Opcode::Barrier:
    return lowerBarrier(d);
  case Opcode::Mov:
    return lowerMov(d);
  case Opcode::Cvta: // to: a generic address becomes one of the space, whose proper addresses are offsets
    write(d.operands[0], [&] {
      Value *value = read(d.operands[1], d.type.bits);
      uint64_t window = isShared(d.space)         ? sharedWindow
                        : d.space == Space::Local ? localWindow
                        : d.space == Space::Param ? parameterWindow
                                                  : 0;
      return !window    ? value
             : d.reduce ? ir.CreateSub(value, splatInt(64, window))
                        : ir.CreateAdd(value, splatInt(64, window));
    }());
    return true;
  case Opcode::Cvt:
    return lowerConvert(d);
  case Opcode::Setp:
    return lowerSetp(d);
  case Opcode::Copysign:
  case Opcode::Fma:
  case Opcode::Rcp:
  case Opcode::Sqrt:
    return lowerFloat(d);
  case Opcode::Abs:
  case Opcode::Add:
  case Opcode::Div:
  case Opcode::Mad:
  case Opcode::Max:
  case Opcode::Min:
  case Opcode::Mul:
  case Opcode::Neg:
  case Opcode::Selp:
  case Opcode::Sub:
    return d.type.isFloat() ? lowerFloat(d) : lowerInteger(d);
  case Opcode::Addc:
  case Opcode::And:
  case Opcode::Bfe:
  case Opcode::Bfi:
  case Opcode::Brev:
  case Opcode::Clz:
  case Opcode::Lop3:
  case Opcode::Madc:
  case Opcode::Not:
  case Opcode::Or:
  case Opcode::Popc:
  case Opcode::Prmt:
  case Opcode::Rem:
  case Opcode::Shf:
  case Opcode::Shl:
  case Opcode::Shr:
  case Opcode::Subc:
  case Opcode::Xor:
    return lowerInteger(d);
  case Opcode::Activemask:
  case Opcode::AsyncStore:
  case Opcode::Bulk:
  case Opcode::Mbarrier:
  case Opcode::Bfind:
  case Opcode::Bmsk:
  case Opcode::ClusterBarrier:
  case Opcode::Cnot:
  case Opcode::Cos:
  case Opcode::Cp:
  case Opcode::Dp2a:
  case Opcode::Dp4a:
  case Opcode::Elect:
  case Opcode::Ex2:
  case Opcode::Fns:
  case Opcode::Getctarank:
  case Opcode::Griddepcontrol:
  case Opcode::Isspacep:
  case Opcode::Ldmatrix:
  case Opcode::Lg2:
  case Opcode::Mad24:
  case Opcode::Mapa:
  case Opcode::Match:
  case Opcode::Mma:
  case Opcode::Mul24:
  case Opcode::Redux:
  case Opcode::Rsqrt:
  case Opcode::Sad:
  case Opcode::Set:
  case Opcode::Setmaxnreg:
  case Opcode::Shfl:
  case Opcode::Sin:
  case Opcode::Slct:
  case Opcode::Stmatrix:
  case Opcode::Szext:
  case Opcode::Tanh:
  case Opcode::Testp:
  case Opcode::Vote:
  case Opcode::Wgmma:
  case Opcode::Tensormap:
  case Opcode::Wmma:
    return false; // collectives, and what is always approximate
  }
  return false;
}

} // namespace hloc::emulator
