#include "fusion/ColumnTiling.h"
#include "fusion/ReductionEstimate.h"
#include "fusion/ReductionMatch.h"
#include "hloc/fusion/ColumnPieces.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hloc {
namespace {

/// From here on a second kernel costs little beside the first.
constexpr int64_t bytesWorthParts = int64_t(8) << 20;

/// Rows for each of those that are taken as one: some partial results of it are all that remains of them.
constexpr int64_t leastRowsWorthMerging = 128;

int64_t bytesOf(const Accumulator &accumulator) { return deviceBits(accumulator.type) / 8; }

/// Of the arrays with as many elements as the operands: what is read and written for each of them.
ColumnReductionSize sizeOf(const ReductionFrame &frame, const FusionGraph &graph, const TargetInfo &target) {
  ColumnReductionSize size;
  ColumnDims dims = columnDimsOf(frame);
  size.columns = dims.columns;
  size.rows = dims.rows;
  size.slices = dims.slices;
  size.piece = dims.piece;
  StreamWidths widths;
  int64_t bits = 0, elements = size.slices * size.rows * size.columns;
  auto add = [&](const Shape &shape) {
    widths.add(shape);
    bits += deviceBits(shape.elementType());
  };
  for (const HloInstruction *parameter : graph.parameters())
    if (graph.isLive(*parameter) && parameter->shape().numElements() == elements)
      add(parameter->shape());
  for (unsigned root : frame.sideRoots)
    add(graph.roots()[root].shape);
  if (bits == 0) // computed from little
    for (const ReductionHero &hero : frame.heroes)
      add(hero.instr->operand(0)->shape());
  size.elementsPerAccess = widths.elements(target);
  size.narrowestBits = widths.narrowest;
  size.bytesPerElement = std::max<int64_t>(1, bits / 8);
  size.accumulatorBytes = accumulatorBytes(frame);
  return size;
}

/// Wide rows that begin anywhere: several are taken as one, which begins with a whole vector; their partial results are
/// rows again. Those that are left over are part of one more.
ColumnReductionSize withAlignedRows(ColumnReductionSize size) {
  int64_t common = std::gcd(size.columns, int64_t(size.elementsPerAccess)), rows = size.elementsPerAccess / common;
  int64_t bytes = size.rows * size.columns * size.bytesPerElement;
  if (size.slices > 1 || size.columns / common <= mostLanesOfMergedRows || bytes < bytesWorthParts ||
      size.rows < leastRowsWorthMerging * rows)
    return size;
  size.rows /= rows;
  size.columns *= rows;
  return size;
}

/// Do lanes that follow a row's pieces read whole sectors, or little else?
bool readsWholeSectors(const ColumnReductionSize &size) {
  constexpr int64_t sectorBits = 256;
  return size.piece * size.narrowestBits % sectorBits == 0 ||
         size.piece / std::gcd(size.piece, int64_t(size.elementsPerAccess)) > mostLanes;
}

LaunchGeometry launchOf(const ColumnReductionPlan &plan) {
  LaunchGeometry launch;
  launch.block = {uint32_t(plan.tiling.threads()), 1, 1};
  launch.grid = {uint32_t(plan.tiling.blocks()), 1, 1};
  launch.sharedBytes = plan.sharedBytes();
  return launch;
}

} // namespace

FollowingKernel combinePartialColumns(const ReductionFrame &frame, int64_t splits, const TargetInfo &target) {
  ColumnReductionPlan plan;
  plan.frame = frame;
  plan.stage = ReductionStage::Combine;
  plan.splits = splits;
  plan.tiling = tilingOfPartialResults(splits, frame.numResults(), accumulatorBytes(frame), target);
  LaunchGeometry launch = launchOf(plan);
  return {std::move(plan), launch};
}

namespace {

void setTiling(ColumnReductionPlan &plan, const ColumnTiling &tiling) {
  plan.tiling = tiling;
  plan.splits = tiling.splits * (tiling.columns / columnDimsOf(plan.frame).columns);
  plan.stage = plan.splits > 1 ? ReductionStage::Partial : ReductionStage::Whole;
}

double secondsOf(const ColumnReductionPlan &plan, const ReductionWork &work, const TargetInfo &target) {
  double seconds = estimatedSeconds(plan, launchOf(plan), work, target);
  if (plan.splits > 1) {
    FollowingKernel next = combinePartialColumns(plan.frame, plan.splits, target);
    seconds += estimatedSeconds(std::get<ColumnReductionPlan>(next.plan), next.launch, work, target);
  }
  return seconds;
}

/// Are lanes' loads less than a bank of 4 bytes each, and those of the plan with parts are more?
bool readsLittle(const ColumnTiling &whole, const ColumnReductionSize &size, const ColumnTiling &ofParts) {
  return whole.perThread < ofParts.perThread && (whole.perThread * size.narrowestBits < 32 || size.piece > 1);
}

/// Columns in parts need a second kernel, which takes as long however much the first reads: not if an estimate says
/// that blocks of whole columns take less time. The plan that is not taken.
std::vector<Rejection> avoidParts(ColumnReductionPlan &plan, const ColumnReductionSize &size, const ReductionWork &work,
                                  const TargetInfo &target) {
  if (plan.splits == 1)
    return {};
  ColumnReductionPlan other = plan;
  ColumnTiling whole = chooseColumnTiling(size, /*maySplit=*/false, target);
  setTiling(other, whole);
  if (readsLittle(whole, size, plan.tiling) || (whole.partialRows() == 1 && !plan.frame.minorIsReduced) ||
      launchOf(other).sharedBytes > target.staticSharedBytes)
    return {};
  double seconds = secondsOf(plan, work, target), ofOther = secondsOf(other, work, target);
  bool hasFewBlocks = leavesIdle(plan.frame, work, whole.blocks(), target);
  bool readsLess = whole.perThread < plan.tiling.perThread && whole.perThread * size.narrowestBits < 64;
  if (ofOther < (hasFewBlocks || readsLess ? worthAnotherPlan : worthNoParts) * seconds) {
    std::swap(plan, other);
    std::swap(seconds, ofOther);
  }
  return {planNotTaken(other.toString(), ofOther, seconds)};
}

} // namespace

template <>
HeroMatch<ColumnReductionPlan> matchHero<ColumnReductionPlan>(const FusionGraph &graph, const FusionAliasing &,
                                                              const TargetInfo &target, PlanContext &plans) {
  std::variant<ReductionFrame, Rejection> match = matchReductions(graph);
  if (auto *why = std::get_if<Rejection>(&match))
    return std::move(*why);
  ColumnReductionPlan plan;
  plan.frame = std::move(std::get<ReductionFrame>(match));
  bool hasPieces = plan.frame.minorIsReduced;
  if (hasPieces && plan.frame.dims.size() < 3)
    return Rejection{"only the minor dimension is reduced"};
  if (plan.frame.dims.size() > (hasPieces ? 4 : 3))
    return Rejection{"kept and reduced dimensions take turns more than once"};
  ColumnReductionSize size = sizeOf(plan.frame, graph, target);
  if (const unsigned asked = plans.choices.vector)
    size.elementsPerAccess = std::min<decltype(size.elementsPerAccess)>(size.elementsPerAccess, asked);
  if (hasPieces && readsWholeSectors(size))
    return Rejection{"the pieces of a row are whole sectors, or long"};
  const bool mayBeWhole = plans.choices.parts == 0;
  if (plans.choices.parts == 1)
    setTiling(plan, chooseColumnTiling(size, /*maySplit=*/false, target));
  else
    setTiling(plan, chooseColumnTiling(withAlignedRows(size), /*maySplit=*/true, target));
  OtherSteps others;
  if (mayBeWhole)
    others.plansNotTaken = avoidParts(plan, size, workOf(plan.frame, graph), target);
  // In vectors a loop would not read them.
  if (plan.tiling.partialRows() == 1 && plan.splits == 1 && plan.tiling.perThread == 1 &&
      plan.frame.sideRoots.empty() && !hasPieces)
    return Rejection{"there are so many columns that each is one thread's"};
  if (plan.tiling.blocks() > int64_t(target.maxGridX))
    return Rejection{"too many blocks"};
  LaunchGeometry launch = launchOf(plan);
  if (launch.sharedBytes > target.staticSharedBytes)
    return Rejection{"the results of all threads do not fit into shared memory"};
  if (plan.stage == ReductionStage::Partial) {
    others.scratch = partialResults(plan.frame, plan.splits);
    others.following.push_back(combinePartialColumns(plan.frame, plan.splits, target));
  }
  return {std::move(plan), launch, std::move(others)};
}

/// As that of row reductions.
template <>
bool mayTakePlace<ColumnReductionPlan>(const ColumnReductionPlan &plan, const FusionGraph &graph, unsigned root,
                                       unsigned parameter) {
  return llvm::is_contained(plan.frame.sideRoots, root) && mayOverwriteElements(graph, root, parameter);
}

template <>
ComputedSpaces computedSpaces<ColumnReductionPlan>(const ColumnReductionPlan &plan, const FusionGraph &graph,
                                                   mlir::MLIRContext *context) {
  return spacesOfReduction(plan.frame, plan.stage, graph, context);
}

template <> KernelTraffic trafficOf<ColumnReductionPlan>(const ColumnReductionPlan &plan, const FusionGraph &graph) {
  return trafficOfReduction(plan.frame, plan.stage, plan.splits, graph);
}

ColumnDims columnDimsOf(const ReductionFrame &frame) {
  llvm::ArrayRef<int64_t> dims = frame.dims;
  ColumnDims result;
  if (frame.minorIsReduced) {
    result.piece = dims.back();
    dims = dims.drop_back();
  }
  result.columns = dims.back() * result.piece;
  result.rows = dims[dims.size() - 2];
  result.slices = dims.size() == 3 ? dims.front() : 1;
  return result;
}

ColumnPieces piecesOf(const ColumnReductionPlan &plan) {
  constexpr int64_t fewParts = 32; // as many as one thread reads in as long as a barrier takes, about
  ColumnPieces pieces;
  if (plan.stage != ReductionStage::Combine)
    pieces.size = columnDimsOf(plan.frame).piece;
  pieces.own = std::gcd(pieces.size, int64_t(plan.tiling.perThread));
  pieces.parts = plan.tiling.partialRows() * pieces.valuesOfRow();
  if (pieces.valuesOfRow() == 1)
    pieces.few = plan.tiling.combinedRows();
  else if (pieces.parts > fewParts) // an odd number: threads that read so many each use different banks
    pieces.few = int64_t(std::sqrt(double(pieces.parts))) | 1;
  return pieces;
}

ThreadTile ColumnReductionPlan::tileOf(const Accumulator &accumulator) const {
  constexpr int64_t pieceBytes = 16, bankBytes = 4, rowBytes = 32 * bankBytes;
  int64_t bytes = bytesOf(accumulator), threads = tiling.threads();
  ThreadTile tile;
  int64_t values = tiling.perThread / piecesOf(*this).own;
  // Vectors of complex numbers there are none.
  tile.perPiece = isComplex(accumulator.type) ? 1 : std::min<int64_t>(values, pieceBytes / bytes);
  tile.pieces = values / tile.perPiece;
  tile.stride = threads * tile.perPiece;
  if (tile.pieces > 1) {
    // Pieces of one thread are that far apart, modulo the banks, that a warp's neighbouring columns use each bank once.
    int64_t apart = rowBytes / std::min<int64_t>(tile.pieces, rowBytes / (tile.perPiece * bytes));
    tile.stride += ((apart - tile.stride * bytes) % rowBytes + rowBytes) % rowBytes / bytes;
  }
  tile.elements = tile.pieces * tile.stride;
  return tile;
}

uint64_t ColumnReductionPlan::sharedBytes() const {
  uint64_t bytes = 0;
  ColumnPieces pieces = piecesOf(*this);
  if (pieces.parts == 1)
    return bytes;
  int64_t again = pieces.few == 1 ? 0 : tiling.slicesPerBlock * pieces.few * (tiling.blockColumns() / pieces.size);
  for (const Accumulator &accumulator : frame.accumulators)
    bytes += uint64_t((tileOf(accumulator).elements + again) * bytesOf(accumulator));
  return bytes;
}

/// Of a column that is long, ptxas has the loads of two chunks in flight at once.
template <> unsigned plannedRegisters<ColumnReductionPlan>(const ColumnReductionPlan &plan) {
  constexpr int64_t ofIndices = 24, ofMultiprocessor = 65536;
  // Blocks of many threads are planned for as many together as a multiprocessor can have of those.
  const int64_t most = plan.tiling.threads() > 256 ? ofMultiprocessor / 1024 : 96;
  if (plan.tiling.wholeChunks() < 2)
    return KernelSpec::usualRegisters;
  int64_t ofLoads = 2 * plan.tiling.unroll * int64_t(plan.tiling.perThread);
  return unsigned(std::clamp<int64_t>(ofIndices + ofLoads, KernelSpec::usualRegisters, most));
}

std::string ColumnReductionPlan::toString() const {
  std::string result = stage == ReductionStage::Combine
                           ? fmt::format("columns: {} parts of each of {}; ", splits, frame.toString())
                           : fmt::format("columns: {}; {} per thread, ", frame.toString(), tiling.perThread);
  result += fmt::format("{} x {} threads", tiling.lanes, tiling.groups);
  if (tiling.rowsPerRun > 1)
    result += fmt::format(", {} rows at once", tiling.rowsPerRun);
  if (int64_t rows = tiling.columns / columnDimsOf(frame).columns; rows > 1 && stage == ReductionStage::Partial)
    result += fmt::format(", {} rows as one", rows);
  if (tiling.slicesPerBlock > 1)
    result += fmt::format(" for each of {} slices", tiling.slicesPerBlock);
  if (stage == ReductionStage::Partial)
    result += fmt::format(", {} parts of {} rows", splits,
                          tiling.chunksPerSplit * tiling.unroll * tiling.groups * tiling.rowsPerRun);
  if (unsigned registers = plannedRegisters(*this); registers > KernelSpec::usualRegisters)
    result += fmt::format(", up to {} registers for {} loads in flight", registers, 2 * tiling.unroll);
  return result;
}

} // namespace hloc
