#include "hloc/hlo/HloEditor.h"
#include "hloc/hlo/InstructionKey.h"
#include "hloc/transforms/Transforms.h"

#include <unordered_set>

namespace hloc {

namespace {

struct KeyHash {
  size_t operator()(const InstructionKey &key) const { return key.hash(); }
};

/// Instructions that stand for an event or a place rather than for a value.
bool isMergeable(const HloInstruction &instr, const HloEditor &editor) {
  OpcodeFamily kind = family(instr.opcode());
  return instr.opcode() != Opcode::Parameter && kind != OpcodeFamily::Host && kind != OpcodeFamily::Async &&
         kind != OpcodeFamily::Collective && !editor.isOrdered(&instr);
}

/// One walk is enough: operands come first, so they have been merged when an instruction is looked up.
size_t mergeIn(HloEditor &editor) {
  std::unordered_set<InstructionKey, KeyHash> seen;
  seen.reserve(editor.numInstructions());
  size_t merged = 0;
  for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
    next = editor.next(instr);
    if (!isMergeable(*instr, editor))
      continue;
    auto [first, isNew] = seen.insert({instr});
    if (isNew || instr->reachesSideEffect())
      continue;
    editor.replaceAllUses(instr, first->instr);
    editor.erase(instr);
    ++merged;
  }
  return merged;
}

} // namespace

PassResult mergeCommonSubexpressions(HloModule &module, HloPassContext &context) {
  size_t merged = 0;
  for (const auto &computation : module.computations()) {
    HloEditor editor(*computation);
    merged += mergeIn(editor);
  }
  context.statistics.add("common-subexpressions.merged", merged);
  return changedIf(merged > 0);
}

} // namespace hloc
