// Structure goes: what is called stands where it was called, loops go round once or not at all, conditionals are one of
// their branches.

#include "Moves.h"

#include "hloc/hlo/CloneComputations.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace hloc::reduction {

namespace {

bool isCall(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Fusion || (instr.opcode() == Opcode::Call && instr.has(AttributeKey::ToApply));
}
bool isLoop(const HloInstruction &instr) { return instr.opcode() == Opcode::While; }

size_t countInstructions(const HloModule &module, llvm::function_ref<bool(const HloInstruction &)> isPlace) {
  size_t count = 0;
  for (const HloComputation *computation : reachableComputations(module))
    count += llvm::count_if(computation->instructions(), [&](const HloInstruction *instr) { return isPlace(*instr); });
  return count;
}

/// In front of `instr`, which it stands for from then on.
using Replacement = llvm::function_ref<HloInstruction *(HloInstruction &instr, HloEditor &editor)>;

/// Null if nothing was replaced.
ModulePointer replaceInstructions(ModulePointer module, const llvm::BitVector &places,
                                  llvm::function_ref<bool(const HloInstruction &)> isPlace, Replacement replacement) {
  size_t place = 0;
  bool isOther = false;
  for (HloComputation *computation : reachableComputations(*module)) {
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
      next = editor.next(instr);
      if (!isPlace(*instr) || !places[unsigned(place++)] || editor.isOrdered(instr))
        continue;
      if (HloInstruction *value = replacement(*instr, editor); value && value->shape().compatible(instr->shape())) {
        editor.replaceAllUses(instr, value);
        editor.erase(instr);
        isOther = true;
      }
    }
    editor.finish();
  }
  return isOther ? std::move(module) : nullptr;
}

/// Branches of a conditional, of which place k is the k-th of all.
llvm::SmallVector<HloComputation *> branchesOf(const HloInstruction &instr) {
  llvm::SmallVector<HloComputation *> branches;
  if (instr.opcode() == Opcode::Conditional)
    llvm::append_range(branches, instr.calledComputations());
  return branches;
}

} // namespace

size_t countCalls(const HloModule &module) { return countInstructions(module, isCall); }

ModulePointer inlineCallees(ModulePointer module, const llvm::BitVector &places) {
  return replaceInstructions(std::move(module), places, isCall, [](HloInstruction &call, HloEditor &editor) {
    return placeComputation(*call.calledComputations().front(), call.operands(), call.name(), call, editor);
  });
}

size_t countLoops(const HloModule &module) { return countInstructions(module, isLoop); }

ModulePointer dropLoops(ModulePointer module, const llvm::BitVector &places) {
  return replaceInstructions(std::move(module), places, isLoop,
                             [](HloInstruction &loop, HloEditor &) { return loop.operand(0); });
}

ModulePointer unrollLoops(ModulePointer module, const llvm::BitVector &places) {
  return replaceInstructions(std::move(module), places, isLoop, [](HloInstruction &loop, HloEditor &editor) {
    return placeComputation(*loop.computation(AttributeKey::Body), loop.operands(), loop.name(), loop, editor);
  });
}

size_t countBranches(const HloModule &module) {
  size_t count = 0;
  for (const HloComputation *computation : reachableComputations(module))
    for (const HloInstruction *instr : computation->instructions())
      count += branchesOf(*instr).size();
  return count;
}

ModulePointer takeBranches(ModulePointer module, const llvm::BitVector &places) {
  const size_t wanted = size_t(places.find_first());
  size_t place = 0;
  for (HloComputation *computation : reachableComputations(*module))
    for (HloInstruction *instr : computation->instructions()) {
      llvm::SmallVector<HloComputation *> branches = branchesOf(*instr);
      if (wanted < place || wanted >= place + branches.size()) {
        place += branches.size();
        continue;
      }
      const size_t branch = wanted - place;
      if (instr->numOperands() != branches.size() + 1)
        return nullptr;
      HloEditor editor(*computation);
      if (editor.isOrdered(instr))
        return nullptr;
      HloInstruction *argument = instr->operand(unsigned(branch) + 1);
      HloInstruction *value = placeComputation(*branches[branch], {argument}, instr->name(), *instr, editor);
      editor.replaceAllUses(instr, value);
      editor.erase(instr);
      editor.finish();
      return module;
    }
  return nullptr;
}

//===--- what loops carry ---------------------------------------------------------------------------------------===//

namespace {

/// A loop whose state is a tuple that is made in front of it, taken apart, and made again by the body.
bool carriesTuple(const HloInstruction &loop) {
  if (loop.opcode() != Opcode::While || !loop.shape().isTuple() || loop.operand(0)->opcode() != Opcode::Tuple)
    return false;
  const HloComputation &body = *loop.computation(AttributeKey::Body);
  const HloComputation &condition = *loop.computation(AttributeKey::Condition);
  if (body.root()->opcode() != Opcode::Tuple || loop.parent()->root() == &loop)
    return false;
  auto isTakenApart = [](const HloComputation &computation, const HloInstruction *tuple) {
    return llvm::all_of(computation.instructions(), [&](const HloInstruction *instr) {
      return !llvm::is_contained(instr->operands(), tuple) || instr->opcode() == Opcode::GetTupleElement;
    });
  };
  return isTakenApart(body, body.parameter(0)) && isTakenApart(condition, condition.parameter(0)) &&
         isTakenApart(*loop.parent(), &loop);
}

void readOthers(HloInstruction *tuple, int64_t dropped, HloEditor &editor) {
  for (const HloUse &use : editor.uses(tuple)) {
    const int64_t index = use.user->intOr(AttributeKey::Index, 0);
    if (use.user->opcode() == Opcode::GetTupleElement && index > dropped)
      editor.setAttribute(use.user, {AttributeKey::Index, index - 1});
  }
}

HloInstruction *tupleWithout(HloInstruction *tuple, int64_t dropped, HloEditor &editor, HloInstruction *before) {
  llvm::SmallVector<HloInstruction *> elements(tuple->operands());
  elements.erase(elements.begin() + dropped);
  return HloBuilder(editor, before).tuple(elements);
}

/// In a called computation: the element is what the loop begins with no longer; whoever reads it has zeros.
void dropElement(HloComputation &computation, int64_t dropped, bool isBody, const Shape &state) {
  HloEditor editor(computation);
  HloInstruction *parameter = computation.parameters()[0];
  HloInstruction *root = computation.root();
  if (isBody) {
    HloInstruction *result = tupleWithout(root, dropped, editor, nullptr);
    editor.setRoot(result);
    editor.eraseIfDead(root);
  }
  for (const HloUse &use : editor.uses(parameter)) {
    HloInstruction *element = use.user;
    if (element->intOr(AttributeKey::Index, 0) != dropped)
      continue;
    HloBuilder builder(editor, element);
    HloInstruction *zero = builder.constant(Literal(Shape::scalar(element->shape().elementType())));
    if (element->shape().rank())
      zero = builder.broadcast(zero, element->shape(), {});
    editor.replaceAllUses(element, zero);
    editor.erase(element);
  }
  readOthers(parameter, dropped, editor);
  editor.setShape(parameter, state);
  editor.finish();
}

/// False if the element cannot be missed.
bool dropCarriedElement(HloInstruction &loop, int64_t dropped, HloEditor &editor) {
  if (!loop.shape().element(unsigned(dropped)).isArray() || loop.shape().elements().size() < 2)
    return false;
  for (const HloUse &use : editor.uses(&loop))
    if (use.user->intOr(AttributeKey::Index, 0) == dropped)
      editor.replaceAllUses(use.user, loop.operand(0)->operand(unsigned(dropped)));
  HloInstruction *start = loop.operand(0);
  HloInstruction *state = tupleWithout(start, dropped, editor, &loop);
  dropElement(*loop.computation(AttributeKey::Body), dropped, /*isBody=*/true, state->shape());
  dropElement(*loop.computation(AttributeKey::Condition), dropped, /*isBody=*/false, state->shape());
  editor.setOperand(&loop, 0, state);
  editor.setShape(&loop, state->shape());
  for (const HloUse &use : editor.uses(&loop))
    if (use.user->intOr(AttributeKey::Index, 0) == dropped)
      editor.erase(use.user);
  readOthers(&loop, dropped, editor);
  return true;
}

} // namespace

size_t countCarried(const HloModule &module) {
  size_t count = 0;
  for (const HloComputation *computation : reachableComputations(module))
    for (const HloInstruction *instr : computation->instructions())
      if (carriesTuple(*instr))
        count += instr->shape().elements().size();
  return count;
}

ModulePointer dropCarried(ModulePointer module, const llvm::BitVector &places) {
  size_t place = 0;
  bool isOther = false;
  for (HloComputation *computation : reachableComputations(*module)) {
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr)) {
      if (!carriesTuple(*instr))
        continue;
      const size_t size = instr->shape().elements().size();
      for (size_t element = size; element-- > 0;) // those behind it move up
        if (places[unsigned(place + element)])
          isOther |= dropCarriedElement(*instr, int64_t(element), editor);
      place += size;
    }
    editor.finish();
  }
  return isOther ? std::move(module) : nullptr;
}

} // namespace hloc::reduction
