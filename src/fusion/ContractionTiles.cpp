// Which tiles a contraction may have: rows and columns of warps and threads, and terms of a step. Which of them fit and
// how fast they are, the planner says.

#include "fusion/ContractionMatch.h"

namespace hloc {
namespace {

/// How long sums are that have several deep steps, or steps twice as deep, and results of a thread whose products of
/// one of these fit into the cache of instructions. Estimates.
constexpr int64_t deepTile = 64, leastOfDeepTiles = 192, leastOfDeepestTiles = 512, sumsOfDeepestTiles = 32;

constexpr ContractionTile byThreads[] = {
    {4, 2, 8, 8}, {2, 2, 8, 8}, {4, 2, 8, 4}, {4, 2, 4, 8}, {4, 2, 4, 4}, {2, 2, 8, 4}, {2, 2, 4, 4}, {1, 2, 8, 4},
    {2, 1, 4, 4}, {1, 2, 4, 2}, {1, 1, 4, 2}, {1, 2, 2, 4}, {4, 1, 4, 4}, {4, 2, 2, 2}, {2, 2, 2, 2}, {1, 1, 2, 2},
};
constexpr ContractionTile byTensorCores[] = {
    {2, 2, 8, 16}, {2, 4, 8, 8},  {2, 2, 8, 8},  {2, 2, 4, 16}, {2, 2, 4, 8}, {4, 1, 4, 8},
    {1, 4, 4, 8},  {1, 4, 2, 8},  {1, 2, 2, 8},  {2, 1, 4, 4},  {4, 1, 4, 4}, {1, 1, 4, 8},
    {1, 1, 2, 4},  {2, 4, 8, 16}, {4, 2, 8, 16}, {2, 4, 4, 8},  {4, 4, 4, 8},
};

/// Of one or two warpgroups: of two, each makes results of 64 rows, or of 128, by as many columns as multiply at the
/// full rate.
constexpr ContractionTile byWarpgroups[] = {
    {8, 1, 2, 64}, {8, 1, 4, 32}, {8, 1, 2, 32}, {4, 1, 4, 32}, {4, 1, 2, 64}, {4, 1, 2, 32},
    {8, 1, 2, 16}, {4, 1, 4, 16}, {4, 1, 2, 16}, {4, 1, 2, 8},  {4, 1, 2, 4},
};

/// Of f8, after which sums are promoted: a swizzled row, and as often as the fastest published kernels do.
constexpr int64_t termsPromoted = 128;

/// Few results of a thread are soon made, if so are their factors: of a window each has tests.
bool isWorthWindows(const ContractionTile &tile) { return tile.threadRows * tile.threadColumns >= 8; }

/// May a thread have more terms of a step on their way, as long as there are so many: beside its sums, and where it has
/// few of them? (Of a window the tests of each would be as much code again.)
bool mayBeDeeper(const ContractionPlan &plan, const ContractionTile &tile, int64_t depth) {
  constexpr int64_t mostSums = 32, mostLoaded = 32;
  int64_t lines = 0;
  for (const ContractionSide *side : plan.sides())
    lines += plan.isOfRows(*side) ? tile.rows() : tile.columns();
  return plan.hero->opcode() != Opcode::Convolution &&
         tile.threadRows * tile.threadColumns * plan.numProducts() <= mostSums && tile.depth < 2 * depth &&
         lines * tile.depth / tile.threads() <= mostLoaded;
}

} // namespace

void addTilesOfThreads(const ContractionPlan &plan, int64_t depth, llvm::SmallVectorImpl<ContractionTile> &tiles) {
  /// Of a thread, so that factors have registers beside them.
  constexpr int64_t mostSumsByThreads = 128;
  for (ContractionTile tile : byThreads) {
    if (tile.threadRows * tile.threadColumns * plan.numProducts() > mostSumsByThreads ||
        (plan.hero->opcode() == Opcode::Convolution && !isWorthWindows(tile)))
      continue;
    tile.depth = plan.bits == 64 || depth <= 8 ? 8 : 16;
    do {
      tiles.push_back(tile);
      tile.depth *= 2;
    } while (mayBeDeeper(plan, tile, depth));
  }
}

void addTilesOfFragments(ContractionPlan plan, int64_t depth, llvm::SmallVectorImpl<ContractionTile> &tiles) {
  /// Of sums that a thread has, so that factors have registers beside them.
  constexpr int64_t mostBitsOfSums = 128 * 32;
  for (ContractionTile tile : byTensorCores) {
    tile.onTensorCores = true;
    plan.tile = tile;
    if (plan.sums() * int64_t(plan.bits) > mostBitsOfSums)
      continue;
    tile.depth = plan.fragmentDepth() * (depth <= plan.fragmentDepth() ? 1 : 2);
    tiles.push_back(tile);
    // Pieces of factors have many registers: of half as many terms there are enough to write what comes next meanwhile.
    if (tile.depth > plan.fragmentDepth() && plan.sums() == mostBitsOfSums / int64_t(plan.bits) &&
        plan.pieces().areSeveral())
      tiles.emplace_back(tile).depth = plan.fragmentDepth();
  }
  // Twice as many terms between barriers, where the code of a step is not too much; of bytes on their way, and of long
  // sums, twice as many again.
  plan.tile.onTensorCores = true;
  if (plan.factorBits() != 16 || depth < leastOfDeepTiles)
    return;
  const bool areBytes = plan.holdsAllAsBytes();
  const bool areLong =
      depth >= leastOfDeepestTiles && plan.numProducts() == 1 && plan.hero->opcode() != Opcode::Convolution;
  for (size_t i = 0, count = tiles.size(); i < count; ++i) {
    const int64_t sums = tiles[i].threadRows * tiles[i].threadColumns;
    tiles.emplace_back(tiles[i]).depth = deepTile;
    // (Of fewer sums, each takes more bytes that are converted. Of a window each copy has tests.)
    if ((areBytes || areLong) && sums == sumsOfDeepestTiles)
      tiles.emplace_back(tiles[i]).depth = 2 * deepTile;
  }
}

/// With all who may copy.
static void addOfWarpgroups(ContractionTile tile, llvm::SmallVectorImpl<ContractionTile> &tiles) {
  /// Two panels of 64 columns at least, so that each of two blocks has one.
  constexpr int64_t leastColumnsOfCluster = 128;
  tiles.push_back(tile);
  tile.hasProducer = true;
  tiles.push_back(tile);
  tile.cluster = 2;
  if (tile.columns() >= leastColumnsOfCluster)
    tiles.push_back(tile);
}

void addTilesOfWarpgroups(ContractionPlan plan, int64_t depth, llvm::SmallVectorImpl<ContractionTile> &tiles) {
  constexpr int64_t mostSums = 128, bitsOfSwizzledRow = 128 * 8;
  const bool mayPromote = plan.mayPromote();
  for (ContractionTile tile : byWarpgroups) {
    tile.onTensorCores = tile.ofWarpgroups = true;
    plan.tile = tile;
    if (plan.sums() > mostSums)
      continue;
    const int64_t deepest = bitsOfSwizzledRow / int64_t(plan.factorBits());
    for (tile.depth = deepest; tile.depth >= deepest / 2; tile.depth /= 2)
      if (tile.depth < 2 * depth)
        addOfWarpgroups(tile, tiles);
    tile.depth = termsPromoted;
    tile.promotes = true;
    if (mayPromote && tile.depth < 2 * depth)
      addOfWarpgroups(tile, tiles);
  }
}

} // namespace hloc
