#pragma once
// The engine for local rewriting: rules, each for one opcode, tried wherever something has changed, until none applies.
//
//   HloInstruction *elementOfTuple(HloInstruction &gte, HloRewriter &r) {         // gte(tuple(a, b), 1) -> b
//     HloInstruction *tuple = gte.operand(0);
//     return tuple->opcode() == Opcode::Tuple ? tuple->operand(gte.intOr(AttributeKey::Index, 0)) : nullptr;
//   }
//   constexpr RewriteRule rules[] = {{"element-of-tuple", Opcode::GetTupleElement, elementOfTuple}};
//   size_t applied = rewriteToFixpoint(editor, rules, options, statistics);
//
// A rule looks at an instruction and what it reads, and returns the value to use in its place - one that stands in
// front of it, or a new one from r.builder() - or null. It changes nothing else: the engine replaces the uses and
// erases what is no longer needed. What nothing uses is not rewritten. Control predecessors give an order that a
// replacement would lose, so such instructions are left alone.
//
// Why it ends: a rule must make something smaller by an order that all rules of a set agree on. A set that does not is
// our bug, and found by a limit on the number of rewrites.

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/HloPass.h"

namespace hloc {

/// What a rule may ask and use.
class HloRewriter {
public:
  HloRewriter(HloEditor &editor, HloInstruction &instr) : edited(editor), build(editor, &instr) {
    build.setRange(instr.range());
  }
  /// Places what it makes in front of the instruction being rewritten.
  HloBuilder &builder() { return build; }
  bool hasOneUser(const HloInstruction *value) const { return edited.hasOneUser(value); }
  const HloEditor &editor() const { return edited; }

private:
  HloEditor &edited;
  HloBuilder build;
};

struct RewriteRule {
  llvm::StringRef name; ///< statistics count its applications under this name
  Opcode opcode;
  HloInstruction *(*apply)(HloInstruction &instr, HloRewriter &rewriter);
  llvm::StringRef summary = ""; ///< for `--list-rewrites`: what it makes of what
};

struct RewriteOptions {
  /// May a replacement have another layout? Until layouts are assigned they mean nothing, afterwards they are results.
  bool ignoreLayouts = false;
  /// Rewrites an instruction of the computation. XLA stops its simplifier after 50 sweeps, in each of which every
  /// instruction may be rewritten once (hlo_pass_fix.h); real modules take one to three.
  size_t rewritesPerInstruction = 50;
};

/// How many rules were applied. Rules of an opcode are tried in the order given; the first that applies wins.
size_t rewriteToFixpoint(HloEditor &editor, llvm::ArrayRef<RewriteRule> rules, const RewriteOptions &options,
                         HloStatistics &statistics);
/// A pass that is its rules: those of the computations that have an op of theirs.
PassResult rewriteComputations(llvm::ArrayRef<HloComputation *> computations, llvm::ArrayRef<RewriteRule> rules,
                               HloPassContext &context);
/// The same of all computations of a module; those that rules add have none of their ops.
PassResult rewriteModule(HloModule &module, llvm::ArrayRef<RewriteRule> rules, HloPassContext &context);

} // namespace hloc
