#include "LightOps.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

bool isLight(const HloInstruction &instr) {
  using enum Opcode;
  const Opcode opcode = instr.opcode();
  if (opcode == DynamicUpdateSlice || opcode == Gather) // done in place where it stands, and one launch each otherwise
    return false;
  if (llvm::is_contained({Parameter, Constant, Tuple, GetTupleElement, Iota, Copy}, opcode))
    return true;
  return (isElementwise(opcode) || hasTrait(opcode, OpcodeTrait::Moves)) && !instr.hasSideEffect();
}

HloInstruction *placeComputation(const HloComputation &callee, llvm::ArrayRef<HloInstruction *> arguments,
                                 const llvm::Twine &prefix, HloInstruction &before, HloEditor &editor) {
  std::vector<HloInstruction *> mapped(callee.instructions().size()); // by id
  for (HloInstruction *parameter : callee.parameters())
    mapped[parameter->id()] = arguments[parameter->parameterNumber()];
  llvm::SmallVector<HloInstruction *> operands;
  for (HloInstruction *instr : callee.instructions()) {
    if (mapped[instr->id()])
      continue;
    HLOC_CHECK(!instr->has(AttributeKey::ControlPredecessors), "a module that passes change is made by cloneModule");
    operands.clear();
    for (HloInstruction *operand : instr->operands())
      operands.push_back(mapped[operand->id()]);
    const std::string name = (prefix + "." + instr->name()).str();
    InstructionSpec spec{instr->opcode(),       name,
                         instr->shape(),        operands,
                         instr->attributes(),   instr->range(),
                         /*parameterNumber=*/0, instr->hasLiteral() ? &instr->literal() : nullptr};
    mapped[instr->id()] = editor.insert(spec, &before);
  }
  return mapped[callee.root()->id()];
}

HloInstruction *placeAnother(const HloInstruction &instr, HloEditor &editor, HloInstruction *before) {
  InstructionSpec spec{instr.opcode(),        /*name=*/"",
                       instr.shape(),         instr.operands(),
                       instr.attributes(),    instr.range(),
                       /*parameterNumber=*/0, instr.hasLiteral() ? &instr.literal() : nullptr};
  return editor.insert(spec, before);
}

} // namespace hloc
