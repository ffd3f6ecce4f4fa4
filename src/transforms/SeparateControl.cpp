// Gives each loop and conditional computations of its own, in its layouts. What a reduction, say, calls as well, or
// another loop, is copied: fusions may then be formed in it, and its parameters are one place in memory.

#include "FuseGroups.h"
#include "WithLayout.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/DenseSet.h"

namespace hloc {

namespace {

/// Steps inside steps are walked by recursion.
constexpr unsigned deepest = 100;

class Separator {
public:
  Separator(HloModule &module, HloPassContext &context) : module(module), context(context) { findOtherCallees(); }

  PassResult run() {
    std::vector<std::pair<HloComputation *, unsigned>> pending{{module.entry(), 0}};
    while (!pending.empty()) {
      auto [computation, depth] = pending.back();
      pending.pop_back();
      HloEditor editor(*computation);
      for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr)) {
        if (!isControlFlow(*instr))
          continue;
        if (depth == deepest)
          return refuse(*instr, "control flow nested deeper than " + std::to_string(deepest));
        ownCallees(*instr, editor);
        if (numCopied > context.options.maxInstructions)
          return refuse(*instr, "control flow that makes the module larger than " +
                                    std::to_string(context.options.maxInstructions) + " instructions");
        changed |= instr->opcode() == Opcode::While ? matchLoop(*instr, editor) : matchChoice(*instr, editor);
        for (HloComputation *callee : instr->calledComputations())
          pending.push_back({callee, depth + 1});
      }
    }
    context.statistics.add("separate-control.copied-instructions", numCopied);
    return changedIf(changed || numCopied);
  }

private:
  PassResult refuse(const HloInstruction &instr, const std::string &what) {
    context.diagnostics.report(DiagnosticKind::UnsupportedFeature, instr.range(), what + " is not supported");
    return PassResult::Failed;
  }

  /// What is called otherwise than by control flow, by what is called so, and so on.
  void findOtherCallees() {
    llvm::DenseSet<const HloComputation *> control;
    for (const HloComputation *computation : controlComputations(module))
      control.insert(computation);
    for (const auto &computation : llvm::reverse(module.computations())) // callers first
      for (const HloInstruction *instr : computation->instructions())
        if (taken.contains(computation.get()) || !control.contains(computation.get()) || !isControlFlow(*instr))
          for (const HloComputation *callee : instr->calledComputations())
            taken.insert(callee);
  }

  HloComputation *own(HloComputation *callee, const HloComputation &caller) {
    if (taken.insert(callee).second)
      return callee;
    HloComputation *made = copy(*callee, caller, /*withFusions=*/true);
    taken.insert(made); // what calls it may be copied in turn
    return made;
  }

  void ownCallees(HloInstruction &instr, HloEditor &editor) {
    llvm::SmallVector<Attribute> changedAttributes;
    for (const Attribute &attribute : instr.attributes())
      if (auto *callee = std::get_if<HloComputation *>(&attribute.value)) {
        if (HloComputation *owned = own(*callee, editor.computation()); owned != *callee)
          changedAttributes.push_back({attribute.key, owned});
      } else if (auto *callees = std::get_if<llvm::ArrayRef<HloComputation *>>(&attribute.value)) {
        llvm::SmallVector<HloComputation *> owned;
        for (HloComputation *each : *callees)
          owned.push_back(own(each, editor.computation()));
        if (llvm::ArrayRef(owned) != *callees)
          changedAttributes.push_back(
              {attribute.key, llvm::ArrayRef<HloComputation *>(module.arena().saveList(llvm::ArrayRef(owned)))});
      }
    for (const Attribute &attribute : changedAttributes)
      editor.setAttribute(&instr, attribute);
  }

  HloComputation *copy(const HloComputation &from, const HloComputation &caller, bool withFusions) {
    llvm::DenseMap<const HloComputation *, HloComputation *> fused;
    for (const HloInstruction *instr : from.instructions())
      if (withFusions && instr->opcode() == Opcode::Fusion)
        if (HloComputation *callee = instr->computation(AttributeKey::Calls); !fused.contains(callee))
          fused[callee] = copy(*callee, caller, /*withFusions=*/false);
    HloComputation *made = module.addComputationBefore(caller, freshComputationName(module, from.name()));
    made->setRange(from.range());
    HloBuilder builder(*made);
    std::vector<HloInstruction *> mapped; // by id
    llvm::SmallVector<HloInstruction *> operands;
    for (HloInstruction *instr : from.instructions()) {
      operands.clear();
      for (HloInstruction *operand : instr->operands())
        operands.push_back(mapped[operand->id()]);
      builder.setRange(instr->range());
      mapped.push_back(builder.clone(*instr, operands, fused));
    }
    made->setRoot(mapped[from.root()->id()]);
    numCopied += mapped.size();
    return made;
  }

  // Layouts. Values that differ by more than that are left as they are, for whoever plans to refuse.

  static bool differ(const Shape &is, const Shape &wanted) { return !(is == wanted) && is.compatible(wanted); }

  static bool matchOperand(HloInstruction &instr, unsigned operand, const Shape &wanted, HloEditor &editor) {
    if (!differ(instr.operand(operand)->shape(), wanted))
      return false;
    HloBuilder builder(editor, &instr);
    builder.setRange(instr.range());
    editor.setOperand(&instr, operand, withLayout(instr.operand(operand), wanted, builder));
    return true;
  }

  static bool matchParameter(HloComputation &computation, const Shape &wanted) {
    HloInstruction *parameter = computation.parameters().front();
    const Shape inner = parameter->shape();
    if (!differ(inner, wanted))
      return false;
    HloEditor editor(computation);
    llvm::SmallVector<HloUse> uses = editor.uses(parameter);
    const bool isRoot = parameter == editor.root();
    editor.setShape(parameter, wanted);
    HloBuilder builder(editor, editor.next(parameter));
    builder.setRange(parameter->range());
    HloInstruction *converted = withLayout(parameter, inner, builder);
    for (const HloUse &use : uses)
      editor.setOperand(use.user, use.operand, converted);
    if (isRoot)
      editor.setRoot(converted);
    return true;
  }

  static bool matchRoot(HloComputation &computation, const Shape &wanted) {
    if (!differ(computation.root()->shape(), wanted))
      return false;
    HloEditor editor(computation);
    HloBuilder builder(editor, nullptr);
    builder.setRange(computation.root()->range());
    editor.setRoot(withLayout(computation.root(), wanted, builder));
    return true;
  }

  static bool matchLoop(HloInstruction &loop, HloEditor &editor) {
    HloComputation &body = *loop.computation(AttributeKey::Body);
    bool any = matchOperand(loop, 0, loop.shape(), editor);
    any |= matchParameter(body, loop.shape());
    any |= matchRoot(body, loop.shape());
    return matchParameter(*loop.computation(AttributeKey::Condition), loop.shape()) || any;
  }

  static bool matchChoice(HloInstruction &choice, HloEditor &editor) {
    bool any = false;
    for (auto [i, branch] : llvm::enumerate(choice.calledComputations())) {
      any |= matchOperand(choice, unsigned(i) + 1, branch->parameters().front()->shape(), editor);
      any |= matchRoot(*branch, choice.shape());
    }
    return any;
  }

  HloModule &module;
  HloPassContext &context;
  llvm::DenseSet<const HloComputation *> taken; ///< called by somebody else
  size_t numCopied = 0;
  bool changed = false;
};

} // namespace

PassResult separateControl(HloModule &module, HloPassContext &context) { return Separator(module, context).run(); }

} // namespace hloc
