// Integer, logic, shift, move and compare instructions.
#include "WarpCode.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Intrinsics.h"

namespace hloc::emulator {

using namespace llvm;

bool WarpCode::lowerInteger(const Decoded &d) {
  unsigned bits = d.type.kind == TypeClass::Predicate ? 1 : d.type.width();
  auto operand = [&](unsigned i) { return bits == 1 ? readPredicate(d.operands[i]) : read(d.operands[i], bits); };
  auto set = [&](Value *value) {
    write(d.operands[0], value, d.type.isSigned());
    return true;
  };
  switch (d.opcode) {
  case Opcode::And:
    return set(ir.CreateAnd(operand(1), operand(2)));
  case Opcode::Or:
    return set(ir.CreateOr(operand(1), operand(2)));
  case Opcode::Xor:
    return set(ir.CreateXor(operand(1), operand(2)));
  case Opcode::Not:
    return set(ir.CreateNot(operand(1)));
  case Opcode::Add:
  case Opcode::Sub:
    if (d.carryOut.kind != Source::Kind::None)
      return lowerCarry(d);
    if (d.type.lanes == 2)
      return lowerPacked(d);
    if (d.saturate)
      return set(ir.CreateBinaryIntrinsic(d.opcode == Opcode::Add ? Intrinsic::sadd_sat : Intrinsic::ssub_sat,
                                          operand(1), operand(2)));
    return set(d.opcode == Opcode::Add ? ir.CreateAdd(operand(1), operand(2)) : ir.CreateSub(operand(1), operand(2)));
  case Opcode::Addc:
  case Opcode::Subc:
  case Opcode::Madc:
    return lowerCarry(d);
  case Opcode::Neg:
    return set(ir.CreateNeg(operand(1)));
  case Opcode::Abs:
    return set(ir.CreateBinaryIntrinsic(Intrinsic::abs, operand(1), ir.getFalse()));
  case Opcode::Min:
  case Opcode::Max: {
    if (d.type.lanes == 2)
      return lowerPacked(d);
    bool isMin = d.opcode == Opcode::Min;
    auto id =
        d.type.isSigned() ? (isMin ? Intrinsic::smin : Intrinsic::smax) : (isMin ? Intrinsic::umin : Intrinsic::umax);
    return set(ir.CreateBinaryIntrinsic(id, operand(1), operand(2)));
  }
  case Opcode::Mul:
  case Opcode::Mad:
    return d.carryOut.kind != Source::Kind::None ? lowerCarry(d) : lowerMul(d);
  case Opcode::Div:
  case Opcode::Rem:
    return lowerDivRem(d);
  case Opcode::Shl:
  case Opcode::Shr:
    return lowerShift(d);
  case Opcode::Shf:
    return lowerFunnelShift(d);
  case Opcode::Bfe:
  case Opcode::Bfi:
    return lowerBitField(d);
  case Opcode::Brev:
    return set(ir.CreateUnaryIntrinsic(Intrinsic::bitreverse, operand(1)));
  case Opcode::Popc:
    return write(d.operands[0], ir.CreateUnaryIntrinsic(Intrinsic::ctpop, operand(1))), true;
  case Opcode::Clz:
    return write(d.operands[0], ir.CreateBinaryIntrinsic(Intrinsic::ctlz, operand(1), ir.getFalse())), true;
  case Opcode::Prmt:
    return lowerPermute(d);
  case Opcode::Lop3:
    return lowerLop3(d);
  case Opcode::Selp:
    return set(ir.CreateSelect(readPredicate(d.operands[3]), operand(1), operand(2)));
  default:
    return false;
  }
}

/// The upper half of a 64-bit product from four 32-bit ones: LLVM would do vectors of 128 bits lane by lane.
llvm::Value *WarpCode::mulHigh64(Value *a, Value *b, bool isSigned) {
  Value *low = splatInt(64, 0xffffffff), *half = splatInt(64, 32), *zero = splatInt(64, 0);
  Value *a0 = ir.CreateAnd(a, low), *a1 = ir.CreateLShr(a, half);
  Value *b0 = ir.CreateAnd(b, low), *b1 = ir.CreateLShr(b, half);
  Value *cross0 = ir.CreateMul(a0, b1), *cross1 = ir.CreateMul(a1, b0);
  Value *middle = ir.CreateAdd(ir.CreateLShr(ir.CreateMul(a0, b0), half),
                               ir.CreateAdd(ir.CreateAnd(cross0, low), ir.CreateAnd(cross1, low)));
  Value *high = ir.CreateAdd(ir.CreateMul(a1, b1), ir.CreateLShr(middle, half));
  high = ir.CreateAdd(high, ir.CreateAdd(ir.CreateLShr(cross0, half), ir.CreateLShr(cross1, half)));
  if (!isSigned)
    return high;
  high = ir.CreateSub(high, ir.CreateSelect(ir.CreateICmpSLT(a, zero), b, zero));
  return ir.CreateSub(high, ir.CreateSelect(ir.CreateICmpSLT(b, zero), a, zero));
}

bool WarpCode::lowerMul(const Decoded &d) {
  unsigned bits = d.type.bits;
  bool isSigned = d.type.isSigned();
  Value *a = read(d.operands[1], bits), *b = read(d.operands[2], bits);
  unsigned wide = d.mode == Mode::Lo || d.mode == Mode::None ? bits : 2 * bits;
  Value *product;
  if (d.mode == Mode::Hi && bits == 64) {
    product = mulHigh64(a, b, isSigned);
    wide = bits;
  } else {
    product = ir.CreateMul(resize(a, wide, isSigned), resize(b, wide, isSigned));
    if (d.mode == Mode::Hi) {
      product = resize(ir.CreateLShr(product, splatInt(wide, bits)), bits, false);
      wide = bits;
    }
  }
  if (d.opcode == Opcode::Mad) {
    Value *c = read(d.operands[3], wide);
    product = d.saturate ? ir.CreateBinaryIntrinsic(Intrinsic::sadd_sat, product, c) : ir.CreateAdd(product, c);
  }
  write(d.operands[0], product, isSigned);
  return true;
}

/// add.cc, addc, sub.cc, subc, mad.cc, madc: the carry (of subtractions the borrow) lives in a predicate register.
bool WarpCode::lowerCarry(const Decoded &d) {
  unsigned bits = d.type.bits;
  IrType *wide = intLanes(bits + 1);
  auto extended = [&](Value *value) { return ir.CreateZExt(value, wide); };
  Value *carry =
      d.carryIn.kind == Source::Kind::None ? Constant::getNullValue(wide) : extended(readPredicate(d.carryIn));
  bool isMad = d.opcode == Opcode::Mad || d.opcode == Opcode::Madc;
  bool isSub = d.opcode == Opcode::Sub || d.opcode == Opcode::Subc;
  Value *a = read(d.operands[1], bits), *b = read(d.operands[2], bits);
  if (isMad) {
    bool isSigned = d.type.isSigned();
    Value *product = ir.CreateMul(resize(a, 2 * bits, isSigned), resize(b, 2 * bits, isSigned));
    a = resize(d.mode == Mode::Hi ? ir.CreateLShr(product, splatInt(2 * bits, bits)) : product, bits, false);
    b = read(d.operands[3], bits);
  }
  Value *sum = isSub ? ir.CreateSub(ir.CreateSub(extended(a), extended(b)), carry)
                     : ir.CreateAdd(ir.CreateAdd(extended(a), extended(b)), carry);
  if (d.carryOut.kind != Source::Kind::None)
    write(d.carryOut, ir.CreateTrunc(ir.CreateLShr(sum, ConstantInt::get(wide, bits)), intLanes(1)));
  write(d.operands[0], ir.CreateTrunc(sum, intLanes(bits)), d.type.isSigned());
  return true;
}

/// PTX leaves division by zero open; quotient all ones and remainder the dividend, as the hardware gives. The smallest
/// number by -1 wraps.
bool WarpCode::lowerDivRem(const Decoded &d) {
  unsigned bits = d.type.bits;
  bool isSigned = d.type.isSigned(), isDiv = d.opcode == Opcode::Div;
  Value *a = read(d.operands[1], bits), *b = read(d.operands[2], bits);
  Value *zero = ir.CreateICmpEQ(b, splatInt(bits, 0)), *one = splatInt(bits, 1);
  Value *unusual = zero;
  Value *minusOne = nullptr;
  if (isSigned) {
    minusOne = ir.CreateICmpEQ(b, splatInt(bits, ~uint64_t(0)));
    unusual = ir.CreateOr(zero, minusOne);
  }
  Value *divisor = ir.CreateSelect(unusual, one, b);
  Value *result;
  if (bits <= 32 && d.operands[2].kind != Source::Kind::Constant) {
    // Processors divide vectors of f64 only. The quotient of 32-bit numbers is off by less than its distance from the
    // next whole number, so cutting it off is exact.
    IrType *doubles = lanes(ir.getDoubleTy());
    auto wide = [&](Value *v) { return isSigned ? ir.CreateSIToFP(v, doubles) : ir.CreateUIToFP(v, doubles); };
    Value *quotient = ir.CreateFDiv(wide(a), wide(divisor));
    result = isSigned ? ir.CreateFPToSI(quotient, intLanes(bits)) : ir.CreateFPToUI(quotient, intLanes(bits));
    if (!isDiv)
      result = ir.CreateSub(a, ir.CreateMul(result, divisor));
  } else {
    result = isDiv ? (isSigned ? ir.CreateSDiv(a, divisor) : ir.CreateUDiv(a, divisor))
                   : (isSigned ? ir.CreateSRem(a, divisor) : ir.CreateURem(a, divisor));
  }
  if (isSigned)
    result = ir.CreateSelect(minusOne, isDiv ? ir.CreateNeg(a) : splatInt(bits, 0), result);
  result = ir.CreateSelect(zero, isDiv ? splatInt(bits, ~uint64_t(0)) : a, result);
  write(d.operands[0], result, isSigned);
  return true;
}

/// Amounts are 32-bit and clamp at the width.
bool WarpCode::lowerShift(const Decoded &d) {
  unsigned bits = d.type.bits;
  Value *a = read(d.operands[1], bits), *amount = read(d.operands[2], 32);
  Value *tooFar = ir.CreateICmpUGE(amount, splatInt(32, bits));
  Value *bounded = resize(ir.CreateSelect(tooFar, splatInt(32, bits - 1), amount), bits, false);
  Value *result;
  if (d.opcode == Opcode::Shr && d.type.isSigned()) {
    result = ir.CreateAShr(a, bounded);
  } else {
    result = d.opcode == Opcode::Shl ? ir.CreateShl(a, bounded) : ir.CreateLShr(a, bounded);
    result = ir.CreateSelect(tooFar, splatInt(bits, 0), result);
  }
  write(d.operands[0], result, d.type.isSigned());
  return true;
}

/// shf.l gives the upper half of {b, a} << c, shf.r the lower half of {b, a} >> c.
bool WarpCode::lowerFunnelShift(const Decoded &d) {
  Value *low = read(d.operands[1], 32), *high = read(d.operands[2], 32), *amount = read(d.operands[3], 32);
  amount = d.wrap ? ir.CreateAnd(amount, splatInt(32, 31))
                  : ir.CreateBinaryIntrinsic(Intrinsic::umin, amount, splatInt(32, 32));
  Value *pair = ir.CreateOr(ir.CreateShl(resize(high, 64, false), splatInt(64, 32)), resize(low, 64, false));
  amount = resize(amount, 64, false);
  Value *result =
      d.transposed ? ir.CreateLShr(pair, amount) : ir.CreateLShr(ir.CreateShl(pair, amount), splatInt(64, 32));
  write(d.operands[0], resize(result, 32, false));
  return true;
}

bool WarpCode::lowerBitField(const Decoded &d) {
  unsigned bits = d.type.bits;
  bool isExtract = d.opcode == Opcode::Bfe;
  unsigned first = isExtract ? 2 : 3;
  auto byteOf = [&](unsigned i) {
    return resize(ir.CreateAnd(read(d.operands[i], 32), splatInt(32, 0xff)), bits, false);
  };
  Value *position = byteOf(first), *length = byteOf(first + 1), *width = splatInt(bits, bits);
  Value *a = read(d.operands[1], bits);
  auto bounded = [&](Value *amount) {
    return ir.CreateBinaryIntrinsic(Intrinsic::umin, amount, splatInt(bits, bits - 1));
  };
  auto lowOnes = [&](Value *count) { // all ones from `bits` on
    Value *ones = ir.CreateSub(ir.CreateShl(splatInt(bits, 1), bounded(count)), splatInt(bits, 1));
    return ir.CreateSelect(ir.CreateICmpUGE(count, width), splatInt(bits, ~uint64_t(0)), ones);
  };
  Value *beyond = ir.CreateICmpUGE(position, width);
  if (!isExtract) { // insert the low bits of a into b
    Value *b = read(d.operands[2], bits);
    Value *field = ir.CreateSelect(beyond, splatInt(bits, 0), ir.CreateShl(lowOnes(length), bounded(position)));
    Value *placed = ir.CreateShl(a, bounded(position));
    write(d.operands[0], ir.CreateOr(ir.CreateAnd(placed, field), ir.CreateAnd(b, ir.CreateNot(field))));
    return true;
  }
  // The sign is the bit at min(position + length - 1, width - 1); bits above the field take it.
  Value *none = ir.CreateICmpEQ(length, splatInt(bits, 0));
  Value *shifted = ir.CreateSelect(beyond, splatInt(bits, 0), ir.CreateLShr(a, bounded(position)));
  Value *ones = lowOnes(length);
  Value *result = ir.CreateAnd(shifted, ones);
  if (d.type.isSigned()) {
    Value *last = bounded(ir.CreateSub(ir.CreateAdd(position, length), splatInt(bits, 1)));
    Value *sign = ir.CreateTrunc(ir.CreateLShr(a, last), intLanes(1));
    // Inside the width the field ends at `length` bits, else at the bits that were left.
    Value *kept =
        ir.CreateSelect(beyond, splatInt(bits, 0), ir.CreateLShr(splatInt(bits, ~uint64_t(0)), bounded(position)));
    Value *above = ir.CreateNot(ir.CreateAnd(ones, kept));
    result = ir.CreateSelect(sign, ir.CreateOr(result, above), result);
  }
  result = ir.CreateSelect(none, splatInt(bits, 0), result);
  write(d.operands[0], result, d.type.isSigned());
  return true;
}

/// Each nibble of the selector names one of eight bytes of {b, a}; its high bit copies that byte's sign instead.
bool WarpCode::lowerPermute(const Decoded &d) {
  Value *a = read(d.operands[1], 32), *b = read(d.operands[2], 32), *selector = read(d.operands[3], 32);
  Value *pair = ir.CreateOr(ir.CreateShl(resize(b, 64, false), splatInt(64, 32)), resize(a, 64, false));
  Value *result = splatInt(32, 0);
  for (unsigned i = 0; i < 4; ++i) {
    Value *nibble = ir.CreateLShr(selector, splatInt(32, 4 * i));
    Value *index = resize(ir.CreateAnd(nibble, splatInt(32, 7)), 64, false);
    Value *byte = resize(ir.CreateLShr(pair, ir.CreateShl(index, splatInt(64, 3))), 8, false);
    Value *sign = ir.CreateAShr(byte, splatInt(8, 7));
    Value *wantsSign = ir.CreateICmpNE(ir.CreateAnd(nibble, splatInt(32, 8)), splatInt(32, 0));
    byte = resize(ir.CreateSelect(wantsSign, sign, byte), 32, false);
    result = ir.CreateOr(result, ir.CreateShl(byte, splatInt(32, 8 * i)));
  }
  write(d.operands[0], result);
  return true;
}

bool WarpCode::lowerLop3(const Decoded &d) {
  if (d.operands.size() < 5 || d.operands[4].kind != Source::Kind::Constant)
    return false;
  Value *inputs[] = {read(d.operands[1], 32), read(d.operands[2], 32), read(d.operands[3], 32)};
  Value *result = splatInt(32, 0);
  for (unsigned row = 0; row < 8; ++row) {
    if (!(d.operands[4].value >> row & 1))
      continue;
    Value *term = splatInt(32, ~0u);
    for (unsigned i = 0; i < 3; ++i)
      term = ir.CreateAnd(term, row >> (2 - i) & 1 ? inputs[i] : ir.CreateNot(inputs[i]));
    result = ir.CreateOr(result, term);
  }
  write(d.operands[0], result);
  return true;
}

bool WarpCode::lowerMov(const Decoded &d) {
  if (d.type.kind == TypeClass::Predicate) {
    write(d.operands[0], readPredicate(d.operands[1]));
    return true;
  }
  write(d.operands[0], read(d.operands[1], d.type.width()), d.type.isSigned());
  return true;
}

static CmpInst::Predicate integerPredicate(Compare compare, bool isSigned) {
  switch (compare) {
  case Compare::Eq:
    return CmpInst::ICMP_EQ;
  case Compare::Ne:
    return CmpInst::ICMP_NE;
  case Compare::Lt:
    return isSigned ? CmpInst::ICMP_SLT : CmpInst::ICMP_ULT;
  case Compare::Le:
    return isSigned ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE;
  case Compare::Gt:
    return isSigned ? CmpInst::ICMP_SGT : CmpInst::ICMP_UGT;
  case Compare::Ge:
    return isSigned ? CmpInst::ICMP_SGE : CmpInst::ICMP_UGE;
  case Compare::Equ:
  case Compare::Neu:
  case Compare::Ltu:
  case Compare::Leu:
  case Compare::Gtu:
  case Compare::Geu:
  case Compare::Num:
  case Compare::Nan:
    return CmpInst::BAD_ICMP_PREDICATE;
  }
  return CmpInst::BAD_ICMP_PREDICATE;
}

bool WarpCode::lowerSetp(const Decoded &d) {
  Value *result;
  if (d.type.isFloat()) {
    Value *a = readFloat(d.operands[1], d.type), *b = readFloat(d.operands[2], d.type);
    if (d.ftz) {
      a = flush(a, d.type);
      b = flush(b, d.type);
    }
    result = compareFloats(d.compare, a, b);
  } else {
    auto predicate = integerPredicate(d.compare, d.type.isSigned());
    if (predicate == CmpInst::BAD_ICMP_PREDICATE)
      return false;
    result = ir.CreateICmp(predicate, read(d.operands[1], d.type.bits), read(d.operands[2], d.type.bits));
  }
  Value *opposite = ir.CreateNot(result);
  if (d.operands.size() == 4) {
    Value *c = readPredicate(d.operands[3]);
    auto combine = [&](Value *v) {
      return d.mode == Mode::And ? ir.CreateAnd(v, c) : d.mode == Mode::Or ? ir.CreateOr(v, c) : ir.CreateXor(v, c);
    };
    result = combine(result);
    opposite = combine(opposite);
  }
  const Source &destination = d.operands[0];
  if (destination.kind != Source::Kind::Vector) {
    write(destination, result);
    return true;
  }
  write(destination.elements[0], result);
  if (destination.elements.size() > 1)
    write(destination.elements[1], opposite);
  return true;
}

} // namespace hloc::emulator
