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

std::vector<RewriteRule> rulesFor(const HloPassOptions &options) {
  std::vector<RewriteRule> all = algebraicRules();
  llvm::copy_if(fastMathRules(), std::back_inserter(all),
                [&](const RewriteRule &rule) { return llvm::is_contained(options.fastMath, rule.name); });
  llvm::erase_if(all, [&](const RewriteRule &rule) { return options.disabled.has("hlo", rule.name); });
  return all;
}

} // namespace

std::vector<RewriteRow> rewriteRows() {
  std::vector<RewriteRow> rows;
  auto add = [&](llvm::ArrayRef<RewriteRule> rules, bool isFastMath) {
    for (const RewriteRule &rule : rules)
      if (llvm::none_of(rows, [&](const RewriteRow &row) { return row.name == rule.name; }))
        rows.push_back({rule.name, rule.summary, isFastMath});
  };
  add(algebraicRules(), false);
  add(fastMathRules(), true);
  return rows;
}

PassResult simplifyAlgebra(HloModule &module, HloPassContext &context) {
  static const std::vector<RewriteRule> exact = algebraicRules();
  std::vector<RewriteRule> others;
  const bool isUsual = context.options.fastMath.empty() && context.options.disabled.empty();
  if (!isUsual)
    others = rulesFor(context.options);
  llvm::ArrayRef<RewriteRule> rules = isUsual ? exact : others;
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
