#include "emitters/Elementwise.h"

#include "hloc/hlo/OpcodeTable.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace hloc {
namespace {

using IPred = CodeBuilder::IPred;

Value smallest(CodeBuilder &b, Value like) {
  unsigned width = like.getType().getIntOrFloatBitWidth();
  return b.integerLike(like, int64_t(uint64_t(1) << (width - 1)));
}

/// An amount of the width or more (negative amounts are such) shifts everything out.
Value shift(CodeBuilder &b, Opcode opcode, Value x, Value amount) {
  Value inRange = b.cmpI(IPred::ult, amount, x.getType().getIntOrFloatBitWidth());
  Value safe = b.select(inRange, amount, b.integerLike(amount, 0));
  if (opcode == Opcode::ShiftRightArithmetic) {
    Value allSign = b.integerLike(amount, x.getType().getIntOrFloatBitWidth() - 1);
    return b.shrS(x, b.select(inRange, amount, allSign));
  }
  // PTX shifts by 32-bit amounts and shifts everything out beyond the width, which makes NVPTX drop the selection: with
  // it the upper half of a 64-bit amount.
  if (x.getType().getIntOrFloatBitWidth() == 64)
    safe = b.andI(amount, 63);
  Value shifted = opcode == Opcode::ShiftLeft ? b.shl(x, safe) : b.shrU(x, safe);
  return b.select(inRange, shifted, b.integerLike(x, 0));
}

Value multiplyHigh(CodeBuilder &b, Value x, Value y, bool isSigned) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  Type wide = b.getIntegerType(2 * width);
  Value product = b.mulI(b.castI(x, wide, isSigned), b.castI(y, wide, isSigned));
  return b.castI(b.shrU(product, width), x.getType(), false);
}

Value sign(CodeBuilder &b, Value x, bool isSigned) {
  Value zero = b.integerLike(x, 0);
  Value isZero = b.cmpI(IPred::eq, x, zero);
  if (!isSigned)
    return b.select(isZero, zero, b.integerLike(x, 1));
  Value negative = b.cmpI(IPred::slt, x, zero);
  Value one = b.select(negative, b.integerLike(x, -1), b.integerLike(x, 1));
  return b.select(isZero, zero, one);
}

/// Square and multiply over all bits of the exponent. A negative exponent gives 1 for base 1 and 0 otherwise, also for
/// base -1, as the reference has it.
Value power(CodeBuilder &b, Value base, Value exponent, bool isSigned) {
  Type type = base.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  Value one = b.integer(type, 1);
  auto loop = scf::ForOp::create(b, b.index(0), b.index(width), b.index(1), ValueRange{one, base, exponent},
                                 [&](OpBuilder &inner, Location loc, Value, ValueRange state) {
                                   CodeBuilder c(loc, inner);
                                   Value odd = c.cmpI(IPred::ne, c.andI(state[2], 1), 0);
                                   Value result = c.select(odd, c.mulI(state[0], state[1]), state[0]);
                                   Value rest = width == 1 ? c.integerLike(state[2], 0) : c.shrU(state[2], 1);
                                   scf::YieldOp::create(c, ValueRange{result, c.mulI(state[1], state[1]), rest});
                                 });
  Value result = loop.getResult(0);
  if (!isSigned)
    return result;
  Value reciprocal = b.select(b.cmpI(IPred::eq, base, 1), one, b.integer(type, 0));
  return b.select(b.cmpI(IPred::slt, exponent, 0), reciprocal, result);
}

Value countBits(CodeBuilder &b, Opcode opcode, Value x) {
  if (opcode == Opcode::PopulationCount)
    return math::CtPopOp::create(b, x);
  return math::CountLeadingZerosOp::create(b, x);
}

struct IntegerOp {
  Opcode opcode;
  CodeBuilder &b;
  Value x, y;
  bool isSigned;
};

Value absolute(const IntegerOp &i) {
  CodeBuilder &b = i.b;
  return i.isSigned ? b.select(b.cmpI(IPred::slt, i.x, 0), b.subI(b.integerLike(i.x, 0), i.x), i.x) : i.x;
}

} // namespace

Value integerDivide(CodeBuilder &b, Value x, Value y, bool isSigned) {
  Value byZero = b.cmpI(IPred::eq, y, 0);
  Value one = b.integerLike(y, 1);
  Value safe = b.select(byZero, one, y);
  if (!isSigned) {
    Value quotient = arith::DivUIOp::create(b, x, safe);
    return b.select(byZero, b.integerLike(x, -1), quotient);
  }
  Value overflow = b.andI(b.cmpI(IPred::eq, x, smallest(b, x)), b.cmpI(IPred::eq, y, -1));
  safe = b.select(overflow, one, safe);
  Value quotient = arith::DivSIOp::create(b, x, safe); // smallest / 1 is the wrapped result
  return b.select(byZero, b.integerLike(x, -1), quotient);
}

Value integerRemainder(CodeBuilder &b, Value x, Value y, bool isSigned) {
  Value byZero = b.cmpI(IPred::eq, y, 0);
  Value one = b.integerLike(y, 1);
  Value safe = b.select(byZero, one, y);
  Value remainder;
  if (isSigned) {
    // x % -1 is 0, and so is x % 1, which cannot overflow.
    safe = b.select(b.cmpI(IPred::eq, y, -1), one, safe);
    remainder = arith::RemSIOp::create(b, x, safe);
  } else {
    remainder = arith::RemUIOp::create(b, x, safe);
  }
  return b.select(byZero, x, remainder);
}

llvm::FailureOr<Value> emitIntegerOp(const ElementwiseOp &op) {
  using enum Opcode;
  static constexpr OpcodeTable<Value (*)(const IntegerOp &)> emits(
      [](Opcode each) { return isDefinedOn(each, TypeSet::Integer); },
      {
          {{Add}, [](const IntegerOp &i) { return i.b.addI(i.x, i.y); }},
          {{Subtract}, [](const IntegerOp &i) { return i.b.subI(i.x, i.y); }},
          {{Multiply}, [](const IntegerOp &i) { return i.b.mulI(i.x, i.y); }},
          {{MultiplyHigh}, [](const IntegerOp &i) { return multiplyHigh(i.b, i.x, i.y, i.isSigned); }},
          {{Divide}, [](const IntegerOp &i) { return integerDivide(i.b, i.x, i.y, i.isSigned); }},
          {{Remainder}, [](const IntegerOp &i) { return integerRemainder(i.b, i.x, i.y, i.isSigned); }},
          {{Power}, [](const IntegerOp &i) { return power(i.b, i.x, i.y, i.isSigned); }},
          {{Maximum}, [](const IntegerOp &i) { return i.b.maxI(i.x, i.y, i.isSigned); }},
          {{Minimum}, [](const IntegerOp &i) { return i.b.minI(i.x, i.y, i.isSigned); }},
          {{And}, [](const IntegerOp &i) { return i.b.andI(i.x, i.y); }},
          {{Or}, [](const IntegerOp &i) { return i.b.orI(i.x, i.y); }},
          {{Xor}, [](const IntegerOp &i) { return i.b.xorI(i.x, i.y); }},
          {{Not}, [](const IntegerOp &i) { return i.b.notI(i.x); }},
          {{ShiftLeft, ShiftRightArithmetic, ShiftRightLogical},
           [](const IntegerOp &i) { return shift(i.b, i.opcode, i.x, i.y); }},
          {{Negate}, [](const IntegerOp &i) { return i.b.subI(i.b.integerLike(i.x, 0), i.x); }},
          {{Abs}, absolute},
          {{Sign}, [](const IntegerOp &i) { return sign(i.b, i.x, i.isSigned); }},
          {{CountLeadingZeros, PopulationCount}, [](const IntegerOp &i) { return countBits(i.b, i.opcode, i.x); }},
      });
  if (!emits.contains(op.opcode()))
    return op.unsupportedType();
  Value y = op.operands.size() > 1 ? op.operand(1) : Value();
  return emits[op.opcode()](IntegerOp{op.opcode(), op.b, op.operand(0), y, isSigned(op.operandType())});
}

} // namespace hloc
