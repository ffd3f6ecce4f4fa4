// What kernels cost the search, and what their plans say.

#include "search/FusionCost.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloModule.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Costs {
  double searched, planned;
};

/// Of a loop over so many elements: as the search has it, which plans no loops, and by its plan.
Costs costsOf(int elements) {
  test::Parsed parsed(test::entry(fmt::format("p = f32[{0}] parameter(0)  ROOT r = f32[{0}] negate(p)", elements)));
  REQUIRE(parsed.module);
  const HloComputation &entry = *parsed.module->entry();
  HloInstruction *root = entry.root();
  const TargetInfo target = *findTarget("sm_90");
  FusionCost cost(entry, target, [](const HloInstruction &) { return false; });
  FusionGraph graph = *FusionGraph::build(entry, parsed.diagnostics);
  PlanSummary summary = summarize(graph, *planFusion(graph, {}, target, parsed.diagnostics));
  const GroupWork work = GroupCounter(entry.instructions().size()).count({root}, {root}, summary);
  return {cost.of({root}, {root}).seconds, secondsOf(work, summary, deviceOf(target))};
}

} // namespace

TEST_CASE("a loop costs the search what its plan takes", "[search]") {
  auto check = [](int elements, double difference) {
    const Costs costs = costsOf(elements);
    INFO(elements << " elements: " << costs.searched * 1e6 << " us, planned " << costs.planned * 1e6 << " us");
    CHECK(costs.searched == Approx(costs.planned).epsilon(difference));
  };
  for (int elements : {100, 1000, 16384, 33792, 67584, 135168, 300000})
    check(elements, 1e-5);
  for (int elements : {1 << 20, 1 << 24}) // threads take several rounds of so many
    check(elements, 0.015);
}
