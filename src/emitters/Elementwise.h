#pragma once
// Elementwise HLO ops on scalars: values in, value out, by the semantics of hlo/SEMANTICS.md. One function per element
// category; what a category has no meaning for is reported as unsupported, at the instruction.

#include "emitters/CodeBuilder.h"
#include "hloc/hlo/HloInstruction.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/Support/LogicalResult.h"

namespace hloc {

/// One elementwise instruction and the values (value types, ElementStorage.h) of its operands.
struct ElementwiseOp {
  const HloInstruction &instr;
  mlir::ValueRange operands;
  CodeBuilder &b;
  DiagnosticEngine &diagnostics;

  Opcode opcode() const { return instr.opcode(); }
  ElementType resultType() const { return instr.shape().elementType(); }
  ElementType operandType(unsigned i = 0) const { return instr.operand(i)->shape().elementType(); }
  mlir::Value operand(unsigned i = 0) const { return operands[i]; }

  /// Reports that the opcode cannot be emitted for this operand type.
  llvm::FailureOr<mlir::Value> unsupportedType() const;
};

llvm::FailureOr<mlir::Value> emitElementwise(const ElementwiseOp &op);

// By category of the operands.
llvm::FailureOr<mlir::Value> emitPredOp(const ElementwiseOp &op);
llvm::FailureOr<mlir::Value> emitIntegerOp(const ElementwiseOp &op);
llvm::FailureOr<mlir::Value> emitFloatOp(const ElementwiseOp &op);
llvm::FailureOr<mlir::Value> emitComplexOp(const ElementwiseOp &op);
llvm::FailureOr<mlir::Value> emitCompare(const ElementwiseOp &op);

// Single ops that other code needs too.
mlir::Value integerDivide(CodeBuilder &b, mlir::Value x, mlir::Value y, bool isSigned);
mlir::Value integerRemainder(CodeBuilder &b, mlir::Value x, mlir::Value y, bool isSigned);
mlir::Value reducePrecision(CodeBuilder &b, mlir::Value x, unsigned exponentBits, unsigned mantissaBits);
/// Complex sums, products and the like on (re, im) pairs; `opcode` is Add, Subtract, Multiply or Divide.
mlir::Value complexArithmetic(CodeBuilder &b, Opcode opcode, mlir::Value x, mlir::Value y);

} // namespace hloc
