#include "hloc/fusion/PlanSummary.h"

#include "hloc/fusion/GroupWork.h"

#include "catch2/catch.hpp"

using namespace hloc;

TEST_CASE("counts of a kernel are those of its instructions and of its plan", "[fusion]") {
  GroupWork work;
  work.work = 64000;
  work.memoryBytes = 32 * 100;
  work.sectors = 300;
  work.parts = {{1000, 8, 2}, {10, 3, 5}}; // both by the busiest of 1000 threads
  work.segments = 3;
  work.hasDependentLoads = true;
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
  CHECK(counts.memoryRoundTrips == 4 + 1 + 2 + (2 + 5));
  CHECK(counts.sharedRoundTrips == 6);
  CHECK(counts.chainInstructions == 11 + 0.5 * (8 + 3));
}

TEST_CASE("launches of a plan are paid for", "[fusion]") {
  GroupWork work;
  PlanSummary one, three;
  three.launches = 3;
  const DeviceModel &device = *findDevice("h100");
  CHECK(secondsOf(work, three, device) == Approx(secondsOf(work, one, device) + 2 * launchSeconds));
}
