#include "fusion/ContractionMatch.h"
#include "fusion/OpWork.h"
#include "fusion/OperandStrides.h"
#include "fusion/TileMaps.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/OutputMaps.h"
#include "hloc/fusion/PlanCounts.h"
#include "hloc/fusion/TileCandidates.h"
#include "hloc/indexing/ShapeMaps.h"
#include "hloc/kernel/Estimate.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace hloc {
namespace {

/// Fewer terms are soon added up in a loop.
constexpr int64_t leastDepth = 4;
/// Steps of a block that are worth its start and what it leaves to be added up. An estimate.
constexpr int64_t leastStepsOfSplit = 4;
/// Partial sums that a thread which combines loads before it waits for the first. An estimate.
constexpr double splitsInFlight = 8;
/// Registers of a thread for what is on its way of a tile that is deep. An estimate.
constexpr int64_t mostWordsOfDeepTiles = 32;
/// Of tiles in shared memory; of a ring, whose barriers are no more work for more of them.
constexpr int64_t mostStages = 4, mostStagesOfRing = 6;
/// For the threads of one block at least.
constexpr int64_t registersOfMultiprocessor = 1 << 16;
/// Ops of one thread's straight code, instructions times results, as in a loop. An estimate.
constexpr int64_t maxOpsPerThread = 2048;

} // namespace

class ContractionPlanner {
public:
  ContractionPlanner(ContractionPlan &plan, const FusionGraph &graph, const TargetInfo &target, MLIRContext *context)
      : plan(plan), graph(graph), target(target), space(plan.space = ContractionSpace(*plan.hero)) {
    for (const HloInstruction *hero : plan.heroes()) {
      auto factor = [&](unsigned i) {
        return Factor{hero->operand(i), factorMap(*hero, space, i, context), {}, 0, 0, {}};
      };
      factors.push_back({factor(0), factor(1)});
    }
  }

  std::optional<Rejection> run(PlanContext &plans) {
    if (std::optional<Rejection> why = prepare())
      return why;
    comparesTimes = plans.comparesTimes;
    parts = plans.choices.parts;
    rounds = plans.choices.rounds;
    if (!plans.choices.tile)
      return chooseTile();
    std::optional<Rejection> why = takeTile(*plans.choices.tile);
    plans.tileRefusal = why ? why->reason : "";
    return why;
  }

  /// With every tile and number of parts that fit.
  std::vector<TileCandidate> candidatesByTime() {
    std::vector<TileCandidate> found;
    if (prepare())
      return found;
    forEachTile([&](const TileTime &time) {
      const ContractionTile &tile = plan.tile;
      TileCandidate here{tile.sizes(),       tile.warpRows,          tile.warpColumns, plan.splits, plan.blocks(),
                         plan.sharedBytes(), plannedRegisters(plan), time.kernel,      time.seconds};
      const bool isSameTile = !found.empty() && found.back().tile == here.tile &&
                              found.back().warpRows == here.warpRows && found.back().warpColumns == here.warpColumns;
      if (!isSameTile)
        found.push_back(here);
      else if (here.seconds < found.back().seconds)
        found.back() = here;
    });
    llvm::stable_sort(found, [](const TileCandidate &a, const TileCandidate &b) { return a.seconds < b.seconds; });
    return found;
  }

  /// `areTurned`: with the rows of memory as columns.
  std::optional<Rejection> findSides(bool areTurned = false) {
    if (std::optional<Rejection> why = chooseDimensions())
      return why;
    if (areTurned) {
      for (unsigned dim : plan.rows.dims)
        minorOfOutputs = space.dim(dim) > 1 ? dim : minorOfOutputs;
      (void)chooseDimensionsAgain();
    }
    std::optional<Rejection> why = checkOutputs(plan, graph, context());
    if (why && turnToOutputs())
      why = checkOutputs(plan, graph, context());
    if (!why)
      why = placeTwins();
    if (why)
      return why;
    findStrides();
    orderDepth();
    return std::nullopt;
  }

  /// Then.
  void chooseAllCopies() {
    forEachSide([&](ContractionSide &side) { chooseCopies(side); });
  }
  bool chooseMapOfColumns() { return chooseMap(plan.columns); }
  void chooseAccesses() {
    forEachSide([&](ContractionSide &side) { chooseAccess(side); });
  }

private:
  /// What an operand of one of the products is read by, and what is known of it for all tiles.
  struct Factor {
    const HloInstruction *operand;
    IndexingMap map;
    std::optional<OperandStrides> strides;
    double work = 0;                       ///< workOf it
    unsigned widest = 0;                   ///< the same
    std::map<unsigned, unsigned> copiedBy; ///< copiedAtOnce, by vector
  };

  MLIRContext *context() const { return factors.front().front().map.context(); }
  const IndexingMap &map(unsigned operand) const { return factors.front()[operand].map; }

  void forEachSide(llvm::function_ref<void(ContractionSide &)> visit) {
    visit(plan.rows);
    visit(plan.columns);
    for (ContractionTwin &twin : plan.twins)
      visit(twin.side);
  }

  Factor &factorOf(const ContractionSide &side) {
    const auto *twin = llvm::find_if(plan.twins, [&](const ContractionTwin &twin) { return &twin.side == &side; });
    return factors[twin == plan.twins.end() ? 0 : size_t(twin - plan.twins.begin()) + 1][side.operand];
  }

  /// Twins read what is shared in the same way, and the dimensions that are their own are the same of the result.
  std::optional<Rejection> placeTwins() {
    for (auto [twin, own] : llvm::zip(plan.twins, llvm::drop_begin(factors))) {
      const unsigned operand = twin.side.operand;
      auto isAlike = [&](unsigned dim) {
        return dependsOnDim(own[operand].map, dim) == dependsOnDim(map(operand), dim);
      };
      if (own[1 - operand].map != map(1 - operand) || own[operand].map.ranges() != map(operand).ranges() ||
          own[operand].map.dims() != map(operand).dims() || !llvm::all_of(llvm::seq(space.rank()), isAlike))
        return Rejection{fmt::format("`{}` reads `{}` in another way than `{}`", twin.hero->name().str(),
                                     own[1 - operand].operand->name().str(), plan.hero->name().str())};
      twin.side = plan.rows.operand == operand ? plan.rows : plan.columns;
      twin.side.tests = testsBefore(*own[operand].operand);
    }
    return std::nullopt;
  }

  std::optional<Rejection> prepare() {
    if (std::optional<Rejection> why = findSides())
      return why;
    if (const int64_t depth = llvm::product_of(plan.depthSizes); depth < leastDepth)
      return Rejection{fmt::format("sums of {} terms are too short", depth)};
    return std::nullopt;
  }

  void findStrides() {
    forEachSide([&](const ContractionSide &side) {
      Factor &factor = factorOf(side);
      factor.strides.emplace(*factor.operand, factor.map);
      std::tie(factor.work, factor.widest) = workOf(*factor.operand);
    });
  }

  /// Instructions that make an element of what a dot multiplies, each time that a tile is filled with it; bits of the
  /// widest that is read for each.
  std::pair<double, unsigned> workOf(const HloInstruction &operand) const {
    llvm::SmallPtrSet<const HloInstruction *, 16> seen = {&operand};
    llvm::SmallVector<const HloInstruction *> open = {&operand};
    double sum = 0;
    unsigned bits = 0;
    while (!open.empty()) {
      const HloInstruction *instr = open.pop_back_val();
      if (instr->shape().numElements() != operand.shape().numElements())
        continue;
      if (instr->numOperands() == 0) {
        bits = std::max(bits, deviceBits(instr->shape().elementType()));
        continue;
      }
      sum += workPerElement(*instr);
      for (const HloInstruction *read : instr->operands())
        if (read->shape().isArray() && seen.insert(read).second)
          open.push_back(read);
    }
    return {sum, bits};
  }

  /// Where all outputs have other neighbours than the result, such as those of a transpose behind it: has the side of
  /// these be the columns. False if outputs have none in common.
  bool turnToOutputs() {
    const std::vector<IndexingMap> places = outputMaps(graph, plan.heroes(), plan.roots, context());
    auto areNeighbours = [&](unsigned dim) {
      return llvm::all_of(llvm::zip_equal(plan.roots, places), [&](auto each) {
        auto &[number, place] = each;
        return neighboursKept(place, graph.roots()[number].shape, dim, 2) == 2;
      });
    };
    for (unsigned part = 0; part < space.rank(); ++part) {
      const unsigned dim = space.resultDim(part);
      const bool isWhole = space.dim(part) == plan.hero->shape().dim(dim);
      if (isWhole && space.dim(part) > 1 && !llvm::is_contained(plan.batch, part) && areNeighbours(dim)) {
        minorOfOutputs = part;
        return !chooseDimensionsAgain();
      }
    }
    return false;
  }

  std::optional<Rejection> chooseDimensionsAgain() {
    plan.batch.clear();
    plan.batchSize = 1;
    return chooseDimensions();
  }

  std::optional<Rejection> chooseDimensions() {
    for (const Factor &factor : factors.front())
      if (factor.map.isKnownEmpty())
        return Rejection{"there is nothing to add up"};
    ContractionSide sides[2];
    sides[1].operand = 1;
    for (ContractionSide &side : sides)
      side.tests = testsBefore(*plan.hero->operand(side.operand));
    std::optional<unsigned> sideOfMinor;
    llvm::SmallVector<int64_t> majorToMinor(llvm::reverse(space.shape().minorToMajor()));
    if (minorOfOutputs) {
      llvm::erase(majorToMinor, int64_t(*minorOfOutputs));
      majorToMinor.push_back(*minorOfOutputs);
    }
    for (int64_t dim : majorToMinor) {
      bool ofLeft = dependsOnDim(map(0), unsigned(dim)), ofRight = dependsOnDim(map(1), unsigned(dim));
      if (ofLeft == ofRight) {
        plan.batch.push_back(unsigned(dim));
        plan.batchSize *= space.dim(unsigned(dim));
        continue;
      }
      ContractionSide &side = sides[ofRight];
      side.dims.push_back(unsigned(dim));
      side.size *= space.dim(unsigned(dim));
      if (space.dim(unsigned(dim)) > 1)
        sideOfMinor = ofRight;
    }
    unsigned columns = sideOfMinor.value_or(1);
    plan.columns = std::move(sides[columns]);
    plan.rows = std::move(sides[1 - columns]);
    if (plan.rows.size == 1 || plan.columns.size == 1)
      return Rejection{"one side has a single row"};
    return plan.ragged ? placeGroups() : std::nullopt;
  }

  /// Rows of a group follow each other.
  std::optional<Rejection> placeGroups() {
    if (!plan.ragged->areOfRows())
      return std::nullopt;
    const unsigned dim = plan.ragged->dims.position;
    if (!llvm::is_contained(plan.rows.dims, dim))
      return Rejection{"its groups are of what lies side by side in the result"};
    llvm::erase(plan.rows.dims, dim);
    plan.rows.dims.insert(plan.rows.dims.begin(), dim);
    return std::nullopt;
  }

  Interval depthBounds(unsigned variable) const {
    return map(0).ranges()[variable].bounds.intersect(map(1).ranges()[variable].bounds);
  }

  /// Outer to inner: neighbours of the inner ones are neighbours in the memory of the operand in which some are.
  void orderDepth() {
    unsigned count = map(0).ranges().size();
    auto strides = [&](unsigned operand) -> OperandStrides & { return *factors.front()[operand].strides; };
    auto least = [&](unsigned operand) {
      int64_t stride = std::numeric_limits<int64_t>::max();
      for (unsigned i = 0; i < count; ++i)
        if (!depthBounds(i).isPoint())
          stride = std::min(stride, strides(operand).ofRange(i));
      return stride;
    };
    unsigned operand = least(0) < least(1) ? 0 : 1;
    for (unsigned i = 0; i < count; ++i)
      plan.depth.push_back(i);
    llvm::stable_sort(plan.depth, [&](unsigned a, unsigned b) {
      bool aIsOne = depthBounds(a).isPoint(), bIsOne = depthBounds(b).isPoint();
      return aIsOne != bIsOne ? aIsOne : strides(operand).ofRange(a) > strides(operand).ofRange(b);
    });
    for (unsigned variable : plan.depth) {
      plan.depthStarts.push_back(depthBounds(variable).lower);
      plan.depthSizes.push_back(depthBounds(variable).size());
    }
  }

  /// The fewest inner variables that make pieces without much that is missing; all, if there are none.
  void splitDepth() {
    for (plan.outerDepth = unsigned(plan.depth.size()); plan.outerDepth > 0;) {
      --plan.outerDepth;
      int64_t inner = plan.innerDepth();
      if (10 * plan.stepsOfInner() * plan.tile.depth <= 11 * inner)
        return;
    }
  }

  bool mayUseTensorCores() const {
    const auto types = plan.fragmentTypes();
    return types && ContractionPlan::hasTensorCores(target, *types);
  }

  /// Threads' results, where warps' make a tile. What an algorithm allows to be narrower may as well be f32, which is
  /// faster where there is little to multiply.
  llvm::SmallVector<ContractionTile> candidates(int64_t depth) {
    llvm::SmallVector<ContractionTile> tiles;
    const bool byTensorCores = mayUseTensorCores();
    if (byTensorCores)
      addTilesOfFragments(plan, depth, tiles);
    if (byTensorCores && target.hasWarpgroups() && plan.hero->shape().elementType() != ElementType::F64)
      addTilesOfWarpgroups(plan, depth, tiles);
    if (!byTensorCores || !ContractionPlan::multipliesWholeFactors(*plan.hero))
      addTilesOfThreads(plan, depth, tiles);
    return tiles;
  }

  std::optional<Rejection> chooseTile() {
    const double limit =
        parts || rounds ? std::numeric_limits<double>::infinity() : loopSeconds(llvm::product_of(plan.depthSizes));
    return takeFastest(limit, [](const ContractionTile &) { return true; })
               ? std::nullopt
               : std::optional(Rejection{haveAlikeResults() ? "a loop for each result is as fast" : unlikeResults});
  }

  /// The fastest way to have the tile, however fast that is.
  std::optional<Rejection> takeTile(const TileSizes &wanted) {
    auto isWanted = [&](const ContractionTile &tile) { return tile.sizes() == wanted; };
    if (takeFastest(std::numeric_limits<double>::infinity(), isWanted))
      return std::nullopt;
    auto inAllStages = [](TileSizes sizes) {
      sizes.stages = 1;
      return sizes;
    };
    for (const ContractionTile &tile : candidates(llvm::product_of(plan.depthSizes)))
      if (inAllStages(tile.sizes()) == inAllStages(wanted))
        return Rejection{whyNot(tile, wanted.stages)};
    return Rejection{"there are none of these sizes"};
  }

  /// Has a step, for tensor cores, more terms on their way than a thread has registers for? (The deepest of those that
  /// are not bytes are for copies.)
  bool isTooDeep() {
    if (!plan.tile.onTensorCores || plan.tile.depth <= 2 * plan.fragmentDepth())
      return false;
    int64_t loaded = 0; // what is not read by words has a register for each element
    for (const ContractionSide *side : plan.sides()) {
      const int64_t vector = side->vector, elements = plan.tileElements(*side) / plan.tile.threads();
      loaded += side->copied ? 0 : elements / vector * llvm::divideCeil(vector * plan.heldBits(*side), 32);
      if (!side->copied && factorOf(*side).widest > 16)
        return true;
    }
    if (plan.tile.promotes && loaded > mostWordsOfDeepTiles)
      return true;
    if (plan.tile.depth > 4 * plan.fragmentDepth() && !plan.holdsAllAsBytes() && !plan.copiesAll())
      return true;
    return plan.loadedWords() > mostWordsOfDeepTiles;
  }

  /// What goes through registers can be written while the step before is multiplied: then it has registers beside all
  /// that products have.
  bool mayHaveStages() const {
    constexpr int64_t ofWidening = 16; // of bytes before there is an instruction for it: with 240 ptxas spilled some
    auto widens = [&](const ContractionSide *side) { return plan.isHeldAsBytes(*side) && !target.atLeast(8, 9); };
    const int64_t registers = plan.wantedRegisters() + (llvm::any_of(plan.sides(), widens) ? ofWidening : 0);
    return plan.copiesAny() || (plan.tile.onTensorCores && registers <= ContractionPlan::mostRegisters);
  }

  /// Why a tile that there is cannot be had with so many stages.
  std::string whyNot(const ContractionTile &tile, int64_t stages) {
    const int64_t most = tile.hasProducer ? mostStagesOfRing : mostStages;
    if (stages > most)
      return fmt::format("there are no more than {} stages", most);
    beginTile(tile);
    if (tile.cluster > 1 && plan.rowTiles() % tile.cluster != 0)
      return "blocks of rows do not come in pairs";
    if (tile.hasProducer && (stages == 1 || !chooseMaps()))
      return stages == 1 ? "a ring has two stages at least"
                         : "tensor maps cannot copy what sides are made of: matrices of parameters, of 8 or 16 bits, "
                           "whose rows are multiples of 16 bytes apart";
    if (!tile.hasProducer)
      chooseAllCopies();
    if (!haveAlikeResults())
      return unlikeResults;
    if (!canBeInWarpgroups())
      return "warpgroups multiply factors of these types only along their sums";
    if (stages > 1 && !mayHaveStages())
      return plan.tile.onTensorCores ? "what all sides are made of goes through registers, of which there are too few"
                                     : "threads multiply what all sides are made of in one stage";
    if (stages > 2 && !plan.copiesAny())
      return "what all sides are made of goes through registers, which are one stage ahead";
    if (stages == 1)
      chooseAccesses();
    if (isTooDeep())
      return fmt::format("{} terms of a step are too many for registers", tile.depth);
    plan.tile.stages = stages;
    plan.splits = 1;
    if (plan.sharedBytes() > target.maxSharedBytes)
      return fmt::format("they take {} bytes of shared memory, a block on {} has {}", plan.sharedBytes(), target.name,
                         target.maxSharedBytes);
    if (tile.hasProducer && stages > 2 && stages > plan.steps())
      return fmt::format("{} steps fill no more than {} stages", plan.steps(), std::max<int64_t>(plan.steps(), 2));
    return "what results are made into would be too much code";
  }

  /// Takes one of the fastest ways to have a tile that is meant, if they take less than `limit`. Small problems differ
  /// little in time, most of which is latency, and by several times in what they move, which others wait for: of those
  /// that are nearly as fast, the one of the least time by the square root of that; threads, which take many times the
  /// instructions of tensor cores, only where they are the fastest.
  bool takeFastest(double limit, llvm::function_ref<bool(const ContractionTile &)> isMeant) {
    struct Way {
      ContractionTile tile;
      int64_t splits;
      TileTime time;
    };
    /// Of the least time. The first was tried on the corpus: with less the search takes tiles whose operands are made
    /// again more often than it counts, with more it fuses less. The second is what moving less may cost at most.
    constexpr double notToldApart = 1.05, nearlyAsFast = 1.25;
    std::vector<Way> ways;
    double least = limit;
    forEachTile([&](const TileTime &time) {
      if (time.seconds >= limit || !isMeant(plan.tile) || (parts && plan.splits != parts) ||
          (rounds && plan.rounds != rounds))
        return;
      ways.push_back({plan.tile, plan.splits, time});
      least = std::min(least, time.seconds);
    });
    const bool byThreads = !mayUseTensorCores() && areStored();
    llvm::erase_if(ways, [&](const Way &way) {
      const double most = comparesTimes ? notToldApart : nearlyAsFast;
      return way.time.seconds > (way.tile.onTensorCores || byThreads ? most : 1) * least;
    });
    if (ways.empty())
      return false;
    auto weight = [&](const Way &way) { return way.time.seconds * std::sqrt(way.time.sectors); };
    const Way best = *llvm::min_element(ways, [&](const Way &a, const Way &b) { return weight(a) < weight(b); });
    beginTile(best.tile);
    if (best.tile.hasProducer)
      (void)chooseMaps();
    else if (best.tile.stages > 1)
      chooseAllCopies();
    plan.tile.stages = best.tile.stages;
    plan.splits = best.splits;
    return timeIfFits().has_value();
  }

  /// Are factors read, and neither computed nor of a window? How long threads wait for these is estimated less well.
  bool areStored() {
    return plan.hero->opcode() != Opcode::Convolution && llvm::all_of(plan.sides(), [&](const ContractionSide *side) {
             return factorOf(*side).operand->opcode() == Opcode::Parameter;
           });
  }

  struct TileTime {
    KernelEstimate kernel;
    double seconds; ///< with a second kernel that combines parts
    double sectors; ///< that both ask for
  };

  void beginTile(const ContractionTile &tile) {
    plan.tile = tile;
    splitDepth();
    chooseAccesses();
  }

  /// Visits the plan with every tile and number of parts that fit.
  void forEachTile(llvm::function_ref<void(const TileTime &)> visit) {
    for (const ContractionTile &tile : candidates(llvm::product_of(plan.depthSizes))) {
      beginTile(tile);
      const llvm::SmallVector<int64_t> parts = splitCounts();
      if (tile.hasProducer) {
        forEachRing(parts, visit);
        continue;
      }
      for (plan.tile.stages = 1; plan.tile.stages <= mostStages; ++plan.tile.stages) {
        if (plan.tile.stages == 2) {
          chooseAllCopies();
          if (!mayHaveStages())
            break;
        }
        if (plan.tile.stages > 2 && !plan.copiesAny())
          break;
        if (isTooDeep())
          continue;
        for (int64_t splits : parts) {
          plan.splits = splits;
          if (std::optional<TileTime> time = timeIfFits())
            visit(*time);
        }
      }
    }
  }

  void forEachRing(llvm::ArrayRef<int64_t> parts, llvm::function_ref<void(const TileTime &)> visit) {
    if (!chooseMaps())
      return;
    for (plan.tile.stages = 2; plan.tile.stages <= mostStagesOfRing; ++plan.tile.stages)
      for (int64_t splits : parts) {
        plan.splits = splits;
        if (plan.tile.stages <= std::max<int64_t>(plan.stepsOfSplit(), 2)) // no more than are ever filled
          if (std::optional<TileTime> time = timeIfFits())
            visit(*time);
      }
  }

  /// Can a producer copy all sides?
  bool chooseMaps() {
    bool areFound = true;
    forEachSide([&](ContractionSide &side) { areFound &= chooseMap(side); });
    // Of the columns' panels, or of their rows, each block of a cluster copies as many.
    return areFound && plan.rowTiles() % plan.tile.cluster == 0;
  }

  bool chooseMap(ContractionSide &side) {
    side.map = findTileMap(plan, side, factorOf(side).map);
    return side.copied = side.map.has_value();
  }

  /// The same for all tiles, so that it is found once.
  unsigned outputVector() {
    if (!ofOutputs)
      ofOutputs = chooseOutputVector(plan, graph, context());
    return *ofOutputs;
  }

  /// Of the plan with its tile and number of parts, of which the rest follows.
  std::optional<TileTime> timeIfFits() {
    const ContractionTile &tile = plan.tile;
    plan.stage = plan.splits == 1 ? ReductionStage::Whole : ReductionStage::Partial;
    plan.outputVector = plan.splits == 1 && tile.onTensorCores ? outputVector() : 0;
    plan.rounds = 1;
    if (tile.hasProducer && plan.splits == 1)
      plan.rounds = rounds ? std::min(rounds, plan.tiles() / tile.cluster) : plan.fewestRounds(target);
    const int64_t results = plan.outputVector ? plan.outputVector : plan.results();
    if (int64_t(plannedRegisters(plan)) * tile.threadsOfBlock() > registersOfMultiprocessor ||
        (tile.hasProducer &&
         std::max<int64_t>(plan.registersOfConsumers(), plannedRegisters(plan)) < plan.wantedRegisters()))
      return std::nullopt;
    if (!haveAlikeResults() || !canBeInWarpgroups() || plan.sharedBytes() > target.maxSharedBytes ||
        results * int64_t(graph.instructions().size()) > maxOpsPerThread || plan.blocks() > int64_t(target.maxGridX))
      return std::nullopt;
    return tileTime();
  }

  static constexpr const char *unlikeResults = "products lie along and across their sums, so that tensor cores have "
                                               "their results in different places";
  /// Warpgroups multiply what lies along sums, and of 16 bits what lies across them.
  bool canBeInWarpgroups() const {
    return !plan.tile.ofWarpgroups || plan.factorBits() == 16 ||
           llvm::all_of(plan.sides(), [](const ContractionSide *side) { return side->alongDepth; });
  }

  /// Has a thread the same results of all products?
  bool haveAlikeResults() const {
    return llvm::all_of(plan.twins, [&](const ContractionTwin &twin) {
      const ContractionSide &side = plan.isOfRows(twin.side) ? plan.rows : plan.columns;
      return plan.isInterleaved(twin.side) == plan.isInterleaved(side);
    });
  }

  /// One, and those that give all multiprocessors about as many blocks: one or more each.
  llvm::SmallVector<int64_t> splitCounts() const {
    llvm::SmallVector<int64_t> counts = {1};
    if (minorOfOutputs || (plan.ragged && !plan.ragged->areOfRows()))
      return counts; // parts of sums lie as the result does; sums are as long as groups are
    const int64_t steps = plan.steps(), most = steps / leastStepsOfSplit;
    if (parts)
      return {int64_t(llvm::divideCeil(steps, llvm::divideCeil(steps, std::min(parts, steps))))};
    for (int64_t blocks : {1, 2, 4, 8}) {
      int64_t splits = std::min(most, blocks * int64_t(target.multiprocessors) / plan.tiles());
      // Parts of the same size are not tested for their end, where a test is as much as a vector of fragments.
      int64_t even = plan.tile.onTensorCores ? splits : 1;
      while (even > 1 && steps % even != 0)
        --even;
      if (2 * even > splits)
        splits = even;
      if (splits > counts.back())
        counts.push_back(llvm::divideCeil(steps, llvm::divideCeil(steps, splits)));
    }
    return counts;
  }

  /// If each thread makes one result: of each term it loads two factors, of which its warp's are neighbours or the
  /// same. Short sums are straight code, which loads all its factors at once; counted in PTX of such loops.
  double loopSeconds(int64_t depth) {
    constexpr double ofTerm = 4;
    constexpr int64_t straightTerms = 64, termsOfRound = 12;
    KernelCounts counts;
    counts.threadsPerBlock = combiningThreads;
    counts.blocks = llvm::divideCeil(uint64_t(space.shape().numElements()), counts.threadsPerBlock);
    const double warps = double(llvm::divideCeil(space.shape().numElements(), target.warpSize)), terms = double(depth);
    const double products = plan.numProducts();
    counts.instructions = products * warps * terms * ofTerm;
    forEachSide([&](const ContractionSide &side) { counts.footprint += sectorsOf(factorOf(side).operand->shape()); });
    counts.sectors = products * warps * terms * (1 + double(target.warpSize) * plan.bits / sectorBits);
    counts.memoryRoundTrips = depth <= straightTerms ? 1 : terms / termsOfRound;
    counts.chainInstructions = products * terms;
    return estimate(counts, deviceOf(target)).total;
  }

  static constexpr double sectorBits = 256;
  static double sectorsOf(const Shape &shape) { return double(shape.byteSize()) * 8 / sectorBits; }

  TileTime tileTime() {
    const PlanCounts own = countsOf(plan);
    KernelCounts counts = kernelCounts(own);
    counts.blocks = plan.rounds > 1 ? uint64_t(plan.blocks()) : uint64_t(plan.busyTiles());
    counts.threadsPerBlock = uint32_t(plan.tile.threadsOfBlock());
    counts.registers = plannedRegisters(plan);
    counts.sharedBytes = uint32_t(plan.sharedBytes());
    double ofOperands = 0;
    const llvm::SmallVector<const HloInstruction *, 3> heroes = plan.heroes();
    for (const PlanCounts::OperandRead &read : own.reads) {
      const auto number = llvm::find(heroes, read.instr) - heroes.begin();
      const Factor &factor = factors[size_t(number)][read.operand];
      const Shape &shape = factor.operand->shape();
      const double sectorsOfElement =
          double(factor.widest ? factor.widest : deviceBits(shape.elementType())) / sectorBits;
      counts.sectors += read.elements * read.spread * sectorsOfElement;
      counts.footprint += double(shape.numElements()) * sectorsOfElement;
      const double converted = plan.tile.promotes ? 0 : workOfBytes(shape.elementType(), target);
      ofOperands += read.elements * (factor.work + converted) / double(target.warpSize);
    }
    // As wide as sums are, of all outputs: of several products there may be fewer.
    const size_t arrays =
        plan.splits > 1 ? plan.numProducts() : std::min<size_t>(plan.numProducts(), plan.roots.size());
    const double written = double(arrays) * double(space.shape().numElements() * plan.splits) * plan.bits / sectorBits;
    counts.sectors += written;
    counts.footprint += written;
    counts.storedSectors = written;
    counts.instructions += ofOperands;
    if (plan.hero->shape().elementType() == ElementType::F64 && !plan.tile.onTensorCores)
      counts.doubles = own.instructions;
    TileTime time{estimate(counts, deviceOf(target)), 0, counts.sectors};
    time.seconds = time.kernel.total;
    if (plan.splits > 1) { // a second kernel, which reads what this one wrote
      time.sectors += written + written / double(plan.splits);
      time.seconds +=
          secondsToMove(2 * written * sectorBits / 8, deviceOf(target)) +
          double(plan.splits) / splitsInFlight * deviceOf(target).dramLatency / (deviceOf(target).gigahertz * 1e9);
    }
    return time;
  }

  /// A side whose elements are read by `side.vector` can be copied, if it is stored as fragments are, in pieces of as
  /// many or fewer.
  void chooseCopies(ContractionSide &side) {
    side.copied = false;
    const unsigned bits = plan.factorBits();
    if (!plan.tile.onTensorCores || (bits != 16 && bits != 64 && !plan.tile.promotes) || !target.hasAsyncCopies() ||
        plan.fragmentType(side) != plan.typeOfFactor(side))
      return;
    // The same for all tiles that are read so.
    auto [known, isNew] = factorOf(side).copiedBy.try_emplace(side.vector, 0);
    if (isNew)
      known->second = copiedAtOnce(side);
    if (const unsigned length = known->second) {
      side.copied = true;
      side.vector = length;
    }
  }

  /// Neighbours of a side that can be copied together, of up to `side.vector`; 0: none.
  unsigned copiedAtOnce(const ContractionSide &side) {
    constexpr unsigned leastBits = 32; // that a copy may have
    const Factor &factor = factorOf(side);
    const HloInstruction &operand = *factor.operand;
    const ElementType type = operand.shape().elementType();
    const IndexingMap &map = factor.map;
    if (plan.piecesOf(side) > 1 || side.tests > 0 || plan.isRaggedAlong(side) || !storedOperand(operand, map.context()))
      return 0;
    AffineExpr variable = getAffineSymbolExpr(plan.depth.back(), map.context());
    if (!side.alongDepth)
      for (unsigned dim : side.dims)
        if (space.dim(dim) > 1) {
          variable = getAffineDimExpr(dim, map.context());
          if (map.dims()[dim].bounds != Interval{0, space.dim(dim) - 1})
            return 0;
        }
    for (unsigned length = side.vector; length * deviceBits(type) >= leastBits; length /= 2)
      if (factor.strides->areAlignedPieces(variable, side.alongDepth ? plan.depthStarts.back() : 0, length))
        return length;
    return 0;
  }

  /// Along what, and how many neighbours at once, a side's elements are read.
  void chooseAccess(ContractionSide &side) {
    Factor &factor = factorOf(side);
    OperandStrides &own = *factor.strides;
    int64_t ofSide = std::numeric_limits<int64_t>::max(), sizeOfSide = 1;
    for (unsigned dim : side.dims)
      if (space.dim(dim) > 1) {
        ofSide = own.ofDim(dim);
        sizeOfSide = space.dim(dim);
      }
    int64_t ofDepth = own.ofRange(plan.depth.back()), sizeOfDepth = plan.depthSizes.back();
    side.alongDepth = sizeOfDepth > 1 && ofDepth < ofSide;
    int64_t tileRows = plan.isOfRows(side) ? plan.tile.rows() : plan.tile.columns();
    side.pad = side.alongDepth && !plan.tile.onTensorCores ? ContractionPlan::sharedVectorBits / int64_t(plan.bits) : 0;
    side.vector = 1;
    side.copied = false;
    side.map.reset();
    side.spread =
        spreadOf(side.alongDepth ? ofDepth : ofSide,
                 side.alongDepth ? std::min(sizeOfDepth, plan.tile.depth) : std::min(sizeOfSide, tileRows), own.bits());
    if ((side.alongDepth ? ofDepth : ofSide) != 1)
      return;
    int64_t common = side.alongDepth ? (sizeOfDepth | plan.tile.depth) : (sizeOfSide | tileRows);
    for (auto [dim, variable] : llvm::enumerate(factor.map.dims()))
      if (!variable.bounds.isPoint() && own.ofDim(unsigned(dim)) != 1)
        common |= own.ofDim(unsigned(dim));
    for (auto [variable, size] : llvm::zip_equal(plan.depth, plan.depthSizes))
      if (size > 1 && own.ofRange(variable) != 1)
        common |= own.ofRange(variable);
    if (plan.isRaggedAlong(side) || side.branches())
      return; // loads are not merged: neighbouring lanes take neighbours
    // No more than what every thread has some of.
    const unsigned bits = std::max(own.bits(), plan.tile.onTensorCores ? plan.factorBits() : 8u);
    int64_t most =
        std::min<int64_t>(ContractionPlan::sharedVectorBits / bits, tileRows * plan.tile.depth / plan.tile.threads());
    side.vector = unsigned(std::clamp<int64_t>(common & -common, 1, std::max<int64_t>(most, 1)));
  }

  ContractionPlan &plan;
  const FusionGraph &graph;
  const TargetInfo &target;
  const ContractionSpace &space;              ///< the plan's
  std::vector<std::array<Factor, 2>> factors; ///< of all products, by operand; what they share is the first's
  std::optional<unsigned> ofOutputs;          ///< outputVector
  bool comparesTimes = false;                 ///< PlanContext
  int64_t parts = 0, rounds = 0;              ///< PlanChoices
  std::optional<unsigned> minorOfOutputs;     ///< after turnToOutputs
};

ContractionSides::ContractionSides(ContractionPlan &plan, const FusionGraph &graph, const TargetInfo &target,
                                   MLIRContext *context)
    : planner(std::make_unique<ContractionPlanner>(plan, graph, target, context)) {}
ContractionSides::~ContractionSides() = default;
std::optional<Rejection> ContractionSides::find(bool areTurned) { return planner->findSides(areTurned); }
void ContractionSides::chooseAccesses() { planner->chooseAccesses(); }
void ContractionSides::chooseCopies() { planner->chooseAllCopies(); }
bool ContractionSides::chooseMapOfColumns() { return planner->chooseMapOfColumns(); }

std::vector<TileCandidate> tileCandidates(const FusionGraph &graph, const TargetInfo &target, PlanContext &plans,
                                          std::optional<DotAlgorithm> asIf) {
  std::variant<ContractionPlan, Rejection> begun = beginContraction(graph, plans.mlir());
  auto *plan = std::get_if<ContractionPlan>(&begun);
  if (!plan)
    return {};
  plan->asIf = asIf;
  return ContractionPlanner(*plan, graph, target, plans.mlir()).candidatesByTime();
}

template <>
HeroMatch<ContractionPlan> matchHero<ContractionPlan>(const FusionGraph &graph, const FusionAliasing &,
                                                      const TargetInfo &target, PlanContext &plans) {
  std::variant<ContractionPlan, Rejection> begun = beginContraction(graph, plans.mlir());
  if (auto *why = std::get_if<Rejection>(&begun))
    return std::move(*why);
  auto &plan = std::get<ContractionPlan>(begun);
  if (std::optional<Rejection> why = ContractionPlanner(plan, graph, target, plans.mlir()).run(plans))
    return std::move(*why);
  LaunchGeometry launch;
  launch.grid = {uint32_t(plan.blocks()), 1, 1};
  launch.block = {uint32_t(plan.tile.threadsOfBlock()), 1, 1};
  launch.cluster = uint32_t(plan.tile.cluster);
  launch.sharedBytes = plan.sharedBytes();
  OtherSteps others;
  if (plan.splits > 1) {
    others.scratch.assign(plan.numProducts(), {plan.partialSums()});
    others.following.push_back(combinePartialSums(plan, target));
  }
  return {std::move(plan), launch, std::move(others)};
}

} // namespace hloc
