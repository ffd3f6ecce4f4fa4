#include "hloc/fusion/ColumnsPlan.h"

#include "fusion/StagedMatch.h"

#include "fmt/format.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace hloc {
namespace {

/// Threads of a block where that many have something to do, and of one whose columns are read once a stage.
constexpr int64_t usualThreads = 256, threadsOfLongColumns = 1024;
/// What a row of a block's tile should have, and what it has at least, unless there are not so many columns.
constexpr int64_t lineBits = 128 * 8;

uint64_t sharedBytesOf(const ColumnsPlan &plan) {
  if (plan.parts() == 1)
    return 0;
  int64_t bytes = 0;
  for (const ReductionFrame &stage : plan.stages)
    bytes += accumulatorBytes(stage) * int64_t(plan.perThread) * plan.lanes * plan.parts();
  return uint64_t(bytes);
}

LaunchGeometry launchOf(const ColumnsPlan &plan, const TargetInfo &target) {
  LaunchGeometry launch;
  launch.block = {plan.threads(), 1, 1};
  int64_t blocks = llvm::divideCeil(plan.vectors(), int64_t(plan.lanes));
  int64_t gridRows = llvm::divideCeil(blocks, int64_t(target.maxGridX));
  launch.grid = {uint32_t(llvm::divideCeil(blocks, gridRows)), uint32_t(gridRows), 1};
  launch.sharedBytes = sharedBytesOf(plan);
  return launch;
}

/// Chooses the tile of a block and how threads share it.
class Chooser {
public:
  Chooser(ColumnsPlan &plan, const HeldStreams &streams, const TargetInfo &target)
      : plan(plan), streams(streams), target(target),
        registers(std::max<int64_t>(streams.heldBits / HeldStreams::bitsPerRegister, 1)) {}

  void choose() {
    chooseTile();
    if (plan.inRegisters)
      chooseGroups();
    else
      groups = std::min(threadsOfLongColumns / lanes, powerOf2Ceil(plan.shape.length));
    plan.lanes = uint32_t(lanes);
    plan.groups = uint32_t(groups);
    while (!plan.inRegisters && plan.parts() > 1 && sharedBytesOf(plan) > target.staticSharedBytes)
      plan.groups /= 2;
    plan.heldRegisters = unsigned(plan.inRegisters ? plan.rowsPerThread() * plan.perThread * registers : 0);
  }

private:
  int64_t blocksOf(int64_t lanesOfBlock) const { return llvm::divideCeil(plan.vectors(), lanesOfBlock); }
  int64_t rowBits(int64_t lanesOfBlock) const {
    return lanesOfBlock * int64_t(plan.perThread) * int64_t(streams.widths.narrowest);
  }
  int64_t rowsOfThread() const { return std::max<int64_t>(mostHeld / (int64_t(plan.perThread) * registers), 1); }
  int64_t leastGroups() const { return powerOf2Ceil(llvm::divideCeil(plan.shape.length, rowsOfThread())); }
  bool fits(int64_t lanesOfBlock) const { return lanesOfBlock * leastGroups() <= mostThreadsHolding; }

  /// A sector of columns; a line where multiprocessors have a block each nevertheless, or where sectors are those of
  /// two blocks otherwise.
  void chooseTile() {
    int64_t columns = plan.shape.columns;
    plan.perThread = unsigned(std::min<int64_t>(streams.widths.elements(target), columns & -columns));
    while (plan.perThread > 1 && int64_t(plan.perThread) * registers > mostHeld)
      plan.perThread /= 2;
    int64_t most = powerOf2Ceil(plan.vectors());
    while (lanes < most && rowBits(lanes) < sectorBits)
      lanes *= 2;
    plan.inRegisters = fits(lanes);
    bool sharesSectors = columns * int64_t(streams.widths.narrowest) % sectorBits != 0;
    while (lanes < most && rowBits(lanes) < lineBits && (!plan.inRegisters || fits(lanes * 2)) &&
           (sharesSectors || blocksOf(lanes * 2) >= int64_t(target.multiprocessors)))
      lanes *= 2;
  }

  /// As few as hold the columns; more where columns are few. Blocks are whole warps, and large where they are many.
  void chooseGroups() {
    int64_t warp = target.warpSize, multiprocessors = target.multiprocessors;
    groups = leastGroups();
    auto mayDouble = [&] { return lanes * groups < usualThreads && plan.shape.length >= 2 * groups; };
    while (plan.vectors() * groups < multiprocessors * target.threadsPerMultiprocessor / 4 && mayDouble())
      groups *= 2;
    while (lanes * groups < usualThreads && blocksOf(lanes * 2) >= 2 * multiprocessors)
      lanes *= 2;
    while (lanes * groups < warp)
      (groups < plan.shape.length ? groups : lanes) *= 2;
  }

  ColumnsPlan &plan;
  const HeldStreams &streams;
  const TargetInfo &target;
  int64_t registers; ///< of a held element
  int64_t lanes = 1, groups = 1;
};

} // namespace

template <>
HeroMatch<ColumnsPlan> matchHero<ColumnsPlan>(const FusionGraph &graph, const FusionAliasing &,
                                              const TargetInfo &target, PlanContext &plans) {
  std::variant<StagedReductions, Rejection> match = matchStages(graph, ReducedLines::Columns);
  if (auto *why = std::get_if<Rejection>(&match))
    return std::move(*why);
  ColumnsPlan plan{std::move(std::get<StagedReductions>(match))};
  HeldStreams streams = streamsOf(graph, plan.shape, plan.roots);
  streams.widths.asked = plans.choices.vector;
  Chooser(plan, streams, target).choose();
  LaunchGeometry launch = launchOf(plan, target);
  if (launch.sharedBytes > target.staticSharedBytes)
    return Rejection{"the results of all warps do not fit into shared memory"};
  return {std::move(plan), launch};
}

/// Threads without an element of their own read one of another thread, which may have stored it.
template <> bool mayTakePlace<ColumnsPlan>(const ColumnsPlan &, const FusionGraph &, unsigned, unsigned) {
  return false;
}

template <>
ComputedSpaces computedSpaces<ColumnsPlan>(const ColumnsPlan &plan, const FusionGraph &graph,
                                           mlir::MLIRContext *context) {
  return spacesOfStages(plan.stages, plan.roots, plan.resultRoots, /*inEachStage=*/!plan.inRegisters, graph, context);
}

template <> KernelTraffic trafficOf<ColumnsPlan>(const ColumnsPlan &, const FusionGraph &graph) {
  return wholeTraffic(graph);
}

template <> unsigned plannedRegisters<ColumnsPlan>(const ColumnsPlan &plan) {
  if (!plan.inRegisters)
    return KernelSpec::usualRegisters; // of so many threads
  unsigned results = 0;                // of one column, which stay in registers too
  for (const ReductionFrame &stage : plan.stages)
    results += unsigned(accumulatorBytes(stage)) * 8 / HeldStreams::bitsPerRegister;
  return registersHolding(plan.heldRegisters + results * plan.perThread);
}

std::string ColumnsPlan::toString() const {
  return fmt::format("whole columns: {} of {}{}; {}; {} x {} per thread{}, {} lane{} by {} group{} a block",
                     shape.count, shape.length, shape.slices() == 1 ? "" : fmt::format(" in {} slices", shape.slices()),
                     textOfStages(stages, roots, resultRoots, "columns"), rowsPerThread(), perThread,
                     inRegisters ? "" : ", read in each stage", lanes, lanes == 1 ? "" : "s", groups,
                     groups == 1 ? "" : "s");
}

} // namespace hloc
