// Loops that a counter ends after a few rounds, and whose rounds are no more than one kernel would do -> the rounds,
// one after the other. As a loop each round is at least a launch for the condition and one for the body, with what it
// hands from one to the other in memory; in a row they are one kernel.

#include "LightOps.h"
#include "LoopRounds.h"
#include "Simplify.h"
#include "WithLayout.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// Twice the five rounds of threefry with which jax makes random numbers, in which a round has 80 instructions.
constexpr uint64_t mostRounds = 8;
constexpr size_t mostInstructions = 800;

bool isWorthIt(const HloComputation &body, uint64_t rounds) {
  return rounds <= 1 || (rounds <= mostRounds && rounds * body.instructions().size() <= mostInstructions &&
                         llvm::all_of(body.instructions(), [](auto *instr) { return isLight(*instr); }));
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
      state = placeComputation(body, state, instr->name() + "." + llvm::Twine(round), *instr, editor);
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
