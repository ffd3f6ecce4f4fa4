// Which tiles attention has, and what they take.

#include "hloc/fusion/AttentionPlan.h"

#include "fusion/AttentionMatch.h"
#include "fusion/RingRegisters.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/OutputMaps.h"
#include "hloc/fusion/PlanCounts.h"
#include "hloc/kernel/Estimate.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace mlir;

namespace hloc {
namespace {

constexpr unsigned registersOfThread = 255;
/// Registers of a thread for addresses and what is computed of a score, or of two, by what ptxas takes; and in a ring
/// for stages, and what sums are scaled by when they are known, by what is live in PTX.
constexpr int64_t ofIndices = 56, ofSecondScore = 16, ofRing = 12;

// --- tiles

int64_t powerOfTwo(int64_t size, int64_t least) { return std::max(powerOf2Ceil(size), least); }

/// Of a thread that multiplies.
int64_t registersOf(const AttentionPlan &plan) {
  const int64_t held = plan.holdsScores ? plan.pieces() : 1;
  const int64_t dots = plan.beside ? 2 : 1, scores = held * dots * plan.piece() / 2, sums = plan.columns() / 2;
  // Weights of warpgroups are all made before one is multiplied; in pieces, they take the registers of what they are
  // made of.
  const int64_t ofWeights = plan.beside ? 4 * plan.piecesOfWeight() : plan.piece() / 4;
  const int64_t rows = plan.holdsRows() ? plan.termsOfRows() / 4 : plan.scores.tile.ofWarpgroups ? ofWeights : 4;
  auto loaded = [&](const ContractionPlan &dot, int64_t inRow) {
    return dot.columns.copied ? 0 : plan.piece() * inRow / plan.scores.tile.threads() / 2;
  };
  const int64_t onTheirWay =
      plan.beside
          ? ofSecondScore + loaded(plan.scores, plan.scores.tile.depth) + loaded(*plan.beside, plan.beside->tile.depth)
          : std::max(loaded(plan.scores, plan.scores.tile.depth), loaded(plan.product, plan.product.tile.columns()));
  // Weights, of which two fill a register, are made of all scores before any is multiplied.
  if (plan.holdsScores && plan.isSoftmax)
    return ofIndices + scores + onTheirWay + std::max(rows, sums - scores / 2);
  return ofIndices + (plan.inRing() ? ofRing : 0) + scores + sums + rows + onTheirWay;
}

struct Effort {
  double seconds, sectors;
};

Effort effortOf(const AttentionPlan &plan, const LaunchGeometry &launch, const TargetInfo &target) {
  constexpr double sectorBits = 256, lanesPerWarp = 32;
  const PlanCounts own = countsOf(plan);
  KernelCounts counts = kernelCounts(own);
  counts.blocks = uint64_t(plan.blocks());
  counts.threadsPerBlock = uint32_t(launch.block.count());
  counts.registers = plannedRegisters(plan);
  counts.sharedBytes = uint32_t(plan.sharedBytes());
  for (const PlanCounts::OperandRead &read : own.reads) {
    const Shape &shape = read.instr->operand(read.operand)->shape();
    if (read.instr == plan.product.hero && read.operand == plan.product.rows.operand)
      continue;
    counts.sectors += read.elements * read.spread * deviceBits(shape.elementType()) / sectorBits;
    counts.footprint += double(shape.byteSize()) * 8 / sectorBits;
  }
  const double written = double(plan.finished->shape().byteSize()) * 8 / sectorBits;
  counts.sectors += written;
  counts.footprint += written;
  counts.instructions += plan.workOnce * double(plan.scores.hero->shape().numElements()) / lanesPerWarp;
  return {estimate(counts, deviceOf(target)).total, counts.sectors};
}

LaunchGeometry launchOf(const AttentionPlan &plan) {
  LaunchGeometry launch;
  launch.grid = {uint32_t(plan.blocks()), 1, 1};
  launch.block = {uint32_t(plan.scores.tile.threadsOfBlock()), 1, 1};
  launch.sharedBytes = plan.sharedBytes();
  return launch;
}

/// The pieces of keys that a mask leaves to a tile of rows.
int64_t keptPiecesOf(const AttentionPlan &plan, const KeptKeys &keys, int64_t tile) {
  auto at = [&](AffineExpr key, int64_t otherwise) {
    const auto value =
        key ? dyn_cast<AffineConstantExpr>(key.replaceDims({getAffineConstantExpr(tile, key.getContext())}))
            : AffineConstantExpr();
    return value ? value.getValue() : otherwise;
  };
  const int64_t first = std::max<int64_t>(at(keys.first, 0), 0),
                last = std::min(at(keys.last, plan.keys()), plan.keys() - 1);
  return last < first ? 0 : last / plan.piece() - first / plan.piece() + 1;
}

void countKeptPieces(AttentionPlan &plan, const KeptKeys &keys) {
  constexpr int64_t mostTiles = 64;
  plan.keptPieces = 1;
  plan.beginsWithLastRows = false;
  if (!plan.skipsPieces)
    return;
  const int64_t tiles = plan.rowTiles(), step = llvm::divideCeil(tiles, mostTiles);
  int64_t kept = 0, all = 0;
  for (int64_t tile = 0; tile < tiles; tile += step) {
    kept += keptPiecesOf(plan, keys, tile);
    all += plan.pieces();
  }
  plan.keptPieces = double(kept) / double(std::max<int64_t>(all, 1));
  plan.beginsWithLastRows = keptPiecesOf(plan, keys, tiles - 1) > keptPiecesOf(plan, keys, 0);
}

/// Warpgroups multiply 16-bit factors. Tiles begin at multiples of swizzled rows.
bool mayBeInGroups(const AttentionPlan &plan, int64_t piece, int64_t columns, const TargetInfo &target) {
  constexpr int64_t leastPiece = 64, leastColumns = 32, mostColumns = 256;
  return target.hasWarpgroups() && deviceBits(plan.scores.fragmentType(plan.scores.rows)) == 16 &&
         piece >= leastPiece && columns >= leastColumns && columns <= mostColumns;
}

/// Where not every multiprocessor has a block, smaller ones are a little faster, and read keys many times as often.
constexpr double nearlyAsFastHere = 1.2;

/// Goes through the tiles that a plan may have.
class TileSearch {
public:
  TileSearch(AttentionPlan &plan, AttentionSides &sides, const FusionGraph &graph, const TargetInfo &target,
             PlanContext &plans)
      : plan(plan), sides(sides), target(target), wanted(plans.choices.tile),
        terms(powerOfTwo(plan.scores.innerDepth(), plan.fragmentDepth)),
        columns(powerOfTwo(plan.product.columns.size, 2 * ContractionTile::fragmentColumns)),
        keysOfRows(plan.keysOfRows(plans.mlir())) {
    plan.product.outputVector = chooseOutputVector(plan.product, graph, plans.mlir());
  }

  /// The tile that is wanted, if there is such; else the one that takes the least time, and of those that are nearly as
  /// fast the one that moves least.
  std::optional<Rejection> choose() {
    if (terms > mostTermsOfAttention || columns > mostTermsOfAttention)
      return Rejection{tooLarge(plan)};
    for (const Rows rows : {Rows{8, By::Ring}, Rows{8, By::Groups}, Rows{4, By::Groups}, Rows{8, By::Warps},
                            Rows{4, By::Warps}, Rows{2, By::Warps}, Rows{1, By::Warps}})
      for (int64_t piece : {128, 64, 32, 16})
        if (std::optional<Rejection> why = take(rows, piece))
          return why;
    if (fitting.empty())
      return Rejection{"no tile fits into registers and shared memory"};
    llvm::stable_sort(fitting, [](const auto &a, const auto &b) { return a.second.seconds < b.second.seconds; });
    llvm::SmallVector<TileSizes> tiles;
    for (const auto &one : fitting)
      if (!llvm::is_contained(tiles, one.first.scores.tile.sizes()))
        tiles.push_back(one.first.scores.tile.sizes());
    if (wanted && llvm::is_contained(tiles, *wanted))
      llvm::erase_if(fitting, [&](const auto &one) { return one.first.scores.tile.sizes() != *wanted; });
    double least = std::numeric_limits<double>::infinity();
    for (const auto &one : fitting)
      least = std::min(least, one.second.seconds);
    llvm::erase_if(fitting, [&](const auto &one) { return one.second.seconds > nearlyAsFastHere * least; });
    auto *best = &*llvm::min_element(fitting, [](const auto &a, const auto &b) {
      return std::pair(a.second.sectors, a.second.seconds) < std::pair(b.second.sectors, b.second.seconds);
    });
    plan = std::move(best->first);
    plan.tiles = std::move(tiles);
    return std::nullopt;
  }

private:
  using By = TileSizes::By;
  struct Rows {
    int64_t warps;
    By by;
  };

  std::optional<Rejection> take(const Rows &rows, int64_t piece) {
    const bool inGroups = rows.by != By::Warps;
    if (piece > powerOfTwo(plan.keys(), 16) || (inGroups && !mayBeInGroups(plan, piece, columns, target)))
      return std::nullopt;
    setTiles(rows, piece, plan.stagesOfTiles + int64_t(plan.beside.has_value()));
    for (ContractionSides *each : sides.all()) {
      each->chooseAccesses();
      each->chooseCopies();
    }
    ContractionSides &second = plan.beside ? *sides.beside : *sides.product;
    if (rows.by == By::Ring && !(sides.scores->chooseMapOfColumns() && second.chooseMapOfColumns()))
      return std::nullopt;
    if (plan.beside && (!plan.scores.columns.alongDepth || plan.product.columns.alongDepth))
      return Rejection{fmt::format("terms of `{}` do not lie as keys of `{}` do", plan.product.hero->name().str(),
                                   plan.scores.hero->name().str())};
    plan.scores.leastStage = plan.product.leastStage = plan.pieceElements();
    if (plan.beside)
      plan.beside->leastStage = plan.pieceElements();
    const KeptKeys kept = keysOfRows.ofTile(plan.scores.tile.rows());
    for (bool holds : {true, false}) {
      if (holds && (plan.beside || inGroups))
        continue;
      plan.holdsScores = holds;
      plan.skipsPieces = !holds && kept;
      countKeptPieces(plan, kept);
      if (rows.by == By::Ring)
        setTiles(rows, piece, isWanted() ? wanted->stages : stagesThatFit());
      if (fits())
        fitting.emplace_back(plan, effortOf(plan, launchOf(plan), target));
    }
    return std::nullopt;
  }

  bool fits() const {
    const int64_t most = plan.inRing() ? plan.registersOfConsumers() : int64_t(registersOfThread);
    return plan.wantedRegisters() <= most && plan.scores.tile.stages >= plan.stagesOfTiles &&
           plan.sharedBytes() <= target.maxSharedBytes && plan.blocks() <= int64_t(target.maxGridX);
  }

  /// But for the number of stages.
  bool isWanted() const {
    if (!wanted)
      return false;
    TileSizes own = plan.scores.tile.sizes();
    own.stages = wanted->stages;
    return own == *wanted;
  }

  /// Of a ring; what is filled more than two pieces ahead makes nothing faster.
  int64_t stagesThatFit() {
    constexpr int64_t most = 6;
    for (int64_t stages = most; stages > 0; --stages) {
      plan.scores.tile.stages = stages;
      if (plan.sharedBytes() <= target.maxSharedBytes)
        return stages;
    }
    return 0;
  }

  void setTiles(const Rows &rows, int64_t piece, int64_t stages) {
    auto tileOf = [&](int64_t tileColumns, int64_t depth) {
      ContractionTile tile;
      tile.onTensorCores = true;
      tile.ofWarpgroups = rows.by != By::Warps;
      tile.hasProducer = rows.by == By::Ring;
      tile.warpRows = rows.warps;
      tile.threadRows = 2;
      tile.threadColumns = tileColumns / tile.laneColumns();
      tile.depth = depth;
      tile.stages = stages;
      return tile;
    };
    plan.scores.tile = tileOf(piece, terms);
    plan.product.tile = tileOf(columns, piece);
    if (plan.beside)
      plan.beside->tile = tileOf(piece, powerOfTwo(plan.beside->innerDepth(), plan.fragmentDepth));
  }

  AttentionPlan &plan;
  AttentionSides &sides;
  const TargetInfo &target;
  const std::optional<TileSizes> wanted;
  const int64_t terms, columns; ///< of tiles
  const KeptKeys keysOfRows;
  std::vector<std::pair<AttentionPlan, Effort>> fitting;
};

} // namespace

bool AttentionPlan::mayWeighHidden() const {
  return isOnline && skipsPieces && !(masksLogits && hiddenLogit() == -std::numeric_limits<double>::infinity());
}

bool AttentionPlan::storesInRowTile() const {
  return product.outputVector && finished->shape().elementType() == scores.fragmentType(scores.rows);
}

int64_t AttentionPlan::rowElements() const {
  return std::max(scores.tileElements(scores.rows), storesInRowTile() ? product.outputElements() : 0);
}

int64_t AttentionPlan::pieceElements() const {
  return std::max(scores.tileElements(scores.columns),
                  beside ? beside->tileElements(beside->columns) : product.tileElements(product.columns));
}

int64_t AttentionPlan::passesOfBeside() const { return llvm::count(stagesBeside, true) + 1; }

uint64_t AttentionPlan::sharedBytes() const {
  const int64_t factors =
      rowElements() + (beside ? beside->tileElements(beside->rows) : 0) + stagesInShared() * pieceElements();
  const int64_t outputs = product.outputVector && !storesInRowTile() ? product.outputElements() : 0;
  // What lies behind flags begins at a vector.
  constexpr int64_t flagsOfVector = ContractionPlan::sharedVectorBits / bitsOfFlag;
  const int64_t warps = scores.tile.warpRows,
                flags = mayWeighHidden() && warps > 1 ? roundedUp(warps, flagsOfVector) : 0;
  return uint64_t(factors * int64_t(scores.factorBits()) + flags * bitsOfFlag +
                  outputs * int64_t(deviceBits(finished->shape().elementType()))) /
             8 +
         bytesOfBarriers(scores.tile, inRing() && mayWeighHidden());
}

template <>
HeroMatch<AttentionPlan> matchHero<AttentionPlan>(const FusionGraph &graph, const FusionAliasing &,
                                                  const TargetInfo &target, PlanContext &plans) {
  AttentionPlan plan;
  AttentionSides sides;
  if (std::optional<Rejection> why = matchAttention(plan, sides, graph, target, plans.mlir()))
    return std::move(*why);
  if (std::optional<Rejection> why = TileSearch(plan, sides, graph, target, plans).choose())
    return std::move(*why);
  LaunchGeometry launch = launchOf(plan);
  return {std::move(plan), launch};
}

/// Other blocks read an operand's rows at other times.
template <> bool mayTakePlace<AttentionPlan>(const AttentionPlan &, const FusionGraph &, unsigned, unsigned) {
  return false;
}

template <>
ComputedSpaces computedSpaces<AttentionPlan>(const AttentionPlan &plan, const FusionGraph &graph,
                                             MLIRContext *context) {
  ComputedSpaces result;
  auto fill = [&](const ContractionPlan &dot, const ContractionSide &side, int64_t times) {
    result.spaces.emplace_back().values.push_back(
        {dot.hero->operand(side.operand), filledElements(dot, side, times, context)});
  };
  fill(plan.scores, plan.scores.rows, 1);
  fill(plan.scores, plan.scores.columns, plan.rowTiles() * plan.passes());
  if (plan.beside) {
    fill(*plan.beside, plan.beside->rows, 1);
    fill(*plan.beside, plan.beside->columns, plan.rowTiles() * plan.passesOfBeside());
  } else {
    fill(plan.product, plan.product.columns, plan.rowTiles());
  }
  auto elements = [&](const HloInstruction &value) {
    result.spaces.emplace_back().values.push_back({&value, IndexingMap::identity(context, value.shape().dims())});
  };
  for (const ReductionFrame &stage : plan.stages)
    for (const ReductionHero &hero : stage.heroes)
      elements(*hero.instr->operand(0));
  elements(plan.weights());
  ComputedSpace outputs;
  for (auto [root, place] :
       llvm::zip_equal(plan.product.roots, outputMaps(graph, *plan.finished, plan.product.roots, context)))
    outputs.values.push_back({graph.roots()[root].instr, place});
  result.spaces.push_back(std::move(outputs));
  for (unsigned root : plan.resultRoots)
    elements(*graph.roots()[root].instr);
  result.kept = {plan.scores.hero, plan.finished};
  if (plan.beside)
    result.kept.push_back(plan.beside->hero);
  for (const ReductionFrame &stage : plan.stages)
    for (const ReductionHero &hero : stage.heroes)
      result.kept.push_back(hero.instr);
  return result;
}

template <> KernelTraffic trafficOf<AttentionPlan>(const AttentionPlan &, const FusionGraph &graph) {
  return wholeTraffic(graph);
}

int64_t AttentionPlan::wantedRegisters() const { return registersOf(*this); }

int64_t AttentionPlan::registersOfConsumers() const { return hloc::registersOfConsumers(scores.tile, 1); }

template <> unsigned plannedRegisters<AttentionPlan>(const AttentionPlan &plan) {
  if (plan.inRing())
    return unsigned(registersOfRing(plan.scores.tile, 1));
  return unsigned(std::clamp<int64_t>(int64_t(llvm::alignTo(uint64_t(registersOf(plan)), 8)),
                                      KernelSpec::usualRegisters, registersOfThread));
}

std::string AttentionPlan::toString() const {
  std::string result = "attention: ";
  llvm::raw_string_ostream os(result);
  if (scores.batchSize != 1)
    os << scores.batchSize << " times ";
  os << fmt::format("{} rows by {} keys, {} terms, {} columns; {} stage{}{}; ", scores.rows.size, keys(),
                    scores.innerDepth(), product.columns.size, stages.size(), stages.size() == 1 ? "" : "s",
                    isOnline             ? ", all in one pass, divided afterwards"
                    : joinsFirstStages() ? ", the first two together"
                                         : "");
  if (beside)
    os << fmt::format("beside `{}`, {} times; ", beside->hero->name().str(), passesOfBeside());
  os << fmt::format("blocks of {} rows{}, pieces of {} keys{}; roots ", scores.tile.rows(),
                    scores.tile.ofWarpgroups ? " in warpgroups" : "", piece(),
                    holdsScores ? ", scores in registers"
                    : isOnline  ? ""
                                : fmt::format(", {} times", passes()));
  llvm::interleave(product.roots, os, ",");
  if (skipsPieces)
    os << fmt::format("; a mask leaves {:.0f} % of the pieces{}", 100 * keptPieces,
                      beginsWithLastRows ? ", most to the last rows, which come first" : "");
  if (!resultRoots.empty()) {
    os << ", roots of rows ";
    llvm::interleave(resultRoots, os, ",");
  }
  const bool areKeys = scores.columns.copied, areTerms = product.columns.copied;
  if (inRing())
    os << fmt::format("; keys and terms copied by tensor maps in a ring of {} stages", scores.tile.stages);
  else
    os << (areKeys && areTerms ? "; keys and terms copied"
           : areKeys           ? "; keys copied"
           : areTerms          ? "; terms copied"
                               : "");
  return result;
}

} // namespace hloc
