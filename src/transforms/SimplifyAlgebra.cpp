// The algebraic simplifier: all rules, wherever they apply.

#include "AlgebraicRules.h"
#include "Simplify.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

std::vector<RewriteRule> algebraicRules() {
  std::vector<RewriteRule> all;
  for (llvm::ArrayRef<RewriteRule> table :
       {arithmeticRules(), logicRules(), conversionRules(), movementRules(), slicingRules()})
    llvm::append_range(all, table);
  return all;
}

namespace {

/// Sizes that are known only at run time are what no rule thinks of.
bool isStatic(const HloComputation &computation) {
  return llvm::none_of(computation.instructions(), [](auto *instr) { return instr->shape().hasDynamicDims(); });
}

} // namespace

PassResult simplifyAlgebra(HloModule &module, HloPassContext &context) {
  static const std::vector<RewriteRule> rules = algebraicRules();
  size_t applied = 0;
  for (HloComputation *computation : computationsToSimplify(module)) {
    if (!isStatic(*computation))
      continue;
    HloEditor editor(*computation);
    applied += rewriteToFixpoint(editor, rules, RewriteOptions(), context.statistics);
  }
  return changedIf(applied > 0);
}

} // namespace hloc
