#include "RunPasses.h"

using namespace hloc;
using namespace hloc::test;

TEST_CASE("equal instructions become one, and then what reads them") {
  PassRun p(entry("p = f32[4] parameter(0)\n a = f32[4] negate(p)\n b = f32[4] negate(p)\n ea = f32[4] exponential(a)\n"
                  "eb = f32[4] exponential(b)\n ROOT r = f32[4] add(ea, eb)"));
  CHECK(p.run(mergeCommonSubexpressions) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\na = negate(p)\nea = exponential(a)\nROOT r = add(ea ea)\n");
  CHECK(p.context.statistics.of("common-subexpressions.merged") == 2);
  CHECK(p.run(mergeCommonSubexpressions) == PassResult::Unchanged);
}

TEST_CASE("a root that is merged is replaced") {
  PassRun p(entry("p = f32[4] parameter(0)\n a = f32[4] negate(p)\n ROOT b = f32[4] negate(p)"));
  CHECK(p.run(mergeCommonSubexpressions) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nROOT a = negate(p)\n");
}

// Each pair differs in one thing, or in nothing that counts.
TEST_CASE("what makes instructions equal") {
  struct Case {
    const char *first, *second;
    bool equal;
  };
  const Case cases[] = {
      {"f32[4] constant({1,2,3,4})", "f32[4] constant({1,2,3,4})", true},
      {"f32[4] constant({1,2,3,4})", "f32[4] constant({1,2,3,5})", false},
      {"f32[4] constant({0,2,3,4})", "f32[4] constant({-0,2,3,4})", false},
      {"f32[4] constant({...})", "f32[4] constant({...})", false},
      {"f32[2,2]{1,0} iota(), iota_dimension=0", "f32[2,2]{1,0} iota(), iota_dimension=1", false},
      {"f32[2,2]{1,0} iota(), iota_dimension=0", "f32[2,2]{0,1} iota(), iota_dimension=0", false},
      {"f32[4] slice(p), slice={[0:4]}", "f32[4] slice(p), slice={[0:4]}", true},
      {"f32[4] slice(p), slice={[0:4]}", "f32[4] slice(p), slice={[1:5]}", false},
      {"f32[8] negate(p), metadata={op_name=\"a\"}", "f32[8] negate(p), metadata={op_name=\"b\"}", true},
      {"f32[8] negate(p), backend_config=\"a\"", "f32[8] negate(p), backend_config=\"b\"", false},
      {"f32[8] reduce-window(p, z), window={size=3 pad=1_1}, to_apply=s",
       "f32[8] reduce-window(p, z), window={size=3 pad=1_1}, to_apply=s", true},
      {"f32[8] reduce-window(p, z), window={size=3 pad=1_1}, to_apply=s",
       "f32[8] reduce-window(p, z), window={size=3 pad=1_1}, to_apply=t", false},
      {"f32[8] reduce-window(p, z), window={size=3 pad=1_1}, to_apply=s",
       "f32[8] reduce-window(p, z), window={size=3 pad=2_0}, to_apply=s", false},
      {"f32[] rng(z, z), distribution=rng_uniform", "f32[] rng(z, z), distribution=rng_uniform", false},
      {"token[] after-all()", "token[] after-all()", false},
  };
  const char *sums = "HloModule m\n"
                     "s {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n"
                     "t {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n";
  for (const Case &c : cases) {
    INFO(c.first << "\n" << c.second);
    PassRun p(std::string(sums) + "ENTRY e {\n p = f32[8] parameter(0)\n z = f32[] parameter(1)\n x = " + c.first +
              "\n y = " + c.second + "\n ROOT r = tuple(x, y)\n}\n");
    CHECK(p.run(mergeCommonSubexpressions) == changedIf(c.equal));
    const HloInstruction *root = p.module->entry()->root();
    CHECK((root->operand(0) == root->operand(1)) == c.equal);
  }
}
