// Elementwise ops on integers and predicates: bounds come from floats that were rounded, compared or counted, and are
// rare. Ops that are monotone in each operand are evaluated at the corners; of all others nothing is known where an
// operand is not.

#include "interp/BoundElementwise.h"
#include "interp/ElementwiseRules.h"

#include "hloc/support/Check.h"

namespace hloc::interp {

namespace {

bool isMonotone(const HloInstruction &instr) {
  switch (elementwiseRule(instr.opcode()).integers) {
  case IntegerRule::Monotone:
  case IntegerRule::Wraps:
    return true;
  case IntegerRule::OfPred:
    return isPred(instr.shape().elementType());
  case IntegerRule::Ordered: {
    auto direction = instr.enumOr(AttributeKey::Direction, ComparisonDirection::Eq);
    bool equality = direction == ComparisonDirection::Eq || direction == ComparisonDirection::Ne;
    return !equality || isPred(instr.operand(0)->shape().elementType());
  }
  case IntegerRule::Open:
    return false;
  case IntegerRule::None:
    break;
  }
  HLOC_UNREACHABLE("an op that is not defined on integers");
}

__int128 exactInteger(Opcode opcode, __int128 a, __int128 b) {
  switch (opcode) {
  case Opcode::Add:
    return a + b;
  case Opcode::Subtract:
    return a - b;
  case Opcode::Multiply:
    return a * b;
  case Opcode::Negate:
    return -a;
  case Opcode::Convert:
    return a;
  default:
    HLOC_UNREACHABLE("an op that wraps, of which it is not said when");
  }
}

/// Sums and products that wrap somewhere between the ends of their operands are not monotone there.
bool mayWrap(const BoundStep &step, int64_t element) {
  Opcode opcode = step.instr.opcode();
  ElementType type = step.value.shape().elementType();
  if (isPred(type) || elementwiseRule(opcode).integers != IntegerRule::Wraps)
    return false;
  ElementType from = step.operands[0].array().shape().elementType();
  if (isFloat(from)) // saturates
    return false;
  auto at = [&](const Bounded &operand, bool high) -> __int128 {
    int64_t index = operand.array().numElements() == 1 ? 0 : element;
    const Literal &literal = !operand.bounds ? operand.array() : high ? operand.bounds->high : operand.bounds->low;
    return from == ElementType::U64 ? __int128(uint64_t(literal.getInt(index))) : __int128(literal.getInt(index));
  };
  unsigned bits = bitWidth(type);
  __int128 least = isSigned(type) ? -(__int128(1) << (bits - 1)) : 0;
  __int128 greatest = (__int128(1) << (isSigned(type) ? bits - 1 : bits)) - 1;
  for (unsigned corner = 0; corner < 1u << step.operands.size(); ++corner) {
    __int128 a = at(step.operands[0], corner & 1), b = step.operands.size() > 1 ? at(step.operands[1], corner & 2) : 0;
    const __int128 exact = exactInteger(opcode, a, b);
    if (exact < least || exact > greatest)
      return true;
  }
  return false;
}

/// A number that is converted to a predicate may be 0, and so false, between two ends that are both true.
bool mayVanish(const BoundStep &step, int64_t element) {
  const Bounded &operand = step.operands[0];
  ElementType from = operand.array().shape().elementType();
  if (step.instr.opcode() != Opcode::Convert || !isPred(step.value.shape().elementType()) || !operand.bounds)
    return false;
  const Bounds &bounds = *operand.bounds;
  int64_t index = operand.array().numElements() == 1 ? 0 : element;
  if (isComplex(from) || isUnknown(bounds, index))
    return true;
  if (!isFloat(from))
    return bounds.low.getInt(index) <= 0 && bounds.high.getInt(index) >= 0;
  return bounds.low.data<double>()[size_t(index)] <= 0 && bounds.high.data<double>()[size_t(index)] >= 0;
}

} // namespace

llvm::FailureOr<BoundsPtr> boundInteger(const BoundStep &step) {
  auto isOpen = [&](int64_t element) {
    return llvm::any_of(step.operands, [&](const Bounded &operand) {
      return operand.bounds && isSpread(*operand.bounds, operand.array().numElements() == 1 ? 0 : element);
    });
  };
  // Of a float of which nothing is known the ends are no corners.
  auto isUnknownFloat = [&](int64_t element) {
    return llvm::any_of(step.operands, [&](const Bounded &operand) {
      ElementType type = operand.array().shape().elementType();
      return operand.bounds && (isFloat(type) || isComplex(type)) &&
             isUnknown(*operand.bounds, operand.array().numElements() == 1 ? 0 : element);
    });
  };
  bool monotone = isMonotone(step.instr);
  llvm::FailureOr<BoundsPtr> corners = BoundsPtr();
  if (monotone)
    corners = boundsAtCorners(step);
  if (failed(corners))
    return llvm::failure();
  BoundsPtr unknown = unknownBounds(step.value);
  auto made = std::make_shared<Bounds>(*corners ? **corners : Bounds{asBound(step.value), asBound(step.value)});
  unsigned width = hostBytes(made->low.shape().elementType());
  for (int64_t i = 0; i < step.value.numElements(); ++i) {
    if (!isOpen(i) || (monotone && !mayWrap(step, i) && !mayVanish(step, i) && !isUnknownFloat(i)))
      continue;
    auto at = size_t(i) * width;
    std::copy_n(unknown->low.bytes().begin() + at, width, made->low.mutableBytes().begin() + at);
    std::copy_n(unknown->high.bytes().begin() + at, width, made->high.mutableBytes().begin() + at);
  }
  return nullIfExact(std::move(made));
}

} // namespace hloc::interp
