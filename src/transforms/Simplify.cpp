// The simplifications, over and over until none of them finds anything.

#include "Simplify.h"

#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

namespace hloc {

namespace {

bool callsFusions(const HloComputation &computation) {
  return llvm::any_of(computation.instructions(), [](auto *instr) { return instr->opcode() == Opcode::Fusion; });
}

} // namespace

bool arrivesUnfused(const HloModule &module) { return !module.headerless() && !callsFusions(*module.entry()); }

std::vector<HloComputation *> computationsToSimplify(HloModule &module) {
  llvm::DenseSet<const HloComputation *> wanted = {module.entry()};
  // Callers come after callees.
  for (const auto &computation : llvm::reverse(module.computations()))
    if (wanted.contains(computation.get()))
      for (const HloInstruction *instr : computation->instructions())
        if (instr->opcode() == Opcode::While || instr->opcode() == Opcode::Conditional)
          for (const HloComputation *called : instr->calledComputations())
            wanted.insert(called);
  std::vector<HloComputation *> all;
  for (const auto &computation : module.computations())
    if (wanted.contains(computation.get()) && !callsFusions(*computation))
      all.push_back(computation.get());
  return all;
}

PassResult rewriteBeforeFusing(HloModule &module, llvm::ArrayRef<RewriteRule> rules, HloPassContext &context) {
  if (!arrivesUnfused(module) || context.options.fusion == FusionMode::None)
    return PassResult::Unchanged;
  return rewriteComputations(computationsToSimplify(module), rules, context);
}

llvm::ArrayRef<HloPass> simplificationPasses() {
  static constexpr HloPass passes[] = {
      {"simplify-tuples", simplifyTuples, "Elements of tuples become what the tuples are made of"},
      {"simplify-loops", simplifyLoops, "Loops keep no state that they need not, and none in which nothing changes"},
      {"unroll-loops", unrollLoops, "Short loops of elementwise ops become their rounds, one after the other"},
      {"select-branches", selectBranches, "Conditionals of elementwise ops become choices of elements"},
      {"simplify-algebra", simplifyAlgebra, "Rules about ops and what they read; --list-rewrites explains them"},
      {"constant-folding", foldConstants, "Small ops on constants become constants"},
      {"common-subexpressions", mergeCommonSubexpressions, "Of equal instructions one is kept"},
      {"dead-code", eraseDeadCode, "Drops what nothing needs"},
  };
  return passes;
}

PassResult simplify(HloModule &module, HloPassContext &context) {
  if (!arrivesUnfused(module))
    return PassResult::Unchanged;
  llvm::SaveAndRestore nested(context.nesting, context.nesting + 1);
  return runToFixpoint(module, simplificationPasses(), context);
}

} // namespace hloc
