// What plans do for their own sake, counted by hand.

#include "hloc/fusion/PlanCounts.h"

#include "unit/fusion/PlannedEntry.h"

using namespace hloc;

namespace {

/// 10 blocks of 4 warps.
template <typename Plan> KernelPlan kernelOf(Plan plan) { return {{{10, 1, 1}, {128, 1, 1}, 0}, std::move(plan)}; }
constexpr double warps = 40;

using Planned = test::PlannedEntry;

Planned transposed(const std::string &type, int size) {
  const std::string shape = fmt::format("{}[{},{}]", type, size, size);
  return Planned("p = " + shape + " parameter(0)  ROOT r = " + shape + " transpose(p), dimensions={1,0}");
}

/// f32[512,256] by f32[256,1024]: `p` and `q`, or exponentials of them, `e` and `f`.
Planned product(const std::string &left, const std::string &right) {
  return Planned("p = f32[512,256] parameter(0)  q = f32[256,1024] parameter(1)  e = f32[512,256] exponential(p)\n"
                 "f = f32[256,1024] exponential(q)  ROOT r = f32[512,1024] dot(" +
                 left + ", " + right + "), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
}

/// 64 x 64 results a block of 8 warps, 256 terms in steps of 16, not divided, read by vectors of 4.
ContractionPlan tiled(const Planned &product) {
  ContractionPlan plan = std::get<ContractionPlan>(product.kernel().plan);
  plan.tile = {4, 2, 4, 4, 16};
  plan.rows.vector = plan.columns.vector = 4;
  plan.splits = 1;
  plan.stage = ReductionStage::Whole;
  return plan;
}

/// Two sums of one row after the other.
RowsPlan twoStages() {
  RowsPlan plan;
  plan.shape = {4096, 2048, 1};
  plan.stages.resize(2);
  for (ReductionFrame &stage : plan.stages)
    stage.accumulators.resize(1);
  plan.perThread = 4; // 16 vectors a thread
  return plan;
}

} // namespace

TEST_CASE("a warp that shares a result shuffles once for each halving", "[fusion]") {
  RowReductionPlan plan;
  plan.frame.accumulators.resize(2);
  plan.perThread = 4;
  plan.perSplit = 32 * 16; // 16 loads a thread, 8 of them at once
  PlanCounts counts = countsOf(kernelOf(plan));
  CHECK(counts.memoryRoundTrips == 2);
  CHECK(counts.sharedRoundTrips == 5);
  CHECK(counts.chainInstructions == 16 * 4 + 5);
  CHECK(counts.instructions == warps * 2 * 2 * 5); // of each value a shuffle and what combines
  CHECK(counts.sharedPasses == warps * 2 * 5);
  plan.threadsPerRow = 4;
  CHECK(countsOf(kernelOf(plan)).sharedRoundTrips == 2);
}

TEST_CASE("warps that share a result meet at a barrier", "[fusion]") {
  RowReductionPlan plan;
  plan.frame.accumulators.resize(2);
  plan.perSplit = 256;
  plan.threadsPerRow = 256;
  PlanCounts counts = countsOf(kernelOf(plan));
  CHECK(counts.memoryRoundTrips == 1);
  CHECK(counts.sharedRoundTrips == 5 + 3); // a store, the barrier, the load behind it
  CHECK(counts.chainInstructions == 1 + 5 + 8);
  CHECK(counts.instructions == warps * 2 * (2 * 5 + 8));
  CHECK(counts.sharedPasses == warps * 2 * (5 + 2));
}

TEST_CASE("rows that are not held are read again by each stage", "[fusion]") {
  RowsPlan plan = twoStages();
  CHECK(countsOf(kernelOf(plan)).memoryRoundTrips == 2);
  CHECK(countsOf(kernelOf(plan)).chainInstructions == 16 * 3 + 2 * 5);
  plan.inRegisters = false;
  CHECK(countsOf(kernelOf(plan)).memoryRoundTrips == 2 * 3);
  // Rounds are as many exchanges one after the other.
  plan = twoStages();
  plan.rounds = 3;
  CHECK(countsOf(kernelOf(plan)).sharedRoundTrips == 3 * 2 * 5);
}

TEST_CASE("a tile of a transpose goes into shared memory and out again", "[fusion]") {
  const double elements = 2048 * 2048;
  PlanCounts counts = countsOf(transposed("f32", 2048).kernel());
  CHECK(counts.sharedPasses == elements / 32 * 2);
  CHECK(counts.instructions == elements / 32 * 2);
  CHECK(counts.sharedRoundTrips == 3);
  CHECK(counts.memoryRoundTrips == 1);
  CHECK(countsOf(transposed("bf16", 2048).kernel()).sharedPasses == elements / 32); // two of them a bank
  // Tiles that reach over the edge: each of a thread's loads is behind a test of its own.
  CHECK(countsOf(transposed("f32", 2047).kernel()).memoryRoundTrips > 3);
}

TEST_CASE("a dot reads its factors once for each tile, and multiplies out of shared memory", "[fusion]") {
  Planned dot = product("p", "q");
  const double blocks = 128, steps = 16, warps = blocks * 8;
  const ContractionPlan plan = tiled(dot);
  PlanCounts counts = countsOf(plan);
  REQUIRE(counts.reads.size() == 2);
  CHECK(counts.reads[0].elements == blocks * steps * 64 * 16);
  CHECK(counts.reads[1].elements == blocks * steps * 64 * 16);
  // A thread brings a vector of 4 of each, at 6 instructions, and has 16 products and 2 loads a term.
  CHECK(counts.instructions == warps * steps * (16 * (16 + 2) + 2 * 6 + 24));
  CHECK(counts.sharedPasses == warps * steps * ((4 + 4) + 16 * (4 + 4)));
  CHECK(counts.memoryRoundTrips == steps);
  CHECK(counts.sharedRoundTrips == steps * (3 + 1)); // the barrier of each step, and its first load
  CHECK(counts.chainInstructions == steps * (16 + 12));
  // Products of eight terms are an iteration's: of many terms, each iteration waits for its loads.
  ContractionPlan deep = plan;
  deep.tile.depth = 64;
  CHECK(countsOf(deep).sharedRoundTrips == steps / 4 * (3 + 8));
  CHECK(countsOf(deep).chainInstructions == steps / 4 * (64 + 7 * 4 + 12));
  // What is computed of factors stands between their loads.
  Planned computed = product("e", "f");
  CHECK(countsOf(tiled(computed)).memoryRoundTrips == steps * 2);
  // Divided among four times as many blocks, it reads and multiplies as much, and waits for a quarter.
  ContractionPlan parts = plan;
  parts.splits = 4;
  parts.stage = ReductionStage::Partial;
  const PlanCounts divided = countsOf(parts);
  CHECK(divided.reads[0].elements == counts.reads[0].elements);
  CHECK(divided.instructions == counts.instructions);
  CHECK(divided.memoryRoundTrips == steps / 4);
  parts.stage = ReductionStage::Combine;
  parts.splits = 20;
  CHECK(countsOf(parts).reads.empty());
  CHECK(countsOf(parts).memoryRoundTrips == 3); // 8 at a time
}

TEST_CASE("tensor cores multiply fragments that warps load", "[fusion]") {
  Planned dot("p = bf16[512,256] parameter(0)  q = bf16[256,512] parameter(1)\n"
              "ROOT r = f32[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  ContractionPlan plan = std::get<ContractionPlan>(dot.kernel().plan);
  plan.tile = {2, 2, 8, 16, 32, /*onTensorCores=*/true};
  plan.splits = 1;
  plan.stage = ReductionStage::Whole;
  plan.outputVector = 0;
  const bool isCopied = plan.rows.copied && plan.columns.copied;
  CHECK(isCopied);
  plan.rows.copied = plan.columns.copied = false;
  const double blocks = 16, steps = 8, warps = blocks * 4;
  PlanCounts counts = countsOf(plan);
  CHECK(counts.products == 512.0 * 512 * 256);
  CHECK(counts.reads[0].elements == blocks * steps * 128 * 32);
  // Of 64x64 results of a warp and 16 terms: 4 x 8 products of fragments, and loads of 4 and of 4.
  const double bySixteen = warps * steps * 2;
  CHECK(counts.instructions == bySixteen * (32 + 8) + warps * steps * (8 * 6 + 24));
  // Each thread's 64 factors go in, at two bytes.
  CHECK(counts.sharedPasses == bySixteen * 8 * 4 + warps * steps * 64 * 2 / 4);
  CHECK(counts.memoryRoundTrips == steps);
  // Bytes are multiplied at twice the rate, doubles at one of their own; across sums bytes are transposed.
  auto of = [&](const std::string &type, const std::string &result, const std::string &attribute = "") {
    Planned other("p = " + type + "[512,256] parameter(0)  q = " + type + "[256,512] parameter(1)\nROOT r = " + result +
                  "[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}" + attribute);
    ContractionPlan made = plan;
    made.hero = other.graph->roots()[0].instr;
    made.rows.alongDepth = true;
    made.columns.alongDepth = false;
    return countsOf(made);
  };
  CHECK(of("s8", "s32").products == counts.products / 2);
  CHECK(of("s8", "s32").instructions == warps * steps * (32 + 4 + 4 * 5) + warps * steps * (8 * 6 + 24));
  CHECK(of("f64", "f64").products == 0);
  CHECK(of("f64", "f64").doubleProducts == counts.products);
  // Two pieces of each factor are loaded, and three of their four products made.
  const PlanCounts pieces = of("f32", "f32", ", algorithm=dot_bf16_bf16_f32_x3");
  CHECK(pieces.products == 3 * counts.products);
  CHECK(pieces.sharedPasses == 2 * counts.sharedPasses);
  CHECK(pieces.instructions > bySixteen * (3 * 32 + 2 * 8));
  // What is done in turns has the time of products apart: of a chain, those of two fragments.
  CHECK(counts.inTurns);
  CHECK(counts.chainInstructions == steps * (2 * 8 + 12));
  // What is copied takes fewer instructions, and with several stages has had as many steps less one to come.
  plan.rows.copied = plan.columns.copied = true;
  plan.tile.stages = 3;
  PlanCounts copied = countsOf(plan);
  CHECK(copied.instructions == bySixteen * (32 + 8) + warps * steps * (8 * 1.5 + 24));
  // Rows of 32 terms come by half lines, each of which is written apart.
  CHECK(copied.sharedPasses == counts.sharedPasses + warps * steps * 32 * 2 / 4);
  // All products of a warp are made on one tensor core, one after the other.
  CHECK_FALSE(copied.inTurns);
  CHECK(copied.chainInstructions == steps * (2 * 32 * 2 + 12));
  CHECK(copied.sharedRoundTrips == counts.sharedRoundTrips - steps);
  // Products of two steps are longer than it takes to come, those of one are not.
  CHECK(copied.memoryRoundTrips == 1);
  plan.tile.stages = 2;
  const double ofTwo = countsOf(plan).memoryRoundTrips;
  CHECK((ofTwo > 1 && ofTwo < 1 + 2 * steps));
  plan.tile.stages = 3;
  plan.rows.copied = false; // the other side's next step is in registers
  CHECK(countsOf(plan).memoryRoundTrips == ofTwo);
  plan.outputVector = 4;
  plan.tile.stages = 1;
  plan.columns.copied = false;
  CHECK(countsOf(plan).sharedPasses == counts.sharedPasses + 2 * 512.0 * 512 * 4 / 128);
  CHECK(countsOf(plan).sharedRoundTrips > counts.sharedRoundTrips);
}

TEST_CASE("a sort merges in as many rounds as the tile has halvings", "[fusion]") {
  SortPlan plan{};
  plan.values.resize(2);
  plan.tile = 1024;
  plan.perThread = 4;
  const PlanCounts counts = countsOf(kernelOf(plan));
  CHECK(counts.sharedPasses == warps * 10 * 4 * 2 * 4);
  CHECK(counts.instructions == warps * 10 * 4 * 55); // most of them find places, for all values
  CHECK(counts.chainInstructions == 10 * 4 * 24);
  CHECK(counts.sharedRoundTrips == 10 * (4 + 5));
  CHECK(counts.memoryRoundTrips == 1);
  CHECK(counts.reads.empty());
  plan.merged = 4096; // once more, from where halving finds that its part begins
  const PlanCounts merging = countsOf(kernelOf(plan));
  CHECK(merging.sharedPasses == warps * 4 * 2 * 4);
  CHECK(merging.memoryRoundTrips == 1 + 12);
}
