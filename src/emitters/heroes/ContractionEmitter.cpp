// One idea: a step's terms of all sides are put into shared memory by all threads of a block, and each multiplies its
// rows by its columns of them. Where tiles and results lie is in OperandTile and OutputTile.

#include "emitters/heroes/ContractionEmitter.h"

#include "emitters/heroes/FragmentTiles.h"
#include "emitters/heroes/OperandTile.h"
#include "emitters/heroes/OutputTile.h"
#include "emitters/heroes/RaggedTiles.h"
#include "emitters/heroes/TileRing.h"
#include "emitters/heroes/WarpgroupProduct.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace hloc {
namespace {

/// Which part of the sums a block has.
AffineExpr partOf(const ContractionPlan &plan, const KernelBuilder &kernel) {
  return kernel.block().floorDiv(plan.tiles());
}

/// Tiles of rows whose blocks follow each other, all of one tile of columns. Blocks that run at the same time then have
/// about as many rows as columns, and read less that others of them do not; where there are few tiles of columns, they
/// have so anyway.
int64_t rowTilesTogether(const ContractionPlan &plan) {
  constexpr int64_t most = 8, fewColumnTiles = 16;
  if (plan.ragged || plan.columnTiles() <= fewColumnTiles)
    return plan.tile.sharesRows ? 1 : plan.tile.cluster;
  return std::min(most, plan.rowTiles() & -plan.rowTiles());
}

/// The block's tile, and the step of its part of the sums. Blocks that share rows follow each other.
TilePlace placeOf(const ContractionPlan &plan, const KernelBuilder &kernel) {
  const int64_t ofBatch = plan.rowTiles() * plan.columnTiles(), rows = rowTilesTogether(plan),
                columns = plan.tile.sharesRows ? plan.tile.cluster : 1;
  AffineExpr tile = kernel.block() % plan.tiles(), inBatch = tile % ofBatch,
             together = inBatch % (rows * plan.columnTiles()), ofCluster = together.floorDiv(columns),
             step = getAffineDimExpr(kernel.idVariables().size(), kernel.context());
  return {tile.floorDiv(ofBatch), inBatch.floorDiv(rows * plan.columnTiles()) * rows + ofCluster % rows,
          ofCluster.floorDiv(rows) * columns + together % columns, partOf(plan, kernel) * plan.stepsOfSplit() + step,
          plan.stepsOfSplit()};
}

class ContractionEmitter : ContractionThreads {
public:
  ContractionEmitter(const ContractionPlan &plan, KernelBuilder &kernel, const TilePlace &at, StepRange steps)
      : ContractionThreads(plan, kernel), b(kernel.code()), context(kernel.context()), values(b, plan), range(steps),
        outputs(plan, kernel, at) {
    for (unsigned number = 0; number < plan.numProducts(); ++number)
      products.push_back(plan.ofProduct(number));
    auto add = [&](const ContractionPlan &product, bool isRows) {
      operands.emplace_back(product, isRows ? product.rows : product.columns, kernel, at);
    };
    const bool shareRows = this->shareRows();
    add(products.front(), shareRows);
    for (const ContractionPlan &product : products)
      add(product, !shareRows);
  }

  llvm::LogicalResult emit() {
    const bool multiplies = plan.stage != ReductionStage::Combine, stores = plan.stage != ReductionStage::Partial;
    SmallVector<FunctionRequest, 4> requests;
    if (multiplies)
      requests = llvm::map_to_vector<4>(operands, [](const OperandTile &operand) { return operand.request(); });
    if (stores)
      requests.push_back(outputs.request());
    auto functions = kernel.emitFunctions(requests);
    if (failed(functions))
      return failure();
    if (stores)
      outputs.setFunction(functions->back());
    if (!multiplies) {
      combine();
      return success();
    }
    for (auto [operand, function] : llvm::zip_first(operands, *functions))
      operand.setFunction(function);
    if (tile.hasProducer) {
      runRing(stores);
      return success();
    }
    if (SmallVector<Value> made = withoutRests(tile.ofWarpgroups    ? sumsOfWarpgroups()
                                               : tile.stages == 1   ? sums()
                                               : isWrittenBetween() ? sumsOfWritten()
                                               : isAhead()          ? sumsAhead()
                                                                    : stagedSums());
        stores)
      outputs.store(made);
    else
      outputs.storePartial(made, partOf(plan, kernel));
    return success();
  }

private:
  bool shareRows() const { return plan.twins.empty() || !plan.isOfRows(plan.twins.front().side); }
  SmallVector<Value> allocate() {
    return llvm::map_to_vector(operands, [](const OperandTile &operand) { return operand.allocate(); });
  }
  /// Adds the products of what is in the tiles of a step, or of a stage.
  SmallVector<Value> addProducts(ArrayRef<Value> tiles, ValueRange sums, Value stage = {}) {
    if (!tile.onTensorCores)
      return multiply(tiles, sums);
    return FragmentTiles::multiply(fragmentTiles(stage), shareRows(), tiles, sums);
  }

  /// Of all products.
  std::vector<FragmentTiles> fragmentTiles(Value stage) {
    std::vector<FragmentTiles> tiles;
    for (const ContractionPlan &product : products)
      tiles.emplace_back(product, kernel, operands.front().factorType(), stage);
    return tiles;
  }

  /// A thread's sums, by row and column, of all terms. While a step's products are added up, what the next one needs is
  /// on its way to registers.
  SmallVector<Value> sums() {
    SmallVector<Value> carried = allocate();
    const size_t numSums = size_t(plan.sums()), numTiles = operands.size();
    carried.append(numSums, values.zero());
    llvm::append_range(carried, load(firstStep()));
    carried = loopSteps(carried, [&](Value step, ValueRange before) {
      ValueRange loaded = before.drop_front(numTiles + numSums);
      SmallVector<Value> tiles = synchronize(fill(before.take_front(numTiles), loaded));
      SmallVector<Value> following = loadAhead(step, 1, loaded);
      SmallVector<Value> added = addProducts(tiles, before.slice(numTiles, numSums));
      SmallVector<Value> next = synchronize(tiles);
      llvm::append_range(next, added);
      llvm::append_range(next, following);
      return next;
    });
    return SmallVector<Value>(ArrayRef(carried).slice(numTiles, numSums));
  }

  /// Sums of first pieces with those of all others, if there are any. Where these are not finite there is an infinity
  /// or no number among the factors, and it is among their first pieces.
  SmallVector<Value> withoutRests(ArrayRef<Value> sums) {
    const size_t numResults = size_t(plan.results()), ofProduct = size_t(plan.sumsOfProduct());
    SmallVector<Value> whole;
    for (; !sums.empty(); sums = sums.drop_front(ofProduct)) {
      SmallVector<Value> own(sums.take_front(numResults));
      for (auto [sum, rest] : llvm::zip(own, sums.slice(numResults, ofProduct - numResults))) {
        Value isFinite =
            b.cmpF(CodeBuilder::FPred::OLT, math::AbsFOp::create(b, rest), std::numeric_limits<double>::infinity());
        sum = b.addF(sum, b.select(isFinite, rest, values.zero()));
      }
      llvm::append_range(whole, own);
    }
    return whole;
  }

  /// The same of tiles in several stages. Behind the barrier of a step all have what it multiplies, and nobody reads
  /// the stage that was multiplied before: there the copies begin that are as many steps ahead as there are other
  /// stages.
  SmallVector<Value> stagedSums() {
    const int64_t ahead = tile.stages - 1;
    const size_t numSums = size_t(plan.sums()), numTiles = operands.size();
    SmallVector<Value> tiles = beginCopies(ahead);
    SmallVector<Value> carried = tiles;
    carried.push_back(b.index(ahead)); // the stage of the step before
    carried.append(numSums, values.zero());
    llvm::append_range(carried, load(firstStep()));
    carried = loopSteps(carried, [&](Value step, ValueRange before) {
      Value freeStage = before[numTiles], stage = stageAfter(freeStage);
      ValueRange sums = before.slice(numTiles + 1, numSums), loaded = before.drop_front(numTiles + 1 + numSums);
      SmallVector<Value> filled = fill(before.take_front(numTiles), loaded, stage);
      SmallVector<Value> next = synchronize(await(filled, ahead - 1));
      next = commit(ifAhead(step, ahead, next, [&, now = next](Value other) { return copy(now, other, freeStage); }));
      SmallVector<Value> following = loadAhead(step, 1, loaded);
      SmallVector<Value> added = addProducts(next, sums, stage);
      next.push_back(stage);
      llvm::append_range(next, added);
      llvm::append_range(next, following);
      return next;
    });
    return SmallVector<Value>(ArrayRef(carried).slice(numTiles + 1, numSums));
  }

  bool isWrittenBetween() const { return tile.stages == 2 && !plan.copiesAll(); }

  /// The same of tiles in two stages of which some go through registers: the next step's are written while the last
  /// products of this one are made, before the barrier that both are behind.
  SmallVector<Value> sumsOfWritten() {
    const size_t numSums = size_t(plan.sums()), numTiles = operands.size();
    SmallVector<Value> tiles = beginCopies(1), first = load(firstStep());
    SmallVector<Value> carried = fill(tiles, first, b.index(0));
    carried.push_back(b.index(0));
    carried.append(numSums, values.zero());
    llvm::append_range(carried, ifThere(1, first, [&](Value other) { return load(other); }));
    carried = loopSteps(carried, [&](Value step, ValueRange before) {
      Value stage = before[numTiles], following = stageAfter(stage);
      ValueRange sums = before.slice(numTiles + 1, numSums), loaded = before.drop_front(numTiles + 1 + numSums);
      SmallVector<Value> now = synchronize(await(before.take_front(numTiles), 0)), next, nextLoaded;
      now = commit(ifAhead(step, 1, now, [&](Value other) { return copy(now, other, following); }));
      SmallVector<Value> added =
          FragmentTiles::multiply(fragmentTiles(stage), shareRows(), now, sums, /*beforeLast=*/[&] {
            next = fill(now, loaded, following);
            nextLoaded = loadAhead(step, 2, loaded);
          });
      next.push_back(following);
      llvm::append_range(next, added);
      llvm::append_range(next, nextLoaded);
      return next;
    });
    return SmallVector<Value>(ArrayRef(carried).slice(numTiles + 1, numSums));
  }

  /// The same where warpgroups multiply, behind threads' backs: of more than two stages a step's products are made
  /// while the next step's barrier is waited for. What is behind that barrier, all warpgroups have done with the
  /// products of the step before the last.
  SmallVector<Value> sumsOfWarpgroups() {
    const int64_t open = tile.stages > 2 && !tile.promotes ? 1 : 0, ahead = tile.stages - 1 - open;
    const size_t numTiles = operands.size();
    SmallVector<Value> carried = beginCopies(ahead);
    carried.push_back(b.index(tile.stages - 1)); // the stage of the step before
    const SmallVector<Value> none = noSums();
    const size_t numSums = none.size();
    llvm::append_range(carried, none);
    llvm::append_range(carried, load(firstStep()));
    carried = loopSteps(carried, [&](Value step, ValueRange before) {
      Value last = before[numTiles], stage = stageAfter(last);
      ValueRange sums = before.slice(numTiles + 1, numSums), loaded = before.drop_front(numTiles + 1 + numSums);
      SmallVector<Value> filled = fill(before.take_front(numTiles), loaded, stage);
      SmallVector<Value> next = synchronize(publish(await(filled, std::max<int64_t>(ahead - 1, 0))));
      if (ahead > 0) {
        Value free = open ? stageAfter(stage, tile.stages - 2) : last;
        next = commit(ifAhead(step, ahead, next, [&, now = next](Value other) { return copy(now, other, free); }));
      }
      SmallVector<Value> following = loadAhead(step, 1, loaded);
      SmallVector<Value> added = addGroupProducts(next, sums, stage);
      if (!tile.promotes)
        xla_gpu::AwaitProductsOp::create(b, TypeRange(), ValueRange(), uint64_t(open));
      if (tile.stages == 1)
        next = synchronize(next);
      next.push_back(stage);
      llvm::append_range(next, added);
      llvm::append_range(next, following);
      return next;
    });
    return knownSums(ArrayRef(carried).slice(numTiles + 1, numSums));
  }

  /// Of what steps carry. If they are promoted, the registers in which products are made are behind them.
  SmallVector<Value> noSums() {
    SmallVector<Value> sums(size_t(plan.sums()), values.zero());
    if (tile.promotes)
      sums.append(size_t(plan.columnsPromoted() / 2), ub::PoisonOp::create(b, values.computed()).getResult());
    return sums;
  }

  /// When all steps' products are made.
  SmallVector<Value> knownSums(ArrayRef<Value> sums) {
    if (tile.promotes)
      return SmallVector<Value>(sums.take_front(size_t(plan.sums())));
    return awaitProducts(b, sums);
  }

  /// Starts them, of all products; makes those that are promoted.
  SmallVector<Value> addGroupProducts(ArrayRef<Value> tiles, ValueRange sums, Value stage) {
    SmallVector<Value> made, parts(sums.drop_front(size_t(plan.sums())));
    for (auto [product, own] : llvm::zip_equal(products, tiles.drop_front())) {
      WarpgroupProduct products(product, kernel, operands.front().factorType(), stage, stage);
      const auto number = size_t(product.sumsOfProduct());
      Value rows = shareRows() ? tiles.front() : own, columns = shareRows() ? own : tiles.front();
      llvm::append_range(made, tile.promotes ? products.addPromoted(rows, columns, sums.take_front(number), parts)
                                             : products.add(rows, columns, sums.take_front(number)));
      sums = sums.drop_front(number);
    }
    llvm::append_range(made, parts);
    return made;
  }

  SmallVector<Value> publish(ValueRange tiles) {
    return SmallVector<Value>(xla_gpu::PublishTilesOp::create(b, TypeRange(tiles), tiles).getResults());
  }

  // --- a ring: one warpgroup copies tiles into it, the others multiply them

  void runRing(bool stores) {
    SmallVector<Value> tiles = allocate();
    TileRing ring(tile, kernel, /*mayTell=*/false, /*areLoaded=*/plan.holdsRows());
    auto multiplyAll = [&] {
      std::vector<Value> &written = stores ? kernel.outputs() : kernel.scratch();
      const TileRing::Turn first = ring.beforeUses();
      SmallVector<Value> carried = {first.stage, first.parity};
      llvm::append_range(carried, written);
      carried = forEachTile(carried, [&](ValueRange before) {
        llvm::copy(before.drop_front(TileRing::valuesOfTurn), written.begin());
        SmallVector<Value> next(before.take_front(TileRing::valuesOfTurn));
        if (SmallVector<Value> made = withoutRests(sumsOfRing(tiles, ring, next)); stores)
          outputs.store(made);
        else
          outputs.storePartial(made, partOf(plan, kernel));
        llvm::append_range(next, written);
        return next;
      });
      llvm::copy(ArrayRef(carried).drop_front(TileRing::valuesOfTurn), written.begin());
    };
    ring.run(plan.exchangesRegisters() ? plan.registersOfConsumers() : 0, [&] { fillRing(tiles, ring); }, multiplyAll);
  }

  /// Of all tiles of results that the block has, one after the other, what `body` carries: inside, the block is that of
  /// a grid with one for each.
  SmallVector<Value> forEachTile(ValueRange carried, llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
    if (plan.rounds == 1)
      return body(carried);
    AffineExpr tile = kernel.block() + getAffineSymbolExpr(0, context) * plan.blocks();
    IndexingMap map = kernel.mapOf({tile}, {plan.rounds});
    map.addConstraint(tile, Interval{0, plan.tiles() - 1});
    map.simplify();
    return kernel.loop(map, carried, [&](ValueRange, ValueRange number, ValueRange before) {
      SmallVector<Value> next;
      kernel.asBlock(number.front(), plan.tiles(), [&] { next = body(before); });
      return next;
    });
  }

  void fillRing(ArrayRef<Value> tiles, TileRing &ring) {
    int64_t bytes = 0;
    for (const OperandTile &operand : operands)
      bytes += operand.bytesOfTile();
    const TileRing::Turn first = ring.beforeFills();
    forEachTile({first.stage, first.parity}, [&](ValueRange ofTile) {
      return loopSteps(ofTile, [&](Value step, ValueRange before) {
        const TileRing::Turn turn = ring.following({before[0], before[1]});
        ring.begin(turn, bytes);
        // The order of the kernel's maps is that of the plan's sides.
        for (auto [number, operand] : llvm::enumerate(operands))
          operand.copyInBulk(numberOfMap(number), step, tiles[number], turn.stage, ring.allBarriers());
        return SmallVector<Value>{turn.stage, turn.parity};
      });
    });
  }

  /// Of an operand's tile: rows and columns come first, then what twins have alone.
  unsigned numberOfMap(size_t operand) const {
    if (operand >= 2)
      return unsigned(operand);
    return unsigned(shareRows() ? operand : 1 - operand);
  }

  /// A step's products are made while the next step's tiles are waited for; then its own stage is free. Of those that
  /// are promoted it is at once. `last`: the turn that was used last, before and after.
  SmallVector<Value> sumsOfRing(ArrayRef<Value> tiles, TileRing &ring, SmallVectorImpl<Value> &last) {
    SmallVector<Value> carried(last.begin(), last.end());
    llvm::append_range(carried, noSums());
    carried = loopSteps(carried, [&](Value step, ValueRange before) {
      const TileRing::Turn turn = ring.following({before[0], before[1]});
      const SmallVector<Value> arrived = ring.await(turn, tiles);
      SmallVector<Value> added = addGroupProducts(arrived, before.drop_front(TileRing::valuesOfTurn), turn.stage);
      if (tile.promotes) {
        ring.release(turn.stage);
      } else {
        xla_gpu::AwaitProductsOp::create(b, TypeRange(), ValueRange(), uint64_t(1));
        ring.release(before[0], b.cmpI(CodeBuilder::IPred::ne, step, firstStep()));
      }
      SmallVector<Value> next = {turn.stage, turn.parity};
      llvm::append_range(next, added);
      return next;
    });
    last.assign(carried.begin(), carried.begin() + TileRing::valuesOfTurn);
    SmallVector<Value> sums = knownSums(ArrayRef(carried).drop_front(TileRing::valuesOfTurn));
    if (plan.rounds > 1 && !tile.promotes) // else nobody waits for the last stage
      ring.release(last.front());
    return sums;
  }

  /// Of so many of the first steps.
  SmallVector<Value> beginCopies(int64_t steps) {
    SmallVector<Value> tiles = allocate();
    for (int64_t step = 0; step < steps; ++step) {
      tiles = ifThere(step, tiles, [&, now = tiles](Value other) { return copy(now, other, b.index(step)); });
      tiles = commit(tiles);
    }
    return tiles;
  }

  /// Where a thread has so many sums, a multiprocessor has few other warps, whose products would be made while this one
  /// waits. In the last step fragments of none are loaded, from a stage that has to have been filled before.
  bool isAhead() const {
    constexpr int64_t leastSums = 128;
    return tile.onTensorCores && plan.sums() >= leastSums && !range.first && !range.where &&
           plan.stepsOfSplit() >= tile.stages;
  }

  /// The same with a step's first fragments loaded while the last products of the step before are made, so that no
  /// products wait for them behind the barrier. It stands where all else of its step is in registers.
  SmallVector<Value> sumsAhead() {
    const int64_t ahead = tile.stages - 1;
    const size_t numSums = size_t(plan.sums()), numTiles = operands.size(), numLoaded = numVectors();
    /// Of a step that is there, and of those that are to come by others.
    auto begin = [&](ValueRange tiles, ValueRange loaded, Value stage,
                     llvm::function_ref<SmallVector<Value>(ValueRange)> copyAhead) {
      SmallVector<Value> filled = fill(tiles, loaded, stage);
      return commit(copyAhead(synchronize(await(filled, ahead - 1))));
    };
    SmallVector<Value> tiles = beginCopies(ahead), loaded = load(firstStep());
    tiles = begin(tiles, loaded, b.index(0), [&](ValueRange now) {
      return ifThere(ahead, now, [&](Value other) { return copy(now, other, b.index(ahead)); });
    });
    SmallVector<Value> carried = tiles;
    carried.push_back(b.index(0));
    carried.append(numSums, values.zero());
    llvm::append_range(carried, ifThere(1, loaded, [&](Value other) { return load(other); }));
    llvm::append_range(carried, FragmentTiles::loadTerms({fragmentTiles(b.index(0)), tiles}, shareRows(), 0));
    carried = loopSteps(carried, [&](Value step, ValueRange before) {
      Value stage = before[numTiles], following = stageAfter(stage);
      ValueRange now = before.take_front(numTiles), sums = before.slice(numTiles + 1, numSums),
                 loaded = before.slice(numTiles + 1 + numSums, numLoaded),
                 fragments = before.drop_front(numTiles + 1 + numSums + numLoaded);
      SmallVector<Value> next, nextLoaded;
      SmallVector<Value> made = FragmentTiles::multiplyAhead(
          {fragmentTiles(stage), SmallVector<Value>(now)}, shareRows(), fragments, sums, [&]() -> FragmentTiles::Step {
            next = begin(now, loaded, following, [&](ValueRange now) {
              return ifAhead(step, ahead + 1, now, [&](Value other) { return copy(now, other, stage); });
            });
            nextLoaded = loadAhead(step, 2, loaded);
            return {fragmentTiles(following), next};
          });
      next.push_back(following);
      next.append(made.begin(), made.begin() + ptrdiff_t(numSums));
      llvm::append_range(next, nextLoaded);
      next.append(made.begin() + ptrdiff_t(numSums), made.end());
      return next;
    });
    return SmallVector<Value>(ArrayRef(carried).slice(numTiles + 1, numSums));
  }

  Value stageAfter(Value stage, int64_t number = 1) { return TileRing::stageAfter(b, tile.stages, stage, number); }

  // --- of those sides of a step that are copied, or go through registers

  SmallVector<Value> copy(ValueRange tiles, Value step, Value stage) {
    SmallVector<Value> next(tiles);
    for (auto [operand, tile] : llvm::zip_equal(operands, next))
      if (operand.isCopied())
        tile = operand.copy(step, tile, stage);
    return next;
  }

  /// All copies but those of the last so many steps that have begun.
  SmallVector<Value> await(ValueRange tiles, int64_t but) {
    if (!plan.copiesAny())
      return SmallVector<Value>(tiles);
    return SmallVector<Value>(xla_gpu::AwaitCopiesOp::create(b, TypeRange(tiles), tiles, uint64_t(but)).getResults());
  }

  SmallVector<Value> commit(ValueRange tiles) {
    if (!plan.copiesAny())
      return SmallVector<Value>(tiles);
    return SmallVector<Value>(xla_gpu::CommitCopiesOp::create(b, TypeRange(tiles), tiles).getResults());
  }

  SmallVector<Value> load(Value step) {
    SmallVector<Value> loaded;
    for (OperandTile &operand : operands)
      if (!operand.isCopied())
        llvm::append_range(loaded, operand.load(step));
    return loaded;
  }

  /// Of the step so many after `step`. Of long sums the last steps load the last one's once more: without a branch,
  /// what is made of elements waits for them behind the products of this step.
  SmallVector<Value> loadAhead(Value step, int64_t ahead, ValueRange loaded) {
    constexpr int64_t leastLongSteps = 24; // of which the steps that are loaded twice are a twelfth at most
    const int64_t last = plan.stepsOfSplit() - 1;
    if (!tile.onTensorCores || last < leastLongSteps || range.first || range.where)
      return ifAhead(step, ahead, loaded, [&](Value other) { return load(other); });
    Value following = b.minS(b.addI(step, b.index(ahead)), b.index(last));
    following.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(context, Interval{0, last}));
    return load(following);
  }

  /// That `load` gives.
  size_t numVectors() const {
    size_t number = 0;
    for (const OperandTile &operand : operands)
      number += operand.isCopied() ? 0 : size_t(operand.turns());
    return number;
  }

  SmallVector<Value> fill(ValueRange tiles, ValueRange loaded, Value stage = {}) {
    SmallVector<Value> next(tiles);
    for (auto [operand, tile] : llvm::zip_equal(operands, next))
      if (!operand.isCopied()) {
        tile = operand.fill(loaded.take_front(operand.turns()), tile, stage);
        loaded = loaded.drop_front(operand.turns());
      }
    return next;
  }

  /// What `make` makes of the step so many after `step`; `otherwise` where there is none.
  SmallVector<Value> ifAhead(Value step, int64_t ahead, ValueRange otherwise,
                             llvm::function_ref<SmallVector<Value>(Value)> make) {
    return ifFollows(b, step, ahead, plan.stepsOfSplit(), range.end, otherwise, make);
  }

  /// What `make` makes of the step that is so many after the block's first; `otherwise` where there is none.
  SmallVector<Value> ifThere(int64_t number, ValueRange otherwise, llvm::function_ref<SmallVector<Value>(Value)> make) {
    if (range.first)
      return ifAhead(range.first, number, otherwise, make);
    if (number >= plan.stepsOfSplit())
      return SmallVector<Value>(otherwise);
    if (!range.where)
      return make(b.index(number));
    return kernel.loop(stepsWhere(1), otherwise,
                       [&](ValueRange, ValueRange, ValueRange) { return make(b.index(number)); });
  }

  /// So many rounds, where the block has any steps.
  IndexingMap stepsWhere(int64_t rounds) const {
    IndexingMap map = kernel.mapOf({}, {rounds});
    map.addConstraint(range.where->first, range.where->second);
    return map;
  }

  Value firstStep() { return range.first ? range.first : b.index(0); }

  /// Steps of a ring of which a round makes as many as there are stages, so that each step knows its own; more are more
  /// code, of which ptxas takes 20 ms for each product of 64 x 256.
  int64_t stepsTogether() const {
    constexpr int64_t least = 3;
    return tile.stages * llvm::divideCeil(least, tile.stages);
  }

  /// Of the block's steps, in order, what `body` carries.
  SmallVector<Value> loopSteps(ValueRange carried, llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    SmallVector<Value> made = loopStepsOf(carried, body);
    // (Where sums are promoted a step is much code of another kind, and its size says enough.)
    if (auto loop = made.front().getDefiningOp<xla_gpu::LoopOp>(); loop && tile.hasProducer && !tile.promotes)
      loop->setAttr(xla_gpu::attr::unroll, b.getI64IntegerAttr(stepsTogether()));
    return made;
  }

  SmallVector<Value> loopStepsOf(ValueRange carried, llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    const int64_t steps = plan.stepsOfSplit();
    if (!range.first) {
      auto round = [&](ValueRange step, ValueRange, ValueRange before) { return body(step.front(), before); };
      if (!range.where)
        return kernel.loop(IndexingMap::fromSizes(AffineMap::get(0, 1, {}, context), {}, {steps}), {}, carried, round);
      return kernel.loop(stepsWhere(steps), carried, round);
    }
    auto loop = scf::ForOp::create(b, range.first, range.end, b.index(1), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value step = b.minS(loop.getInductionVar(), b.index(steps - 1));
    step.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(context, Interval{0, steps - 1}));
    scf::YieldOp::create(b, body(step, loop.getRegionIterArgs()));
    return SmallVector<Value>(loop.getResults());
  }

  SmallVector<Value> synchronize(ValueRange tiles) {
    return SmallVector<Value>(xla_gpu::SyncThreadsOp::create(b, TypeRange(tiles), tiles).getResults());
  }

  /// By each thread alone.
  SmallVector<Value> multiply(ArrayRef<Value> tiles, ValueRange sums) {
    const int64_t together = plan.termsTogether();
    IndexingMap loop = IndexingMap::fromSizes(AffineMap::get(0, 1, {}, context), {}, {tile.depth / together});
    return kernel.loop(loop, {}, sums, [&](ValueRange number, ValueRange, ValueRange before) {
      SmallVector<Value> next(before);
      for (int64_t term = 0; term < together; ++term) {
        SmallVector<SmallVector<Value>> factors;
        for (auto [operand, shared] : llvm::zip_equal(operands, tiles))
          factors.push_back(readFactors(operand.ofSide(), shared, number.front(), together, term));
        for (auto [i, sum] : llvm::enumerate(next)) {
          const int64_t inProduct = int64_t(i) % plan.results();
          ArrayRef<Value> rows = factors.front(), columns = factors[1 + i / size_t(plan.results())];
          if (!shareRows())
            std::swap(rows, columns);
          sum = values.add(
              sum, values.multiply(rows[inProduct / tile.threadColumns], columns[inProduct % tile.threadColumns]));
        }
      }
      return next;
    });
  }

  /// A thread's factors of one side, of term `number * together + term` of those in the tile.
  SmallVector<Value> readFactors(const ContractionSide &own, Value shared, Value number, int64_t together,
                                 int64_t term) {
    SmallVector<Value> factors;
    auto vectorType = VectorType::get({pieceOf(own)}, values.computed());
    Value padding = ub::PoisonOp::create(b, values.computed());
    for (int64_t piece = 0; piece < perThread(own) / pieceOf(own); ++piece) {
      AffineExpr depth = getAffineSymbolExpr(0, context) * together + term;
      IndexingMap map = kernel.mapOf({depth * plan.stride(own) + firstOfPiece(own, piece)}, {tile.depth / together});
      map.simplify();
      SmallVector<Value> operands(kernel.ids());
      operands.push_back(number);
      Value start = applyMap(b, map, operands).front();
      Value read = vector::TransferReadOp::create(b, vectorType, shared, start, padding, ArrayRef<bool>{true});
      for (int64_t i = 0; i < pieceOf(own); ++i)
        factors.push_back(vector::ExtractOp::create(b, read, i));
    }
    return factors;
  }

  // --- sums of several blocks

  /// Adds up what blocks left of a thread's sums, which are neighbours in memory.
  void combine() {
    const int64_t perThread = plan.perThread;
    AffineExpr first = kernel.firstPosition(perThread);
    const Interval all{0, plan.hero->shape().numElements() - perThread};
    /// From the launch space and a loop over the neighbours to these, with what `before` gives in front.
    auto neighbours = [&](ArrayRef<AffineExpr> before, ArrayRef<int64_t> loopSizes) {
      SmallVector<AffineExpr> indices(before);
      AffineExpr element = getAffineSymbolExpr(unsigned(loopSizes.size()) - 1, context);
      llvm::append_range(indices, memoryOrderIndices(plan.hero->shape(), first + element));
      IndexingMap map = kernel.mapOf(indices, loopSizes);
      map.addConstraint(first, all);
      map.simplify();
      return map;
    };
    IndexingMap parts = neighbours({getAffineSymbolExpr(0, context)}, {plan.splits, perThread});
    IndexingMap loop = kernel.mapOf({}, {plan.splits});
    loop.addConstraint(first, all);
    SmallVector<Value> sums(size_t(perThread) * plan.numProducts(), values.zero());
    sums = kernel.loop(loop, sums, [&](ValueRange split, ValueRange, ValueRange before) {
      SmallVector<Value> next;
      for (auto [i, sum] : llvm::enumerate(before)) {
        SmallVector<Value> variables(kernel.ids());
        variables.append({split.front(), b.index(int64_t(i) % perThread)});
        SmallVector<Value> at = applyMap(b, parts, variables);
        Value ofProduct = kernel.scratch()[i / size_t(perThread)];
        next.push_back(values.add(sum, tensor::ExtractOp::create(b, ofProduct, at)));
      }
      return next;
    });
    outputs.storeNeighbours(neighbours({}, {perThread}), sums);
  }

  CodeBuilder &b;
  MLIRContext *context;
  ContractionValues values;
  const StepRange range;
  SmallVector<ContractionPlan, 1> products; ///< each as if it were alone
  /// The side that all products share, rows if there is but one; then each product's own.
  SmallVector<OperandTile, 2> operands;
  OutputTile outputs;
};

} // namespace

llvm::LogicalResult emitHero(const ContractionPlan &plan, KernelBuilder &kernel) {
  TilePlace at = placeOf(plan, kernel);
  StepRange steps;
  if (plan.ragged && plan.stage != ReductionStage::Combine) {
    llvm::FailureOr<StepRange> found = findGroup(plan, kernel, at);
    if (failed(found))
      return failure();
    steps = *found;
  }
  return ContractionEmitter(plan, kernel, at, steps).emit();
}

} // namespace hloc
