#include "Rewriter.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

class Driver {
public:
  Driver(HloEditor &editor, llvm::ArrayRef<RewriteRule> rules, const RewriteOptions &options, HloStatistics &statistics)
      : editor(editor), rules(rules), options(options), statistics(statistics), rulesOf(numOpcodes()),
        applications(rules.size(), 0) {
    for (auto [i, rule] : llvm::enumerate(rules))
      rulesOf[static_cast<size_t>(rule.opcode)].push_back(static_cast<uint32_t>(i));
  }

  size_t run() {
    limit = options.rewritesPerInstruction * editor.numInstructions() + options.rewritesPerInstruction;
    // A rule may look deeper than the operands, whose changes alone bring an instruction back. So what has changed is
    // done first, cheaply, and a sweep over all of them without a rewrite is the proof that none applies.
    size_t before;
    do {
      before = total;
      sweep();
      while (HloInstruction *changed = editor.takeChanged())
        rewrite(*changed);
    } while (total != before);
    for (auto [rule, count] : llvm::zip_equal(rules, applications))
      statistics.add(rule.name, count);
    return total;
  }

private:
  void sweep() {
    for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
      next = editor.next(instr); // a rewrite erases the instruction and what stands in front of it, nothing behind
      rewrite(*instr);
    }
  }

  void rewrite(HloInstruction &instr) {
    llvm::ArrayRef<uint32_t> candidates = rulesOf[static_cast<size_t>(instr.opcode())];
    bool isNeeded = &instr == editor.root() || editor.isUsed(&instr);
    if (candidates.empty() || !isNeeded || editor.isOrdered(&instr))
      return;
    for (uint32_t index : candidates)
      if (tryRule(instr, index))
        return;
  }

  bool tryRule(HloInstruction &instr, uint32_t index) {
    HloRewriter rewriter(editor, instr);
    uint32_t firstNew = editor.idBound();
    HloInstruction *replacement = rules[index].apply(instr, rewriter);
    HLOC_CHECK(replacement || editor.idBound() == firstNew, "a rule that does not apply has made instructions");
    if (!replacement)
      return false;
    const Shape &wanted = instr.shape();
    if (options.ignoreLayouts ? !replacement->shape().compatible(wanted) : !(replacement->shape() == wanted)) {
      editor.eraseIfDead(replacement); // if it was made for this
      return false;
    }
    if (replacement->id() >= firstNew)
      keepMetadata(instr, *replacement);
    editor.replaceAllUses(&instr, replacement);
    editor.eraseIfDead(&instr);
    ++applications[index];
    if (++total > limit)
      HLOC_UNREACHABLE(("rewriting does not come to rest; last: " + rules[index].name).str().c_str());
    return true;
  }

  /// What is made in place of an instruction stems from where that does.
  void keepMetadata(const HloInstruction &from, HloInstruction &to) {
    const AttributeValue *metadata = from.find(AttributeKey::Metadata);
    if (metadata && !to.has(AttributeKey::Metadata))
      editor.setAttribute(&to, {AttributeKey::Metadata, *metadata});
  }

  HloEditor &editor;
  llvm::ArrayRef<RewriteRule> rules;
  const RewriteOptions &options;
  HloStatistics &statistics;
  std::vector<llvm::SmallVector<uint32_t, 2>> rulesOf; ///< by opcode
  std::vector<size_t> applications;                    ///< by rule
  size_t total = 0, limit = 0;
};

} // namespace

size_t rewriteToFixpoint(HloEditor &editor, llvm::ArrayRef<RewriteRule> rules, const RewriteOptions &options,
                         HloStatistics &statistics) {
  return Driver(editor, rules, options, statistics).run();
}

PassResult rewriteComputations(llvm::ArrayRef<HloComputation *> computations, llvm::ArrayRef<RewriteRule> rules,
                               HloPassContext &context) {
  auto mayApply = [&](const HloInstruction *instr) {
    return llvm::any_of(rules, [&](const RewriteRule &rule) { return rule.opcode == instr->opcode(); });
  };
  size_t applied = 0;
  for (HloComputation *computation : computations) {
    if (llvm::none_of(computation->instructions(), mayApply))
      continue;
    HloEditor editor(*computation);
    applied += rewriteToFixpoint(editor, rules, RewriteOptions(), context.statistics);
  }
  return changedIf(applied > 0);
}

PassResult rewriteModule(HloModule &module, llvm::ArrayRef<RewriteRule> rules, HloPassContext &context) {
  llvm::SmallVector<HloComputation *> computations;
  for (const auto &computation : module.computations())
    computations.push_back(computation.get());
  return rewriteComputations(computations, rules, context);
}

} // namespace hloc
