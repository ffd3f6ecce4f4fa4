#include "emitters/Elementwise.h"

#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/Unsupported.h"
#include "hloc/hlo/OpcodeTable.h"

using namespace mlir;

namespace hloc {
namespace {

using IPred = CodeBuilder::IPred;

/// clamp(lo, x, hi) = min(hi, max(x, lo)); any NaN gives NaN.
llvm::FailureOr<Value> emitClamp(const ElementwiseOp &op) {
  ElementType type = op.operandType(1);
  CodeBuilder &b = op.b;
  if (isFloat(type)) {
    Value low = toCompute(b, op.operand(0), type);
    Value x = toCompute(b, op.operand(1), type);
    Value high = toCompute(b, op.operand(2), type);
    return fromCompute(b, b.minF(b.maxF(x, low), high), type);
  }
  if (isPred(type))
    return b.andI(b.orI(op.operand(1), op.operand(0)), op.operand(2));
  if (isInteger(type)) {
    bool isSignedType = isSigned(type);
    return b.minI(b.maxI(op.operand(1), op.operand(0), isSignedType), op.operand(2), isSignedType);
  }
  return op.unsupportedType();
}

llvm::FailureOr<Value> emitConvert(const ElementwiseOp &op) {
  if (isComplex(op.operandType()) && !isComplex(op.resultType()) && !isPred(op.resultType()))
    return convertElement(op.b, op.b.real(op.operand()), componentType(op.operandType()), op.resultType());
  return convertElement(op.b, op.operand(), op.operandType(), op.resultType());
}

/// Equal widths only; others change the shape and are data movement.
llvm::FailureOr<Value> emitBitcastConvert(const ElementwiseOp &op) {
  CodeBuilder &b = op.b;
  if (isComplex(op.operandType()) || isComplex(op.resultType())) {
    if (op.operandType() == op.resultType())
      return op.operand();
    return op.unsupportedType();
  }
  Value stored = toStorage(b, op.operand(), op.operandType());
  Type to = storageType(op.resultType(), b.getContext());
  return fromStorage(b, b.bitcast(stored, to), op.resultType());
}

/// Truncates |x|, then steps away from zero if the random number is below the part that was cut off.
llvm::FailureOr<Value> emitStochasticConvert(const ElementwiseOp &op) {
  CodeBuilder &b = op.b;
  ElementType from = op.operandType();
  ElementType to = op.resultType();
  if (!isSigned(to) || !isFloat(from) || bitWidth(from) != bitWidth(op.operandType(1)))
    return op.unsupportedType();
  Value x = toCompute(b, op.operand(), from);
  Value magnitude = b.absF(x);
  Value whole = math::FloorOp::create(b, magnitude);
  Value fraction = b.subF(magnitude, whole);
  double scale = double(uint64_t(1) << (bitWidth(from) - 1)) * 2.0;
  Value bits =
      convertElement(b, b.mulF(fraction, scale), from == ElementType::F64 ? from : ElementType::F32, op.operandType(1));
  Value up = b.cmpI(IPred::ult, op.operand(1), bits);
  Value rounded = b.select(up, b.addF(whole, 1.0), whole);
  Value result = b.copySign(rounded, x);
  result = b.select(b.isNan(x), b.floatingLike(x, 0.0), result);
  return convertElement(b, result, from == ElementType::F64 ? from : ElementType::F32, to);
}

llvm::FailureOr<Value> emitSelect(const ElementwiseOp &op) {
  return op.b.select(op.operand(0), op.operand(1), op.operand(2));
}
llvm::FailureOr<Value> emitComplex(const ElementwiseOp &op) { return op.b.complex(op.operand(0), op.operand(1)); }
llvm::FailureOr<Value> emitOperand(const ElementwiseOp &op) { return op.operand(); }
llvm::FailureOr<Value> refuseFunction(const ElementwiseOp &op) { return op.unsupportedType(); }

llvm::FailureOr<Value> byCategory(const ElementwiseOp &op) {
  switch (category(op.operandType())) {
  case ElementCategory::Pred:
    return emitPredOp(op);
  case ElementCategory::Signed:
  case ElementCategory::Unsigned:
    return emitIntegerOp(op);
  case ElementCategory::Float:
    return emitFloatOp(op);
  case ElementCategory::Complex:
    return emitComplexOp(op);
  case ElementCategory::Token:
  case ElementCategory::Opaque:
    break;
  }
  return op.unsupportedType();
}

} // namespace

llvm::FailureOr<Value> ElementwiseOp::unsupportedType() const {
  std::string type = text(operandType()).str();
  if (operandType() != resultType())
    type += " to " + text(resultType()).str();
  return hloc::unsupportedType(instr, "`" + text(opcode()) + "` of " + type, diagnostics);
}

llvm::FailureOr<Value> emitElementwise(const ElementwiseOp &op) {
  using enum Opcode;
  using Emit = llvm::FailureOr<Value> (*)(const ElementwiseOp &);
  // What is not a function of one category of elements alone.
  static constexpr OpcodeTable<Emit> ownWays(
      [](Opcode each) {
        return hasTrait(each, OpcodeTrait::InPlace) && (operandTypes(each) == TypeSet::None || each == Complex);
      },
      {
          {{Convert}, emitConvert},
          {{BitcastConvert}, emitBitcastConvert},
          {{StochasticConvert}, emitStochasticConvert},
          {{Compare}, emitCompare},
          {{Select}, emitSelect},
          {{Clamp}, emitClamp},
          {{Complex}, emitComplex},
          {{Copy, OptimizationBarrier, Domain, AddDependency}, emitOperand},
          {{Map}, refuseFunction}, // its function is emitted (FunctionEmitter, ScalarComputation)
      });
  return ownWays.contains(op.opcode()) ? ownWays[op.opcode()](op) : byCategory(op);
}

llvm::FailureOr<Value> emitPredOp(const ElementwiseOp &op) {
  using enum Opcode;
  using Emit = Value (*)(CodeBuilder &, Value x, Value y);
  static constexpr OpcodeTable<Emit> emits(
      [](Opcode each) { return isDefinedOn(each, TypeSet::Pred); },
      {
          {{Add, Or, Maximum}, [](CodeBuilder &b, Value x, Value y) { return b.orI(x, y); }},
          {{Multiply, And, Minimum}, [](CodeBuilder &b, Value x, Value y) { return b.andI(x, y); }},
          {{Xor}, [](CodeBuilder &b, Value x, Value y) { return b.xorI(x, y); }},
          {{Not}, [](CodeBuilder &b, Value x, Value) { return b.xorI(x, b.boolean(true)); }},
      });
  if (!emits.contains(op.opcode()))
    return op.unsupportedType();
  return emits[op.opcode()](op.b, op.operand(0), op.operands.size() > 1 ? op.operand(1) : Value());
}

} // namespace hloc
