// Which of the heroes that apply makes a fusion.

#include "hloc/fusion/FusionPlan.h"

#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Choice {
  Hero hero;
  std::string reason; ///< why not the other one
};

Choice choose(const std::string &body, const char *other) {
  test::Parsed parsed("HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
                      "ENTRY e {\n" +
                      body + "\n}\n");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  FusionGraph graph = *FusionGraph::build(*parsed.module->entry(), parsed.diagnostics);
  FusionPlan plan = *planFusion(graph, {}, *findTarget("sm_90"), parsed.diagnostics);
  Choice choice{std::get<KernelPlan>(plan.steps.back()).hero(), ""};
  for (const HeroRejection &rejection : plan.rejections)
    if (llvm::StringRef(rejection.hero) == other)
      choice.reason = rejection.reason;
  return choice;
}

bool isByTime(const Choice &choice) { return choice.reason.starts_with("it takes "); }

} // namespace

TEST_CASE("where a hero's threads would run loops of their own, time decides and not the table", "[fusion]") {
  // A few blocks that fill tiles with a sum of 128 terms for each element, and wait; a loop has threads for all.
  // (Complex numbers are not multiplied in tiles.)
  Choice choice = choose("p = c64[16,128] parameter(0)  q = c64[128,17] parameter(1)\n"
                         "d = c64[16,17] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                         "ROOT r = c64[17,16] transpose(d), dimensions={1,0}",
                         "transpose");
  CHECK(choice.hero == Hero::Loop);
  CHECK(isByTime(choice));
  // The rows of a softmax are better off in any case: threads that make one element each would make its row's sum.
  choice = choose("p = f32[64,32] parameter(0)  q = f32[32,64] parameter(1)  z = f32[] constant(0)\n"
                  "d = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                  "s = f32[64] reduce(d, z), dimensions={1}, to_apply=add\n"
                  "b = f32[64,64] broadcast(s), dimensions={0}  ROOT r = f32[64,64] divide(d, b)",
                  "loop");
  CHECK(choice.hero == Hero::Rows);
  CHECK(isByTime(choice));
}

TEST_CASE("elsewhere the first that applies is taken, and nobody else is asked", "[fusion]") {
  Choice choice = choose("p = f32[512,512] parameter(0)  ROOT r = f32[512,512] transpose(p), dimensions={1,0}", "loop");
  CHECK(choice.hero == Hero::Transpose);
  CHECK(choice.reason.empty());
}

TEST_CASE("an argument's number is seen through what only renames dimensions", "[fusion]") {
  auto argmaxOf = [](const std::string &numbers) {
    const std::string greater = "greater { a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)\n"
                                "j = s32[] parameter(3)  g = pred[] compare(a, b), direction=GE\n"
                                "x = f32[] select(g, a, b)  y = s32[] select(g, i, j)\n"
                                "ROOT t = (f32[], s32[]) tuple(x, y) }\n";
    test::Parsed parsed("HloModule m\n" + greater +
                        "ENTRY e {\nm = f32[] parameter(0)  z = s32[] constant(0)  p = f32[1,4096] parameter(1)\n" +
                        numbers +
                        "\nROOT r = (f32[1], s32[1]) reduce(p, n, m, z), dimensions={1}, to_apply=greater\n}\n");
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
    FusionGraph graph = *FusionGraph::build(*parsed.module->entry(), parsed.diagnostics);
    FusionPlan plan = *planFusion(graph, {}, *findTarget("sm_90"), parsed.diagnostics);
    return std::get<KernelPlan>(plan.steps.back()).hero();
  };
  const std::string iota = "i = s32[4096] iota(), iota_dimension=0  ";
  CHECK(argmaxOf("n = s32[1,4096] iota(), iota_dimension=1") == Hero::RowReduction);
  CHECK(argmaxOf(iota + "n = s32[1,4096] broadcast(i), dimensions={1}") == Hero::RowReduction);
  CHECK(argmaxOf(iota + "n = s32[1,4096] reshape(i)") == Hero::RowReduction);
  CHECK(argmaxOf(iota + "j = s32[4096,1] reshape(i)  k = s32[4096,1] copy(j)  n = s32[1,4096] reshape(k)") ==
        Hero::RowReduction);
  // These do not number the elements of a row.
  CHECK(argmaxOf("i = s32[64,64] iota(), iota_dimension=1  n = s32[1,4096] reshape(i)") == Hero::Loop);
  CHECK(argmaxOf("n = s32[1,4096] iota(), iota_dimension=0") == Hero::Loop);
  CHECK(argmaxOf("i = s32[4096] iota(), iota_dimension=0  k = s32[4096] negate(i)  n = s32[1,4096] reshape(k)") ==
        Hero::Loop);
}

TEST_CASE("a hero or vector that is asked for is had, or what is best with the reason why not", "[fusion]") {
  test::Parsed parsed("HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
                      "ENTRY e { p = f32[4096,512] parameter(0)  z = f32[] constant(0)\n"
                      "ROOT s = f32[4096] reduce(p, z), dimensions={1}, to_apply=add }");
  REQUIRE(parsed.module);
  FusionGraph graph = *FusionGraph::build(*parsed.module->entry(), parsed.diagnostics);
  PlanContext context;
  auto plan = [&](PlanChoices choices) {
    context.choices = std::move(choices);
    FusionPlan plan = *planFusion(graph, {}, *findTarget("sm_90"), parsed.diagnostics, context);
    CHECK(!parsed.diagnostics.hasErrors());
    return std::get<KernelPlan>(plan.steps.back());
  };
  const std::string best = plan({}).toString();
  CHECK(plan({}).hero() == Hero::RowReduction);
  CHECK(plan({std::nullopt, "loop", 0, 0}).hero() == Hero::Loop);
  CHECK(context.refusal == "");
  CHECK(plan({std::nullopt, "rows", 0, 0}).toString() == best);
  CHECK(context.refusal != "");
  CHECK(std::get<RowReductionPlan>(plan({std::nullopt, "", 2, 0}).plan).perThread == 2);
  CHECK(context.refusal == "");
  CHECK(std::get<LoopPlan>(plan({std::nullopt, "loop", 4, 0}).plan).nests.front().perThread == 4);
  CHECK(plan({std::nullopt, "", 32, 0}).toString() == best);
  CHECK(context.refusal == "a thread of `row-reduction` can have 4 at once here, not 32");
  CHECK(std::get<RowReductionPlan>(plan({std::nullopt, "", 0, 4}).plan).stage == ReductionStage::Combine);
  CHECK(context.refusal == "");
  CHECK(plan({std::nullopt, "loop", 0, 4}).toString() == best);
  CHECK(context.refusal == "threads of `loop` have no such choice");
  CHECK(plan({std::nullopt, "", 0, 100000}).toString() == best);
  CHECK(context.refusal == "sums of `row-reduction` can be in 1 parts here, not 100000");
  CHECK(plan({}).toString() == best);
  CHECK(context.refusal == "");
}
