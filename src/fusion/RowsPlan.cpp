#include "fusion/StagedMatch.h"

#include "fmt/format.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace hloc {
namespace {

/// Threads of a block that has several rows, and of a row that is read once a stage.
constexpr int64_t threadsPerBlock = 256, threadsOfLongRow = 1024;
/// Bytes of a sector, the unit of memory traffic.
constexpr int64_t sectorBytes = 32;

int64_t powerOf2Ceil(int64_t x) { return int64_t(llvm::PowerOf2Ceil(uint64_t(std::max<int64_t>(x, 1)))); }

// --- which threads

uint64_t sharedBytesOf(const RowsPlan &plan, int64_t warps) {
  int64_t bytes = 0;
  for (const ReductionFrame &stage : plan.stages)
    bytes += warps * accumulatorBytes(stage);
  return uint64_t(bytes);
}

LaunchGeometry launchOf(const RowsPlan &plan, const TargetInfo &target) {
  LaunchGeometry launch;
  launch.block = {plan.threadsPerRow * plan.rowsPerBlock, 1, 1};
  int64_t blocks = (plan.rows.count + plan.rowsPerBlock - 1) / plan.rowsPerBlock;
  int64_t gridRows = (blocks + int64_t(target.maxGridX) - 1) / int64_t(target.maxGridX);
  launch.grid = {uint32_t((blocks + gridRows - 1) / gridRows), uint32_t(gridRows), 1};
  if (plan.threadsPerRow > target.warpSize)
    launch.sharedBytes = sharedBytesOf(plan, launch.block.x / target.warpSize);
  return launch;
}

void chooseThreads(RowsPlan &plan, const HeldStreams &streams, const TargetInfo &target) {
  int64_t warp = target.warpSize, device = int64_t(target.multiprocessors) * target.threadsPerMultiprocessor;
  plan.perThread = unsigned(std::min<int64_t>(streams.widths.elements(target), plan.rows.length & -plan.rows.length));
  int64_t registers = int64_t(plan.perThread) * streams.heldBits / HeldStreams::bitsPerRegister; // of a vector
  int64_t vectors = plan.vectors(), most = std::max<int64_t>(mostHeld / registers, 1);
  int64_t threads = powerOf2Ceil(llvm::divideCeil(vectors, most));
  // Neighbours read whole sectors; where rows do not begin with one, in few pieces.
  if (plan.rows.length * int64_t(streams.widths.narrowest) % (sectorBytes * 8) != 0)
    threads = std::max(threads, std::min(powerOf2Ceil(vectors), warp));
  while (threads * int64_t(plan.perThread) * int64_t(streams.widths.narrowest) < sectorBytes * 8 &&
         threads < powerOf2Ceil(vectors))
    threads *= 2;
  // More where rows are few; beyond a warp there is a barrier a stage, which two whole vectors each are worth.
  auto mayDouble = [&] {
    return threads < warp ? threads < vectors : threads < threadsPerBlock && vectors >= 4 * threads;
  };
  while (plan.rows.count * threads < device / 4 && mayDouble())
    threads *= 2;
  plan.inRegisters = threads <= mostThreadsHolding;
  if (!plan.inRegisters)
    threads = threadsOfLongRow;
  plan.threadsPerRow = uint32_t(threads);
  plan.heldRegisters = unsigned(plan.inRegisters ? plan.vectorsPerThread() * registers : 0);
  int64_t rowsPerBlock = std::max<int64_t>(threadsPerBlock / threads, 1);
  while (rowsPerBlock * threads > warp && plan.rows.count / rowsPerBlock < 2 * int64_t(target.multiprocessors))
    rowsPerBlock /= 2;
  plan.rowsPerBlock = uint32_t(std::max<int64_t>(rowsPerBlock, 1));
}

} // namespace

template <>
HeroMatch<RowsPlan> matchHero<RowsPlan>(const FusionGraph &graph, const FusionAliasing &, const TargetInfo &target) {
  RowsPlan plan;
  std::variant<StagedReductions, Rejection> match = matchStages(graph, ReducedLines::Rows);
  if (auto *why = std::get_if<Rejection>(&match))
    return std::move(*why);
  auto &found = std::get<StagedReductions>(match);
  plan.rows = found.shape;
  plan.stages = std::move(found.stages);
  plan.roots = std::move(found.roots);
  plan.rowRoots = std::move(found.resultRoots);
  chooseThreads(plan, streamsOf(graph, plan.rows, plan.roots), target);
  LaunchGeometry launch = launchOf(plan, target);
  if (launch.sharedBytes > target.staticSharedBytes)
    return Rejection{"the results of all warps do not fit into shared memory"};
  return {std::move(plan), launch};
}

/// Lanes without an element of their own read one of another thread, which may have stored it.
template <> bool mayTakePlace<RowsPlan>(const RowsPlan &, const FusionGraph &, unsigned, unsigned) { return false; }

template <>
ComputedSpaces computedSpaces<RowsPlan>(const RowsPlan &plan, const FusionGraph &graph, mlir::MLIRContext *context) {
  return spacesOfStages(plan.stages, plan.roots, plan.rowRoots, !plan.inRegisters, graph, context);
}

template <> unsigned plannedRegisters<RowsPlan>(const RowsPlan &plan) { return registersHolding(plan.heldRegisters); }

std::string RowsPlan::toString() const {
  return fmt::format("whole rows: {} of {}; {}; {} x {} per thread{}, {} thread{} a row, {} row{} a block", rows.count,
                     rows.length, textOfStages(stages, roots, rowRoots, "rows"), vectorsPerThread(), perThread,
                     inRegisters ? "" : ", read in each stage", threadsPerRow, threadsPerRow == 1 ? "" : "s",
                     rowsPerBlock, rowsPerBlock == 1 ? "" : "s");
}

} // namespace hloc
