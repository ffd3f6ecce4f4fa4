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

TEST_CASE("tensor cores take their time", "[kernel]") {
  KernelCounts counts = copy();
  counts.blocks = 132 * 8;
  counts.products = 4096.0 * 4096 * 4096;
  // 63 % of the 989 TFLOP/s of an H100, 95 % of the 312 of an A100.
  CHECK(2 * counts.products / estimate(counts, h100()).issue == Approx(0.63 * 989e12).epsilon(0.02));
  counts.blocks = 108 * 8;
  CHECK(2 * counts.products / estimate(counts, *findDevice("a100")).issue == Approx(0.95 * 312e12).epsilon(0.02));
  // Doubles have a rate of their own: 19.5 TFLOP/s.
  std::swap(counts.products, counts.doubleProducts);
  CHECK(2 * counts.doubleProducts / estimate(counts, *findDevice("a100")).issue == Approx(19.5e12).epsilon(0.02));
}

TEST_CASE("warpgroups of lone blocks wait for their first copies and store their results", "[kernel]") {
  KernelCounts counts;
  counts.blocks = 512;
  counts.threadsPerBlock = 384;
  counts.registers = 168;
  counts.sharedBytes = 200 << 10;
  counts.groupProducts = 4096.0 * 4096 * 4096;
  counts.storedSectors = 4096 * 4096 * 2 / 32;
  counts.footprint = 3 * counts.storedSectors;
  counts.sectors = counts.storedSectors + 512 * 64 * 49152.0 / 32;
  // fast.cu: 763 TFLOP/s; hloc's ring took 181 us.
  const KernelEstimate lone = estimate(counts, h100());
  CHECK(lone.total * 1e6 == Approx(180).epsilon(0.03));
  CHECK(lone.total == Approx(lone.launch + lone.issue + counts.storedSectors * 32 / 3.05e12 + 4 * 1300 / 1.83e9));
  // One block for four tiles waits for first copies once, and its last results alone are not on their way while others
  // are multiplied: cuBLAS takes 177.8 us.
  KernelCounts inTurn = counts;
  inTurn.blocks /= 4;
  inTurn.tilesOfBlock = 4;
  const KernelEstimate turns = estimate(inTurn, h100());
  CHECK(turns.total * 1e6 == Approx(174).epsilon(0.03));
  const double stores = counts.storedSectors * 32 / 3.05e12 / 4;
  CHECK(turns.total ==
        Approx(turns.launch + std::max(turns.issue, turns.memory - stores) + stores + (3 * 1200 + 1300) / 1.83e9));
  // f32 out: 202 us on the card.
  counts.sectors += counts.storedSectors;
  counts.storedSectors *= 2;
  CHECK(estimate(counts, h100()).total * 1e6 == Approx(202).epsilon(0.1));
  // Beside another block this is a share.
  counts.sharedBytes = 100 << 10;
  counts.registers = 80;
  const KernelEstimate two = estimate(counts, h100());
  CHECK(two.total == Approx(two.launch + two.memory + 0.1 * (two.issue + two.shared + two.latency)));
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
  CHECK(estimate(counts, *findDevice("a100")).residentWarps == 8);
  counts = copy();
  counts.threadsPerBlock = 32;
  CHECK(estimate(counts, h100()).residentWarps == 32);
}

TEST_CASE("a block's registers, shared memory and warps are what a multiprocessor has less of", "[kernel]") {
  CHECK(residentBlocks(32, 0, 8) == 8);
  CHECK(residentBlocks(16, 0, 8) == 8); // no more than 64 warps
  CHECK(residentBlocks(33, 0, 8) == 6); // registers are given in eights: as with 40
  CHECK(residentBlocks(40, 0, 8) == 6);
  CHECK(residentBlocks(41, 0, 8) == 5);
  CHECK(residentBlocks(16, 0, 1) == 32);
  CHECK(residentBlocks(32, 56 << 10, 1) == 4); // 1 KiB of each block is the system's
  CHECK(residentBlocks(32, (56 << 10) + 256, 1) == 3);
  CHECK(residentBlocks(32, 56 << 10, 1, 164 << 10) == 2);
  CHECK(residentBlocks(255, 227 << 10, 32) == 1); // there is always one
}

TEST_CASE("estimate: registers that are left over beside the blocks that fit anyway") {
  CHECK(mostRegistersBeside(72, 8) == 80); // three blocks
  CHECK(mostRegistersBeside(64, 8) == 64); // four
  CHECK(mostRegistersBeside(81, 8) == 128);
  CHECK(mostRegistersBeside(72, 4) == 72);
  CHECK(mostRegistersBeside(16, 8) == 32); // no more than 64 warps
  CHECK(mostRegistersBeside(16, 1) == 64); // no more than 32 blocks
  CHECK(mostRegistersBeside(200, 8) == 255);
}

TEST_CASE("what an array does not bring for the first time comes from caches", "[kernel]") {
  KernelCounts again = copy();
  again.footprint = again.sectors / 4;
  const double l2 = 132 * 41 * 1.83e9; // bytes a second
  CHECK(estimate(again, h100()).memory == Approx((128 << 20) / l2));
  CHECK(estimate(again, h100()).memory < estimate(copy(), h100()).memory);
  again.footprint = again.sectors;
  CHECK(estimate(again, h100()).memory == estimate(copy(), h100()).memory);
}

TEST_CASE("special functions, doubles and atomics have units of their own", "[kernel]") {
  KernelCounts counts = copy();
  counts.blocks = 132;
  const double clock = 1.83e9, warps = 1e6; // of all multiprocessors
  counts.specialFunctions = warps;
  CHECK(estimate(counts, h100()).issue == Approx(warps * 2 / (132 * clock))); // 16 lanes a clock
  counts.doubles = 10 * warps;
  CHECK(estimate(counts, h100()).issue == Approx(10 * warps / 2 / (132 * clock))); // 64 lanes
  const double memory = estimate(counts, h100()).memory;
  counts.atomics = 1e6;
  CHECK(estimate(counts, h100()).memory == Approx(memory + 1e6 / 8 / (132 * clock)));
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
