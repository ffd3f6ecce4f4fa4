// call -> the instructions of its callee; likewise fusions, where they are to be made anew or take tuples.
//
// Callees come before callers in a module, so when a computation is edited, the bodies it calls have no calls left and
// one level of splicing is enough.

#include "LightOps.h"
#include "WithLayout.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// Bytes pass unchanged into tuples and the parameters of fusions: where the text gives them another layout, it means
/// a copy.
void matchOperandLayouts(HloInstruction &instr, HloEditor &editor) {
  HloBuilder builder(editor, &instr);
  builder.setRange(instr.range());
  auto match = [&](unsigned operand, const Shape &wanted) {
    editor.setOperand(&instr, operand, withLayout(instr.operand(operand), wanted, builder));
  };
  if (instr.opcode() == Opcode::Tuple)
    for (unsigned i = 0; i < instr.numOperands(); ++i)
      match(i, instr.shape().element(i));
  if (instr.opcode() == Opcode::Fusion)
    for (const HloInstruction *parameter : instr.computation(AttributeKey::Calls)->parameters())
      match(parameter->parameterNumber(), parameter->shape());
}

/// A fusion's kernel writes what its root is, in the root's layout.
void matchResultLayout(HloInstruction &fusion, HloEditor &editor) {
  Shape declared = fusion.shape();
  const Shape &written = fusion.computation(AttributeKey::Calls)->root()->shape();
  if (written == declared)
    return;
  llvm::SmallVector<HloUse> uses = editor.uses(&fusion);
  bool isRoot = &fusion == editor.root();
  editor.setShape(&fusion, written);
  HloBuilder builder(editor, editor.next(&fusion));
  builder.setRange(fusion.range());
  HloInstruction *converted = withLayout(&fusion, declared, builder);
  for (const HloUse &use : uses)
    editor.setOperand(use.user, use.operand, converted);
  if (isRoot)
    editor.setRoot(converted);
}

/// Copies the callee's instructions in place of `call`, named `<call>.<callee instruction>`.
void splice(HloInstruction &call, HloEditor &editor) {
  const bool isFusion = call.opcode() == Opcode::Fusion;
  const HloComputation &callee = *call.computation(isFusion ? AttributeKey::Calls : AttributeKey::ToApply);
  HloBuilder builder(editor, &call);
  builder.setRange(call.range());
  llvm::SmallVector<HloInstruction *> arguments;
  for (HloInstruction *parameter : callee.parameters())
    arguments.push_back(withLayout(call.operand(parameter->parameterNumber()), parameter->shape(), builder));
  HloInstruction *result = placeComputation(callee, arguments, call.name(), call, editor);
  editor.replaceAllUses(&call, withLayout(result, call.shape(), builder));
  editor.erase(&call);
}

/// Kernels take arrays.
bool takesTuple(const HloInstruction &fusion) {
  return llvm::any_of(fusion.operands(), [](const HloInstruction *operand) { return operand->shape().isTuple(); });
}

/// False if the computation became too large, which is then reported.
bool inlineInto(HloEditor &editor, HloPassContext &context) {
  size_t limit = context.options.maxInstructions, spliced = 0;
  for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
    next = editor.next(instr);
    matchOperandLayouts(*instr, editor);
    if (instr->opcode() == Opcode::Fusion)
      matchResultLayout(*instr, editor);
    const bool dissolved =
        instr->opcode() == Opcode::Fusion && (context.options.fusion != FusionMode::Keep || takesTuple(*instr));
    if (instr->opcode() != Opcode::Call && !dissolved)
      continue;
    SourceRange where = instr->range();
    splice(*instr, editor);
    ++spliced;
    if (editor.numInstructions() > limit) {
      context.diagnostics.report(DiagnosticKind::UnsupportedFeature, where,
                                 "inlining calls makes `" + editor.computation().name().str() + "` larger than " +
                                     std::to_string(limit) + " instructions");
      return false;
    }
  }
  context.statistics.add("inline-calls.calls", spliced);
  return true;
}

} // namespace

PassResult inlineCalls(HloModule &module, HloPassContext &context) {
  bool changed = module.eraseUnreachable() > 0;
  for (const auto &computation : module.computations()) {
    HloEditor editor(*computation);
    editor.eraseDead(); // a dead call is not worth its body
    if (!inlineInto(editor, context))
      return PassResult::Failed;
    editor.eraseDead(); // arguments that a callee ignores
    changed |= editor.changed();
  }
  changed |= module.eraseUnreachable() > 0; // callees
  return changedIf(changed);
}

} // namespace hloc
