// Parameters, constants and iotas: read or made wherever they are needed.
#include "emitters/Convert.h"
#include "emitters/FunctionEmitter.h"
#include "emitters/ScalarComputation.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {

FunctionEmitter::Result FunctionEmitter::emitLeaf(const HloInstruction &instr, ValueRange indices) {
  ElementType type = instr.shape().elementType();
  locate(instr);
  if (instr.opcode() == Opcode::Constant) {
    llvm::FailureOr<Value> element = emitConstantElement(instr, indices, b, code.diagnostics);
    if (failed(element))
      return failure();
    return Values{*element};
  }
  if (instr.opcode() == Opcode::Iota)
    return emitIota(instr, indices);
  Value tensor = function.getArgument(instr.parameterNumber());
  return Values{fromStorage(b, tensor::ExtractOp::create(b, tensor, indices), type)};
}

FunctionEmitter::Result FunctionEmitter::emitDeviceZero(const HloInstruction &instr, ValueRange) {
  locate(instr);
  return Values{b.integer(b.getI32Type(), 0)};
}

FunctionEmitter::Result FunctionEmitter::emitIota(const HloInstruction &instr, ValueRange indices) {
  ElementType type = instr.shape().elementType();
  Value position = indices[instr.intOr(AttributeKey::IotaDimension, 0)];
  Value number = arith::IndexCastUIOp::create(b, b.getI64Type(), position);
  return Values{convertElement(b, number, ElementType::U64, type)};
}

} // namespace hloc
