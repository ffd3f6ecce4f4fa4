#include "RunPasses.h"

using namespace hloc;
using namespace hloc::test;

TEST_CASE("what nothing needs goes, with what only it needed") {
  PassRun p(entry("p = f32[4] parameter(0)\n unread = f32[4] parameter(1)\n a = f32[4] negate(p)\n b = f32[4] abs(a)\n"
                  "ROOT r = f32[4] exponential(p)"));
  CHECK(p.run(eraseDeadCode) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nunread = parameter()\nROOT r = exponential(p)\n");
  CHECK(p.context.statistics.of("dead-code.instructions") == 2);
  CHECK(p.run(eraseDeadCode) == PassResult::Unchanged);
}

TEST_CASE("side effects stay, also inside what is called") {
  PassRun p("HloModule m\n"
            "c {\n i = s32[] parameter(0)\n ROOT small = pred[] compare(i, i), direction=LT\n}\n"
            "pure {\n i = s32[] parameter(0)\n ROOT n = s32[] negate(i)\n}\n"
            "talks {\n i = s32[] parameter(0)\n t = token[] after-all()\n"
            " o = token[] outfeed(i, t), outfeed_shape=s32[]\n ROOT n = s32[] negate(i)\n}\n"
            "ENTRY e {\n p = s32[] parameter(0)\n quiet = s32[] while(p), condition=c, body=pure\n"
            " loud = s32[] while(p), condition=c, body=talks\n ROOT r = s32[] negate(p)\n}\n");
  CHECK(p.run(eraseDeadCode) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nloud = while(p)\nROOT r = negate(p)\n");
  CHECK_FALSE(p.module->findComputation("pure"));
  CHECK(p.module->findComputation("talks"));
  CHECK(p.context.statistics.of("dead-code.computations") == 1);
}
