// What loops begin with and anything can make: each leaf of the state has one of its own. As one value it would lie in
// one place, and be copied to those of all leaves but one; made several times, it is several results of one kernel.
//
//   z = broadcast(0)  w = while(tuple(i, z, z))   ->   z = broadcast(0)  z' = broadcast(0)  w = while(tuple(i, z, z'))

#include "LightOps.h"
#include "Simplify.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

namespace hloc {

namespace {

/// Of nothing but constants in the text, and small there.
bool isMadeOfNothing(const HloInstruction *value) {
  if (value->opcode() == Opcode::Broadcast)
    value = value->operand(0);
  return value->opcode() == Opcode::Iota ||
         (value->opcode() == Opcode::Constant && value->shape().isArray() && value->shape().numElements() == 1);
}

bool isHandedOn(const HloInstruction &loop, unsigned leaf) {
  const HloInstruction *root = loop.computation(AttributeKey::Body)->root();
  const HloInstruction *next = root->opcode() == Opcode::Tuple ? root->operand(leaf) : root;
  return next->opcode() == Opcode::GetTupleElement && next->operand(0)->opcode() == Opcode::Parameter &&
         next->intOr(AttributeKey::Index, 0) == int64_t(leaf);
}

/// May anything else need it in memory?
bool isShared(const HloInstruction *value, const HloEditor &editor) {
  return value == editor.root() || editor.uses(value).size() > 1;
}

/// A leaf keeps what lies there for it alone.
size_t separateIn(HloInstruction &loop, HloEditor &editor) {
  HloInstruction *start = loop.operand(0);
  if (start->opcode() != Opcode::Tuple || !editor.hasOneUser(start))
    return 0;
  size_t made = 0;
  for (unsigned leaf = 0; leaf < start->numOperands(); ++leaf) {
    HloInstruction *value = start->operand(leaf);
    if (!isMadeOfNothing(value) || isHandedOn(loop, leaf) || !isShared(value, editor))
      continue;
    editor.setOperand(start, leaf, placeAnother(*value, editor, start));
    ++made;
  }
  return made;
}

} // namespace

PassResult separateStarts(HloModule &module, HloPassContext &context) {
  size_t made = 0;
  if (arrivesUnfused(module))
    for (HloComputation *computation : controlComputations(module)) {
      HloEditor editor(*computation);
      for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr))
        if (instr->opcode() == Opcode::While)
          made += separateIn(*instr, editor);
    }
  context.statistics.add("separate-starts.made", made);
  return changedIf(made > 0);
}

} // namespace hloc
