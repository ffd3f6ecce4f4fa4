#include "interp/ScalarFunction.h"

#include "llvm/ADT/DenseMap.h"

#include <cstring>

namespace hloc::interp {

/// Walks the computation and everything it calls; a value is a list of slots (tuples are flattened).
struct ScalarFunction::Compiler {
  using Slots = llvm::SmallVector<unsigned, 2>;
  ScalarFunction &function;
  Step &step;

  unsigned newSlot(ElementType type) {
    function.slotTypes.push_back(type);
    function.buffers.emplace_back();
    return function.slotTypes.size() - 1;
  }

  llvm::LogicalResult refuse(const HloInstruction &instr) {
    return step.unsupported("`" + text(instr.opcode()) + "` in the scalar computation `" + instr.parent()->name() +
                            "`");
  }

  Slots constant(const HloInstruction &instr) {
    Constant made{newSlot(instr.shape().elementType()), {}};
    if (!instr.literal().isElided())
      loadFunction(instr.shape().elementType())(instr.literal().bytes().data(), made.value, 1);
    function.constants.push_back(made);
    return {made.slot};
  }

  llvm::FailureOr<Slots> elementwiseOrRefuse(const HloInstruction &instr, llvm::ArrayRef<Slots> operands) {
    Instruction made;
    if (std::optional<LaneOp> op = laneOp(instr)) {
      made.op = *op;
    } else if ((instr.opcode() == Opcode::BitcastConvert || instr.opcode() == Opcode::Bitcast) &&
               hostBytes(instr.shape().elementType()) == hostBytes(instr.operand(0)->shape().elementType())) {
      made.op.numOperands = 1;
      made.op.operandTypes[0] = instr.operand(0)->shape().elementType();
      made.op.resultType = instr.shape().elementType();
    } else {
      return refuse(instr);
    }
    for (unsigned i = 0; i < operands.size(); ++i)
      made.operands[i] = operands[i][0];
    made.result = newSlot(instr.shape().elementType());
    function.code.push_back(made);
    return Slots{made.result};
  }

  llvm::FailureOr<Slots> evaluate(const HloInstruction &instr, llvm::ArrayRef<Slots> operands, unsigned depth) {
    if (!instr.shape().isTuple() && instr.shape().numElements() != 1)
      return refuse(instr);
    switch (instr.opcode()) {
    case Opcode::Constant:
      if (instr.shape().isArray())
        return constant(instr);
      return refuse(instr);
    case Opcode::Tuple: {
      Slots all;
      for (const Slots &slots : operands)
        all.append(slots);
      return all;
    }
    case Opcode::GetTupleElement: {
      size_t start = 0, index = size_t(instr.intOr(AttributeKey::Index, 0));
      for (size_t i = 0; i < index; ++i)
        start += instr.operand(0)->shape().element(unsigned(i)).leaves().size();
      return Slots(operands[0].begin() + start, operands[0].begin() + start + instr.shape().leaves().size());
    }
    case Opcode::Call:
    case Opcode::Fusion: // called once for each place it is used: inlined
      return body(*instr.calledComputations()[0], operands, depth + 1);
    case Opcode::Copy:
    case Opcode::Reshape:
    case Opcode::Broadcast: // of one element to one element
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::OptimizationBarrier:
      return operands[0];
    default:
      return elementwiseOrRefuse(instr, operands);
    }
  }

  llvm::FailureOr<Slots> body(const HloComputation &computation, llvm::ArrayRef<Slots> arguments, unsigned depth) {
    if (depth > 100) {
      (void)step.unsupported("calls are nested too deeply");
      return llvm::failure();
    }
    std::vector<Slots> values(computation.instructions().size());
    llvm::SmallVector<Slots, 3> operands;
    for (const HloInstruction *instr : computation.instructions()) {
      if (instr->opcode() == Opcode::Parameter) {
        values[instr->id()] = arguments[size_t(instr->parameterNumber())];
        continue;
      }
      operands.clear();
      for (const HloInstruction *operand : instr->operands())
        operands.push_back(values[operand->id()]);
      llvm::FailureOr<Slots> slots = evaluate(*instr, operands, depth);
      if (llvm::failed(slots))
        return llvm::failure();
      values[instr->id()] = *slots;
    }
    return values[computation.root()->id()];
  }
};

llvm::FailureOr<ScalarFunction> ScalarFunction::compile(const HloComputation &computation, Step &step) {
  ScalarFunction function;
  Compiler compiler{function, step};
  std::vector<Compiler::Slots> arguments;
  for (const HloInstruction *parameter : computation.parameters()) {
    if (!parameter->shape().isArray() || parameter->shape().numElements() != 1)
      return compiler.refuse(*parameter);
    arguments.push_back({unsigned(function.slotTypes.size())});
    function.slotTypes.push_back(parameter->shape().elementType());
    function.parameterTypes.push_back(parameter->shape().elementType());
  }
  llvm::FailureOr<Compiler::Slots> results = compiler.body(computation, arguments, 0);
  if (llvm::failed(results))
    return llvm::failure();
  function.resultSlots.assign(results->begin(), results->end());
  const HloInstruction &root = *computation.root();
  bool symmetric = root.numOperands() == 2 && root.operand(0) != root.operand(1) &&
                   root.operand(0)->opcode() == Opcode::Parameter && root.operand(1)->opcode() == Opcode::Parameter;
  if (isComplex(root.shape().elementType())) // of equal real parts the first is the greater
    symmetric &= root.opcode() == Opcode::Add || root.opcode() == Opcode::Multiply;
  if (symmetric && computation.numParameters() == 2 && family(root.opcode()) == OpcodeFamily::Binary &&
      hasTrait(root.opcode(), OpcodeTrait::Combines))
    function.commutative = root.opcode();
  return function;
}

void ScalarFunction::fillConstants(int64_t count) {
  if (count <= constantLanes)
    return;
  for (const Constant &constant : constants) {
    size_t bytes = laneBytes(computeType(slotTypes[constant.slot]));
    auto *to = static_cast<std::byte *>(slotBuffer(constant.slot));
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(to + size_t(i) * bytes, constant.value, bytes);
  }
  constantLanes = count;
}

const void *ScalarFunction::slotData(unsigned slot, llvm::ArrayRef<const void *> parameters) {
  return slot < parameterTypes.size() ? parameters[slot] : slotBuffer(slot);
}

void ScalarFunction::run(llvm::ArrayRef<const void *> parameters, llvm::ArrayRef<void *> results, int64_t count) {
  fillConstants(count);
  for (const Instruction &instr : code) {
    if (!instr.op.kernel) { // bitcast-convert
      LaneBuffer memory;
      auto *bytes = reinterpret_cast<uint8_t *>(memory.bytes);
      storeFunction(instr.op.operandTypes[0])(slotData(instr.operands[0], parameters), bytes, count);
      loadFunction(instr.op.resultType)(bytes, slotBuffer(instr.result), count);
      continue;
    }
    Lanes lanes;
    for (unsigned i = 0; i < instr.op.numOperands; ++i)
      lanes.operands[i] = slotData(instr.operands[i], parameters);
    lanes.result = slotBuffer(instr.result);
    lanes.count = count;
    instr.op.run(lanes);
  }
  // A result that is a parameter may lie where another result is to be written: read all before writing any.
  bool anyParameter = llvm::any_of(resultSlots, [&](unsigned slot) { return slot < parameterTypes.size(); });
  std::vector<LaneBuffer> copies(anyParameter && results.size() > 1 ? results.size() : 0);
  for (unsigned i = 0; i < copies.size(); ++i)
    std::memcpy(copies[i].bytes, slotData(resultSlots[i], parameters),
                size_t(count) * laneBytes(computeType(resultType(i))));
  for (unsigned i = 0; i < results.size(); ++i)
    std::memmove(results[i], copies.empty() ? slotData(resultSlots[i], parameters) : copies[i].bytes,
                 size_t(count) * laneBytes(computeType(resultType(i))));
}

} // namespace hloc::interp
