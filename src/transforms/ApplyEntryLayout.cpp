// entry_computation_layout -> layouts of the entry's parameters and result, with copies where the body has others.

#include "WithLayout.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

namespace hloc {

PassResult applyEntryLayout(HloModule &module, HloPassContext &context) {
  const AttributeValue *written = module.find(AttributeKey::EntryComputationLayout);
  if (!written)
    return PassResult::Unchanged;
  auto program = std::get<llvm::ArrayRef<Shape>>(*written);
  HloComputation &entry = *module.entry();
  if (program.size() != entry.numParameters() + 1) {
    context.diagnostics.report(DiagnosticKind::ShapeMismatch, entry.range(),
                               "entry_computation_layout has " + std::to_string(program.size() - 1) +
                                   " parameters, the entry " + std::to_string(entry.numParameters()));
    return PassResult::Failed;
  }
  HloEditor editor(entry);
  // Parameters stand first, in order, then what converts them.
  HloInstruction *body = editor.first();
  for (HloInstruction *parameter : entry.parameters()) {
    if (parameter == body)
      body = editor.next(body);
    editor.moveBefore(parameter, body);
  }
  for (HloInstruction *parameter : entry.parameters()) {
    Shape inner = parameter->shape();
    llvm::SmallVector<HloUse> uses = editor.uses(parameter);
    editor.setShape(parameter, program[parameter->parameterNumber()]);
    HloBuilder builder(editor, body);
    builder.setRange(parameter->range());
    HloInstruction *converted = withLayout(parameter, inner, builder);
    for (const HloUse &use : uses)
      editor.setOperand(use.user, use.operand, converted);
    if (parameter == editor.root())
      editor.setRoot(converted);
  }
  HloBuilder builder(editor, nullptr);
  builder.setRange(entry.root()->range());
  editor.setRoot(withLayout(editor.root(), program.back(), builder));
  return changedIf(editor.changed());
}

} // namespace hloc
