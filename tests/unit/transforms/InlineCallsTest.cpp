#include "RunPasses.h"

using namespace hloc;
using namespace hloc::test;

TEST_CASE("calls of calls are inlined and their computations go") {
  PassRun p("HloModule m\n"
            "inner {\n x = f32[4] parameter(0)\n ignored = f32[4] parameter(1)\n ROOT n = f32[4] negate(x)\n}\n"
            "outer {\n x = f32[4] parameter(0)\n e = f32[4] exponential(x)\n"
            " ROOT c = f32[4] call(x, e), to_apply=inner\n}\n"
            "ENTRY e {\n p = f32[4] parameter(0)\n c = f32[4] call(p), to_apply=outer\n"
            " dead = f32[4] call(p), to_apply=outer\n ROOT d = f32[4] call(c), to_apply=outer\n}\n");
  CHECK(p.run(inlineCalls) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nc.c.n = negate(p)\nROOT d.c.n = negate(c.c.n)\n");
  CHECK(p.module->computations().size() == 1);
  CHECK(p.context.statistics.of("inline-calls.calls") == 3);
  CHECK(p.run(inlineCalls) == PassResult::Unchanged);
}

TEST_CASE("layouts that differ between caller and callee mean copies") {
  PassRun p("HloModule m\n"
            "f {\n x = f32[2,3]{0,1} parameter(0)\n ROOT n = f32[2,3]{0,1} negate(x)\n}\n"
            "ENTRY e {\n p = f32[2,3]{1,0} parameter(0)\n c = f32[2,3]{1,0} call(p), to_apply=f\n"
            " ROOT t = (f32[2,3]{0,1}) tuple(c)\n}\n");
  CHECK(p.run(inlineCalls) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\ncopy.1.anon = copy(p)\nc.n = negate(copy.1.anon)\n"
                    "copy.2.anon = copy(c.n)\ncopy.3.anon = copy(copy.2.anon)\nROOT t = tuple(copy.3.anon)\n");
}

TEST_CASE("a fusion has the layout of its root") {
  PassRun p("HloModule m\n"
            "f {\n x = f32[2,3]{0,1} parameter(0)\n ROOT n = f32[2,3]{0,1} negate(x)\n}\n"
            "ENTRY e {\n p = f32[2,3]{1,0} parameter(0)\n"
            " ROOT c = f32[2,3]{1,0} fusion(p), kind=kLoop, calls=f\n}\n");
  CHECK(p.run(inlineCalls) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\ncopy.1.anon = copy(p)\nc = fusion(copy.1.anon)\nROOT copy.2.anon = copy(c)\n");
  CHECK(p.module->entry()->root()->operand(0)->shape().toString() == "f32[2,3]{0,1}");
  CHECK(p.run(inlineCalls) == PassResult::Unchanged);
}

TEST_CASE("fusions that take tuples are dissolved, whatever is said of fusions") {
  PassRun p("HloModule m\n"
            "f {\n t = (f32[2], f32[2]) parameter(0)\n a = f32[2] get-tuple-element(t), index=0\n"
            " b = f32[2] get-tuple-element(t), index=1\n ROOT s = f32[2] subtract(b, a)\n}\n"
            "ENTRY e {\n p = f32[2] parameter(0)\n q = f32[2] parameter(1)\n t = (f32[2], f32[2]) tuple(p, q)\n"
            " ROOT r = f32[2] fusion(t), kind=kLoop, calls=f\n}\n");
  CHECK(p.run(inlineCalls) == PassResult::Changed);
  CHECK(p.run(simplifyTuples) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nq = parameter()\nROOT r.s = subtract(q p)\n");
}

TEST_CASE("calls that multiply beyond a limit are refused where it happens") {
  std::string text = "HloModule m\nf0 {\n x = f32[] parameter(0)\n ROOT n = f32[] negate(x)\n}\n";
  for (int i = 1; i <= 10; ++i)
    text += fmt::format("f{0} {{\n x = f32[] parameter(0)\n a = f32[] call(x), to_apply=f{1}\n"
                        " ROOT b = f32[] call(a), to_apply=f{1}\n}}\n",
                        i, i - 1);
  text += "ENTRY e {\n x = f32[] parameter(0)\n ROOT r = f32[] call(x), to_apply=f10\n}\n";
  PassRun p(text);
  p.context.options.maxInstructions = 100;
  CHECK(p.run(inlineCalls) == PassResult::Failed);
  CHECK(p.diagnostics.exitCode() == ExitCode::Unsupported);
  CHECK(p.diagnostics.diagnostics().front().range.isValid());
  PassRun enough(text);
  CHECK(enough.run(inlineCalls) == PassResult::Changed);
  CHECK(enough.module->entry()->instructions().size() == 1025);
}
