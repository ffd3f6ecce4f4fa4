// One function a hero. What all have in common: a warp that shares a result shuffles once for each halving of its
// lanes, and blocks of several warps meet at a barrier, behind which one warp reads what all have left.

#include "hloc/fusion/PlanCounts.h"

#include "fusion/HeroMatch.h"
#include "hloc/kernel/CopiesAhead.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

namespace hloc {
namespace {

constexpr double lanesPerWarp = 32;
/// Of shared memory, that one pass moves for a lane.
constexpr double bitsOfPass = 32;
/// Vectors that a thread loads before it waits for the first, as far as its registers go.
constexpr double vectorsInFlight = 8;
/// Round trips of a store to shared memory, a barrier and the load behind it.
constexpr double tripsOfBarrier = 3;

double warpsOf(const KernelPlan &kernel) {
  return double(kernel.launch.grid.count()) * std::ceil(double(kernel.launch.block.count()) / lanesPerWarp);
}

/// One exchange of `accumulators` between `threads` that share a result: for all warps, and for the chain of one.
void addExchange(double threads, double accumulators, double warps, PlanCounts &counts) {
  const double shuffles = std::ceil(std::log2(std::max(1.0, std::min(threads, lanesPerWarp))));
  counts.instructions += warps * accumulators * 2 * shuffles;
  counts.sharedPasses += warps * accumulators * shuffles;
  counts.sharedRoundTrips += shuffles;
  counts.chainInstructions += shuffles;
  if (threads <= lanesPerWarp)
    return;
  counts.instructions += warps * accumulators * 8;
  counts.sharedPasses += warps * accumulators * 2;
  counts.sharedRoundTrips += tripsOfBarrier;
  counts.chainInstructions += threads / lanesPerWarp;
}

/// The same where one of the warps that share a result shuffles for all.
void addMeeting(double threads, double accumulators, double warps, PlanCounts &counts) {
  const double ofResult = threads / lanesPerWarp, shuffles = std::log2(lanesPerWarp);
  counts.instructions += warps * accumulators * (5 + 2 + 2 * shuffles / ofResult);
  counts.sharedPasses += warps * accumulators * (2 + shuffles / ofResult);
  counts.sharedRoundTrips += shuffles + tripsOfBarrier;
  counts.chainInstructions += shuffles + ofResult;
}

double accumulatorsOf(const ReductionFrame &frame) { return double(frame.accumulators.size()); }

PlanCounts own(const ContractionPlan &plan, const KernelPlan &) { return countsOf(plan); }

PlanCounts own(const AttentionPlan &plan, const KernelPlan &) { return countsOf(plan); }

PlanCounts own(const RowReductionPlan &plan, const KernelPlan &kernel) {
  PlanCounts counts;
  const bool isCombine = plan.stage == ReductionStage::Combine;
  const double vectors = double(isCombine ? plan.splits : plan.perSplit);
  const double loads = std::ceil(vectors / plan.threadsPerRow) * (isCombine ? 1 : double(plan.runsPerPart));
  counts.memoryRoundTrips = std::ceil(loads / vectorsInFlight);
  counts.chainInstructions = loads * plan.perThread;
  counts.rounds = loads;
  counts.elementsOfRound = plan.perThread;
  auto add = plan.meetsBeforeShuffling ? addMeeting : addExchange;
  add(plan.threadsPerRow, accumulatorsOf(plan.frame), warpsOf(kernel), counts);
  return counts;
}

PlanCounts own(const ColumnReductionPlan &plan, const KernelPlan &kernel) {
  PlanCounts counts;
  const ColumnTiling &tiling = plan.tiling;
  const double loads = std::ceil(double(tiling.runs()) / double(tiling.groups * tiling.splits));
  counts.memoryRoundTrips = std::ceil(loads / std::max(double(tiling.unroll), vectorsInFlight));
  counts.chainInstructions = loads;
  counts.rounds = loads;
  counts.elementsOfRound = tiling.perThread;
  if (tiling.partialRows() > 1)
    addExchange(lanesPerWarp + 1, accumulatorsOf(plan.frame), warpsOf(kernel), counts);
  return counts;
}

PlanCounts ofStages(const StagedReductions &plan, double threads, double loads, double passes, double warps) {
  PlanCounts counts;
  counts.memoryRoundTrips = std::ceil(loads / vectorsInFlight) * passes;
  counts.chainInstructions = loads * double(plan.stages.size() + 1);
  for (const ReductionFrame &stage : plan.stages)
    addExchange(threads, accumulatorsOf(stage), warps, counts);
  return counts;
}

PlanCounts own(const RowsPlan &plan, const KernelPlan &kernel) {
  const double passes = plan.inRegisters ? 1 : double(plan.stages.size() + 1);
  PlanCounts counts =
      ofStages(plan, plan.threadsPerRow, double(plan.vectorsPerThread() * plan.rounds), passes, warpsOf(kernel));
  counts.sharedRoundTrips *= double(plan.rounds);
  return counts;
}

PlanCounts own(const ColumnsPlan &plan, const KernelPlan &kernel) {
  const double passes = plan.inRegisters ? 1 : double(plan.stages.size() + 1);
  return ofStages(plan, plan.groups, double(plan.rowsPerThread()), passes, warpsOf(kernel));
}

PlanCounts own(const TransposePlan &plan, const KernelPlan &kernel) {
  PlanCounts counts;
  const double elements = double(plan.boxElements()) * double(kernel.launch.grid.count()) * double(plan.heroes.size());
  const double bits = TransposePlan::tileBits(*plan.heroes.front());
  counts.sharedPasses = elements * bits / bitsOfPass / lanesPerWarp * 2;
  counts.instructions = elements / lanesPerWarp * 2;
  counts.sharedRoundTrips = tripsOfBarrier;
  // Where tiles reach over the edges of the array, each load is behind a test of its own.
  for (auto [dim, size] : llvm::enumerate(plan.inputDims))
    if (size % plan.box[dim] != 0)
      counts.memoryRoundTrips =
          std::max(1.0, double(plan.boxElements()) / double(std::max<int64_t>(plan.threads, 1)) / plan.inputVector);
  return counts;
}

PlanCounts own(const SortPlan &plan, const KernelPlan &kernel) {
  /// A thread merges its elements one after the other: two comparisons' operands are read for each. Counted in PTX.
  constexpr double passesOfElement = 4, instructionsOfElement = 55, chainOfElement = 24;
  PlanCounts counts;
  const double halvings = std::log2(double(std::max<int64_t>(plan.tile, 2)));
  const double rounds = plan.merged ? 1 : std::ceil(halvings);
  const double perThread = rounds * plan.perThread, values = double(plan.values.size());
  counts.sharedPasses = warpsOf(kernel) * perThread * passesOfElement * values;
  counts.instructions = warpsOf(kernel) * perThread * instructionsOfElement;
  counts.chainInstructions = perThread * chainOfElement;
  // Runs become longer from round to round: halving them takes half as often on average.
  counts.sharedRoundTrips = rounds * (double(plan.perThread) + halvings / 2);
  // Where its part of two runs begins and ends a block finds by halving.
  if (plan.merged)
    counts.memoryRoundTrips += std::log2(double(std::max<int64_t>(plan.merged, 2)));
  return counts;
}

/// These compute and read what the group has, each element where it is needed, and nothing else.
PlanCounts own(const ScatterPlan &, const KernelPlan &) { return {}; }
PlanCounts own(const UpdateSlicePlan &, const KernelPlan &) { return {}; }
PlanCounts own(const ConcatenatePlan &, const KernelPlan &) { return {}; }
PlanCounts own(const InputSlicesPlan &, const KernelPlan &) { return {}; }
PlanCounts own(const LoopPlan &, const KernelPlan &) { return {}; }

} // namespace

/// Of factors, whose multiply-adds are counted once.
constexpr double bitsOfProduct = 16;

/// To load four matrices: bytes are transposed by four more, and what ldmatrix does not load takes two loads; of rows
/// that are held half of the lanes have these in the other order, and four more put them right.
static double instructionsOfFragment(const ContractionPlan &plan, const ContractionSide &side) {
  if (plan.factorBits() == 64 || (plan.factorBits() == 32 && !side.alongDepth))
    return plan.holdsRows() ? 6 : 2;
  return plan.factorBits() == 8 && !side.alongDepth ? 5 : 1;
}

/// Of a step of a contraction: addresses, bounds, the loop.
constexpr double instructionsOfStep = 24;

/// Of a step of a warp: products of fragments, and loads of these, four matrices of 8x8 each.
static void addFragments(const ContractionPlan &plan, double steps, PlanCounts &counts) {
  const ContractionTile &tile = plan.tile;
  const double bits = plan.factorBits(), depthOfFragment = double(plan.fragmentDepth());
  const double passesOfLoad = bits == 64 ? 8 : 4;
  const double rows = double(tile.rows() / tile.warpRows) / ContractionTile::fragmentRows,
               columns = double(tile.columns() / tile.warpColumns) / ContractionTile::fragmentColumns,
               depth = double(tile.depth) / depthOfFragment;
  const FactorPieces pieces = plan.pieces();
  const double products = plan.numProducts() * steps * rows * columns * depth * pieces.products();
  const double terms = products * ContractionTile::fragmentRows * ContractionTile::fragmentColumns * depthOfFragment;
  (bits == 64 ? counts.doubleProducts : counts.products) += bits == 64 ? terms : terms * bits / bitsOfProduct;
  counts.instructions += products;
  for (const ContractionSide *side : plan.sides()) {
    const double loads = steps * (plan.isOfRows(*side) ? rows : columns / 2) * depth * plan.piecesOf(*side);
    counts.instructions += loads * instructionsOfFragment(plan, *side);
    counts.sharedPasses += loads * passesOfLoad;
  }
}

/// Of the full rate, what warpgroups have whose products are of so many columns: measured on an H100 (published
/// microbenchmarks of wgmma), 0.95 and more from 64 columns on.
static double rateOfColumns(int64_t columns) {
  return columns >= 64 ? 1 : columns >= 32 ? 0.56 : columns >= 16 ? 0.36 : 0.19;
}

/// Columns that a warpgroup multiplies at once.
static int64_t columnsAtOnce(const ContractionPlan &plan) {
  const ContractionTile &tile = plan.tile;
  return tile.promotes ? plan.columnsPromoted() : tile.columnsOfGroup();
}

/// Of what others reach (Estimate.cpp), those that are promoted do: 0.78 of the data sheet's rate (DeepGEMM, H800).
constexpr double rateOfPromoted = 0.93;

/// Of the steps of all blocks: products that warpgroups make of what is in shared memory. What it is read there for, a
/// product of 64 rows reads itself.
static void addGroupProducts(const ContractionPlan &plan, double steps, PlanCounts &counts) {
  const ContractionTile &tile = plan.tile;
  constexpr double bitsOfTerms = 256;
  const double bits = plan.factorBits(), groups = double(tile.threads()) / lanesPerWarp / tile.warpsOfGroup;
  const double numProducts = double(plan.numProducts()) * plan.pieces().products(),
               parts = double(tile.columnsOfGroup() / columnsAtOnce(plan)),
               ofGroup = numProducts * parts * double(tile.threadRows / 2) * double(tile.depth) * bits / bitsOfTerms;
  counts.groupProducts += steps * numProducts * double(tile.rows() * tile.columns() * tile.depth) * bits /
                          bitsOfProduct / rateOfColumns(columnsAtOnce(plan)) / (tile.promotes ? rateOfPromoted : 1);
  const double promoted = tile.promotes ? double(plan.sums()) : 0;
  const double held = plan.holdsRows() ? ofGroup / parts * instructionsOfFragment(plan, plan.rows) : 0;
  counts.instructions += steps * groups * tile.warpsOfGroup * (3 * ofGroup + 4 + promoted + held);
  // (Of rows that are held each is read once, for all columns.)
  const double rowsRead = double(tile.rowsOfGroup) / (plan.holdsRows() ? parts : 1);
  counts.sharedPasses +=
      steps * groups * ofGroup * (rowsRead + double(columnsAtOnce(plan))) * bitsOfTerms / bitsOfPass / lanesPerWarp;
}

/// What a warpgroup waits for, in each step, to have fragments of rows: of 64 rows each, an access to shared memory and
/// what transposes bytes. (Others multiply meanwhile, or itself, half of the terms.) An estimate.
static double chainOfHeld(const ContractionPlan &plan) {
  constexpr double instructionsOfLoad = 12;
  return plan.holdsRows() ? instructionsOfLoad * double(plan.tile.threadRows / 2) : 0;
}

/// Of a step, in which a warpgroup waits for its products, a part after the other, and adds them to sums: each warp of
/// a scheduler has its turn. In a ring others multiply meanwhile; else all begin behind a barrier.
static double chainOfPromoted(const ContractionPlan &plan, double products) {
  constexpr double turnsInInstruction = 4;
  const ContractionTile &tile = plan.tile;
  const double groups = double(tile.threads()) / lanesPerWarp / tile.warpsOfGroup, sums = double(plan.sums()),
               parts = sums / double(plan.columnsPromoted() / 2),
               added = parts * instructionsOfMma + sums / turnsInInstruction + chainOfHeld(plan);
  return tile.hasProducer ? std::max(products, products / groups + added + instructionsOfStep)
                          : products + groups * added + instructionsOfStep;
}

/// The chain of one warp: of more than two stages a step's products are made while the next step begins.
static void addGroupWaits(const ContractionPlan &plan, double steps, double waits, PlanCounts &counts) {
  const ContractionTile &tile = plan.tile;
  const bool isOpen = (tile.stages > 2 && !tile.promotes) || tile.hasProducer;
  const double products =
      turnsOfGroups(double(tile.rows() * tile.columns() * tile.depth) * plan.factorBits() / bitsOfProduct *
                    double(plan.numProducts()) * plan.pieces().products() / rateOfColumns(columnsAtOnce(plan)));
  const double chain = tile.promotes ? chainOfPromoted(plan, products)
                       : isOpen      ? std::max(products, instructionsOfStep + chainOfHeld(plan))
                                     : products + instructionsOfStep + instructionsOfMma + chainOfHeld(plan);
  const double sharedTrips = isOpen ? 0 : tripsOfBarrier;
  // Of a ring of two, a copy begins while the step before it is multiplied.
  constexpr double leastAhead = 0.5;
  const bool isHeld = isOpen && !tile.promotes; // is a stage free only when the next one is multiplied?
  const double ahead = plan.copiesAll() ? std::max(double(tile.stages - (isHeld ? 2 : 1)), leastAhead) : 1;
  counts.sharedRoundTrips = steps * sharedTrips;
  counts.inTurns = !isOpen && steps > 1;
  // (What is done in turns has the time of its products beside that of its waits.)
  counts.chainInstructions = steps * (counts.inTurns ? chain - products : chain);
  const double hidden = tripsInTime(chain, sharedTrips);
  counts.memoryRoundTrips = tile.stages == 1 ? steps * std::max(1.0, waits)
                                             : 1 + steps * std::max(tripsBehindCopies(ahead, hidden), waits - hidden);
}

/// Of a multiprocessor.
constexpr double tensorCores = 4;

/// The chain of one warp; `waits`: what a step waits for in turn to have it in registers.
static void addFragmentWaits(const ContractionPlan &plan, double steps, double waits, PlanCounts &counts) {
  const ContractionTile &tile = plan.tile;
  const double fragments = double(tile.depth) / double(plan.fragmentDepth());
  const double products =
      double(plan.results() * plan.numProducts()) / 4 * fragments * double(plan.pieces().products());
  // What goes through registers is made and stored between barriers, whatever stages there are: of dots of f8, s8, s4
  // and f32 as three of bf16 those of two stages took an H100 as long as those of one, products and instructions added
  // up.
  counts.inTurns = (tile.stages == 1 || !plan.copiesAll()) && tile.threads() > int64_t(lanesPerWarp) && steps > 1;
  // (What is done in turns has the time of its products beside that of its waits.)
  const double ofFragments = fragments * instructionsOfMma + instructionsOfStep / 2,
               chain = std::max(ofFragments, products * turnOfMma + instructionsOfStep / 2);
  counts.chainInstructions = steps * (counts.inTurns ? ofFragments : chain);
  counts.memoryRoundTrips = steps * std::max(1.0, waits);
  double sharedTrips = tripsOfBarrier + fragments;
  if (tile.stages > 1) {
    --sharedTrips; // the barrier alone, behind no store
    // What a step waits for has had as many steps before to come; what is in registers is the next one's.
    const double ahead = plan.copiesAll() ? double(tile.stages - 1) : 1;
    // Warps take turns at their tensor core; nobody waits less for it who stores what he loads.
    const double turns = plan.copiesAll() ? std::max(1.0, double(tile.threads()) / lanesPerWarp / tensorCores) : 1;
    const double hidden = tripsInTime(chain * turns, sharedTrips);
    counts.memoryRoundTrips = 1 + steps * std::max(tripsBehindCopies(ahead, hidden), waits - hidden);
  }
  counts.sharedRoundTrips = steps * sharedTrips;
}

static bool hasPadding(const HloInstruction &convolution) {
  return llvm::any_of(convolution.windowOr(convolution.shape().rank() - 2).dims,
                      [](const WindowDim &dim) { return dim.padLow > 0 || dim.padHigh > 0 || dim.baseDilation != 1; });
}

/// Is anything done to what is read of memory, but to find it elsewhere?
static bool isComputed(const HloInstruction &value) {
  using enum Opcode;
  const HloInstruction *source = &value;
  while (llvm::is_contained({Bitcast, Reshape, Transpose, Slice, Broadcast, Copy}, source->opcode()))
    source = source->operand(0);
  return source->opcode() != Parameter;
}

static bool isAtEdge(const ContractionPlan &plan, const ContractionSide &side) {
  if (plan.ragged && (!plan.ragged->areOfRows() || plan.isOfRows(side)))
    return true;
  const int64_t rowsOfTile = plan.isOfRows(side) ? plan.tile.rows() : plan.tile.columns();
  return side.size % rowsOfTile != 0 || plan.innerDepth() % plan.tile.depth != 0;
}

/// Does a test stand before an element is read?
static bool isTested(const ContractionPlan &plan, const ContractionSide &side) {
  return isAtEdge(plan, side) || side.tests > 0 ||
         (plan.hero->opcode() == Opcode::Convolution && hasPadding(*plan.hero));
}

/// Round trips of the vectors that a thread loads of a side's tile, beyond the one of all of them together. Where
/// something is computed of them, loads are not issued all at once; behind branches, none together with another. A test
/// of a tile's edge alone becomes a predicate, those of a convolution's window beside it do not. `isMade`: is there
/// more to do for an element than to load it?
static double waitsOf(const ContractionPlan &plan, const ContractionSide &side, double vectors, bool isMade) {
  const bool isEdge = isAtEdge(plan, side), isWindow = plan.hero->opcode() == Opcode::Convolution;
  // Behind the test of an edge, one of indices is a branch, too: then elements are computed one after the other.
  if (plan.tile.onTensorCores && isMade && isEdge && side.tests > 0)
    return vectors * double(side.vector) * (1 + side.tests);
  // (Of tensor cores' factors it is waited for where a test stands before the load.)
  if (plan.tile.onTensorCores ? isMade && isTested(plan, side) : isMade || (isWindow && isEdge))
    return vectors * (side.branches() ? double(side.vector) : 1);
  return 0;
}

/// Is something made of what is loaded? What tensor cores multiply as it was before it was widened, is not.
static bool isMadeOfLoads(const ContractionPlan &plan, const ContractionSide &side) {
  const HloInstruction *operand = plan.heroOf(side).operand(side.operand);
  if (plan.tile.onTensorCores && operand->opcode() == Opcode::Convert &&
      operand->operand(0)->shape().elementType() == plan.fragmentType(side))
    operand = operand->operand(0);
  return operand->opcode() != Opcode::Parameter;
}

static PlanCounts countsOfTiles(const ContractionPlan &plan) {
  /// Of a vector that goes to shared memory: address, load, store; of one that is copied, and of a test whether there
  /// is any.
  constexpr double instructionsOfVector = 6, instructionsOfCopy = 1.5, instructionsOfTest = 3;
  /// Before its factors are loaded; of iterations of which LLVM makes straight code. Counted in PTX.
  constexpr double instructionsOfIteration = 4, mostUnrolled = 4;
  /// To cut one off a factor.
  constexpr double instructionsOfPiece = 4;
  PlanCounts counts;
  if (plan.stage == ReductionStage::Combine) {
    counts.memoryRoundTrips = std::ceil(double(plan.splits) / vectorsInFlight);
    counts.chainInstructions = double(plan.splits);
    return counts;
  }
  const ContractionTile &tile = plan.tile;
  const double steps = plan.busySteps(), tiles = plan.busyTiles(), threads = double(tile.threads()),
               warps = tiles * threads / lanesPerWarp, terms = double(tile.depth);
  double instructions = instructionsOfStep, waits = 0; // of a step
  for (const ContractionSide *side : plan.sides()) {
    const HloInstruction *hero = &plan.heroOf(*side);
    const int64_t rowsOfTile = plan.isOfRows(*side) ? tile.rows() : tile.columns();
    const double elements = double(rowsOfTile * tile.depth), ofThread = elements / threads / side->vector;
    instructions += ofThread * (side->map               ? 0
                                : !side->copied         ? instructionsOfVector
                                : isTested(plan, *side) ? instructionsOfCopy + instructionsOfTest
                                                        : instructionsOfCopy);
    waits += side->copied ? 0 : waitsOf(plan, *side, ofThread, isMadeOfLoads(plan, *side));
    const double times = 1 / double(plan.copiersOf(*side)); // others copy the rest
    counts.reads.push_back({hero, side->operand, tiles * steps * elements * times, side->spread});
    const unsigned pieces = plan.piecesOf(*side);
    // Copies are written by lines of global memory: of short rows there are more.
    constexpr double bitsOfLine = 1024;
    const double bitsOfRow = double((side->alongDepth ? tile.depth : rowsOfTile) * plan.factorBits());
    const double lines = side->copied ? std::max(1.0, bitsOfLine / bitsOfRow) : 1;
    counts.sharedPasses += warps * steps * elements / threads * plan.factorBits() / bitsOfPass * pieces * lines;
    if (pieces > 1)
      counts.instructions += warps * steps * elements / threads * pieces * instructionsOfPiece;
  }
  if (tile.onTensorCores) {
    counts.instructions += warps * steps * instructions;
    if (tile.ofWarpgroups) {
      addGroupProducts(plan, tiles * steps, counts);
      addGroupWaits(plan, steps * double(plan.rounds), waits, counts);
    } else {
      addFragments(plan, warps * steps, counts);
      addFragmentWaits(plan, steps, waits, counts);
    }
    if (plan.outputVector) { // into shared memory in pairs, and out of it
      const double results = plan.numProducts() * tiles * double(tile.rows() * tile.columns()) / lanesPerWarp;
      counts.instructions += results / 2 + results / plan.outputVector;
      counts.sharedPasses += 2 * results * deviceBits(plan.hero->shape().elementType()) / bitsOfPass;
      const int64_t linesOfThread = plan.areColumnsOfOutputs() ? tile.threadColumns : tile.threadRows;
      counts.sharedRoundTrips +=
          double(plan.rounds * (linesOfThread / plan.outputLinesOfThread())) * 2 * tripsOfBarrier;
    }
    counts.tilesOfBlock = double(plan.rounds);
    return counts;
  }
  const double perRead = double(ContractionPlan::sharedVectorBits) / plan.bits;
  double factors = 0, reads = 0;
  for (const ContractionSide *side : plan.sides()) {
    const double ofSide = double(plan.isOfRows(*side) ? tile.threadRows : tile.threadColumns);
    factors += ofSide;
    reads += std::ceil(ofSide / perRead);
  }
  const double products = double(plan.results() * plan.numProducts());
  counts.instructions += warps * steps * (terms * (products + reads) + instructions);
  counts.sharedPasses += warps * steps * terms * factors * plan.bits / bitsOfPass;
  counts.memoryRoundTrips = steps * std::max(1.0, waits);
  // Few iterations become straight code, which loads ahead; each of more waits for its loads. (Round trips of a
  // window's loads, above, are more than there are by as much.)
  const double iterations = terms / double(plan.termsTogether());
  const bool isLoop = iterations > mostUnrolled && plan.hero->opcode() != Opcode::Convolution;
  const double waiting = isLoop ? iterations : 1;
  counts.sharedRoundTrips = steps * (tripsOfBarrier + waiting);
  counts.chainInstructions = steps * (terms + (waiting - 1) * instructionsOfIteration + instructionsOfStep / 2);
  return counts;
}

PlanCounts countsOf(const ContractionPlan &plan) {
  /// To find out whether a block's tile is one of a group's, or which terms are. Counted in PTX.
  constexpr double instructionsOfGroup = 12;
  PlanCounts counts = countsOfTiles(plan);
  if (plan.ragged && plan.stage != ReductionStage::Combine) { // all sizes are read and added up
    const double ofThread = double(plan.ragged->number) * instructionsOfGroup;
    counts.instructions += plan.busyTiles() * double(plan.tile.threads()) / lanesPerWarp * ofThread;
    counts.chainInstructions += ofThread / 2;
    ++counts.memoryRoundTrips;
  }
  return counts;
}

PlanCounts countsOf(const AttentionPlan &plan) {
  /// Of a piece: addresses, bounds, the loop; of a vector that goes to shared memory: address, load, store; of one that
  /// is copied.
  constexpr double instructionsOfPiece = 24, instructionsOfVector = 6, instructionsOfCopy = 3, passesOfLoad = 4;
  constexpr double fragment = ContractionTile::fragmentRows;
  PlanCounts counts;
  const double blocks = double(plan.blocks()), threads = double(plan.scores.tile.threads()),
               warps = blocks * threads / lanesPerWarp, pieces = double(plan.pieces()), passes = double(plan.passes()),
               keys = pieces * double(plan.piece()), terms = double(plan.terms()), columns = double(plan.columns());
  // Of each pair of products, one load of a key's or a term's fragments. What a mask leaves out is not multiplied with
  // keys.
  const double kept = plan.keptPieces, keptTerms = plan.keptTerms();
  const double besides = plan.beside ? double(plan.passesOfBeside()) : 0,
               piecesOfWeight = double(plan.piecesOfWeight());
  const double termsBeside = plan.beside ? double(AttentionPlan::termsOf(*plan.beside)) : 0;
  const double ofScores = kept * (passes * terms + besides * termsBeside);
  const double pairs = warps * keys / fragment * (ofScores + keptTerms * columns) / fragment;
  const double products = 2 * warps * keys / fragment * (ofScores + keptTerms * piecesOfWeight * columns) / fragment;
  const double terms16 =
      products * ContractionTile::fragmentRows * ContractionTile::fragmentColumns * AttentionPlan::fragmentDepth;
  if (plan.scores.tile.ofWarpgroups) { // each product has 64 rows, and reads what it multiplies
    counts.groupProducts = terms16;
    counts.inTurns = !plan.inRing(); // a block makes weights while it makes no products
    counts.sharedPasses = passesOfLoad * products / 2 / ContractionTile::warpsOfGroup;
  } else {
    counts.products = terms16;
    counts.instructions = pairs + products;
    counts.sharedPasses = passesOfLoad * pairs;
  }
  counts.memoryRoundTrips = 0;
  auto fill = [&](const ContractionPlan &dot, const ContractionSide &side, double elements, double loads) {
    if (plan.inRing() && !dot.isOfRows(side)) { // by tensor maps, ahead of those that multiply
      counts.memoryRoundTrips += 1;
      counts.reads.push_back({dot.hero, side.operand, elements, side.spread});
      counts.sharedPasses += elements / lanesPerWarp * dot.factorBits() / bitsOfPass;
      return;
    }
    const double vectors = elements / blocks / loads / threads / side.vector;
    counts.memoryRoundTrips +=
        loads * std::max(1.0, waitsOf(dot, side, vectors, isComputed(*dot.hero->operand(side.operand))));
    counts.reads.push_back({dot.hero, side.operand, elements, side.spread});
    counts.instructions +=
        elements / lanesPerWarp / side.vector * (side.copied ? instructionsOfCopy : instructionsOfVector);
    counts.sharedPasses += elements / lanesPerWarp * dot.factorBits() / bitsOfPass;
  };
  fill(plan.scores, plan.scores.rows, blocks * double(plan.scores.tile.rows()) * terms, 1);
  fill(plan.scores, plan.scores.columns, blocks * kept * passes * keys * terms, kept * passes * pieces);
  if (plan.beside) {
    fill(*plan.beside, plan.beside->rows, blocks * double(plan.scores.tile.rows()) * termsBeside, 1);
    fill(*plan.beside, plan.beside->columns, blocks * besides * keys * termsBeside, besides * pieces);
  } else {
    fill(plan.product, plan.product.columns, blocks * keptTerms * keys * columns, keptTerms * pieces);
  }
  const double scores = blocks * double(plan.scores.tile.rows()) * keys;
  counts.reads.push_back({plan.product.hero, plan.product.rows.operand, scores, 1});
  counts.instructions += warps * (passes + 1) * pieces * instructionsOfPiece +
                         (kept * plan.workOfScore() - plan.workOnce) * scores / lanesPerWarp;
  for (const ReductionFrame &stage : plan.stages)
    addExchange(double(plan.scores.tile.laneColumns()), 2 * accumulatorsOf(stage), warps, counts);
  if (plan.inRing()) { // a warpgroup's weights are made while the tensor cores multiply for both
    counts.chainInstructions += turnsOfGroups(terms16 / blocks);
    return counts;
  }
  // Keys once a pass, terms once: each on its way while something is multiplied.
  counts.sharedRoundTrips += pieces * (kept * passes + (plan.beside ? besides : keptTerms)) * tripsOfBarrier;
  // Products of one sum follow each other, and what is added up in a row.
  counts.chainInstructions +=
      pieces * (ofScores + keptTerms * piecesOfWeight * double(plan.piece())) / fragment * instructionsOfMma;
  counts.chainInstructions +=
      plan.workOfScore() + double(plan.stages.size()) * keys / double(plan.scores.tile.laneColumns());
  return counts;
}

KernelCounts kernelCounts(const PlanCounts &own) {
  KernelCounts counts;
  counts.instructions = own.instructions;
  counts.sharedPasses = own.sharedPasses;
  counts.products = own.products;
  counts.groupProducts = own.groupProducts;
  counts.doubleProducts = own.doubleProducts;
  counts.memoryRoundTrips = own.memoryRoundTrips;
  counts.sharedRoundTrips = own.sharedRoundTrips;
  counts.chainInstructions = own.chainInstructions;
  counts.inTurns = own.inTurns;
  counts.tilesOfBlock = own.tilesOfBlock;
  return counts;
}

PlanCounts countsOf(const KernelPlan &kernel) {
  return visitHero(kernel.plan, [&](const auto &plan) { return own(plan, kernel); });
}

} // namespace hloc
