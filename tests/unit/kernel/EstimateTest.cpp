#include "hloc/kernel/Estimate.h"

#include "catch2/catch.hpp"

using namespace hloc;

namespace {

/// A copy of 64 MiB by 256 threads a block, 16 bytes a thread.
KernelCounts copy() {
  KernelCounts counts;
  counts.blocks = 8192;
  counts.threadsPerBlock = 256;
  counts.sectors = 4 << 20;
  counts.instructions = 8192 * 8 * 17;
  counts.memoryRoundTrips = 1;
  counts.chainInstructions = 12;
  return counts;
}

const DeviceModel &h100() { return *findDevice("h100"); }

} // namespace

TEST_CASE("a large copy takes as long as its bytes", "[kernel]") {
  KernelEstimate time = estimate(copy(), h100());
  CHECK(time.bound == "memory");
  CHECK(time.memory == Approx((128 << 20) / 3.05e12));
  CHECK(time.total > time.launch + time.memory);
  CHECK(time.total < 1.2 * (time.launch + time.memory));
  CHECK(time.residentWarps == 64);
  CHECK(time.waves == Approx(8192 / (132.0 * 8)));
  CHECK(estimate(copy(), *findDevice("B200")).total < time.total);
  CHECK(estimate(copy(), *findDevice("a100")).total > time.total);
}

TEST_CASE("what binds a kernel", "[kernel]") {
  KernelCounts counts = copy();
  counts.instructions *= 40;
  CHECK(estimate(counts, h100()).bound == "issue");
  counts = copy();
  counts.sharedPasses = 40 * counts.instructions;
  CHECK(estimate(counts, h100()).bound == "shared");
  // One thread after the other waits for memory.
  counts = copy();
  counts.blocks = 4;
  counts.sectors = 1024;
  counts.memoryRoundTrips = 1000;
  CHECK(estimate(counts, h100()).bound == "latency");
  CHECK(estimate(counts, h100()).latency == Approx((1000 * 650 + 12 * 4) / 1.83e9));
}

TEST_CASE("more of anything is never faster", "[kernel]") {
  double KernelCounts::*fields[] = {
      &KernelCounts::sectors,          &KernelCounts::instructions,     &KernelCounts::specialFunctions,
      &KernelCounts::doubles,          &KernelCounts::sharedPasses,     &KernelCounts::atomics,
      &KernelCounts::memoryRoundTrips, &KernelCounts::sharedRoundTrips, &KernelCounts::chainInstructions};
  for (uint64_t blocks : {1, 131, 132, 133, 5000})
    for (double KernelCounts::*field : fields) {
      KernelCounts counts = copy();
      counts.blocks = blocks;
      double before = 0;
      for (double value : {1.0, 1e3, 1e6, 1e9}) {
        counts.*field = value;
        double now = estimate(counts, h100()).total;
        CHECK(now >= before);
        before = now;
      }
    }
}

TEST_CASE("a few blocks leave a device idle", "[kernel]") {
  KernelCounts few = copy(), all = copy();
  few.blocks = 33; // the same work
  all.blocks = 132;
  CHECK(estimate(few, h100()).issue == Approx(4 * estimate(all, h100()).issue));
  CHECK(estimate(few, h100()).memory > 1.2 * estimate(all, h100()).memory);
  all.blocks = 133; // one has two
  CHECK(estimate(all, h100()).issue > 1.9 * estimate(few, h100()).issue / 4);
}

TEST_CASE("registers, threads and shared memory limit the warps that wait together", "[kernel]") {
  KernelCounts counts = copy();
  CHECK(estimate(counts, h100()).residentWarps == 64);
  counts.registers = 64;
  CHECK(estimate(counts, h100()).residentWarps == 32);
  counts.sharedBytes = 100 << 10;
  CHECK(estimate(counts, h100()).residentWarps == 16);
  counts = copy();
  counts.threadsPerBlock = 32;
  CHECK(estimate(counts, h100()).residentWarps == 32);
}

TEST_CASE("devices by name and by target", "[kernel]") {
  CHECK_FALSE(findDevice("h9000"));
  CHECK(deviceOf(*findTarget("sm_70")).name == "a100");
  CHECK(deviceOf(*findTarget("sm_89")).name == "a100");
  CHECK(deviceOf(*findTarget("sm_90a")).name == "h100");
  CHECK(deviceOf(*findTarget("sm_121")).name == "b200");
  for (const DeviceModel &device : allDevices()) {
    REQUIRE(findTarget(device.target));
    CHECK(findTarget(device.name)->name == device.target);
    CHECK(findTarget(device.target)->multiprocessors == device.multiprocessors);
  }
  CHECK(estimate({}, h100()).total > 0);
  KernelCounts nothing;
  nothing.blocks = 0;
  nothing.threadsPerBlock = 0;
  CHECK(estimate(nothing, h100()).total > 0);
}
