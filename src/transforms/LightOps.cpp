#include "LightOps.h"

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

HloInstruction *placeAnother(const HloInstruction &instr, HloEditor &editor, HloInstruction *before) {
  InstructionSpec spec{instr.opcode(),        /*name=*/"",
                       instr.shape(),         instr.operands(),
                       instr.attributes(),    instr.range(),
                       /*parameterNumber=*/0, instr.hasLiteral() ? &instr.literal() : nullptr};
  return editor.insert(spec, before);
}

} // namespace hloc
