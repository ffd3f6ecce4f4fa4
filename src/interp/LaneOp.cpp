#include "interp/LaneOp.h"

#include "hloc/support/Check.h"

namespace hloc::interp {

namespace {

Kernel kernelOf(const HloInstruction &instr) {
  // The operand whose type decides: the last one (select and clamp start with a predicate or a bound).
  ElementType type = instr.operand(instr.numOperands() - 1)->shape().elementType();
  ComputeType compute = computeType(type);
  switch (instr.opcode()) {
  case Opcode::ReducePrecision:
    return reducePrecisionKernel(compute);
  case Opcode::Compare:
    return compareKernel(
        instr.enumOr(AttributeKey::Direction, ComparisonDirection::Eq),
        instr.comparisonType() == ComparisonType::TotalOrder ? totalOrderOf(type) : FloatOrder::Partial, compute);
  case Opcode::Select:
    return selectKernel(compute);
  case Opcode::Clamp:
    return clampKernel(compute);
  case Opcode::Convert:
    return convertKernel(type, instr.shape().elementType());
  case Opcode::StochasticConvert:
    return stochasticConvertKernel(computeType(instr.operand(0)->shape().elementType()));
  case Opcode::BitcastConvert: // on bytes, not on lanes
    return nullptr;
  default:
    if (family(instr.opcode()) == OpcodeFamily::Unary)
      return unaryKernel(instr.opcode(), compute);
    if (family(instr.opcode()) == OpcodeFamily::Binary)
      return binaryKernel(instr.opcode(), compute);
    HLOC_UNREACHABLE("an elementwise op of a family without kernels");
  }
}

/// Do the operand types fit together the way the kernel reads them?
bool operandTypesAgree(const HloInstruction &instr) {
  unsigned first = instr.opcode() == Opcode::Select ? 1 : 0;
  if (instr.opcode() == Opcode::StochasticConvert)
    return isUnsigned(instr.operand(1)->shape().elementType()) && isSigned(instr.shape().elementType());
  for (unsigned i = first + 1; i < instr.numOperands(); ++i)
    if (instr.operand(i)->shape().elementType() != instr.operand(first)->shape().elementType())
      return false;
  return true;
}

} // namespace

std::optional<LaneOp> laneOp(const HloInstruction &instr) {
  if (!isElementwise(instr.opcode()) || instr.numOperands() == 0 || instr.numOperands() > 3 || !instr.shape().isArray())
    return std::nullopt;
  LaneOp op;
  op.numOperands = instr.numOperands();
  for (unsigned i = 0; i < op.numOperands; ++i) {
    const Shape &shape = instr.operand(i)->shape();
    if (!shape.isArray() || !isArrayType(shape.elementType()))
      return std::nullopt;
    op.operandTypes[i] = shape.elementType();
  }
  if (!operandTypesAgree(instr))
    return std::nullopt;
  op.kernel = kernelOf(instr);
  if (!op.kernel)
    return std::nullopt;
  op.resultType = instr.shape().elementType();
  op.round = roundFunction(op.resultType);
  bool saturates = instr.opcode() == Opcode::Convert || instr.opcode() == Opcode::StochasticConvert;
  op.bits = bitWidth(saturates ? op.resultType : op.operandTypes[0]);
  op.exponentBits = unsigned(instr.intOr(AttributeKey::ExponentBits, 0));
  op.mantissaBits = unsigned(instr.intOr(AttributeKey::MantissaBits, 0));
  if (instr.opcode() == Opcode::StochasticConvert)
    op.randomBits = bitWidth(op.operandTypes[1]);
  return op;
}

} // namespace hloc::interp
