#include "emitters/heroes/ColumnReductionEmitter.h"

#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/heroes/ReductionCode.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/fusion/ColumnPieces.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {
namespace {

class ColumnReductionEmitter {
public:
  ColumnReductionEmitter(const ColumnReductionPlan &plan, KernelBuilder &kernel)
      : plan(plan), tiling(plan.tiling), pieces(piecesOf(plan)), frame(plan.frame), kernel(kernel),
        code(plan.frame, plan.stage, kernel), b(kernel.code()), context(kernel.context()) {
    if (plan.stage == ReductionStage::Combine)
      array = {tiling.slices, tiling.rows, tiling.columns, 1};
    else
      array = columnDimsOf(frame);
    lane = kernel.thread() % tiling.lanes;
    group = kernel.thread().floorDiv(tiling.lanes) % tiling.groups;
    int64_t sliceBlocks = tiling.blocks() / (tiling.tiles * tiling.splits);
    SmallVector<AffineExpr> block = delinearize(kernel.block(), {sliceBlocks, tiling.splits, tiling.tiles}, context);
    firstSlice = block[0] * tiling.slicesPerBlock;
    slice = firstSlice + kernel.thread().floorDiv(tiling.lanes * tiling.groups);
    split = block[1];
    firstColumn = block[2] * tiling.runElements();
    firstResult = tiling.rowsPerRun == 1 ? block[2] * blockResults() : getAffineConstantExpr(0, context);
  }

  llvm::LogicalResult emit() {
    if (failed(code.emitFunctions()))
      return failure();
    SmallVector<Values> values = accumulate();
    if (pieces.parts == 1)
      storeOwn(values);
    else
      combineThreads(values);
    return code.succeeded();
  }

private:
  using Values = ReductionCode::Values;

  AffineExpr constant(int64_t value) const { return getAffineConstantExpr(value, context); }
  AffineExpr symbol(unsigned number) const { return getAffineSymbolExpr(number, context); }
  int64_t perThread() const { return tiling.perThread; }
  int64_t columns() const { return array.columns; }
  /// Of a thread, after it has combined neighbours.
  int64_t valuesPerThread() const { return perThread() / pieces.own; }
  /// Results that a block has a part of, in each of its slices; those of a slice.
  int64_t blockResults() const { return tiling.blockColumns() / pieces.size; }
  int64_t sliceResults() const { return tiling.columns / pieces.size; }
  /// Elements from one run to the next, and of a slice.
  int64_t runWidth() const { return tiling.columns * tiling.rowsPerRun; }
  int64_t sliceElements() const { return array.rows * columns(); }
  /// Are runs more than a row, so that they may end with a part of one?
  bool crossesRows() const { return runWidth() != columns(); }

  // --- each thread by itself

  /// The accumulators of this thread's columns; one for those that are one value.
  SmallVector<Values> accumulate() {
    SmallVector<Value> state;
    for (int64_t i = 0; i < perThread(); ++i)
      llvm::append_range(state, start(i));
    numCarried = state.size();
    bool hasSides = plan.stage != ReductionStage::Combine;
    if (hasSides)
      llvm::append_range(state, code.sideOutputs());
    state = accumulateChunks(state);
    state = accumulateRemainder(state);
    state = accumulateLastElements(state);
    if (hasSides)
      code.setSideOutputs(ValueRange(state).drop_front(numCarried));
    SmallVector<Values> values;
    for (int64_t first = 0; first < perThread(); first += pieces.own) {
      SmallVector<Values> neighbours;
      for (int64_t i = 0; i < pieces.own; ++i)
        neighbours.push_back(columnOf(state, first + i));
      values.push_back(code.combineAll(neighbours));
    }
    return values;
  }

  Values columnOf(ValueRange state, int64_t number) const {
    unsigned count = frame.accumulators.size();
    return Values(state.slice(number * count, count));
  }

  /// What a column begins as: identities, or its first element. Threads without a column take some other's.
  Values start(int64_t number) {
    return code.start([&] { return firstOfColumn(number); });
  }

  Values firstOfColumn(int64_t number) {
    AffineExpr column = firstColumn + lane * perThread() + number;
    if (crossesRows())
      column = column % columns();
    IndexingMap toResult = kernel.mapOf({(slice * columns() + column).floorDiv(array.piece)}, {});
    toResult.simplify();
    Value result = b.minU(applyMap(b, toResult, kernel.ids()).front(), b.index(frame.numResults() - 1));
    if (plan.stage == ReductionStage::Combine)
      return code.extract(kernel.scratch(), {b.index(0), result});
    SmallVector<AffineExpr> merged = code.mergedIndices(getAffineDimExpr(0, context), constant(0));
    IndexingMap map = IndexingMap::fromSizes(
        AffineMap::get(1, 0, code.indicesOf(frame.operandShape(), merged), context), {frame.numResults()});
    map.simplify();
    return code.element(applyMap(b, map, result));
  }

  /// A loop over runs. What does not depend on the run keeps those threads out that have no part of any.
  IndexingMap loopOverRuns(ArrayRef<int64_t> sizes) const {
    IndexingMap map = kernel.mapOf({}, sizes);
    map.addConstraint(slice, {0, tiling.slices - 1});
    if (tiling.rowsPerRun == 1)
      map.addConstraint(firstColumn + lane * perThread(), {0, tiling.columns - perThread()});
    return map;
  }

  SmallVector<Value> accumulateChunks(SmallVector<Value> state) {
    if (tiling.wholeChunks() == 0)
      return state;
    AffineExpr chunk = split * tiling.chunksPerSplit + symbol(0);
    IndexingMap map = loopOverRuns({tiling.chunksPerSplit, tiling.unroll});
    map.addConstraint(chunk, {0, tiling.wholeChunks() - 1});
    return emitLoop(std::move(map), (chunk * tiling.unroll + symbol(1)) * tiling.groups + group, perThread(), state);
  }

  /// Runs after the last whole chunk are the last split's.
  SmallVector<Value> accumulateRemainder(SmallVector<Value> state) {
    int64_t runs = crossesRows() ? (sliceElements() + runWidth() - 1) / runWidth() : tiling.rows;
    int64_t done = tiling.wholeChunks() * tiling.unroll * tiling.groups, left = runs - done;
    if (left == 0)
      return state;
    AffineExpr run = symbol(0) * tiling.groups + group + done;
    IndexingMap map = loopOverRuns({(left + tiling.groups - 1) / tiling.groups});
    map.addConstraint(split, {tiling.splits - 1, tiling.splits - 1});
    if (crossesRows())
      map.addConstraint(run * runWidth() + firstColumn + lane * perThread(), {0, sliceElements() - perThread()});
    else
      map.addConstraint(run, {0, tiling.rows - 1});
    return emitLoop(std::move(map), run, perThread(), state);
  }

  /// Elements after the last whole vector, if runs cross rows: the thread's whose vector they would begin.
  SmallVector<Value> accumulateLastElements(SmallVector<Value> state) {
    int64_t left = crossesRows() ? sliceElements() % perThread() : 0;
    if (left == 0)
      return state;
    int64_t run = (sliceElements() - left) / runWidth(), inRun = (sliceElements() - left) % runWidth();
    int64_t tile = inRun / tiling.runElements(), ownLane = inRun % tiling.runElements() / perThread();
    int64_t owner = run % tiling.groups * tiling.lanes + ownLane, first = tile * tiling.runElements();
    IndexingMap map = kernel.mapOf({}, {});
    map.addConstraint(split, {tiling.splits - 1, tiling.splits - 1});
    map.addConstraint(firstColumn, {first, first});
    map.addConstraint(kernel.thread(), {owner, owner});
    return emitLoop(std::move(map), constant(run), left, state);
  }

  /// In the loop over `map`, takes in the first `count` elements of this thread's part of `run`.
  SmallVector<Value> emitLoop(IndexingMap map, AffineExpr run, int64_t count, ValueRange state) {
    map.simplify();
    IndexingMap points = elementMap(map, run, count);
    return kernel.loop(map, state, [&](ValueRange variables, ValueRange, ValueRange carried) {
      SmallVector<Value> dims(kernel.ids());
      llvm::append_range(dims, variables);
      SmallVector<Value> next(carried.take_front(numCarried));
      auto take = [&](int64_t number, const Values &column) {
        llvm::copy(column, next.begin() + ptrdiff_t(number * frame.accumulators.size()));
      };
      if (plan.stage == ReductionStage::Combine) {
        Values part = code.extract(kernel.scratch(), applyMap(b, points, dims));
        take(0, code.combine(columnOf(next, 0), part));
        return next;
      }
      Values sides(carried.drop_front(numCarried));
      for (auto [i, element] : llvm::enumerate(code.elements(points, dims, sides)))
        take(int64_t(i), code.apply(columnOf(next, int64_t(i)), element));
      llvm::append_range(next, sides);
      return next;
    });
  }

  /// From the launch space and the variables of `loops` to where the elements of the thread's part of a run are: in the
  /// operand and the side outputs, or in scratch memory.
  IndexingMap elementMap(const IndexingMap &loops, AffineExpr run, int64_t count) const {
    SmallVector<IndexingVariable> dims(kernel.idVariables()), ranges;
    SmallVector<AffineExpr> asDims;
    for (const IndexingVariable &variable : loops.ranges()) {
      asDims.push_back(getAffineDimExpr(dims.size(), context));
      dims.push_back(variable);
    }
    AffineExpr row = run.replaceSymbols(asDims), column = firstColumn + lane * perThread();
    if (count > 1) {
      column = column + symbol(0);
      ranges.push_back({Interval{0, count - 1}, {}});
    }
    SmallVector<AffineExpr> indices = {row, column};
    if (plan.stage != ReductionStage::Combine) {
      if (crossesRows()) {
        AffineExpr position = row * runWidth() + column;
        indices = {position.floorDiv(columns()), position % columns()};
      }
      if (frame.minorIsReduced)
        indices = {indices[0], indices[1].floorDiv(array.piece), indices[1] % array.piece};
      if (frame.dims.size() > indices.size())
        indices.insert(indices.begin(), slice);
      indices = code.elementIndices(indices);
    }
    IndexingMap map(AffineMap::get(dims.size(), ranges.size(), indices, context), dims, ranges, {});
    map.simplify();
    return map;
  }

  // --- threads together

  /// All threads leave what they have in shared memory. Then one thread a result combines that; or several threads of
  /// each first, where that is much.
  void combineThreads(ArrayRef<Values> values) {
    SmallVector<Value> tiles = synchronize(fillTiles(values));
    int64_t ofRow = pieces.valuesOfRow(), few = pieces.few;
    auto inTiles = [&](const Accumulator &accumulator, const Place &place) {
      AffineExpr row = place.slice * tiling.partialRows() + place.part.floorDiv(ofRow);
      AffineExpr number = (row * blockResults() + place.result) * ofRow + place.part % ofRow;
      ThreadTile tile = plan.tileOf(accumulator);
      if (tile.pieces == 1)
        return number;
      AffineExpr value = number % valuesPerThread(), thread = number.floorDiv(valuesPerThread());
      return value.floorDiv(tile.perPiece) * tile.stride + thread * tile.perPiece + value % tile.perPiece;
    };
    if (few == 1)
      return storeCombined(tiles, pieces.parts, inTiles);
    // Neighbouring threads have neighbouring values: of neighbouring results, or of one.
    auto numberOf = [&](const Place &place) {
      return ofRow == 1 ? (place.slice * few + place.part) * blockResults() + place.result
                        : (place.slice * blockResults() + place.result) * few + place.part;
    };
    Values fewer = code.allocateShared({tiling.slicesPerBlock * few * blockResults()});
    forEachItem(few, [&](const Item &item) {
      SmallVector<int64_t> sizes = {tiling.slicesPerBlock, few, blockResults()};
      if (ofRow != 1)
        std::swap(sizes[1], sizes[2]);
      SmallVector<AffineExpr> at = delinearize(item.number, sizes, context);
      Place place = ofRow == 1 ? Place{at[0], at[1], at[2]} : Place{at[0], at[2], at[1]};
      fewer = kernel.loop(mapOfItem(item, {item.number}), fewer, [&](ValueRange, ValueRange at, ValueRange state) {
        return code.insert(combineParts(place, tiles, pieces.parts, few, inTiles), state, at);
      });
    });
    storeCombined(synchronize(fewer), few, [&](const Accumulator &, const Place &place) { return numberOf(place); });
  }

  Values synchronize(ValueRange tiles) {
    return Values(xla_gpu::SyncThreadsOp::create(b, TypeRange(tiles), tiles).getResults());
  }

  Values fillTiles(ArrayRef<Values> values) {
    Values tiles;
    for (auto [i, accumulator] : llvm::enumerate(frame.accumulators)) {
      ThreadTile tile = plan.tileOf(accumulator);
      Type type = storageType(accumulator.type, context);
      Value shared = xla_gpu::AllocateSharedOp::create(b, RankedTensorType::get({tile.elements}, type));
      SmallVector<Value> own;
      for (const Values &value : values)
        own.push_back(toStorage(b, value[i], accumulator.type));
      for (int64_t piece = 0; piece < tile.pieces; ++piece)
        shared = storePiece(ArrayRef(own).slice(piece * tile.perPiece, tile.perPiece), shared,
                            kernel.thread() * tile.perPiece + piece * tile.stride);
      tiles.push_back(shared);
    }
    return tiles;
  }

  /// Neighbouring values, which become one access.
  Value storePiece(ArrayRef<Value> values, Value shared, AffineExpr first) {
    if (values.size() == 1)
      return tensor::InsertOp::create(b, values.front(), shared, applyMap(b, kernel.mapOf({first}, {}), kernel.ids()));
    auto type = VectorType::get({int64_t(values.size())}, values.front().getType());
    Value vector = vector::FromElementsOp::create(b, type, values);
    IndexingMap map = kernel.mapOf({first + symbol(0)}, {int64_t(values.size())});
    auto stored = kernel.loop(map, shared, [&](ValueRange variables, ValueRange at, ValueRange state) {
      Value value = vector::ExtractOp::create(b, vector, OpFoldResult(variables[0]));
      return SmallVector<Value>{tensor::InsertOp::create(b, value, state[0], at)};
    });
    return stored.front();
  }

  /// One value of a result, of those that the block's threads make at a time. Threads without one have a number of
  /// `count` or more.
  struct Item {
    AffineExpr number;
    int64_t count;
  };

  /// A value of those that the block has for a result: a number of the slice and of the result in the block.
  struct Place {
    AffineExpr slice, part, result;
  };

  /// Calls `visit` for `parts` values of each result, as often as the block has to go on.
  void forEachItem(int64_t parts, llvm::function_ref<void(const Item &)> visit) {
    int64_t count = tiling.slicesPerBlock * parts * blockResults();
    // A warp has the items of whole threads' columns: then its lanes use different banks.
    int64_t threads = tiling.threads() < 32 ? tiling.threads() : tiling.threads() / 32 * 32;
    for (int64_t first = 0; first < count; first += threads)
      visit({kernel.thread() + first, std::min(count, first + threads)});
  }

  /// A map of the launch space whose domain is the threads with an item.
  IndexingMap mapOfItem(const Item &item, ArrayRef<AffineExpr> results) const {
    IndexingMap map = kernel.mapOf(results, {});
    map.addConstraint(item.number, {0, item.count - 1});
    map.simplify();
    return map;
  }

  using Position = llvm::function_ref<AffineExpr(const Accumulator &, const Place &)>;

  /// The value of `to` at `place`: every `to`th of the `from` that are in `tiles`, where `position` says. Threads
  /// without an item must not come here.
  Values combineParts(const Place &place, ValueRange tiles, int64_t from, int64_t to, Position position) {
    auto read = [&](ValueRange at) {
      Values values;
      for (auto [i, accumulator] : llvm::enumerate(frame.accumulators))
        values.push_back(fromStorage(b, tensor::ExtractOp::create(b, tiles[i], at[i]), accumulator.type));
      return values;
    };
    auto placesOf = [&](AffineExpr part, ArrayRef<int64_t> loopSizes) {
      SmallVector<AffineExpr> at;
      for (const Accumulator &accumulator : frame.accumulators)
        at.push_back(position(accumulator, {place.slice, part, place.result}));
      IndexingMap map = kernel.mapOf(at, loopSizes);
      map.addConstraint(part, {0, from - 1});
      map.simplify();
      return map;
    };
    Values values = read(applyMap(b, placesOf(place.part, {}), kernel.ids()));
    int64_t more = (from - 1) / to;
    if (more == 0)
      return values;
    return kernel.loop(placesOf(place.part + (symbol(0) + 1) * to, {more}), values,
                       [&](ValueRange, ValueRange at, ValueRange state) { return code.combine(state, read(at)); });
  }

  /// Combines `parts` values of each result and stores it.
  void storeCombined(ValueRange tiles, int64_t parts, Position position) {
    forEachItem(1, [&](const Item &item) {
      SmallVector<AffineExpr> at = delinearize(item.number, {tiling.slicesPerBlock, blockResults()}, context);
      store(firstSlice + at[0], firstResult + at[1], item,
            [&](ValueRange) { return combineParts({at[0], constant(0), at[1]}, tiles, parts, 1, position); });
    });
  }

  /// A result by its number in the slice.
  void store(AffineExpr ofSlice, AffineExpr result, const Item &item, llvm::function_ref<Values(ValueRange)> values) {
    SmallVector<AffineExpr, 2> at = {ofSlice * sliceResults() + result};
    if (plan.stage == ReductionStage::Partial) {
      // Rows that are one here are parts of their own.
      int64_t rows = tiling.columns / columns(), ofRow = columns() / pieces.size;
      at.insert(at.begin(), split);
      if (rows > 1)
        at = {split * rows + result.floorDiv(ofRow), result % ofRow};
    }
    IndexingMap map = mapOfItem(item, at);
    map.addConstraint(ofSlice, {0, tiling.slices - 1});
    map.addConstraint(result, {0, sliceResults() - 1});
    code.store(map, values);
  }

  /// Without other threads.
  void storeOwn(ArrayRef<Values> lists) {
    const Item own = {kernel.thread(), tiling.threads()};
    for (auto [i, values] : llvm::enumerate(lists))
      store(slice, firstResult + lane * valuesPerThread() + int64_t(i), own, [&](ValueRange) { return values; });
  }

  const ColumnReductionPlan &plan;
  const ColumnTiling &tiling;
  const ColumnPieces pieces;
  ColumnDims array; ///< of the operand, or of what is combined
  const ReductionFrame &frame;
  KernelBuilder &kernel;
  ReductionCode code;
  CodeBuilder &b;
  MLIRContext *context;
  AffineExpr lane, group, slice, split;            ///< of this thread
  AffineExpr firstSlice, firstColumn, firstResult; ///< of this block
  size_t numCarried = 0;                           ///< values that loops over runs carry before the side outputs
};

} // namespace

llvm::LogicalResult emitHero(const ColumnReductionPlan &plan, KernelBuilder &kernel) {
  return ColumnReductionEmitter(plan, kernel).emit();
}

} // namespace hloc
