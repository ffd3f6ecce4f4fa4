#include "hloc/fusion/PlanSummary.h"

#include "hloc/fusion/GroupWork.h"
#include "unit/parser/ParseText.h"

#include "catch2/catch.hpp"

using namespace hloc;

TEST_CASE("counts of a kernel are those of its instructions and of its plan", "[fusion]") {
  GroupWork work;
  work.work = 64000;
  work.memoryBytes = 32 * 100;
  work.sectors = 300;
  work.chain = {3, 20}; // the first of the loads is among the plan's
  PlanSummary plan;
  plan.blocks = 10;
  plan.threads = 100;
  plan.registers = 40;
  plan.sharedBytes = 512;
  plan.counts.instructions = 7;
  plan.counts.sharedPasses = 9;
  plan.counts.memoryRoundTrips = 4;
  plan.counts.sharedRoundTrips = 6;
  plan.counts.chainInstructions = 11;
  const KernelCounts counts = countsOf(work, plan);
  CHECK(counts.blocks == 10);
  CHECK(counts.threadsPerBlock == 100);
  CHECK(counts.registers == 40);
  CHECK(counts.sharedBytes == 512);
  CHECK(counts.sectors == 300);
  CHECK(counts.footprint == 100);                               // the rest comes from caches
  CHECK(counts.instructions == (64000 + 20 * 1000) / 32.0 + 7); // 20 of each thread, whatever it computes
  CHECK(counts.sharedPasses == 9);
  CHECK(counts.memoryRoundTrips == 4 + 2);
  CHECK(counts.sharedRoundTrips == 6);
  CHECK(counts.chainInstructions == 11 + 20 + 8); // 8 of each thread
}

TEST_CASE("launches of a plan are paid for", "[fusion]") {
  GroupWork work;
  PlanSummary one, three;
  three.launches = 3;
  const DeviceModel &device = *findDevice("h100");
  CHECK(secondsOf(work, three, device) == Approx(secondsOf(work, one, device) + 2 * launchSeconds));
}

namespace {

/// Of a fusion whose outputs may take the places of `offers`, or none.
PlanSummary summaryOf(const std::string &body, const FusionAliasing &offers = {}) {
  test::Parsed parsed(
      "HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
      "less { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = pred[] compare(x, y), direction=LT }\n"
      "ENTRY e {\n" +
      body + "\n}\n");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  FusionGraph graph = *FusionGraph::build(*parsed.module->entry(), parsed.diagnostics);
  FusionPlan plan = *planFusion(graph, offers, *findTarget("sm_90"), parsed.diagnostics);
  return summarize(graph, plan);
}

} // namespace

TEST_CASE("copies, fills and values that are made before move memory, too", "[fusion]") {
  const double array = 4096 * 64 * 4;
  auto scattered = [](const std::string &into) {
    return summaryOf("i = s32[512,1] parameter(0)  u = f32[512,64] parameter(1)  p = f32[4096,64] parameter(2)\n" +
                     into +
                     "ROOT r = f32[4096,64] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, "
                     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add");
  };
  for (auto &[into, bytes] : {std::pair("x = f32[4096,64] parameter(3)\n", 2 * array),
                              std::pair("z = f32[] constant(0)  x = f32[4096,64] broadcast(z), dimensions={}\n", array),
                              std::pair("x = f32[4096,64] negate(p)\n", array)}) {
    PlanSummary summary = scattered(into);
    CHECK(summary.hero == Hero::Scatter);
    CHECK(summary.inPlace);
    CHECK(summary.launches == 2);
    CHECK(summary.extraBytes == bytes);
  }
  PlanSummary update = summaryOf("x = f32[65536] parameter(0)  u = f32[1024] parameter(1)  i = s32[] parameter(2)\n"
                                 "ROOT r = f32[65536] dynamic-update-slice(x, u, i)",
                                 FusionAliasing{0});
  CHECK(update.hero == Hero::DynamicUpdateSlice);
  CHECK(update.inPlace);
  CHECK(update.extraBytes == 0);
}

TEST_CASE("what a hero's threads make together is kept", "[fusion]") {
  auto keeps = [](const std::string &body, Hero hero, size_t kept) {
    PlanSummary summary = summaryOf(body);
    CHECK(summary.hero == hero);
    CHECK(summary.kept.size() == kept);
    return summary;
  };
  keeps("p = f32[512,512] parameter(0)  ROOT r = f32[512,512] transpose(p), dimensions={1,0}", Hero::Transpose, 1);
  keeps("p = f32[4096] parameter(0)  q = f32[8192] parameter(1)  ROOT r = f32[12288] concatenate(p, q), dimensions={0}",
        Hero::Concatenate, 1);
  keeps("t = f32[4096,64] parameter(0)  i = s32[512,1] parameter(1)  u = f32[512,64] parameter(2)\n"
        "ROOT r = f32[4096,64] scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
        Hero::Scatter, 1);
  PlanSummary sort =
      summaryOf("p = f32[1048576] parameter(0)  ROOT r = f32[1048576] sort(p), dimensions={0}, to_apply=less");
  CHECK(sort.hero == Hero::Sort);
  CHECK(sort.passes == sort.launches); // each merges runs of what the one before has left
  CHECK(sort.passes > 3);
  PlanSummary beside = summaryOf("p = f32[4096,768] parameter(0)  z = f32[] constant(0)\n"
                                 "a = f32[4096] reduce(p, z), dimensions={1}, to_apply=add\n"
                                 "b = f32[768] reduce(p, z), dimensions={0}, to_apply=add\n"
                                 "ab = f32[4096,768] broadcast(a), dimensions={0}  n = f32[4096,768] subtract(p, ab)\n"
                                 "ROOT r = (f32[4096,768], f32[768]) tuple(n, b)");
  CHECK(beside.hero == Hero::ColumnReduction); // the last, which combines what blocks have left
  CHECK(beside.besideColumns);
}

TEST_CASE("scratch memory is written and read", "[fusion]") {
  test::Parsed parsed("HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
                      "ENTRY e { p = f32[65536,64] parameter(0)  z = f32[] constant(0)\n"
                      "ROOT r = f32[64] reduce(p, z), dimensions={0}, to_apply=add }\n");
  REQUIRE(parsed.module);
  FusionGraph graph = *FusionGraph::build(*parsed.module->entry(), parsed.diagnostics);
  FusionPlan plan = *planFusion(graph, {}, *findTarget("sm_90"), parsed.diagnostics);
  REQUIRE(plan.scratch.size() == 1);
  CHECK(summarize(graph, plan).extraBytes == 2 * double(plan.scratch[0].bytes()));
}
