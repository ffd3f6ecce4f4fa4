#include "emitters/Convert.h"
#include "emitters/Elementwise.h"

using namespace mlir;

namespace hloc {
namespace {

using IPred = CodeBuilder::IPred;
using FPred = CodeBuilder::FPred;

IPred integerPredicate(ComparisonDirection direction, bool isSigned) {
  switch (direction) {
  case ComparisonDirection::Eq:
    return IPred::eq;
  case ComparisonDirection::Ne:
    return IPred::ne;
  case ComparisonDirection::Ge:
    return isSigned ? IPred::sge : IPred::uge;
  case ComparisonDirection::Gt:
    return isSigned ? IPred::sgt : IPred::ugt;
  case ComparisonDirection::Le:
    return isSigned ? IPred::sle : IPred::ule;
  case ComparisonDirection::Lt:
    return isSigned ? IPred::slt : IPred::ult;
  }
  llvm_unreachable("closed enum");
}

FPred floatPredicate(ComparisonDirection direction) {
  switch (direction) {
  case ComparisonDirection::Eq:
    return FPred::OEQ;
  case ComparisonDirection::Ne:
    return FPred::UNE;
  case ComparisonDirection::Ge:
    return FPred::OGE;
  case ComparisonDirection::Gt:
    return FPred::OGT;
  case ComparisonDirection::Le:
    return FPred::OLE;
  case ComparisonDirection::Lt:
    return FPred::OLT;
  }
  llvm_unreachable("closed enum");
}

/// Signed integers in the order -NaN < -inf < ... < -0 < +0 < ... < +NaN.
Value totalOrderKey(CodeBuilder &b, Value value, ElementType type) {
  Type bits = b.getIntegerType(bitWidth(type));
  Value pattern = value.getType().isInteger() ? b.castI(value, bits, false) : b.bitcast(value, bits);
  Value flipped = b.xorI(pattern, b.integer(bits, int64_t(~uint64_t(0) >> (65 - bitWidth(type)))));
  return b.select(b.cmpI(IPred::slt, pattern, 0), flipped, pattern);
}

llvm::FailureOr<Value> compareFloats(const ElementwiseOp &op, ComparisonDirection direction) {
  CodeBuilder &b = op.b;
  ElementType type = op.operandType();
  if (type == ElementType::F8E8M0FNU && op.instr.comparisonType() == ComparisonType::TotalOrder)
    return b.cmpI(integerPredicate(direction, false), op.operand(0), op.operand(1));
  if (op.instr.comparisonType() == ComparisonType::TotalOrder)
    return b.cmpI(integerPredicate(direction, true), totalOrderKey(b, op.operand(0), type),
                  totalOrderKey(b, op.operand(1), type));
  return b.cmpF(floatPredicate(direction), toCompute(b, op.operand(0), type), toCompute(b, op.operand(1), type));
}

llvm::FailureOr<Value> compareComplex(const ElementwiseOp &op, ComparisonDirection direction) {
  CodeBuilder &b = op.b;
  if (direction != ComparisonDirection::Eq && direction != ComparisonDirection::Ne)
    return op.unsupportedType();
  Value real = b.cmpF(FPred::OEQ, b.real(op.operand(0)), b.real(op.operand(1)));
  Value imag = b.cmpF(FPred::OEQ, b.imag(op.operand(0)), b.imag(op.operand(1)));
  Value equal = b.andI(real, imag);
  return direction == ComparisonDirection::Eq ? equal : b.notI(equal);
}

} // namespace

llvm::FailureOr<Value> emitCompare(const ElementwiseOp &op) {
  auto direction = op.instr.enumOr(AttributeKey::Direction, ComparisonDirection::Eq);
  ElementType type = op.operandType();
  if (isFloat(type))
    return compareFloats(op, direction);
  if (isComplex(type))
    return compareComplex(op, direction);
  return op.b.cmpI(integerPredicate(direction, isSigned(type)), op.operand(0), op.operand(1));
}

} // namespace hloc
