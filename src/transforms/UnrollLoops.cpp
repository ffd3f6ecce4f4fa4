// Loops that a counter ends after a few rounds, and whose rounds are no more than one kernel would do -> the rounds,
// one after the other. As a loop each round is at least a launch for the condition and one for the body, with what it
// hands from one to the other in memory; in a row they are one kernel.

#include "LoopRounds.h"
#include "Simplify.h"
#include "WithLayout.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

/// Twice the five rounds of threefry with which jax makes random numbers, in which a round has 80 instructions.
constexpr uint64_t mostRounds = 8;
constexpr size_t mostInstructions = 800;

/// What a kernel computes on the way, at no cost but its own.
bool isLight(const HloInstruction *instr) {
  switch (instr->opcode()) {
  case Opcode::Parameter:
  case Opcode::Constant:
  case Opcode::Tuple:
  case Opcode::GetTupleElement:
  case Opcode::Iota:
  case Opcode::Copy:
    return true;
  case Opcode::DynamicUpdateSlice: // is done in place in a loop, and one launch each otherwise
  case Opcode::Gather:
    return false;
  default:
    return (isElementwise(instr->opcode()) || hasTrait(instr->opcode(), OpcodeTrait::Moves)) && !instr->hasSideEffect();
  }
}

bool isWorthIt(const HloComputation &body, uint64_t rounds) {
  return rounds <= 1 || (rounds <= mostRounds && rounds * body.instructions().size() <= mostInstructions &&
                         llvm::all_of(body.instructions(), isLight));
}

/// Copies what a round does in front of `loop`; the state after it.
HloInstruction *placeRound(const HloInstruction &loop, const HloComputation &body, HloInstruction *state,
                           uint64_t round, HloEditor &editor, HloInstruction *before) {
  std::vector<HloInstruction *> mapped(body.instructions().size()); // by id
  llvm::SmallVector<HloInstruction *> operands;
  for (HloInstruction *instr : body.instructions()) {
    if (instr->opcode() == Opcode::Parameter) {
      mapped[instr->id()] = state;
      continue;
    }
    operands.clear();
    for (HloInstruction *operand : instr->operands())
      operands.push_back(mapped[operand->id()]);
    const std::string name = (llvm::Twine(loop.name()) + "." + llvm::Twine(round) + "." + instr->name()).str();
    InstructionSpec spec{instr->opcode(),       name,
                         instr->shape(),        operands,
                         instr->attributes(),   instr->range(),
                         /*parameterNumber=*/0, instr->hasLiteral() ? &instr->literal() : nullptr};
    mapped[instr->id()] = editor.insert(spec, before);
  }
  return mapped[body.root()->id()];
}

size_t unrollIn(HloEditor &editor) {
  size_t unrolled = 0;
  for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
    next = editor.next(instr);
    if (instr->opcode() != Opcode::While || editor.isOrdered(instr) ||
        instr->computation(AttributeKey::Condition)->root()->reachesSideEffect())
      continue;
    const HloComputation &body = *instr->computation(AttributeKey::Body);
    const std::optional<uint64_t> rounds = countRounds(*instr);
    if (!rounds || !isWorthIt(body, *rounds))
      continue;
    HloInstruction *state = instr->operand(0);
    for (uint64_t round = 0; round < *rounds; ++round)
      state = placeRound(*instr, body, state, round, editor, instr);
    HloBuilder builder(editor, instr);
    builder.setRange(instr->range());
    editor.replaceAllUses(instr, withLayout(state, instr->shape(), builder));
    editor.eraseWithOperands(instr);
    ++unrolled;
  }
  return unrolled;
}

} // namespace

PassResult unrollLoops(HloModule &module, HloPassContext &context) {
  size_t unrolled = 0;
  for (HloComputation *computation : computationsToSimplify(module)) { // callees first
    HloEditor editor(*computation);
    unrolled += unrollIn(editor);
  }
  if (unrolled)
    module.eraseUnreachable();
  context.statistics.add("unroll-loops.loops", unrolled);
  return changedIf(unrolled > 0);
}

} // namespace hloc
