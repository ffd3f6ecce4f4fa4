#include "emitters/heroes/RowsEmitter.h"

#include "emitters/heroes/StagedCode.h"
#include "hloc/dialect/XlaGpu.h"

using namespace mlir;

namespace hloc {
namespace {

/// Chains of a thread that do not wait for each other.
constexpr int64_t maxChains = 4;
/// Results of so many warps a thread reads itself, in one or two vectors; of more, one, which is shuffled.
constexpr int64_t mostWarpsReadAtOnce = 4;

// In registers, what several stages and the outputs read is loaded once and handed to them; that what they have in
// common is computed once is the work of CSE, for which the first of them has to dominate the others. So all threads do
// all their vectors, those that miss their last one another of the row, and only what comes of it depends on whether
// there is one: it is not reduced twice, and not stored.
class RowsEmitter {
public:
  RowsEmitter(const RowsPlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()), ids(kernel.ids()),
        idVariables(kernel.idVariables()), round(getAffineConstantExpr(0, context)),
        staged(plan, plan.inRegisters, plan.sharesSameInRows(), plan.columnStage(), kernel) {}

  llvm::LogicalResult emit() {
    if (failed(staged.emitFunctions()))
      return failure();
    allocateShared();
    if (plan.columns)
      emitRounds();
    else
      emitRows();
    return staged.succeeded();
  }

private:
  using Values = ReductionCode::Values;
  static constexpr int64_t lanesPerWarp = 32;

  /// What becomes of one row of each group of threads: the results of its reductions, after what is stored of them.
  SmallVector<Value> emitRows() {
    if (plan.inRegisters)
      locate();
    SmallVector<Value> results;
    for (auto [stage, code, memory] : llvm::enumerate(staged.stages(), shared)) {
      load(stage);
      code.setResults(results);
      Values values = plan.inRegisters ? reduceHeld(code) : reduceRead(code);
      llvm::append_range(results, code.results(acrossThreads(code, memory, values)));
    }
    load(shared.size());
    storeElements(results);
    storeRows(results);
    return results;
  }

  // --- places

  AffineExpr threadOfRow() const { return kernel.thread() % int64_t(plan.threadsPerRow); }
  AffineExpr group() const { return kernel.thread().floorDiv(int64_t(plan.threadsPerRow)); }
  AffineExpr row() const { return (round * plan.blocks() + kernel.block()) * int64_t(plan.rowsPerBlock) + group(); }
  AffineExpr vectorNumber(AffineExpr step) const { return step * int64_t(plan.threadsPerRow) + threadOfRow(); }
  bool hasSpareThreads() const {
    return plan.shape.count % (plan.rounds * plan.blocks() * int64_t(plan.rowsPerBlock)) != 0;
  }
  /// Of the last vectors of threads, some may not be there.
  bool hasSpareVectors() const { return plan.vectors() % int64_t(plan.threadsPerRow) != 0; }
  bool mayLack(int64_t step) const { return hasSpareVectors() && step == plan.vectorsPerThread() - 1; }

  /// A map from the launch space, the round if there are several, and loop variables with these ranges.
  IndexingMap mapOf(ArrayRef<AffineExpr> results, ArrayRef<int64_t> loopSizes = {}) const {
    SmallVector<IndexingVariable> ranges;
    for (int64_t size : loopSizes)
      ranges.push_back({Interval{0, size - 1}, {}});
    return IndexingMap(AffineMap::get(idVariables.size(), ranges.size(), results, context), idVariables, ranges, {});
  }
  Value valueOf(AffineExpr number) const { return applyMap(b, mapOf({number}), ids).front(); }

  Value clamped(AffineExpr number, int64_t last) {
    Value value = valueOf(number);
    Value inside = b.minU(value, b.index(last));
    inside.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(context, Interval{0, last}));
    return inside;
  }

  /// The thread's row and its last vector, which both exist.
  void locate() {
    dims = ids;
    dimVariables = idVariables;
    heldVectors.clear();
    held.assign(size_t(plan.vectorsPerThread()), CollectedLists(b, int64_t(plan.perThread)));
    same = held;
    heldRow = row();
    auto add = [&](AffineExpr number, int64_t last, const char *name) {
      dims.push_back(clamped(number, last));
      dimVariables.push_back({Interval{0, last}, name});
      return getAffineDimExpr(dims.size() - 1, context);
    };
    if (hasSpareThreads())
      heldRow = add(row(), plan.shape.count - 1, "row");
    int64_t lastStep = plan.vectorsPerThread() - 1;
    AffineExpr last = vectorNumber(getAffineConstantExpr(lastStep, context));
    for (int64_t step = 0; step <= lastStep; ++step)
      heldVectors.push_back(vectorNumber(getAffineConstantExpr(step, context)));
    if (!hasSpareVectors())
      return;
    heldVectors.back() = add(last, plan.vectors() - 1, "vector");
    hasLastVector = b.cmpI(CodeBuilder::IPred::ult, valueOf(threadOfRow()),
                           plan.vectors() - lastStep * int64_t(plan.threadsPerRow));
  }

  /// The elements of a vector of this width, whose number in it is a symbol if there are several.
  AffineExpr elementOf(AffineExpr vector, int64_t width) const {
    return width > 1 ? vector * width + getAffineSymbolExpr(0, context) : vector;
  }
  SmallVector<AffineExpr> mergedIndices(AffineExpr atRow, AffineExpr vector) const {
    return staged.mergedIndices(atRow, elementOf(vector, plan.perThread));
  }
  /// From the dims, and the number of an element in a vector if it has several, to indices of its place.
  IndexingMap vectorMap(ArrayRef<IndexingVariable> variables, ArrayRef<AffineExpr> indices) const {
    return vectorMap(variables, indices, plan.perThread);
  }
  IndexingMap vectorMap(ArrayRef<IndexingVariable> variables, ArrayRef<AffineExpr> indices, int64_t width) const {
    SmallVector<IndexingVariable, 1> ranges;
    if (width > 1)
      ranges.push_back({Interval{0, width - 1}, {}});
    IndexingMap map(AffineMap::get(variables.size(), ranges.size(), indices, context), variables, ranges, {});
    map.simplify();
    return map;
  }

  /// What is held from a stage on of all vectors; behind the loads of the first, what the block's rows share.
  void load(size_t stage) {
    for (auto [vector, lists] : llvm::zip(heldVectors, held))
      staged.load(stage, vectorMap(dimVariables, staged.indicesToLoad(mergedIndices(heldRow, vector))), dims, lists);
    if (!plan.sharesSameInRows())
      return;
    if (stage == 0)
      fillSame();
    if (stage != plan.sameInRows.firstStage)
      return;
    sameMemory = Values(xla_gpu::SyncThreadsOp::create(b, TypeRange(ValueRange(sameMemory)), sameMemory).getResults());
    // What the outputs alone read is read where they are stored, not to be held until then.
    if (stage < shared.size())
      for (size_t step = 0; step < same.size(); ++step)
        readSame(step);
  }

  /// Where the memory has a column. Vectors that are read in several pieces lie there as rows of first pieces, of
  /// second ones, ...: lanes read neighbours.
  AffineExpr placeOf(AffineExpr column) const {
    int64_t piece = plan.perThreadShared, vector = plan.perThread;
    AffineExpr number = (column % vector).floorDiv(piece), place = column.floorDiv(vector) * piece + column % piece;
    return number * (plan.sharedColumns() * piece / vector) + place;
  }

  /// Each thread of the block reads some of the columns: a thread for which there is none left has the last ones, and
  /// puts them where nobody looks. A branch would make what comes behind it, the loads of rows, wait for these loads.
  void fillSame() {
    sameMemory = staged.allocateSameInRows(plan.sharedColumns());
    int64_t piece = plan.perThreadShared, pieces = plan.shape.length / piece, threads = kernel.launch().block.x;
    for (int64_t first = 0; first < pieces; first += threads) {
      SmallVector<Value> places(ids);
      SmallVector<IndexingVariable> variables(idVariables);
      AffineExpr number = kernel.thread() + first, source = number;
      if (first + threads > pieces) {
        source = getAffineDimExpr(places.size(), context);
        places.push_back(clamped(number, pieces - 1));
        variables.push_back({Interval{0, pieces - 1}, "piece"});
      }
      IndexingMap map = vectorMap(variables, {elementOf(source, piece), placeOf(elementOf(number, piece))}, piece);
      sameMemory = staged.fillSameInRows(map, places, sameMemory);
    }
  }

  void readSame(size_t step) {
    IndexingMap map = vectorMap(dimVariables, {placeOf(elementOf(heldVectors[step], plan.perThread))});
    staged.readSameInRows(sameMemory, map, dims, same[step]);
  }

  /// What is reduced of one vector that a thread holds.
  SmallVector<Values> heldElements(ReductionCode &code, int64_t step) {
    code.setResultsOfPoints(held[size_t(step)], same[size_t(step)]);
    IndexingMap map = vectorMap(dimVariables, code.elementIndices(mergedIndices(heldRow, heldVectors[size_t(step)])));
    Values noOutputs;
    return code.elements(map, dims, noOutputs);
  }

  // --- stages

  Values reduceHeld(ReductionCode &code) {
    SmallVector<Values> chains;
    auto reduce = [&](ArrayRef<Values> elements, int64_t first) {
      for (auto [i, element] : llvm::enumerate(elements)) {
        size_t chain = (size_t(first) + i) % maxChains;
        if (chain < chains.size())
          chains[chain] = code.apply(chains[chain], element);
        else
          chains.push_back(element);
      }
    };
    int64_t last = plan.vectorsPerThread() - 1;
    for (int64_t step = 0; step < last || (step == last && !mayLack(step)); ++step)
      reduce(heldElements(code, step), step * int64_t(plan.perThread));
    if (!mayLack(last))
      return code.combineAll(chains);
    // In place of a vector that is missing there is the row's last, reduced on its own.
    Values spare = code.whereNotRepeated(hasLastVector, code.combineAll(heldElements(code, last)));
    return chains.empty() ? spare : code.combine(code.combineAll(chains), spare);
  }

  /// The steps of a loop over the thread's vectors; whether there is one depends on the step.
  IndexingMap stepsMap() const {
    AffineExpr vector = vectorNumber(getAffineSymbolExpr(0, context));
    IndexingMap map = kernel.mapOf({}, {plan.vectorsPerThread()});
    map.addConstraint(vector, Interval{0, plan.vectors() - 1});
    map.addConstraint(row(), Interval{0, plan.shape.count - 1});
    map.simplify();
    return map;
  }
  /// The launch space and a step -> the elements of a vector.
  IndexingMap readMap(llvm::function_ref<SmallVector<AffineExpr>(ArrayRef<AffineExpr>)> indices) {
    SmallVector<IndexingVariable> variables(kernel.idVariables());
    AffineExpr step = getAffineDimExpr(variables.size(), context);
    variables.push_back({Interval{0, plan.vectorsPerThread() - 1}, "step"});
    return vectorMap(variables, indices(mergedIndices(row(), vectorNumber(step))));
  }
  SmallVector<Value> idsAnd(ValueRange variables) const {
    SmallVector<Value> all(ids);
    llvm::append_range(all, variables);
    return all;
  }

  Values reduceRead(ReductionCode &code) {
    Values start = code.start([] { return Values(); });
    size_t numValues = start.size(), chains = size_t(std::min<int64_t>(plan.perThread, maxChains));
    SmallVector<Value> state;
    for (size_t i = 0; i < chains; ++i)
      llvm::append_range(state, start);
    IndexingMap map = readMap([&](ArrayRef<AffineExpr> merged) { return code.elementIndices(merged); });
    state = kernel.loop(stepsMap(), state, [&](ValueRange variables, ValueRange, ValueRange carried) {
      SmallVector<Value> next(carried);
      Values noOutputs;
      for (auto [i, element] : llvm::enumerate(code.elements(map, idsAnd(variables), noOutputs))) {
        size_t chain = i % chains * numValues;
        llvm::copy(code.apply(ValueRange(next).slice(chain, numValues), element), next.begin() + ptrdiff_t(chain));
      }
      return next;
    });
    SmallVector<Values> lists;
    for (size_t i = 0; i < chains; ++i)
      lists.push_back(Values(ValueRange(state).slice(i * numValues, numValues)));
    return code.combineAll(lists);
  }

  /// Memory of its own for each stage: no thread has to wait for the readers of the stage before.
  void allocateShared() {
    for (ReductionCode &code : staged.stages())
      shared.push_back(int64_t(plan.threadsPerRow) > lanesPerWarp
                           ? code.allocateShared({int64_t(kernel.launch().block.x) / lanesPerWarp})
                           : Values());
  }

  /// What all threads of the row have together, in each of them.
  Values acrossThreads(ReductionCode &code, ValueRange shared, Values values) {
    int64_t lanes = std::min<int64_t>(plan.threadsPerRow, lanesPerWarp);
    if (lanes > 1)
      values = code.shuffle(values, lanes / 2, /*toAll=*/true);
    int64_t warpsPerRow = int64_t(plan.threadsPerRow) / lanesPerWarp;
    if (warpsPerRow <= 1)
      return values;
    // By all lanes, which have the same: to choose one of them takes longer.
    auto at = [&](AffineExpr warp) { return applyMap(b, kernel.mapOf({warp}, {}), kernel.ids()); };
    Values written = code.insert(values, shared, at(kernel.warp()));
    auto sync = xla_gpu::SyncThreadsOp::create(b, TypeRange(ValueRange(written)), written);
    AffineExpr first = kernel.thread().floorDiv(int64_t(plan.threadsPerRow)) * warpsPerRow;
    if (warpsPerRow > mostWarpsReadAtOnce) {
      values = code.extract(sync.getResults(), at(first + kernel.thread() % warpsPerRow));
      return code.shuffle(values, warpsPerRow / 2, /*toAll=*/true);
    }
    SmallVector<Values> ofWarps;
    for (int64_t warp = 0; warp < warpsPerRow; ++warp)
      ofWarps.push_back(code.extract(sync.getResults(), at(first + warp)));
    return code.combineAll(ofWarps);
  }

  // --- outputs

  void storeElements(ValueRange results) {
    if (!plan.inRegisters) {
      IndexingMap map = readMap([&](ArrayRef<AffineExpr> merged) { return staged.elementIndices(merged, merged); });
      return staged.storeElements({stepsMap(), ids}, {map, ids}, [&](ValueRange) { return Values(results); });
    }
    bool readsSame = plan.sharesSameInRows() && plan.sameInRows.firstStage == shared.size();
    for (int64_t step = 0; step < plan.vectorsPerThread(); ++step) {
      if (readsSame)
        readSame(size_t(step));
      AffineExpr number = vectorNumber(getAffineConstantExpr(step, context));
      // Where it exists it is the one that is held: its own place is simpler to tell.
      IndexingMap map = vectorMap(dimVariables, staged.elementIndices(mergedIndices(heldRow, heldVectors[size_t(step)]),
                                                                      mergedIndices(row(), number)));
      IndexingMap exists = mapOf({});
      exists.addConstraint(row(), Interval{0, plan.shape.count - 1});
      exists.addConstraint(number, Interval{0, plan.vectors() - 1});
      exists.simplify();
      staged.storeElements({exists, ids}, {map, dims}, [&](ValueRange variables) {
        Values known(results);
        llvm::append_range(known, held[size_t(step)].at(variables));
        llvm::append_range(known, same[size_t(step)].at(variables));
        return known;
      });
    }
  }

  /// One thread a row.
  void storeRows(ValueRange results) {
    IndexingMap map = mapOf(staged.resultIndices(row()));
    map.addConstraint(threadOfRow(), Interval{0, 0});
    map.addConstraint(row(), Interval{0, plan.shape.count - 1});
    map.simplify();
    staged.storeResults({map, ids}, [&](ValueRange) { return Values(results); });
  }

  // --- columns

  /// Each group of threads takes row after row, and adds up what it has of them. Where a round branches, in stores of
  /// what is there and of one thread a row, all threads come out of the branch: shuffles and barriers, which wait for
  /// all, stand outside of branches, in the next round as in the first.
  void emitRounds() {
    size_t numOutputs = kernel.outputs().size();
    SmallVector<Value> state(kernel.outputs().begin(), kernel.outputs().end());
    Values start = staged.columns().start([] { return Values(); });
    for (int64_t i = 0; i < plan.vectorsPerThread() * int64_t(plan.perThread); ++i)
      llvm::append_range(state, start);
    state = kernel.loop(mapOf({}, {plan.rounds}), state, [&](ValueRange variables, ValueRange, ValueRange carried) {
      kernel.outputs().assign(carried.begin(), carried.begin() + ptrdiff_t(numOutputs));
      round = getAffineDimExpr(ids.size(), context);
      ids.push_back(variables.front());
      idVariables.push_back({Interval{0, plan.rounds - 1}, "round"});
      startRound();
      SmallVector<Value> sums = addToColumns(carried.drop_front(numOutputs), emitRows());
      ids.pop_back();
      idVariables.pop_back();
      SmallVector<Value> next(kernel.outputs().begin(), kernel.outputs().end());
      llvm::append_range(next, sums);
      return next;
    });
    kernel.outputs().assign(state.begin(), state.begin() + ptrdiff_t(numOutputs));
    storeColumns(ValueRange(state).drop_front(numOutputs));
  }

  /// Warps of a row write what they come to where others may still read that of the last round, unless there is another
  /// stage, and its barrier, in between.
  void startRound() {
    if (plan.rounds > 1 && shared.size() == 1 && !shared.front().empty())
      shared.front() =
          Values(xla_gpu::SyncThreadsOp::create(b, TypeRange(ValueRange(shared.front())), shared.front()).getResults());
  }

  /// What a thread has in the place of a vector that is missing is added to nobody's columns.
  SmallVector<Value> addToColumns(ValueRange sums, ValueRange results) {
    staged.columns().setResults(results);
    Value exists;
    if (hasSpareThreads())
      exists = b.cmpI(CodeBuilder::IPred::ult, valueOf(row()), plan.shape.count);
    SmallVector<Value> next;
    for (int64_t step = 0; step < plan.vectorsPerThread(); ++step)
      for (Values &element : heldElements(staged.columns(), step)) {
        if (exists)
          element = staged.columns().where(exists, element);
        llvm::append_range(next, staged.columns().apply(sums.take_front(element.size()), element));
        sums = sums.drop_front(element.size());
      }
    return next;
  }

  /// Leaves what the block has of each column, or, of the only block, the columns.
  void storeColumns(ValueRange sums) {
    size_t numValues = plan.columns->accumulators.size(), perVector = plan.perThread * numValues;
    auto listsOf = [&](int64_t step) {
      SmallVector<Values> lists;
      for (size_t i = 0; i < plan.perThread; ++i)
        lists.push_back(Values(sums.slice(size_t(step) * perVector + i * numValues, numValues)));
      return lists;
    };
    auto columnOf = [&](int64_t step, AffineExpr element) {
      return vectorNumber(getAffineConstantExpr(step, context)) * int64_t(plan.perThread) + element;
    };
    auto whereExists = [&](IndexingMap map, int64_t step) {
      map.addConstraint(vectorNumber(getAffineConstantExpr(step, context)), Interval{0, plan.vectors() - 1});
      map.simplify();
      return map;
    };
    if (plan.rowsPerBlock == 1) {
      SmallVector<int64_t, 1> sizes;
      if (plan.perThread > 1)
        sizes.push_back(plan.perThread);
      AffineExpr element = sizes.empty() ? getAffineConstantExpr(0, context) : getAffineSymbolExpr(0, context);
      for (int64_t step = 0; step < plan.vectorsPerThread(); ++step)
        staged.columns().storeLists(whereExists(mapOf({kernel.block(), columnOf(step, element)}, sizes), step),
                                    listsOf(step));
      return;
    }
    Values memory = staged.columns().allocateShared({int64_t(plan.rowsPerBlock), plan.shape.length});
    for (int64_t step = 0; step < plan.vectorsPerThread(); ++step)
      memory = kernel.loop(whereExists(mapOf({}), step), memory, [&](ValueRange, ValueRange, ValueRange tensors) {
        Values written(tensors);
        for (auto [i, values] : llvm::enumerate(listsOf(step))) {
          AffineExpr column = columnOf(step, getAffineConstantExpr(int64_t(i), context));
          written = staged.columns().insert(values, written, applyMap(b, mapOf({group(), column}), ids));
        }
        return written;
      });
    auto sync = xla_gpu::SyncThreadsOp::create(b, TypeRange(ValueRange(memory)), memory);
    int64_t threads = kernel.launch().block.x;
    AffineExpr column = kernel.thread() + getAffineSymbolExpr(0, context) * threads;
    IndexingMap where = mapOf({kernel.block(), column}, {(plan.shape.length + threads - 1) / threads});
    where.addConstraint(column, Interval{0, plan.shape.length - 1});
    where.simplify();
    staged.columns().store(where, [&](ValueRange variables) {
      SmallVector<Values> ofGroups;
      Value number = columnAt(variables, threads);
      for (int64_t i = 0; i < int64_t(plan.rowsPerBlock); ++i)
        ofGroups.push_back(staged.columns().extract(sync.getResults(), {b.index(i), number}));
      return staged.columns().combineAll(ofGroups);
    });
  }

  /// The column that a thread combines in a step of a loop; without a variable there is only one step.
  Value columnAt(ValueRange variables, int64_t threads) {
    if (variables.empty())
      return valueOf(kernel.thread());
    SmallVector<IndexingVariable> stepped(idVariables);
    stepped.push_back({Interval{0, (plan.shape.length + threads - 1) / threads - 1}, "step"});
    IndexingMap map(
        AffineMap::get(stepped.size(), 0, {kernel.thread() + getAffineDimExpr(ids.size(), context) * threads}, context),
        stepped, {}, {});
    return applyMap(b, map, idsAnd(variables)).front();
  }

  const RowsPlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  SmallVector<Value> ids; ///< the launch space, and the round within those
  SmallVector<IndexingVariable> idVariables;
  AffineExpr round;
  StagedCode staged;
  SmallVector<Values> shared; ///< by stage
  // Where in registers: the launch space, and the row and the last vector where these are not sums of it.
  SmallVector<Value> dims;
  SmallVector<IndexingVariable> dimVariables;
  AffineExpr heldRow;
  SmallVector<AffineExpr> heldVectors; ///< by step
  std::vector<CollectedLists> held;    ///< by step, as the next
  std::vector<CollectedLists> same;    ///< in all rows, from shared memory
  Values sameMemory;
  Value hasLastVector; ///< where it may be missing
};

} // namespace

llvm::LogicalResult emitHero(const RowsPlan &plan, KernelBuilder &kernel) { return RowsEmitter(plan, kernel).emit(); }

} // namespace hloc
