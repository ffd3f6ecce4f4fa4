// Conditionals whose branches are no more than one kernel would do -> all branches, and a choice of what they give for
// each element. As a conditional each is at least a launch, and whoever launches it waits for the selector.
//
//   c = conditional(p, x, y), branches {negate}, {sine}   ->   select(broadcast(p), negate(x), sine(y))

#include "LightOps.h"
#include "Simplify.h"
#include "WithLayout.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// Of all branches together. What is read and written in vain takes less time than waiting for the selector.
constexpr size_t mostInstructions = 200, mostBranches = 4;
constexpr int64_t mostBytes = 1 << 18;
/// Of what is updated in part, and would be written whole.
constexpr int64_t mostUpdatedBytes = 1 << 14;

bool isLightHere(const HloInstruction *instr) {
  if (instr->opcode() == Opcode::DynamicUpdateSlice)
    return instr->shape().byteSize() <= mostUpdatedBytes;
  return isLight(*instr) && (!instr->shape().isArray() || instr->shape().byteSize() <= mostBytes);
}

bool isWorthIt(const HloInstruction &choice) {
  size_t count = 0;
  int64_t bytes = 0;
  for (const Shape::Leaf &leaf : choice.shape().leaves()) {
    if (!leaf.shape.isArray() || leaf.shape.hasDynamicDims())
      return false;
    bytes += leaf.shape.byteSize();
  }
  const auto branches = choice.calledComputations();
  for (const HloComputation *branch : branches) {
    count += branch->instructions().size();
    if (!llvm::all_of(branch->instructions(), isLightHere))
      return false;
  }
  return branches.size() <= mostBranches && count <= mostInstructions && bytes <= mostBytes;
}

class Selector {
public:
  Selector(HloInstruction &choice, HloEditor &editor) : choice(choice), editor(editor), b(editor, &choice) {
    b.setRange(choice.range());
  }

  HloInstruction *run() {
    llvm::SmallVector<HloInstruction *> results;
    for (auto [i, branch] : llvm::enumerate(choice.calledComputations())) {
      HloInstruction *result = placeComputation(*branch, choice.operand(unsigned(i) + 1),
                                                choice.name() + "." + llvm::Twine(i), choice, editor);
      results.push_back(withLayout(result, choice.shape(), b));
    }
    // The last for all selectors that are none of the others'.
    HloInstruction *chosen = results.pop_back_val();
    const bool isPredicate = isPred(choice.operand(0)->shape().elementType());
    for (auto [i, result] : llvm::enumerate(results)) {
      HloInstruction *is =
          isPredicate ? choice.operand(0)
                      : b.compare(ComparisonDirection::Eq, choice.operand(0), b.scalar(ElementType::S32, double(i)));
      chosen = select(is, result, chosen);
    }
    return chosen;
  }

private:
  HloInstruction *select(HloInstruction *predicate, HloInstruction *yes, HloInstruction *no) {
    if (yes == no)
      return yes;
    if (yes->shape().isTuple()) {
      llvm::SmallVector<HloInstruction *> elements;
      for (unsigned i = 0; i < yes->shape().elements().size(); ++i)
        elements.push_back(select(predicate, b.tupleElement(yes, i), b.tupleElement(no, i)));
      return b.tuple(elements);
    }
    const Shape &shape = yes->shape();
    if (shape.rank() > 0)
      predicate = b.broadcast(predicate, shape.withElementType(ElementType::Pred), {});
    return b.add(Opcode::Select, shape, {predicate, yes, no});
  }

  HloInstruction &choice;
  HloEditor &editor;
  HloBuilder b;
};

size_t selectIn(HloEditor &editor) {
  size_t selected = 0;
  for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
    next = editor.next(instr);
    if (instr->opcode() != Opcode::Conditional || editor.isOrdered(instr) || !isWorthIt(*instr))
      continue;
    editor.replaceAllUses(instr, Selector(*instr, editor).run());
    editor.eraseWithOperands(instr);
    ++selected;
  }
  return selected;
}

} // namespace

PassResult selectBranches(HloModule &module, HloPassContext &context) {
  size_t selected = 0;
  for (HloComputation *computation : computationsToSimplify(module)) { // callees first
    HloEditor editor(*computation);
    selected += selectIn(editor);
  }
  if (selected)
    module.eraseUnreachable();
  context.statistics.add("select-branches.conditionals", selected);
  return changedIf(selected > 0);
}

} // namespace hloc
