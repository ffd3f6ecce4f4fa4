#include "fusion/StagedMatch.h"
#include "hloc/fusion/HloIndexing.h"

#include "fmt/format.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace hloc {
namespace {

/// Threads of a block that has several rows, and of a row that is read once a stage.
constexpr int64_t threadsPerBlock = 256, threadsOfLongRow = 1024;
/// Registers of a thread for what it adds up in its columns, and all arrays that it has of a row.
constexpr int64_t mostHeldWithColumns = 96;
/// Shared memory for what is the same in all rows: with so much of it multiprocessors still have room for all their
/// threads.
constexpr int64_t mostSharedBytesPerThread = 64;

// --- which threads

int64_t bytesOfSameInRows(const RowsPlan &plan, int64_t columns) {
  int64_t bits = 0;
  for (const HloInstruction *broadcast : plan.sameInRows.broadcasts)
    bits += int64_t(deviceBits(broadcast->shape().elementType()));
  return columns * bits / 8;
}

/// Of the widest of it, what a thread reads at once.
unsigned elementsOfSameInRows(const RowsPlan &plan) {
  constexpr unsigned accessBits = 128; // of shared memory
  unsigned widest = 8;
  for (const HloInstruction *broadcast : plan.sameInRows.broadcasts)
    widest = std::max(widest, deviceBits(broadcast->shape().elementType()));
  return std::min(plan.perThread, accessBits / widest);
}

uint64_t sharedBytesOf(const RowsPlan &plan, uint32_t warpSize) {
  int64_t warps = plan.threadsPerRow * plan.rowsPerBlock / warpSize;
  int64_t bytes = plan.sharesSameInRows() ? bytesOfSameInRows(plan, plan.sharedColumns()) : 0;
  if (plan.threadsPerRow > warpSize)
    for (const ReductionFrame &stage : plan.stages)
      bytes += warps * accumulatorBytes(stage);
  if (plan.columns && plan.rowsPerBlock > 1)
    bytes += int64_t(plan.rowsPerBlock) * plan.shape.length * accumulatorBytes(*plan.columns);
  return uint64_t(bytes);
}

LaunchGeometry launchOf(const RowsPlan &plan, const TargetInfo &target) {
  LaunchGeometry launch;
  launch.block = {plan.threadsPerRow * plan.rowsPerBlock, 1, 1};
  int64_t blocks = plan.blocks();
  int64_t gridRows = (blocks + int64_t(target.maxGridX) - 1) / int64_t(target.maxGridX);
  launch.grid = {uint32_t((blocks + gridRows - 1) / gridRows), uint32_t(gridRows), 1};
  launch.sharedBytes = sharedBytesOf(plan, target.warpSize);
  return launch;
}

/// All rows in a few rounds of one block, whose columns are complete then: sooner than a second kernel would begin.
/// Whether they are so few.
bool chooseOneBlock(RowsPlan &plan, const TargetInfo &target) {
  constexpr int64_t mostRounds = 4, registersOfMultiprocessor = 1 << 16;
  int64_t threads = plan.threadsPerRow, registers = KernelSpec::usualRegisters + plan.heldRegisters;
  int64_t most = int64_t(llvm::bit_floor(uint64_t(registersOfMultiprocessor / registers)));
  int64_t fewestRows = llvm::divideCeil(target.warpSize, threads), mostRows = most / threads;
  if (mostRows < fewestRows) // what a thread holds leaves no room for a warp, or for a row
    return false;
  int64_t rows = std::clamp<int64_t>(powerOf2Ceil(plan.shape.count), fewestRows, mostRows);
  for (plan.rowsPerBlock = uint32_t(rows); sharedBytesOf(plan, target.warpSize) > target.staticSharedBytes;)
    if ((plan.rowsPerBlock /= 2) * threads < int64_t(target.warpSize))
      return false;
  plan.rounds = llvm::divideCeil(plan.shape.count, plan.rowsPerBlock);
  return plan.rounds <= mostRounds;
}

/// As many blocks as there are multiprocessors, or fewer: each leaves as much as a row. Whether there is a plan.
bool chooseThreadsWithColumns(RowsPlan &plan, const HeldStreams &streams, const TargetInfo &target) {
  int64_t warp = target.warpSize, multiprocessors = target.multiprocessors;
  plan.perThread = unsigned(std::min<int64_t>(streams.widths.elements(target), plan.shape.length & -plan.shape.length));
  int64_t bits = streams.inputs * streams.heldBits + 8 * accumulatorBytes(*plan.columns);
  int64_t registers = int64_t(plan.perThread) * bits / HeldStreams::bitsPerRegister; // of a vector
  int64_t vectors = plan.vectors();
  int64_t threads = powerOf2Ceil(llvm::divideCeil(vectors, std::max<int64_t>(mostHeldWithColumns / registers, 1)));
  threads = std::max(threads, std::min(powerOf2Ceil(vectors), warp));
  if (threads > threadsPerBlock)
    return false;
  plan.threadsPerRow = uint32_t(threads);
  plan.heldRegisters = unsigned(plan.vectorsPerThread() * registers);
  if (chooseOneBlock(plan, target))
    return true;
  plan.rowsPerBlock = uint32_t(threadsPerBlock / threads);
  while (plan.rowsPerBlock > 1 && plan.rowsPerBlock * threads > warp &&
         (sharedBytesOf(plan, target.warpSize) > target.staticSharedBytes ||
          2 * plan.shape.count < plan.rowsPerBlock * multiprocessors))
    plan.rowsPerBlock /= 2;
  plan.rounds = llvm::divideCeil(plan.shape.count, plan.rowsPerBlock * multiprocessors);
  return plan.blocks() > 1;
}

/// What a thread holds of a vector, in registers.
int64_t registersOf(const RowsPlan &plan, const HeldStreams &streams) {
  return int64_t(plan.perThread) * streams.heldBits / HeldStreams::bitsPerRegister;
}

/// Of a row: that hold it in registers, and read whole sectors.
int64_t fewestThreads(const RowsPlan &plan, const HeldStreams &streams, const TargetInfo &target) {
  int64_t vectors = plan.vectors(), most = std::max<int64_t>(mostHeld / registersOf(plan, streams), 1);
  int64_t threads = powerOf2Ceil(llvm::divideCeil(vectors, most));
  // Neighbours read whole sectors; where rows do not begin with one, in few pieces.
  if (plan.shape.length * int64_t(streams.widths.narrowest) % sectorBits != 0)
    threads = std::max(threads, std::min<int64_t>(powerOf2Ceil(vectors), target.warpSize));
  while (threads * int64_t(plan.perThread) * int64_t(streams.widths.narrowest) < sectorBits &&
         threads < powerOf2Ceil(vectors))
    threads *= 2;
  return threads;
}

/// Of rows with so many threads, the rows of a block if it has several that share what is the same in all of them: not
/// so many that multiprocessors are left without work.
int64_t rowsThatShare(const RowsPlan &plan, int64_t threads, const TargetInfo &target) {
  constexpr int64_t mostOfSeveralWarps = 4;
  if (plan.sameInRows.broadcasts.empty() || threads >= plan.vectors() || threads > mostThreadsHolding)
    return 1;
  int64_t warp = target.warpSize;
  int64_t rows = threads <= warp ? threadsPerBlock / threads : std::min(mostOfSeveralWarps, threadsOfLongRow / threads);
  while (rows > 1 && 8 * plan.shape.count < 7 * rows * int64_t(target.multiprocessors))
    rows /= 2;
  if (rows == 1 || rows * threads < warp)
    return 1;
  RowsPlan sharing = plan;
  sharing.threadsPerRow = uint32_t(threads);
  sharing.rowsPerBlock = uint32_t(rows);
  sharing.perThreadShared = elementsOfSameInRows(plan);
  return bytesOfSameInRows(plan, sharing.sharedColumns()) <= mostSharedBytesPerThread * rows * threads &&
                 sharedBytesOf(sharing, target.warpSize) <= target.staticSharedBytes
             ? rows
             : 1;
}

void chooseThreads(RowsPlan &plan, const HeldStreams &streams, const TargetInfo &target) {
  int64_t warp = target.warpSize, device = int64_t(target.multiprocessors) * target.threadsPerMultiprocessor;
  plan.perThread = unsigned(std::min<int64_t>(streams.widths.elements(target), plan.shape.length & -plan.shape.length));
  int64_t threads = fewestThreads(plan, streams, target), vectors = plan.vectors();
  // More where rows are few.
  auto areFew = [&](int64_t part) { return plan.shape.count * threads < device / part; };
  while (areFew(4) && threads < warp && threads < vectors)
    threads *= 2;
  // Beyond a warp there is a barrier a stage, which two whole vectors each are worth; what rows share is worth more.
  while (areFew(rowsThatShare(plan, threads, target) > 1 ? 8 : 4) && threads >= warp && threads < threadsPerBlock &&
         vectors >= 4 * threads)
    threads *= 2;
  plan.inRegisters = threads <= mostThreadsHolding;
  if (!plan.inRegisters)
    threads = threadsOfLongRow;
  plan.threadsPerRow = uint32_t(threads);
  plan.heldRegisters = unsigned(plan.inRegisters ? plan.vectorsPerThread() * registersOf(plan, streams) : 0);
  plan.rowsPerBlock = uint32_t(rowsThatShare(plan, threads, target));
  if (plan.rowsPerBlock > 1) {
    plan.perThreadShared = elementsOfSameInRows(plan);
    return;
  }
  // Otherwise a row of several warps has a block of its own: a barrier waits for nobody else, and its threads need no
  // dividing.
  int64_t rowsPerBlock = threads > warp ? 1 : threadsPerBlock / threads;
  while (rowsPerBlock > 1 && rowsPerBlock * threads > warp &&
         plan.shape.count / rowsPerBlock < 2 * int64_t(target.multiprocessors))
    rowsPerBlock /= 2;
  plan.rowsPerBlock = uint32_t(rowsPerBlock);
}

} // namespace

template <>
HeroMatch<RowsPlan> matchHero<RowsPlan>(const FusionGraph &graph, const FusionAliasing &, const TargetInfo &target,
                                        PlanContext &plans) {
  std::variant<StagedReductions, Rejection> match = matchStages(graph, ReducedLines::Rows);
  if (auto *why = std::get_if<Rejection>(&match))
    return std::move(*why);
  RowsPlan plan{std::move(std::get<StagedReductions>(match))};
  HeldStreams streams = streamsOf(graph, plan.shape, plan.roots);
  streams.widths.asked = plans.choices.vector;
  if (!plan.columns)
    chooseThreads(plan, streams, target);
  else if (!chooseThreadsWithColumns(plan, streams, target))
    return Rejection{"rows are too long, or too few, to reduce columns beside them"};
  LaunchGeometry launch = launchOf(plan, target);
  if (launch.sharedBytes > target.staticSharedBytes)
    return Rejection{"the results of all warps do not fit into shared memory"};
  OtherSteps others;
  if (plan.columns && plan.columnStage() == ReductionStage::Partial) {
    others.scratch = partialResults(*plan.columns, plan.blocks());
    others.following.push_back(combinePartialColumns(*plan.columns, plan.blocks(), target));
  }
  return {std::move(plan), launch, std::move(others)};
}

template <> KernelTraffic trafficOf<RowsPlan>(const RowsPlan &plan, const FusionGraph &graph) {
  return plan.columns ? trafficOfReduction(*plan.columns, plan.columnStage(), plan.blocks(), graph)
                      : wholeTraffic(graph);
}

/// Lanes without an element of their own read one of another thread, which may have stored it.
template <> bool mayTakePlace<RowsPlan>(const RowsPlan &, const FusionGraph &, unsigned, unsigned) { return false; }

template <>
ComputedSpaces computedSpaces<RowsPlan>(const RowsPlan &plan, const FusionGraph &graph, mlir::MLIRContext *context) {
  ComputedSpaces result = spacesOfStages(plan.stages, plan.roots, plan.resultRoots, !plan.inRegisters, graph, context);
  if (!plan.columns)
    return result;
  // Of rows in registers: the first space has all elements.
  ComputedSpaces ofColumns = spacesOfReduction(*plan.columns, plan.columnStage(), graph, context);
  llvm::append_range(result.kept, ofColumns.kept);
  llvm::append_range(result.spaces.front().values, ofColumns.spaces.front().values);
  llvm::append_range(result.spaces, llvm::drop_begin(ofColumns.spaces));
  return result;
}

template <> unsigned plannedRegisters<RowsPlan>(const RowsPlan &plan) {
  return plan.columns ? std::min<unsigned>(KernelSpec::usualRegisters + plan.heldRegisters, 255)
                      : registersHolding(plan.heldRegisters);
}

std::string RowsPlan::toString() const {
  std::string text =
      fmt::format("whole rows: {} of {}; {}; {} x {} per thread{}, {} thread{} a row, {} row{} a block", shape.count,
                  shape.length, textOfStages(stages, roots, resultRoots, "rows"), vectorsPerThread(), perThread,
                  inRegisters ? "" : ", read in each stage", threadsPerRow, threadsPerRow == 1 ? "" : "s", rowsPerBlock,
                  rowsPerBlock == 1 ? "" : "s");
  if (sharesSameInRows())
    text += fmt::format("; {} of columns shared by rows", sameInRows.broadcasts.size());
  if (columns)
    text += fmt::format("; columns: {}; {} round{}, {}", columns->toString(), rounds, rounds == 1 ? "" : "s",
                        blocks() == 1 ? "whole" : fmt::format("{} parts", blocks()));
  return text;
}

} // namespace hloc
