// What a move leaves unused goes before anybody looks: it would be judged for nothing.

#include "Moves.h"

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::reduction {

namespace {

using CallCounts = llvm::DenseMap<const HloComputation *, unsigned>;

CallCounts countCallers(const HloModule &module) {
  CallCounts counts;
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions())
      for (const HloComputation *callee : instr->calledComputations())
        ++counts[callee];
  return counts;
}

/// Takes parameters that nothing reads from what `instr` calls, and their operands from `instr`.
void dropIdleArguments(HloInstruction &instr, HloEditor &editor) {
  HloComputation &callee = *instr.calledComputations().front();
  HloEditor inner(callee);
  llvm::SmallVector<HloInstruction *> operands, idle;
  for (HloInstruction *parameter : callee.parameters())
    if (inner.isUsed(parameter) || parameter == inner.root())
      operands.push_back(instr.operand(unsigned(parameter->parameterNumber())));
    else
      idle.push_back(parameter);
  if (idle.empty() || operands.empty()) // a fusion of nothing is none
    return;
  for (HloInstruction *parameter : llvm::reverse(idle))
    inner.eraseParameter(parameter);
  inner.finish();
  HloBuilder builder(editor, &instr);
  editor.replaceAllUses(&instr, builder.clone(instr, operands));
  editor.erase(&instr);
}

} // namespace

void dropSignature(HloModule &module) {
  std::vector<Attribute> attributes(module.attributes());
  std::erase_if(attributes, [](const Attribute &attribute) {
    return llvm::is_contained({AttributeKey::EntryComputationLayout, AttributeKey::InputOutputAlias,
                               AttributeKey::BufferDonor, AttributeKey::AliasPassthroughParams,
                               AttributeKey::AllowSpmdToParameters, AttributeKey::AllowSpmdToOutput},
                              attribute.key);
  });
  module.setAttributes(attributes);
}

void sweep(HloModule &module) {
  module.eraseUnreachable();
  CallCounts callers = countCallers(module);
  for (const auto &computation : module.computations()) {
    HloEditor editor(*computation);
    editor.eraseDead();
    for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
      next = editor.next(instr);
      const bool passesOperands = instr->opcode() == Opcode::Fusion || instr->opcode() == Opcode::Call;
      if (passesOperands && !instr->has(AttributeKey::OutputToOperandAliasing) && !editor.isOrdered(instr) &&
          callers.lookup(instr->calledComputations().front()) == 1)
        dropIdleArguments(*instr, editor);
    }
    editor.eraseDead();
    if (computation.get() != module.entry())
      continue;
    bool isOther = false;
    for (size_t i = computation->numParameters(); i-- > 0;)
      if (HloInstruction *parameter = computation->parameters()[i];
          !editor.isUsed(parameter) && parameter != editor.root() && !editor.isOrdered(parameter)) {
        editor.eraseParameter(parameter);
        isOther = true;
      }
    editor.finish();
    if (isOther)
      dropSignature(module);
  }
  module.eraseUnreachable();
}

} // namespace hloc::reduction
