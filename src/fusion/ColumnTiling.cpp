#include "fusion/ColumnTiling.h"
#include "hloc/kernel/Estimate.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hloc {
namespace {

constexpr int64_t warp = 32;
/// Threads of a block whose fellows fill the device, and of one that is nearly alone.
constexpr int64_t usualThreads = 256, mostThreads = 1024;
/// Of one that has whole columns, two of which are a multiprocessor's.
constexpr int64_t threadsOfPair = 512;
static_assert(mostLanesOfMergedRows <= usualThreads);
/// Threads of a multiprocessor: with four loads of 16 bytes each they keep 64 KiB in flight, twice what memory needs.
constexpr int64_t threadsPerMultiprocessor = 1024;
/// What a warp's load should find next to each other.
constexpr int64_t lineBytes = 128;
/// Below this, another block costs more than it helps.
constexpr int64_t leastBytesPerBlock = int64_t(16) << 10;
/// What one block reads in the time that the launch of a second kernel takes.
constexpr int64_t bytesWorthSplitting = int64_t(128) << 10;
/// Rows of a split for each byte that a column's partial results take and each that a row has: 50 keeps what the second
/// kernel costs in traffic at 4 %.
constexpr int64_t rowsPerPartial = 50;
/// Elements that the code of one thread holds at once.
constexpr int64_t mostElementsInFlight = 64;
constexpr int64_t mostUnroll = 8, usualUnroll = 4;
/// Of shared memory; leaves room for several blocks.
constexpr int64_t mostSharedBytes = int64_t(32) << 10;
/// A thread's own accumulators: 32 registers.
constexpr int64_t mostAccumulatorBytes = 128;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Chooser {
public:
  Chooser(const ColumnReductionSize &size, bool maySplit, const TargetInfo &target)
      : size(size), target(target), maySplit(maySplit) {
    tiling.slices = size.slices;
    tiling.rows = size.rows;
    tiling.columns = size.columns;
    totalBytes = double(size.slices) * double(size.rows) * double(size.columns) * double(size.bytesPerElement);
    wantedBlocks = int64_t(std::clamp(totalBytes / leastBytesPerBlock, 1.0, 2.0 * target.multiprocessors));
  }

  ColumnTiling choose() {
    chooseRun();
    chooseLanes();
    chooseGroups();
    chooseSplits();
    return tiling;
  }

private:
  /// The widest vectors that are aligned in every row; or rows are taken together until they are whole vectors.
  void chooseRun() {
    int64_t width = size.elementsPerAccess;
    int64_t most = isWholeAndLarge() ? mostSharedBytes / mostThreads : mostAccumulatorBytes;
    while (width > 1 && width * size.accumulatorBytes > most)
      width /= 2;
    for (; width > 1; width /= 2) {
      int64_t common = std::gcd(size.columns, width);
      tiling.rowsPerRun = width / common;
      bool fits = size.columns / common <= mostLanesOfMergedRows && tiling.rowsPerRun <= size.rows;
      bool aligned = size.slices == 1 || size.rows % tiling.rowsPerRun == 0;
      if (tiling.rowsPerRun == 1 || (fits && aligned))
        break;
      tiling.rowsPerRun = 1;
    }
    tiling.perThread = unsigned(width);
  }

  int64_t vectorsOfRun() const { return size.columns * tiling.rowsPerRun / tiling.perThread; }

  /// Wide tiles make few partial results, narrow ones many blocks.
  void chooseLanes() {
    int64_t vectors = vectorsOfRun();
    tiling.lanes = vectors;
    if (tiling.rowsPerRun > 1)
      return;
    int64_t line = std::max<int64_t>(1, lineBytes * 8 / (int64_t(tiling.perThread) * size.narrowestBits));
    // Whole pieces, and whole lines where these are not too many.
    int64_t lanesOfPieces = size.piece / std::gcd(size.piece, int64_t(tiling.perThread));
    int64_t step = std::lcm(line, lanesOfPieces);
    if (lanesOfPieces > 1 && step > mostLanes)
      step = lanesOfPieces;
    if (isWholeAndLarge() && lanesOfPieces == 1) {
      tiling.lanes = std::min(vectors, lanesOfWholeColumns(vectors, line));
      tiling.tiles = ceilDiv(vectors, tiling.lanes);
      return;
    }
    if (vectors > warp)
      tiling.lanes = fewestIdle(vectors, step);
    while (tiling.lanes > step && mostBlocks(vectors) < wantedBlocks)
      tiling.lanes = llvm::alignTo(ceilDiv(tiling.lanes, 2), step);
    tiling.tiles = ceilDiv(vectors, tiling.lanes);
  }

  bool isWholeAndLarge() const { return !maySplit && totalBytes >= double(bytesOfLargeKernel); }

  /// Of blocks that have whole columns: two lines, or what leaves nearly each multiprocessor a block, down to what
  /// memory gives at a time.
  int64_t lanesOfWholeColumns(int64_t vectors, int64_t line) const {
    int64_t lanes = 2 * line, nearlyAll = int64_t(target.multiprocessors) * 4 / 5;
    while (lanes > 1 && lanes * 2 > line && size.slices * ceilDiv(vectors, lanes) < nearlyAll)
      lanes /= 2;
    return lanes;
  }

  /// Groups that a block of so many lanes has at most, if the device is full.
  int64_t groupsBeside(int64_t lanes, int64_t vectors) const {
    int64_t side = size.slices * vectors, wanted = int64_t(target.multiprocessors) * threadsPerMultiprocessor;
    int64_t useful = std::min(std::max<int64_t>(1, usualThreads / lanes), ceilDiv(tiling.runs(), usualUnroll));
    return std::clamp<int64_t>((wanted + side / 2) / side, 1, useful);
  }

  /// Of multiples of `step`, or a row, those lanes that leave the fewest idle in the last tile and in the last warp of
  /// a block; the narrowest of equals, since more tiles need fewer splits.
  int64_t fewestIdle(int64_t vectors, int64_t step) const {
    int64_t best = 0;
    double bestCost = 0;
    auto consider = [&](int64_t lanes) {
      int64_t groups = groupsBeside(lanes, vectors);
      double lanesOfWarps = double(llvm::alignTo(uint64_t(lanes * groups), warp)) / double(groups);
      double cost = double(ceilDiv(vectors, lanes)) * lanesOfWarps;
      if (best == 0 || cost < bestCost) {
        best = lanes;
        bestCost = cost;
      }
    };
    for (int64_t lanes = llvm::alignTo(warp, step); lanes <= std::max<int64_t>(mostLanes, llvm::alignTo(warp, step));
         lanes += step)
      consider(lanes);
    if (vectors <= mostLanes)
      consider(vectors);
    return best;
  }

  int64_t mostBlocks(int64_t vectors) const {
    return size.slices * ceilDiv(vectors, tiling.lanes) * mostSplits(size.slices * ceilDiv(vectors, tiling.lanes));
  }

  /// Do so few blocks of a large kernel leave multiprocessors without work?
  bool leavesIdle(int64_t blocks) const {
    return blocks < int64_t(target.multiprocessors) && totalBytes >= double(bytesOfLargeKernel);
  }

  /// Splits that `blocks` blocks may be divided into.
  int64_t mostSplits(int64_t blocks) const {
    if (!maySplit)
      return 1;
    if (!leavesIdle(blocks) && totalBytes / double(blocks) <= bytesWorthSplitting)
      return 1;
    int64_t leastRows = ceilDiv(rowsPerPartial * size.accumulatorBytes, size.bytesPerElement);
    // Of a large kernel no multiprocessor is left without work, even if parts get small.
    int64_t least = leavesIdle(blocks) ? std::min(ceilDiv(target.multiprocessors, blocks), size.rows) : 1;
    return std::max(least, size.rows / leastRows);
  }

  /// Slices have a block of their own, or a part of one where there are many.
  void chooseGroups() {
    int64_t blocks = size.slices * tiling.tiles, multiprocessors = target.multiprocessors;
    bool isAlone = blocks < multiprocessors && mostSplits(blocks) == 1;
    int64_t vectorBytes = int64_t(tiling.perThread) * size.accumulatorBytes;
    bool isPair = !isAlone && blocks < 2 * multiprocessors && isWholeAndLarge();
    int64_t most = isAlone ? mostThreads : isPair ? threadsOfPair : usualThreads;
    int64_t threads = std::min(most, std::max(warp, mostSharedBytes / vectorBytes));
    int64_t fitting = std::max<int64_t>(1, threads / tiling.lanes);
    int64_t useful = std::min(fitting, ceilDiv(tiling.runs(), isAlone ? mostUnroll : usualUnroll));
    // About as many as fill the device, and read what lies next to each other.
    int64_t runBytes = std::max<int64_t>(1, tiling.lanes * tiling.perThread * size.narrowestBits / 8);
    int64_t least = std::min(useful, ceilDiv(lineBytes, runBytes));
    int64_t side = blocks * tiling.lanes, wanted = multiprocessors * threadsPerMultiprocessor;
    int64_t groups = std::clamp((wanted + side / 2) / side, least, useful);
    // As few as take equally many steps; a few more if then all take equally many.
    groups = ceilDiv(tiling.runs(), ceilDiv(tiling.runs(), groups));
    for (int64_t more = groups; more < 2 * groups && more <= fitting && useful < fitting; ++more)
      if (tiling.runs() % more == 0) {
        groups = more;
        break;
      }
    tiling.groups = groups;
    int64_t many = std::clamp<int64_t>(blocks / (2 * multiprocessors), 1, size.slices);
    tiling.slicesPerBlock = std::clamp<int64_t>(threads / (tiling.lanes * groups), 1, many);
    // One block alone has as many bytes in flight with 16 loads of four bytes as two usual ones.
    bool hasSmallLoads = isAlone && isWholeAndLarge() && tiling.perThread * size.narrowestBits <= 32;
    tiling.unroll = std::clamp<int64_t>(mostElementsInFlight / int64_t(tiling.perThread), 1,
                                        hasSmallLoads ? 2 * mostUnroll : mostUnroll);
    while (tiling.unroll > 1 && tiling.unroll > ceilDiv(tiling.runs(), groups))
      tiling.unroll /= 2;
  }

  /// As many splits as fill the device, of equally many chunks; these get smaller where that would be far more.
  void chooseSplits() {
    int64_t blocks = ceilDiv(size.slices, tiling.slicesPerBlock) * tiling.tiles;
    // Two blocks for each multiprocessor; not a few more, which might have to wait until all others are done.
    int64_t all = 2 * int64_t(target.multiprocessors);
    int64_t wanted = std::min({ceilDiv(all, blocks), std::max<int64_t>(2, all / blocks), mostSplits(blocks)});
    for (;; tiling.unroll /= 2) {
      int64_t chunks = tiling.wholeChunks();
      auto splitsOf = [&](int64_t each) { return std::max<int64_t>(1, ceilDiv(chunks, each)); };
      tiling.chunksPerSplit = std::max<int64_t>(1, ceilDiv(chunks, wanted));
      // Nearly enough is enough.
      if (tiling.chunksPerSplit > 1 && splitsOf(tiling.chunksPerSplit) * 100 < wanted * 95)
        --tiling.chunksPerSplit;
      tiling.splits = splitsOf(tiling.chunksPerSplit);
      bool isTooFew = tiling.splits < wanted && leavesIdle(blocks * tiling.splits);
      if (tiling.unroll == 1 || (!isTooFew && (tiling.unroll <= usualUnroll || tiling.splits * 4 <= wanted * 5)))
        return;
    }
  }

  const ColumnReductionSize &size;
  const TargetInfo &target;
  bool maySplit;
  ColumnTiling tiling;
  double totalBytes;
  int64_t wantedBlocks;
};

} // namespace

ColumnTiling chooseColumnTiling(const ColumnReductionSize &size, bool maySplit, const TargetInfo &target) {
  return Chooser(size, maySplit, target).choose();
}

ColumnTiling tilingOfPartialResults(int64_t splits, int64_t results, int64_t accumulatorBytes,
                                    const TargetInfo &target) {
  ColumnTiling tiling;
  tiling.rows = splits;
  tiling.columns = results;
  tiling.lanes = std::min(results, warp);
  tiling.tiles = ceilDiv(results, tiling.lanes);
  int64_t most = std::clamp(mostSharedBytes / accumulatorBytes, warp, usualThreads);
  tiling.groups = std::clamp<int64_t>(ceilDiv(splits, usualUnroll), 1, std::max<int64_t>(1, most / tiling.lanes));
  tiling.groups = ceilDiv(splits, ceilDiv(splits, tiling.groups));
  tiling.unroll = std::min<int64_t>(usualUnroll, ceilDiv(splits, tiling.groups));
  tiling.chunksPerSplit = std::max<int64_t>(1, tiling.wholeChunks());
  return tiling;
}

int64_t ColumnTiling::combinedRows() const {
  /// What one thread reads in as long as a barrier takes, about.
  constexpr int64_t fewRows = 32;
  int64_t rows = partialRows();
  if (rows <= fewRows)
    return 1;
  int64_t each = std::max<int64_t>(2, int64_t(std::sqrt(double(rows))));
  return ceilDiv(rows, each);
}

int64_t ColumnTiling::blocks() const { return ceilDiv(slices, slicesPerBlock) * tiles * splits; }

} // namespace hloc
