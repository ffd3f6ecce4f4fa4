#include "fusion/ContractionSides.h"
#include "fusion/OpWork.h"
#include "hloc/fusion/PlanCounts.h"
#include "hloc/fusion/TileCandidates.h"
#include "hloc/indexing/ShapeMaps.h"
#include "hloc/kernel/Estimate.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <limits>

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
/// Why a tile is not taken that may be with other rows.
constexpr llvm::StringLiteral acrossSums = "warpgroups multiply factors of these types only along their sums";

/// May warpgroups have rows from registers, if these lie across their sums? Factors of 16 bits they multiply as they
/// lie, those of 64 not at all.
bool mayHoldRows(const ContractionPlan &plan, const TargetInfo &target) {
  const auto types = plan.fragmentTypes();
  const unsigned bits = plan.mayPromote() ? 8 : types ? deviceBits(types->front()) : 0;
  return target.hasWarpgroups() && plan.hero->opcode() == Opcode::Dot && (bits == 8 || bits == 32) &&
         !ContractionPlan::piecesOf(*plan.hero, plan.algorithm()).areSeveral();
}

} // namespace

class ContractionPlanner {
public:
  /// `isTurned`: with what lies side by side in the outputs as rows, for the tiles that hold these.
  ContractionPlanner(ContractionPlan &plan, bool isTurned, const FusionGraph &graph, const TargetInfo &target,
                     PlanContext &plans)
      : plan(plan), graph(graph), target(target), sides(plan, graph, target, plans.mlir()),
        comparesTimes(plans.comparesTimes), wanted(plans.choices.tile), parts(plans.choices.parts),
        rounds(plans.choices.rounds), context(plans.mlir()) {
    plan.storesColumns = isTurned;
  }

  /// Finds the sides, without which there is no more to ask.
  std::optional<Rejection> prepare() {
    if (std::optional<Rejection> why = sides.find())
      return why;
    if (const int64_t depth = llvm::product_of(plan.depthSizes); depth < leastDepth)
      return Rejection{fmt::format("sums of {} terms are too short", depth)};
    return std::nullopt;
  }

  /// Then takes a tile: the one that is asked for, or the best of those for which the kernel takes less than `limit`
  /// seconds.
  std::optional<Rejection> choose(double limit = std::numeric_limits<double>::infinity()) {
    seconds = limit;
    return wanted ? takeTile(*wanted) : chooseTile();
  }
  /// What the tile that was taken takes; if there is none, what one may take.
  double secondsTaken() const { return seconds; }

  /// With every tile and number of parts that fit.
  std::vector<TileCandidate> candidates() {
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
    return found;
  }

private:
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
  llvm::SmallVector<ContractionTile> tilesFor(int64_t depth) {
    llvm::SmallVector<ContractionTile> tiles;
    const bool byTensorCores = mayUseTensorCores();
    if (byTensorCores && !plan.storesColumns)
      addTilesOfFragments(plan, depth, tiles);
    if (byTensorCores && target.hasWarpgroups() && plan.hero->shape().elementType() != ElementType::F64)
      addTilesOfWarpgroups(plan, depth, tiles);
    if (!plan.storesColumns && (!byTensorCores || !ContractionPlan::multipliesWholeFactors(*plan.hero)))
      addTilesOfThreads(plan, depth, tiles);
    return tiles;
  }

  std::optional<Rejection> chooseTile() {
    if (!parts && !rounds)
      seconds = std::min(seconds, loopSeconds(llvm::product_of(plan.depthSizes)));
    return takeFastest(seconds, [](const ContractionTile &) { return true; })
               ? std::nullopt
               : std::optional(Rejection{haveAlikeResults() ? "a loop for each result is as fast" : unlikeResults});
  }

  /// The fastest way to have the tile, however fast that is.
  std::optional<Rejection> takeTile(const TileSizes &sizes) {
    auto isWanted = [&](const ContractionTile &tile) { return tile.sizes() == sizes; };
    if (takeFastest(std::numeric_limits<double>::infinity(), isWanted))
      return std::nullopt;
    auto inAllStages = [](TileSizes one) {
      one.stages = 1;
      return one;
    };
    for (const ContractionTile &tile : tilesFor(llvm::product_of(plan.depthSizes)))
      if (inAllStages(tile.sizes()) == inAllStages(sizes))
        return Rejection{whyNot(tile, sizes.stages)};
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
      if (!side->copied && sides.factorOf(*side).widest > 16)
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
    if (!chooseShared())
      return "no blocks of rows or columns come in pairs that share what can be halved";
    if (tile.hasProducer && (stages == 1 || !sides.chooseMaps()))
      return stages == 1 ? "a ring has two stages at least"
                         : "tensor maps cannot copy what sides are made of: matrices of parameters, of 8 or 16 bits, "
                           "or rounded to tf32, whose rows are multiples of 16 bytes apart";
    if (!tile.hasProducer)
      sides.chooseCopies();
    if (!haveAlikeResults())
      return unlikeResults;
    if (!canBeInWarpgroups())
      return acrossSums.str();
    if (stages > 1 && !mayHaveStages())
      return plan.tile.onTensorCores ? "what all sides are made of goes through registers, of which there are too few"
                                     : "threads multiply what all sides are made of in one stage";
    if (stages > 2 && !plan.copiesAny())
      return "what all sides are made of goes through registers, which are one stage ahead";
    if (stages == 1)
      sides.chooseAccesses();
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
      (void)(chooseShared() && sides.chooseMaps());
    else if (best.tile.stages > 1)
      sides.chooseCopies();
    plan.tile.stages = best.tile.stages;
    plan.splits = best.splits;
    seconds = best.time.seconds;
    return timeIfFits().has_value();
  }

  /// Are factors read, and neither computed nor of a window? How long threads wait for these is estimated less well.
  bool areStored() {
    return plan.hero->opcode() != Opcode::Convolution && llvm::all_of(plan.sides(), [&](const ContractionSide *side) {
             return sides.factorOf(*side).operand->opcode() == Opcode::Parameter;
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
    sides.chooseAccesses();
  }

  /// Visits the plan with every tile and number of parts that fit.
  void forEachTile(llvm::function_ref<void(const TileTime &)> visit) {
    for (const ContractionTile &tile : tilesFor(llvm::product_of(plan.depthSizes))) {
      beginTile(tile);
      const llvm::SmallVector<int64_t> parts = splitCounts();
      if (tile.hasProducer) {
        forEachRing(parts, visit);
        continue;
      }
      for (plan.tile.stages = 1; plan.tile.stages <= mostStages; ++plan.tile.stages) {
        if (plan.tile.stages == 2) {
          sides.chooseCopies();
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

  /// What blocks of a cluster share, if they are several: the larger side, where the other side's tiles come in as
  /// many. Each copies as many panels of its tile, or of the rows of a panel that lie along their sums.
  bool chooseShared() {
    ContractionTile &tile = plan.tile;
    auto mayShare = [&](bool areRows, int64_t tilesOfOther) {
      return tilesOfOther % tile.cluster == 0 && llvm::all_of(plan.sides(), [&](const ContractionSide *side) {
               return plan.isOfRows(*side) != areRows || side->alongDepth ||
                      plan.stride(*side) / plan.panelOf(*side) % tile.cluster == 0;
             });
    };
    const bool mayShareColumns = mayShare(false, plan.rowTiles()), mayShareRows = mayShare(true, plan.columnTiles());
    tile.sharesRows = tile.cluster > 1 && mayShareRows && (tile.rows() > tile.columns() || !mayShareColumns);
    return mayShareColumns || mayShareRows;
  }

  void forEachRing(llvm::ArrayRef<int64_t> parts, llvm::function_ref<void(const TileTime &)> visit) {
    if (!chooseShared() || !sides.chooseMaps())
      return;
    for (plan.tile.stages = 2; plan.tile.stages <= mostStagesOfRing; ++plan.tile.stages)
      for (int64_t splits : parts) {
        plan.splits = splits;
        if (plan.tile.stages <= std::max<int64_t>(plan.stepsOfSplit(), 2)) // no more than are ever filled
          if (std::optional<TileTime> time = timeIfFits())
            visit(*time);
      }
  }

  /// The same for all tiles, so that it is found once.
  unsigned outputVector() {
    if (!ofOutputs)
      ofOutputs = chooseOutputVector(plan, graph, context);
    return *ofOutputs;
  }

  /// Of the plan with its tile and number of parts, of which the rest follows.
  std::optional<TileTime> timeIfFits() {
    const ContractionTile &tile = plan.tile;
    plan.stage = plan.splits == 1 ? ReductionStage::Whole : ReductionStage::Partial;
    if (!haveAlikeResults() || !canBeInWarpgroups())
      return std::nullopt;
    // (Behind that: of tiles that are left either all store columns or none does, and how outputs are stored is the
    // same for all.)
    plan.outputVector = plan.splits == 1 && tile.onTensorCores ? outputVector() : 0;
    plan.rounds = 1;
    if (tile.hasProducer && plan.splits == 1)
      plan.rounds = rounds ? std::min(rounds, plan.tiles() / tile.cluster) : plan.fewestRounds(target);
    const int64_t results = plan.outputVector ? plan.outputVector : plan.results();
    if (int64_t(plannedRegisters(plan)) * tile.threadsOfBlock() > registersOfMultiprocessor ||
        (tile.hasProducer &&
         std::max<int64_t>(plan.registersOfConsumers(), plannedRegisters(plan)) < plan.wantedRegisters()))
      return std::nullopt;
    if (plan.sharedBytes() > target.maxSharedBytes ||
        results * int64_t(graph.instructions().size()) > maxOpsPerThread || plan.blocks() > int64_t(target.maxGridX))
      return std::nullopt;
    return tileTime();
  }

  static constexpr const char *unlikeResults = "products lie along and across their sums, so that tensor cores have "
                                               "their results in different places";
  /// Warpgroups multiply what lies along sums, and of 16 bits what lies across them; rows of others that do are held.
  bool canBeInWarpgroups() const {
    const bool mayLieAcross = plan.factorBits() == 16, areHeld = plan.holdsRows();
    return (!plan.storesColumns || areHeld) &&
           (!plan.tile.ofWarpgroups || llvm::all_of(plan.sides(), [&](const ContractionSide *side) {
             return side->alongDepth || mayLieAcross || (areHeld && plan.isOfRows(*side));
           }));
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
    if ((sides.areTurned() && !plan.storesColumns) || (plan.ragged && !plan.ragged->areOfRows()))
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
    counts.blocks = llvm::divideCeil(uint64_t(plan.space.shape().numElements()), counts.threadsPerBlock);
    const double warps = double(llvm::divideCeil(plan.space.shape().numElements(), target.warpSize)),
                 terms = double(depth);
    const double products = plan.numProducts();
    counts.instructions = products * warps * terms * ofTerm;
    for (const ContractionSide *side : plan.sides())
      counts.footprint += sectorsOf(sides.factorOf(*side).operand->shape());
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
      const ContractionSides::Factor &factor = sides.factorOf(size_t(number), read.operand);
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
    const double written =
        double(arrays) * double(plan.space.shape().numElements() * plan.splits) * plan.bits / sectorBits;
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

  ContractionPlan &plan;
  const FusionGraph &graph;
  const TargetInfo &target;
  ContractionSides sides;
  const bool comparesTimes;              ///< PlanContext
  const std::optional<TileSizes> wanted; ///< PlanChoices, as are the next ones
  const int64_t parts, rounds;
  MLIRContext *context;
  std::optional<unsigned> ofOutputs;                        ///< outputVector
  double seconds = std::numeric_limits<double>::infinity(); ///< secondsTaken
};

std::vector<TileCandidate> tileCandidates(const FusionGraph &graph, const TargetInfo &target, PlanContext &plans,
                                          std::optional<DotAlgorithm> asIf) {
  std::variant<ContractionPlan, Rejection> begun = beginContraction(graph, plans.mlir());
  auto *plan = std::get_if<ContractionPlan>(&begun);
  if (!plan)
    return {};
  plan->asIf = asIf;
  ContractionPlan turned = *plan;
  std::vector<TileCandidate> all = ContractionPlanner(*plan, false, graph, target, plans).candidates();
  if (mayHoldRows(turned, target))
    llvm::append_range(all, ContractionPlanner(turned, true, graph, target, plans).candidates());
  llvm::stable_sort(all, [](const TileCandidate &a, const TileCandidate &b) { return a.seconds < b.seconds; });
  return all;
}

template <>
HeroMatch<ContractionPlan> matchHero<ContractionPlan>(const FusionGraph &graph, const FusionAliasing &,
                                                      const TargetInfo &target, PlanContext &plans) {
  std::variant<ContractionPlan, Rejection> begun = beginContraction(graph, plans.mlir());
  if (auto *why = std::get_if<Rejection>(&begun))
    return std::move(*why);
  auto &plan = std::get<ContractionPlan>(begun);
  ContractionPlan turned = plan;
  ContractionPlanner planner(plan, false, graph, target, plans);
  std::optional<Rejection> why = planner.prepare();
  if (!why)
    why = planner.choose();
  const std::optional<TileSizes> wanted = plans.choices.tile;
  if ((why || !wanted) && mayHoldRows(turned, target))
    if (ContractionPlanner ofTurned(turned, true, graph, target, plans); !ofTurned.prepare()) {
      const std::optional<Rejection> whyTurned = ofTurned.choose(planner.secondsTaken());
      if (!whyTurned)
        plan = std::move(turned);
      if (!whyTurned || (why && why->reason == acrossSums))
        why = whyTurned;
    }
  if (wanted)
    plans.tileRefusal = why ? why->reason : "";
  if (why)
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
