#include "fusion/ReductionEstimate.h"
#include "fusion/ReductionMatch.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

namespace hloc {
namespace {

/// Threads of a block. Blocks of so few leave a multiprocessor several, which wait at barriers apart from each other.
constexpr int64_t threadsPerBlock = 256;
/// Vectors of a row that one thread reads, where rows are short enough and there are many: loads that it has in flight,
/// and what the work at its end is spread over. Of vectors of more than 16 bytes fewer: they take registers.
int64_t mostVectors(int64_t groupBits) { return std::clamp<int64_t>(8 * 16 * 8 / groupBits, 1, 8); }
/// The same where threads are few.
constexpr int64_t vectorsPerThread = 4;
/// What a part of a row is worth a block of its own: as much as its threads have in flight.
constexpr int64_t leastPartBytes = threadsPerBlock * vectorsPerThread * 16;
/// Where that leaves no multiprocessor without a block: as much as makes what a block does beside reading it small.
constexpr int64_t usualPartBytes = 4 * leastPartBytes;
/// Parts of a row that are worth a second kernel: a launch takes as long as a block takes to read a few of them.
constexpr int64_t leastParts = 8;
/// Ops of one thread's straight code, as in loops: elements of a vector times instructions.
constexpr int64_t maxOpsPerThread = 2048;
/// Rows that do not begin with a vector are read in vectors from the first that does, if they have so many of them, and
/// if the fusion is so small that it is worth having its code several times.
constexpr int64_t leastVectorsBetweenEdges = 32;
constexpr int64_t maxInstructionsWithEdges = 24;
/// The same of each of a row's runs.
constexpr int64_t leastVectorsOfRunBetweenEdges = 256;
constexpr int64_t lanesPerWarp = 32;
/// What one thread reads of several short rows: elements, and bytes of the narrowest stream.
constexpr int64_t mostElementsOfRows = 128, mostBytesOfRows = 256;

/// Bits per element of the arrays as large as what is reduced.
StreamWidths streamsOf(const FusionGraph &graph, const ReductionFrame &frame) {
  StreamWidths widths;
  int64_t elements = frame.operandShape().numElements();
  for (const HloInstruction *parameter : graph.parameters())
    if (graph.isLive(*parameter) && parameter->shape().numElements() == elements)
      widths.add(parameter->shape());
  for (unsigned side : frame.sideRoots)
    widths.add(graph.roots()[side].shape);
  return widths;
}

/// Blocks for `blocks` of them, in rows if there are very many.
Dim3 gridOf(int64_t blocks, const TargetInfo &target) {
  int64_t rows = (blocks + int64_t(target.maxGridX) - 1) / int64_t(target.maxGridX);
  return {uint32_t((blocks + rows - 1) / rows), uint32_t(rows), 1};
}

/// Shared memory for so many values of each accumulator.
uint64_t sharedBytesOf(const ReductionFrame &frame, int64_t values) {
  uint64_t bytes = 0;
  for (const Accumulator &accumulator : frame.accumulators)
    bytes += uint64_t(values) * (deviceBits(accumulator.type) / 8);
  return bytes;
}

/// Does one instruction combine what the lanes of a warp have? The others shuffle five times.
bool isCombinedAtOnce(const Accumulator &accumulator, const TargetInfo &target) {
  if (isPred(accumulator.type))
    return accumulator.combiner.has_value();
  return accumulator.combiner && *accumulator.combiner != Opcode::Multiply && isInteger(accumulator.type) &&
         deviceBits(accumulator.type) <= 32 && target.atLeast(8, 0);
}

/// Of a block whose rows are so many warps' that one that shuffles for all saves more than it costs to store rows from
/// different warps. Leaves shared memory to several blocks.
void chooseMeeting(RowReductionPlan &plan, const TargetInfo &target) {
  constexpr uint64_t mostSharedBytes = 16 * 1024;
  constexpr uint32_t leastWarps = 4;
  int64_t threads = int64_t(plan.threadsPerRow) * plan.rowsPerBlock;
  plan.meetsBeforeShuffling =
      plan.threadsPerRow >= leastWarps * target.warpSize && sharedBytesOf(plan.frame, threads) <= mostSharedBytes &&
      llvm::any_of(plan.frame.accumulators, [&](const auto &one) { return !isCombinedAtOnce(one, target); });
}

int64_t rowsPerThread(const RowReductionPlan &plan) {
  return std::max<int64_t>(1, int64_t(plan.perThread) / plan.frame.numReduced());
}

LaunchGeometry launchOf(const RowReductionPlan &plan, const TargetInfo &target) {
  LaunchGeometry launch;
  launch.block = {uint32_t(plan.threadsPerRow * plan.rowsPerBlock / rowsPerThread(plan)), 1, 1};
  int64_t rows = plan.frame.numResults();
  int64_t parts = plan.stage == ReductionStage::Partial ? plan.splits : 1;
  launch.grid = gridOf((rows + plan.rowsPerBlock - 1) / plan.rowsPerBlock * parts, target);
  if (plan.threadsPerRow > target.warpSize)
    launch.sharedBytes =
        sharedBytesOf(plan.frame, plan.meetsBeforeShuffling ? launch.block.x : launch.block.x / target.warpSize);
  return launch;
}

/// Rows of a block: as many as its threads can take, unless that leaves multiprocessors without a block.
uint32_t rowsPerBlock(int64_t rows, int64_t threadsPerRow, const TargetInfo &target) {
  int64_t count = threadsPerBlock / threadsPerRow;
  while (count > 1 && (count * threadsPerRow > int64_t(target.warpSize)) &&
         rows / count < 2 * int64_t(target.multiprocessors))
    count /= 2;
  return uint32_t(count);
}

/// Elements of a thread that takes whole rows: short ones that are whole vectors together, or one of a few accesses
/// that several threads could not share by whole sectors. 0 where rows are too long for that. Of several, each
/// multiprocessor has a warp at least.
int64_t elementsOfWholeRows(const ReductionFrame &frame, StreamWidths streams, int64_t instructions,
                            const TargetInfo &target) {
  int64_t length = frame.numReduced(), rows = frame.numResults(), bits = streams.narrowest;
  if (frame.dims.back() != length)
    return 0;
  for (int64_t perAccess = streams.elements(target);; perAccess /= 2) {
    int64_t elements = std::lcm(length, perAccess), rowsPerThread = elements / length;
    bool fits = elements <= mostElementsOfRows && elements * bits <= mostBytesOfRows * 8 &&
                elements * instructions <= maxOpsPerThread;
    if (rowsPerThread == 1) {
      bool sharesSectors = length * bits % sectorBits != 0;
      return fits && sharesSectors && length / perAccess <= mostVectors(perAccess * bits) ? elements : 0;
    }
    if (fits && rows / rowsPerThread >= int64_t(target.multiprocessors * target.warpSize))
      return elements;
  }
}

void takeWholeRows(RowReductionPlan &plan, int64_t elements, const TargetInfo &target) {
  plan.perThread = unsigned(elements);
  plan.perSplit = 1;
  plan.threadsPerRow = 1;
  int64_t rows = rowsPerThread(plan);
  plan.rowsPerBlock = uint32_t(rows) * rowsPerBlock(plan.frame.numResults() / rows, 1, target);
}

/// Do the threads of a row that walk a run of so many groups of elements by itself have most of the time one each?
bool fillsRun(int64_t groups, int64_t threads) {
  constexpr double leastShare = 0.6; // the others cost less than dividing
  return double(groups) >= leastShare * double(llvm::divideCeil(groups, threads) * threads);
}

/// How the runs of a row are walked: each by itself, if they are long enough for its threads, or a few less.
void walkRuns(RowReductionPlan &plan, int64_t &threads) {
  int64_t minor = plan.frame.dims.back(), groups = minor / int64_t(plan.perThread);
  while (groups >= threadsPerBlock / 2 && threads > int64_t(lanesPerWarp) && !fillsRun(groups, threads))
    threads /= 2;
  plan.runLength = plan.hasEdges || fillsRun(groups, threads) ? minor : plan.frame.numReduced();
  plan.runsPerPart = plan.numRuns();
  plan.perSplit = plan.runLength / int64_t(plan.perThread);
}

/// Do so many threads leave most of the device idle?
bool areFew(int64_t threads, const TargetInfo &target) {
  return threads < int64_t(target.multiprocessors) * target.threadsPerMultiprocessor / 8;
}

/// Threads that read one piece of a row that does not begin with a sector. Where there are many rows, half a warp's
/// vectors are long enough if both edges are no more than these threads read in one step.
int64_t threadsOfPiece(const RowReductionPlan &plan, const TargetInfo &target) {
  constexpr int64_t half = lanesPerWarp / 2;
  bool isHalfEnough =
      plan.hasEdges && 2 * (int64_t(plan.perThread) - 1) <= half && !areFew(plan.frame.numResults() * half, target);
  return isHalfEnough ? half : lanesPerWarp;
}

/// Threads that share a row.
void shareRows(RowReductionPlan &plan, StreamWidths streams, int64_t instructions, const TargetInfo &target) {
  const ReductionFrame &frame = plan.frame;
  int64_t minor = frame.dims.back(), rows = frame.numResults();
  int64_t perThread = streams.elements(target);
  while (perThread > 1 && perThread * instructions > maxOpsPerThread)
    perThread /= 2;
  bool isOneRun = minor == frame.numReduced();
  plan.hasEdges = minor % perThread != 0 && instructions <= maxInstructionsWithEdges &&
                  minor / perThread >= (isOneRun ? leastVectorsBetweenEdges : leastVectorsOfRunBetweenEdges);
  if (!plan.hasEdges)
    perThread = std::min(perThread, minor & -minor);
  plan.perThread = unsigned(perThread);
  int64_t groups = frame.numReduced() / perThread;
  int64_t rowBytes = frame.numReduced() * int64_t(streams.narrowest) / 8;
  int64_t groupBits = perThread * int64_t(streams.narrowest);

  // Threads of a row. Neighbours read whole sectors; where rows do not begin with a sector, in few pieces.
  int64_t threads = powerOf2Ceil(llvm::divideCeil(groups, mostVectors(groupBits)));
  if (areFew(rows * threads, target)) {
    // Within a warp, if it can be: threads of one have no barrier.
    int64_t most = threads <= int64_t(target.warpSize) ? int64_t(target.warpSize) : threadsPerBlock;
    threads = std::min(powerOf2Ceil((groups + vectorsPerThread - 1) / vectorsPerThread), most);
  }
  if (rowBytes % (sectorBits / 8) != 0)
    threads = std::max(threads, std::min(powerOf2Ceil(groups), threadsOfPiece(plan, target)));
  // What neighbouring threads read of a row is at least a sector.
  while (threads * groupBits < sectorBits && threads < powerOf2Ceil(groups))
    threads *= 2;
  threads = std::min(threads, threadsPerBlock);
  walkRuns(plan, threads);
  plan.threadsPerRow = uint32_t(threads);
  plan.rowsPerBlock = rowsPerBlock(rows, threads, target);
}

/// Of rows in pieces that lie apart: does a warp read those of so many neighbouring rows that they are whole sectors?
bool hasWholeSectors(const RowReductionPlan &plan, StreamWidths streams) {
  int64_t piece = plan.frame.dims.back(), bits = piece * int64_t(streams.narrowest);
  int64_t rowsOfWarp = lanesPerWarp / plan.threadsPerRow, neighbours = plan.frame.sizes(false).back();
  return piece == int64_t(plan.perThread) && rowsOfWarp > 0 && rowsOfWarp * bits % sectorBits == 0 &&
         neighbours * bits % sectorBits == 0;
}

int64_t blocksOfRows(const RowReductionPlan &plan) {
  return (plan.frame.numResults() + plan.rowsPerBlock - 1) / plan.rowsPerBlock;
}

/// Parts of `bytes` or more, of so many that each multiprocessor has `perMultiprocessor` blocks.
int64_t usefulParts(const RowReductionPlan &plan, StreamWidths streams, int64_t perMultiprocessor, int64_t bytes,
                    const TargetInfo &target) {
  int64_t rowBytes = plan.frame.numReduced() * int64_t(streams.narrowest) / 8;
  return std::min(perMultiprocessor * int64_t(target.multiprocessors) / std::max<int64_t>(blocksOfRows(plan), 1),
                  rowBytes / bytes);
}

/// Parts of several runs, or of one.
RowReductionPlan inParts(RowReductionPlan plan, int64_t parts) {
  plan.stage = ReductionStage::Partial;
  int64_t runs = plan.numRuns(), groups = plan.perSplit;
  if (parts <= runs) {
    plan.runsPerPart = (runs + parts / 2) / parts;
  } else {
    plan.runsPerPart = 1;
    int64_t ofRun = (parts + runs / 2) / runs, threads = plan.threadsPerRow;
    plan.perSplit = llvm::divideCeil(llvm::divideCeil(groups, ofRun), threads) * threads;
    plan.partsOfRun = int64_t(llvm::divideCeil(groups, plan.perSplit));
  }
  plan.splits = int64_t(llvm::divideCeil(runs, plan.runsPerPart)) * plan.partsOfRun;
  return plan;
}

/// Parts that are as long as is usual, or shorter ones that leave no multiprocessor without a block.
RowReductionPlan inUsualParts(RowReductionPlan plan, StreamWidths streams, const TargetInfo &target) {
  constexpr int64_t manyBlocks = 8; // of a multiprocessor
  int64_t usual = usefulParts(plan, streams, manyBlocks, usualPartBytes, target);
  int64_t filling = usefulParts(plan, streams, 1, leastPartBytes, target);
  if (usual < filling && plan.threadsPerRow == threadsPerBlock)
    plan.threadsPerRow /= 2; // of which each reads as much
  return inParts(std::move(plan), std::max(usual, filling));
}

double secondsOf(const RowReductionPlan &plan, const ReductionWork &work, const TargetInfo &target) {
  double seconds = estimatedSeconds(plan, launchOf(plan, target), work, target);
  if (plan.stage == ReductionStage::Partial) {
    FollowingKernel next = combinePartialResults(plan.frame, plan.splits, target);
    seconds += estimatedSeconds(std::get<RowReductionPlan>(next.plan), next.launch, work, target);
  }
  return seconds;
}

/// Where rows alone leave multiprocessors idle: long parts of them, unless an estimate says that shorter ones, or none
/// and larger blocks, take far less time. The plans that are not taken.
std::vector<Rejection> chooseParts(RowReductionPlan &plan, StreamWidths streams, const ReductionWork &work,
                                   const TargetInfo &target) {
  constexpr int64_t manyBlocks = 8, fewBlocks = 2; // of a multiprocessor
  int64_t most = usefulParts(plan, streams, manyBlocks, leastPartBytes, target);
  int64_t few = usefulParts(plan, streams, fewBlocks, leastPartBytes, target);
  if (blocksOfRows(plan) >= fewBlocks * int64_t(target.multiprocessors) || most < leastParts)
    return {};
  std::vector<RowReductionPlan> candidates = {inUsualParts(plan, streams, target)};
  for (int64_t threads = threadsPerBlock;
       threads <= int64_t(target.maxThreadsPerBlock) && !leavesIdle(plan.frame, work, blocksOfRows(plan), target);
       threads *= 2)
    candidates.emplace_back(plan).threadsPerRow = uint32_t(threads);
  if (few > candidates.front().splits && few < most)
    candidates.push_back(inParts(plan, few));
  if (most > candidates.front().splits)
    candidates.push_back(inParts(plan, most));
  std::vector<double> seconds;
  for (const RowReductionPlan &candidate : candidates)
    seconds.push_back(secondsOf(candidate, work, target));
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    double worth = candidates[i].stage == ReductionStage::Partial ? worthAnotherPlan : worthNoParts;
    if (seconds[i] < (best == 0 ? worth : 1) * seconds[best])
      best = i;
  }
  std::vector<Rejection> notTaken;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (i != best)
      notTaken.push_back(planNotTaken(candidates[i].toString(), seconds[i], seconds[best]));
  plan = std::move(candidates[best]);
  return notTaken;
}

} // namespace

FollowingKernel combinePartialResults(const ReductionFrame &frame, int64_t splits, const TargetInfo &target) {
  RowReductionPlan plan;
  plan.frame = frame;
  plan.stage = ReductionStage::Combine;
  plan.splits = splits;
  plan.perSplit = 1;
  plan.threadsPerRow =
      uint32_t(std::min(powerOf2Ceil((splits + vectorsPerThread - 1) / vectorsPerThread), threadsPerBlock));
  plan.rowsPerBlock = rowsPerBlock(frame.numResults(), plan.threadsPerRow, target);
  chooseMeeting(plan, target);
  LaunchGeometry launch = launchOf(plan, target);
  return {std::move(plan), launch};
}

template <>
HeroMatch<RowReductionPlan> matchHero<RowReductionPlan>(const FusionGraph &graph, const FusionAliasing &aliasing,
                                                        const TargetInfo &target, PlanContext &plans) {
  std::variant<ReductionFrame, Rejection> match = matchReductions(graph);
  if (auto *why = std::get_if<Rejection>(&match))
    return std::move(*why);
  RowReductionPlan plan;
  plan.frame = std::move(std::get<ReductionFrame>(match));
  const ReductionFrame &frame = plan.frame;
  if (!frame.minorIsReduced)
    return Rejection{"the minor dimension is kept"};
  plan.runLength = frame.numReduced();

  StreamWidths streams = streamsOf(graph, frame);
  streams.asked = plans.choices.vector;
  OtherSteps others;
  int64_t instructions = int64_t(graph.instructions().size());
  if (int64_t elements = elementsOfWholeRows(frame, streams, instructions, target); elements > 0) {
    takeWholeRows(plan, elements, target);
  } else {
    shareRows(plan, streams, instructions, target);
    if (frame.dims.size() >= 3 && !hasWholeSectors(plan, streams) &&
        matchHero<ColumnReductionPlan>(graph, aliasing, target, plans))
      return Rejection{"rows are short pieces that lie apart: they are columns"};
    const int64_t asked = plans.choices.parts;
    if (asked == 0)
      others.plansNotTaken = chooseParts(plan, streams, workOf(frame, graph), target);
    else if (asked > 1 && asked <= plan.numRuns() * plan.perSplit)
      plan = inParts(std::move(plan), asked);
  }
  chooseMeeting(plan, target);
  if (plan.stage == ReductionStage::Partial) {
    others.scratch = partialResults(frame, plan.splits);
    others.following.push_back(combinePartialResults(frame, plan.splits, target));
  }
  LaunchGeometry launch = launchOf(plan, target);
  if (launch.sharedBytes > target.staticSharedBytes)
    return Rejection{"the results of all warps do not fit into shared memory"};
  return {std::move(plan), launch, std::move(others)};
}

/// A side output's element is stored by the thread that alone reads that of a parameter which nothing else depends on.
/// Other outputs are stored while other threads still read parameters.
template <>
bool mayTakePlace<RowReductionPlan>(const RowReductionPlan &plan, const FusionGraph &graph, unsigned root,
                                    unsigned parameter) {
  return llvm::is_contained(plan.frame.sideRoots, root) && mayOverwriteElements(graph, root, parameter);
}

template <>
ComputedSpaces computedSpaces<RowReductionPlan>(const RowReductionPlan &plan, const FusionGraph &graph,
                                                mlir::MLIRContext *context) {
  return spacesOfReduction(plan.frame, plan.stage, graph, context);
}

template <> unsigned plannedRegisters<RowReductionPlan>(const RowReductionPlan &) { return KernelSpec::usualRegisters; }

template <> KernelTraffic trafficOf<RowReductionPlan>(const RowReductionPlan &plan, const FusionGraph &graph) {
  return trafficOfReduction(plan.frame, plan.stage, plan.splits, graph);
}

std::string RowReductionPlan::toString() const {
  std::string threads = fmt::format("{} thread{} a row, {} row{} a block", threadsPerRow, threadsPerRow == 1 ? "" : "s",
                                    rowsPerBlock, rowsPerBlock == 1 ? "" : "s");
  if (stage == ReductionStage::Combine)
    return fmt::format("rows: {} parts of each of {}; {}", splits, frame.toString(), threads);
  if (rowsPerThread(*this) > 1)
    threads = fmt::format("{} rows of each thread, {} a block", rowsPerThread(*this), rowsPerBlock);
  std::string result =
      fmt::format("rows: {}; {} per thread{}, {}", frame.toString(), perThread, hasEdges ? " and edges" : "", threads);
  if (numRuns() > 1)
    result += fmt::format(", {} runs", numRuns());
  if (splits > 1)
    result += fmt::format(", {} parts of {} elements", splits, groups() * perThread);
  return result;
}

} // namespace hloc
