#include "fusion/ReductionEstimate.h"
#include "fusion/ReductionMatch.h"

#include "hloc/fusion/ColumnPieces.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/kernel/Estimate.h"

#include "fmt/format.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace hloc {
namespace {

/// Warp instructions of a thread that reads nothing: ids, bounds, addresses, the outputs.
constexpr double fixedInstructions = 24;
/// Vectors that a thread has in flight at once, as far as its registers go.
constexpr int64_t mostInFlight = 8;
constexpr double sectorBytes = 32, sharedPassBytes = 128;
constexpr int64_t lanesPerWarp = 32;
/// Accumulators of one thread that do not wait for each other.
constexpr int64_t chains = 4;

/// What one kernel of a reduction reads, elements of which `work` is that of one.
struct Reading {
  double elements;
  ReductionWork work;
};

Reading readingOf(const ReductionFrame &frame, ReductionStage stage, int64_t splits, const ReductionWork &work) {
  double results = double(frame.numResults());
  if (stage != ReductionStage::Combine)
    return {results * double(frame.numReduced()), work};
  auto accumulators = int64_t(frame.accumulators.size());
  return {results * double(splits), {accumulatorBytes(frame) * 8, accumulators, accumulators}};
}

/// What both kinds have in common. `loads`: vectors of `perThread` elements that each thread reads.
KernelCounts startCounts(const ReductionFrame &frame, ReductionStage stage, int64_t splits, const Reading &reading,
                         const LaunchGeometry &launch, int64_t loads, int64_t perThread) {
  KernelCounts counts;
  counts.blocks = launch.grid.count();
  counts.threadsPerBlock = uint32_t(launch.block.count());
  counts.sharedBytes = uint32_t(launch.sharedBytes);
  double results = double(frame.numResults()) * double(stage == ReductionStage::Partial ? splits : 1);
  counts.sectors =
      (reading.elements * double(reading.work.bits) / 8 + results * double(accumulatorBytes(frame))) / sectorBytes;
  counts.instructions = fixedInstructions + double(loads) * double(reading.work.streams + perThread * reading.work.ops);
  counts.chainInstructions =
      fixedInstructions + double(loads) * double(reading.work.ops * std::max<int64_t>(1, perThread / chains));
  return counts;
}

/// Counts of a thread become those of all warps.
double finish(KernelCounts counts, const TargetInfo &target) {
  double warps = double(counts.blocks) * double((counts.threadsPerBlock + lanesPerWarp - 1) / lanesPerWarp);
  counts.instructions *= warps;
  counts.sharedPasses *= warps;
  return estimate(counts, deviceOf(target)).total;
}

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace

ReductionWork workOf(const ReductionFrame &frame, const FusionGraph &graph) {
  ReductionWork work;
  int64_t elements = frame.operandShape().numElements();
  auto add = [&](const Shape &shape) {
    work.bits += deviceBits(shape.elementType());
    ++work.streams;
  };
  for (const HloInstruction *instr : graph.instructions()) {
    if (!instr->shape().isArray() || instr->shape().numElements() != elements)
      continue;
    if (instr->opcode() == Opcode::Parameter)
      add(instr->shape());
    else if (readsOperandsInPlace(*instr))
      ++work.ops;
  }
  for (unsigned side : frame.sideRoots)
    add(graph.roots()[side].shape);
  work.ops += int64_t(frame.accumulators.size());
  return work;
}

/// Of all multiprocessors, in percent: more than the third or less that read as fast as memory can, and fewer than the
/// 64 of 132 that two lines a block come to for 4,096 columns of bf16.
static constexpr int64_t leastBusy = 45;

bool leavesIdle(const ReductionFrame &frame, const ReductionWork &work, int64_t blocks, const TargetInfo &target) {
  return double(frame.operandShape().numElements()) * double(work.bits) / 8 >= double(bytesOfLargeKernel) &&
         blocks * 100 < int64_t(target.multiprocessors) * leastBusy;
}

Rejection planNotTaken(llvm::StringRef plan, double seconds, double taken) {
  return {fmt::format("estimated {:.1f} us, {:.1f} us for the plan taken: {}", seconds * 1e6, taken * 1e6, plan.str())};
}

double estimatedSeconds(const RowReductionPlan &plan, const LaunchGeometry &launch, const ReductionWork &work,
                        const TargetInfo &target) {
  bool isCombine = plan.stage == ReductionStage::Combine;
  int64_t threads = plan.threadsPerRow, loads = ceilDiv(isCombine ? plan.splits : plan.perSplit, threads);
  if (!isCombine)
    loads *= plan.runsPerPart;
  Reading reading = readingOf(plan.frame, plan.stage, plan.splits, work);
  KernelCounts counts = startCounts(plan.frame, plan.stage, plan.splits, reading, launch, loads, plan.perThread);
  double accumulators = double(plan.frame.accumulators.size());
  double shuffles = double(llvm::Log2_64(uint64_t(std::min(threads, lanesPerWarp))));
  counts.instructions += accumulators * (double(std::min<int64_t>(plan.perThread, chains)) - 1 + 2 * shuffles);
  counts.memoryRoundTrips = double(ceilDiv(loads, mostInFlight));
  counts.sharedPasses = accumulators * shuffles;
  counts.sharedRoundTrips = shuffles;
  if (threads > lanesPerWarp) { // a store, a barrier, and one thread that reads what the warps have
    counts.instructions += 8 * accumulators;
    counts.sharedPasses += 2 * accumulators;
    counts.sharedRoundTrips += 3;
    counts.chainInstructions += double(threads / lanesPerWarp);
  }
  return finish(counts, target);
}

double estimatedSeconds(const ColumnReductionPlan &plan, const LaunchGeometry &launch, const ReductionWork &work,
                        const TargetInfo &target) {
  const ColumnTiling &tiling = plan.tiling;
  int64_t perThread = tiling.perThread, loads = ceilDiv(tiling.runs(), tiling.groups * tiling.splits);
  Reading reading = readingOf(plan.frame, plan.stage, plan.splits, work);
  KernelCounts counts = startCounts(plan.frame, plan.stage, plan.splits, reading, launch, loads, perThread);
  counts.memoryRoundTrips = double(ceilDiv(loads, tiling.unroll));
  ColumnPieces pieces = piecesOf(plan);
  if (pieces.parts > 1) {
    int64_t values = perThread / pieces.own;
    double stored = double(values * accumulatorBytes(plan.frame) * lanesPerWarp) / sharedPassBytes;
    counts.sharedPasses = 2 * stored;
    counts.instructions += double(perThread + values) * double(plan.frame.accumulators.size());
    counts.sharedRoundTrips = pieces.few > 1 ? 6 : 3;
    counts.chainInstructions += double(std::max(pieces.few, pieces.parts / pieces.few));
  }
  return finish(counts, target);
}

} // namespace hloc
