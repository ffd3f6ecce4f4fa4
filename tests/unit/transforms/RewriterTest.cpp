#include "transforms/Rewriter.h"

#include "RunPasses.h"

using namespace hloc;
using namespace hloc::test;

namespace {

bool is(const HloInstruction *instr, Opcode opcode) { return instr->opcode() == opcode; }

HloInstruction *doubleNegation(HloInstruction &instr, HloRewriter &) {
  return is(instr.operand(0), Opcode::Negate) ? instr.operand(0)->operand(0) : nullptr;
}
/// A rule that looks two levels deep: add(add(x, c), d) -> add(x, add(c, d)), c and d constants.
HloInstruction *gatherConstants(HloInstruction &instr, HloRewriter &r) {
  HloInstruction *inner = instr.operand(0);
  if (!is(inner, Opcode::Add) || !is(inner->operand(1), Opcode::Constant) || !is(instr.operand(1), Opcode::Constant) ||
      !r.hasOneUser(inner))
    return nullptr;
  Literal sum(inner->operand(1)->shape());
  sum.setDouble(0, inner->operand(1)->literal().getDouble(0) + instr.operand(1)->literal().getDouble(0));
  return r.builder().infer(Opcode::Add, {inner->operand(0), r.builder().constant(std::move(sum))});
}
HloInstruction *transposeOfSymmetric(HloInstruction &instr, HloRewriter &) { return instr.operand(0); }
HloInstruction *again(HloInstruction &instr, HloRewriter &r) {
  return r.builder().infer(Opcode::Abs, {instr.operand(0)});
}

constexpr RewriteRule arithmetic[] = {{"double-negation", Opcode::Negate, doubleNegation},
                                      {"gather-constants", Opcode::Add, gatherConstants}};

size_t rewrite(PassRun &p, llvm::ArrayRef<RewriteRule> rules, RewriteOptions options = {}) {
  size_t applied;
  {
    HloEditor editor(*p.module->entry());
    applied = rewriteToFixpoint(editor, rules, options, p.context.statistics);
  }
  p.requireSound();
  return applied;
}

} // namespace

TEST_CASE("rules are applied until none does") {
  // Only when the negations are gone is the inner sum an operand of the outer one; the first sum of three comes last.
  PassRun p(
      entry("x = f32[] parameter(0)\n one = f32[] constant(1)\n two = f32[] constant(2)\n four = f32[] constant(4)\n"
            "a = f32[] add(x, one)\n m = f32[] negate(a)\n n = f32[] negate(m)\n b = f32[] add(n, two)\n"
            "ROOT c = f32[] add(b, four)"));
  CHECK(rewrite(p, arithmetic) == 3);
  const HloInstruction *root = p.module->entry()->root();
  CHECK(root->operand(0)->name() == "x");
  CHECK(root->operand(1)->literal().getDouble(0) == 7);
  CHECK(p.module->entry()->instructions().size() == 3); // nothing that is no longer needed is left
  CHECK(p.context.statistics.of("double-negation") == 1);
  CHECK(p.context.statistics.of("gather-constants") == 2);
  CHECK(rewrite(p, arithmetic) == 0);
}

TEST_CASE("a rule sees how many users there are now") {
  PassRun p(entry("x = f32[] parameter(0)\n one = f32[] constant(1)\n a = f32[] add(x, one)\n b = f32[] add(a, one)\n"
                  "m = f32[] negate(a)\n n = f32[] negate(m)\n u = f32[] multiply(n, b)\n"
                  "ROOT r = (f32[], f32[]) tuple(b, u)"));
  CHECK(rewrite(p, arithmetic) == 1); // the sum stays: `a` is read by `b` and by `u`
  CHECK(p.body() == "x = parameter()\none = constant()\na = add(x one)\nb = add(a one)\nu = multiply(a b)\n"
                    "ROOT r = tuple(b u)\n");
}

TEST_CASE("a replacement keeps the shape, and the layout if that counts") {
  const std::string text = entry("x = f32[2,2]{1,0} parameter(0)\n"
                                 "ROOT t = f32[2,2]{0,1} transpose(x), dimensions={1,0}");
  constexpr RewriteRule rules[] = {{"t", Opcode::Transpose, transposeOfSymmetric}};
  PassRun strict(text);
  CHECK(rewrite(strict, rules) == 0);
  PassRun loose(text);
  CHECK(rewrite(loose, rules, {.ignoreLayouts = true}) == 1);
  PassRun smaller(entry("x = f32[2,3] parameter(0)\n ROOT t = f32[3,2] transpose(x), dimensions={1,0}"));
  CHECK(rewrite(smaller, rules, {.ignoreLayouts = true}) == 0);
}

TEST_CASE("instructions that the text orders, and dead ones, are left alone") {
  Parsed ordered(entry("x = f32[] parameter(0)\n m = f32[] negate(x)\n n = f32[] negate(m), control-predecessors={m}\n"
                       "ROOT r = f32[] abs(n)"));
  HloStatistics statistics;
  HloEditor editor(*ordered.module->entry());
  CHECK(rewriteToFixpoint(editor, arithmetic, RewriteOptions(), statistics) == 0);
  PassRun dead(entry("x = f32[] parameter(0)\n m = f32[] negate(x)\n n = f32[] negate(m)\n ROOT r = f32[] abs(x)"));
  CHECK(rewrite(dead, arithmetic) == 0);
}

TEST_CASE("the rules of one opcode are tried in their order") {
  PassRun p(entry("x = f32[] parameter(0)\n m = f32[] negate(x)\n ROOT n = f32[] negate(m)"));
  constexpr RewriteRule rules[] = {{"first", Opcode::Negate, doubleNegation}, {"second", Opcode::Negate, again}};
  CHECK(rewrite(p, rules) == 2); // `m` -> abs by the second rule, then `n`
  CHECK(p.context.statistics.of("second") == 2);
  CHECK(p.context.statistics.of("first") == 0);
}

TEST_CASE("elements of tuples") {
  PassRun p(entry("x = (f32[], s32[]) parameter(0)\n a = f32[] get-tuple-element(x), index=0\n"
                  "b = s32[] get-tuple-element(x), index=1\n t = (f32[], s32[]) tuple(a, b)\n"
                  "s = (s32[], f32[]) tuple(b, a)\n c = f32[] get-tuple-element(s), index=1\n"
                  "ROOT r = ((f32[], s32[]), f32[], (s32[], f32[])) tuple(t, c, s)"));
  CHECK(p.run(simplifyTuples) == PassResult::Changed);
  CHECK(p.body() == "x = parameter()\na = get-tuple-element(x)\nb = get-tuple-element(x)\ns = tuple(b a)\n"
                    "ROOT r = tuple(x a s)\n");
  CHECK(p.run(simplifyTuples) == PassResult::Unchanged);
}

TEST_CASE("a constant tuple is a tuple of constants") {
  PassRun p(entry("c = (f32[], (s32[2], pred[])) constant((1, ({2, 3}, true)))\n"
                  "a = f32[] get-tuple-element(c), index=0\n"
                  "ROOT r = (f32[], (f32[], (s32[2], pred[]))) tuple(a, c)"));
  CHECK(p.run(simplifyTuples) == PassResult::Changed);
  for (const HloInstruction *instr : p.module->entry()->instructions())
    CHECK((instr->opcode() == Opcode::Tuple || instr->shape().isArray()));
  CHECK(p.module->entry()->instructions().size() == 6);
  CHECK(p.run(simplifyTuples) == PassResult::Unchanged);
}
