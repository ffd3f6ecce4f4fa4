// Passes on loops, conditionals and asynchronous pairs.
#include "RunPasses.h"

#include <map>

using namespace hloc;
using namespace hloc::test;

TEST_CASE("asynchronous pairs are done where they start") {
  PassRun p("HloModule m\nwork {\n a = f32[4] parameter(0)\n b = f32[4] parameter(1)\n ROOT s = f32[4] add(a, b)\n}\n"
            "ENTRY e {\n x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n"
            " s = ((f32[4], f32[4]), f32[4], u32[]) async-start(x, y), calls=work\n"
            " n = f32[4] negate(x)\n"
            " u = ((f32[4], f32[4]), f32[4], u32[]) async-update(s)\n"
            " d = f32[4] async-done(u)\n"
            " c = (f32[4], f32[4], u32[]) copy-start(n)\n e = f32[4] copy-done(c)\n"
            " t = token[] after-all()\n o = f32[4] add-dependency(e, t)\n"
            " ROOT r = (f32[4], f32[4]) tuple(d, o)\n}\n");
  CHECK(p.run(expandAsync) == PassResult::Changed);
  CHECK(p.body() == "x = parameter()\ny = parameter()\nn = negate(x)\ns = call(x y)\nc = copy(n)\n"
                    "ROOT r = tuple(s c)\n");
  CHECK(p.run(expandAsync) == PassResult::Unchanged);
}

namespace {
const std::string loops =
    "HloModule m\ncond {\n t = (s32[], f32[2,3]{0,1}) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
    " n = s32[] constant(5)\n ROOT c = pred[] compare(i, n), direction=LT\n}\n"
    "body {\n t = (s32[], f32[2,3]{0,1}) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
    " x = f32[2,3]{0,1} get-tuple-element(t), index=1\n n = s32[] constant(1)\n j = s32[] add(i, n)\n"
    " y = f32[2,3]{0,1} negate(x)\n ROOT r = (s32[], f32[2,3]{0,1}) tuple(j, y)\n}\n";
const std::string twoLoops = loops + "ENTRY e {\n x = f32[2,3]{1,0} parameter(0)\n i = s32[] parameter(1)\n"
                                     " t = (s32[], f32[2,3]{1,0}) tuple(i, x)\n"
                                     " v = (s32[], f32[2,3]{1,0}) while(t), condition=cond, body=body\n"
                                     " ROOT w = (s32[], f32[2,3]{1,0}) while(v), condition=cond, body=body\n}\n";
} // namespace

TEST_CASE("asynchronous collectives are done where they start, whether anybody reads them or not") {
  const std::string header = "HloModule m, replica_count=2\n"
                             "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
                             "work { p = f32[4] parameter(0)\n"
                             " ROOT g = f32[8] all-gather(p), replica_groups={{0,1}}, dimensions={0} }\n";
  PassRun p(header + "ENTRY e { x = f32[4] parameter(0)\n"
                     " r = f32[4] all-reduce-start(x), replica_groups={{0,1}}, to_apply=add\n"
                     " g = (f32[4], f32[8]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}\n"
                     " p = (f32[4], f32[4], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,1}}\n"
                     " w = ((f32[4]), f32[8]) async-start(x), calls=work\n"
                     " rd = f32[4] all-reduce-done(r)\n"
                     " gd = f32[8] all-gather-done(g)\n"
                     " pd = f32[4] collective-permute-done(p)\n"
                     " wd = f32[8] async-done(w)\n"
                     " n = f32[4] negate(rd)\n"
                     " ROOT t = (f32[4], f32[8], f32[8]) tuple(n, gd, wd) }\n");
  CHECK(p.run(expandAsync) == PassResult::Changed);
  CHECK(p.body() == "x = parameter()\nr = all-reduce(x)\ng = all-gather(x)\np = collective-permute(x)\nw = call(x)\n"
                    "n = negate(r)\nROOT t = tuple(n g w)\n");
  CHECK(p.run(expandAsync) == PassResult::Unchanged);
}

TEST_CASE("each loop has computations of its own, in its layouts") {
  PassRun p(twoLoops);
  CHECK(p.run(separateControl) == PassResult::Changed);
  const HloInstruction *second = p.module->entry()->root(), *first = second->operand(0);
  for (const HloInstruction *loop : {first, second})
    for (const HloComputation *called : loop->calledComputations())
      CHECK(called->parameter(0)->shape() == loop->shape());
  CHECK(first->computation(AttributeKey::Body) != second->computation(AttributeKey::Body));
  CHECK(first->computation(AttributeKey::Body)->root()->shape() == first->shape());
  CHECK(first->computation(AttributeKey::Condition) != second->computation(AttributeKey::Condition));
  CHECK(p.run(separateControl) == PassResult::Unchanged);
}

TEST_CASE("a loop in a loop that is copied has computations of its own, too") {
  const std::string state = "(s32[], f32[4])";
  auto condition = [&](const std::string &name, int rounds) {
    return name + " {\n t = " + state +
           " parameter(0)\n i = s32[] get-tuple-element(t), index=0\n n = s32[] constant(" + std::to_string(rounds) +
           ")\n ROOT c = pred[] compare(i, n), direction=LT\n}\n";
  };
  auto loop = [&](const std::string &name, const std::string &of, const std::string &what) {
    return " " + name + " = " + state + " while(" + of + "), condition=" + what + "_test, body=" + what + "\n";
  };
  // Three levels, each entered twice: what is copied calls what was copied before.
  std::string text =
      "HloModule m\n" + condition("inner_test", 3) + "inner {\n t = " + state +
      " parameter(0)\n i = s32[] get-tuple-element(t), index=0\n x = f32[4] get-tuple-element(t), index=1\n"
      " n = s32[] constant(1)\n j = s32[] add(i, n)\n y = f32[4] negate(x)\n ROOT r = " +
      state + " tuple(j, y)\n}\n";
  for (auto [name, called] : {std::pair("middle", "inner"), {"outer", "middle"}})
    text += condition(name + std::string("_test"), 5) + name + " {\n t = " + state + " parameter(0)\n" +
            loop("a", "t", called) + loop("b", "a", called) + " ROOT r = " + state + " copy(b)\n}\n";
  PassRun p(text + "ENTRY e {\n t = " + state + " parameter(0)\n" + loop("a", "t", "outer") + loop("b", "a", "outer") +
            " ROOT r = " + state + " copy(b)\n}\n");
  CHECK(p.run(separateControl) == PassResult::Changed);
  std::map<const HloComputation *, unsigned> callers;
  for (const auto &computation : p.module->computations())
    for (const HloInstruction *instr : computation->instructions())
      for (const HloComputation *called : instr->calledComputations())
        ++callers[called];
  CHECK(callers.size() == 2 * (2 + 4 + 8));
  for (const auto &[computation, count] : callers) {
    INFO(computation->name().str());
    CHECK(count == 1);
  }
  CHECK(p.run(separateControl) == PassResult::Unchanged);
}

TEST_CASE("a branch that elements are reduced by as well is copied, with its fusions") {
  PassRun p("HloModule m\nf {\n a = f32[] parameter(0)\n ROOT n = f32[] negate(a)\n}\n"
            "change {\n a = f32[] parameter(0)\n ROOT n = f32[] fusion(a), kind=kLoop, calls=f\n}\n"
            "ENTRY e {\n p = pred[] parameter(0)\n x = f32[4] parameter(1)\n y = f32[] parameter(2)\n"
            " m = f32[4] map(x), dimensions={0}, to_apply=change\n"
            " c = f32[] conditional(p, y, y), true_computation=change, false_computation=change\n"
            " ROOT t = (f32[4], f32[]) tuple(m, c)\n}\n");
  CHECK(p.run(separateControl) == PassResult::Changed);
  const HloInstruction *choice = p.module->entry()->root()->operand(1);
  CHECK(choice->computation(AttributeKey::TrueComputation)->name() == "change.1");
  CHECK(choice->computation(AttributeKey::FalseComputation)->name() == "change.2");
  CHECK(p.module->findComputation("f.1"));
  CHECK(p.module->findComputation("f.2"));
}

TEST_CASE("control flow that is nested very deep is refused") {
  std::string text = "HloModule m\nb0 {\n ROOT x = f32[] parameter(0)\n}\n";
  for (int i = 1; i <= 150; ++i)
    text += "b" + std::to_string(i) + " {\n x = f32[] parameter(0)\n p = pred[] constant(true)\n ROOT c = f32[] " +
            "conditional(p, x, x), true_computation=b" + std::to_string(i - 1) + ", false_computation=b0\n}\n";
  PassRun p(text + "ENTRY e {\n x = f32[] parameter(0)\n ROOT c = f32[] call(x), to_apply=b150\n}\n");
  CHECK(p.run(inlineCalls) == PassResult::Changed);
  CHECK(p.run(separateControl) == PassResult::Failed);
  CHECK(p.diagnostics.diagnostics().front().message == "control flow nested deeper than 100 is not supported");
}

TEST_CASE("computations that are called in many ways are not copied without end") {
  std::string text = "HloModule m\nb0 {\n ROOT x = f32[] parameter(0)\n}\n";
  for (int i = 1; i <= 30; ++i)
    text += "b" + std::to_string(i) + " {\n x = f32[] parameter(0)\n p = pred[] constant(true)\n ROOT c = f32[] " +
            "conditional(p, x, x), true_computation=b" + std::to_string(i - 1) + ", false_computation=b" +
            std::to_string(i - 1) + "\n}\n";
  PassRun p(text +
            "ENTRY e {\n p = pred[] parameter(0)\n x = f32[] parameter(1)\n ROOT c = f32[] conditional(p, x, x), "
            "true_computation=b30, false_computation=b0\n}\n");
  p.context.options.maxInstructions = 1000;
  CHECK(p.run(separateControl) == PassResult::Failed);
  CHECK(p.diagnostics.diagnostics().front().message ==
        "control flow that makes the module larger than 1000 instructions is not supported");
}

TEST_CASE("fusions are formed in front of a loop, in it, and behind it") {
  PassRun p("HloModule m\ncond {\n t = (s32[], f32[4]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
            " n = s32[] constant(5)\n ROOT c = pred[] compare(i, n), direction=LT\n}\n"
            "body {\n t = (s32[], f32[4]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
            " x = f32[4] get-tuple-element(t), index=1\n n = s32[] constant(1)\n j = s32[] add(i, n)\n"
            " y = f32[4] negate(x)\n z = f32[4] abs(y)\n ROOT r = (s32[], f32[4]) tuple(j, z)\n}\n"
            "ENTRY e {\n x = f32[4] parameter(0)\n y = f32[4] log(x)\n i = s32[] constant(0)\n"
            " t = (s32[], f32[4]) tuple(i, y)\n w = (s32[], f32[4]) while(t), condition=cond, body=body\n"
            " g = f32[4] get-tuple-element(w), index=1\n ROOT s = f32[4] add(g, y)\n}\n");
  CHECK(p.run(formFusions) == PassResult::Changed);
  CHECK(p.body() == "x = parameter()\ni = fusion(x)\nget-tuple-element.1.anon = get-tuple-element(i)\n"
                    "get-tuple-element.2.anon = get-tuple-element(i)\n"
                    "t = tuple(get-tuple-element.2.anon get-tuple-element.1.anon)\nw = while(t)\n"
                    "g = get-tuple-element(w)\nROOT m = fusion(get-tuple-element.1.anon g)\n");
  CHECK(p.body("cond") == "t = parameter()\ni = get-tuple-element(t)\nROOT cond = fusion(i)\n");
  CHECK(p.body("body") == "t = parameter()\ni = get-tuple-element(t)\nx = get-tuple-element(t)\nbody_0 = fusion(i)\n"
                          "body_1 = fusion(x)\nROOT tuple.1.anon = tuple(body_0 body_1)\n");
  CHECK(p.run(formFusions) == PassResult::Unchanged);
}

TEST_CASE("beside fusions what a loop or conditional reads has a buffer") {
  PassRun p("HloModule m\nf {\n x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)\n}\n"
            "keep {\n ROOT x = f32[4] parameter(0)\n}\nflip {\n x = f32[4] parameter(0)\n"
            " ROOT n = f32[4] fusion(x), kind=kLoop, calls=f\n}\n"
            "ENTRY e {\n i = s32[] constant(1)\n k = f32[4] constant({1,2,3,4})\n x = f32[4] parameter(0)\n"
            " ROOT c = f32[4] conditional(i, k, x), branch_computations={keep, flip}\n}\n");
  CHECK(p.run(formFusions) == PassResult::Changed);
  CHECK(p.body() == "i = fusion()\nk = fusion()\nx = parameter()\nROOT c = conditional(i k x)\n");
  CHECK(p.run(formFusions) == PassResult::Unchanged);
}
