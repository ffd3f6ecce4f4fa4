#include "emitters/heroes/ColumnsEmitter.h"

#include "emitters/heroes/StagedCode.h"
#include "hloc/dialect/XlaGpu.h"

using namespace mlir;

namespace hloc {
namespace {

/// Chains of a thread that do not wait for each other.
constexpr int64_t maxChains = 4;

// As in kernels of rows: in registers, what several stages and the outputs read is loaded once, and what they have in
// common is computed once by CSE. So all threads do all their rows and columns, those that have none another thread's,
// and only what comes of it depends on whether there is one: it is not reduced, and not stored.
//
// Neighbouring threads have groups of one warp, which shuffles combine; then come lanes, then the other groups:
//
//   4 lanes by 16 groups   thread 0..7: lane 0, groups 0..7; 8..15: lane 1; 32..39: lane 0, groups 8..15
class ColumnsEmitter {
public:
  ColumnsEmitter(const ColumnsPlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()),
        staged(plan, plan.inRegisters, /*shares=*/false, ReductionStage::Whole, kernel) {}

  llvm::LogicalResult emit() {
    if (failed(staged.emitFunctions()))
      return failure();
    if (plan.inRegisters)
      locate();
    SmallVector<Values> results(plan.perThread); // of each column, all stages so far
    for (auto [stage, code] : llvm::enumerate(staged.stages())) {
      load(stage);
      CollectedLists earlier(b, results);
      SmallVector<Values> columns =
          acrossThreads(code, plan.inRegisters ? reduceHeld(code, earlier) : reduceRead(code, earlier));
      for (auto [column, values] : llvm::zip_equal(results, columns))
        llvm::append_range(column, code.results(values));
    }
    load(staged.stages().size());
    store(CollectedLists(b, results));
    return staged.succeeded();
  }

private:
  using Values = ReductionCode::Values;

  // --- places

  AffineExpr constant(int64_t value) const { return getAffineConstantExpr(value, context); }
  int64_t groupsOfWarp() const { return plan.groupsOfWarp(); }
  AffineExpr groupInWarp() const { return kernel.thread() % groupsOfWarp(); }
  AffineExpr lane() const { return kernel.thread().floorDiv(groupsOfWarp()) % int64_t(plan.lanes); }
  AffineExpr part() const { return kernel.thread().floorDiv(groupsOfWarp() * int64_t(plan.lanes)); }
  AffineExpr group() const { return part() * groupsOfWarp() + groupInWarp(); }
  /// The thread's vector of columns, and its row number `step`.
  AffineExpr vector() const { return kernel.block() * int64_t(plan.lanes) + lane(); }
  AffineExpr row(AffineExpr step) const { return group() + step * int64_t(plan.groups); }
  AffineExpr row(int64_t step) const { return row(constant(step)); }
  bool hasSpareVectors() const { return plan.vectors() % int64_t(plan.lanes) != 0; }
  bool hasSpareRows() const { return plan.shape.length % int64_t(plan.groups) != 0; }
  int64_t lastStep() const { return plan.rowsPerThread() - 1; }
  bool mayLack(int64_t step) const { return hasSpareRows() && step == lastStep(); }

  /// A dim that has the value of `number`, or `last` if that is less.
  AffineExpr addClamped(AffineExpr number, int64_t last, const char *name) {
    Value value = applyMap(b, kernel.mapOf({number}, {}), kernel.ids()).front();
    Value inside = b.minU(value, b.index(last));
    inside.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(context, Interval{0, last}));
    dims.push_back(inside);
    dimVariables.push_back({Interval{0, last}, name});
    return getAffineDimExpr(dims.size() - 1, context);
  }

  /// The thread's columns and its last row, which all exist.
  void locate() {
    dims.assign(kernel.ids().begin(), kernel.ids().end());
    dimVariables.assign(kernel.idVariables().begin(), kernel.idVariables().end());
    heldVector = hasSpareVectors() ? addClamped(vector(), plan.vectors() - 1, "vector") : vector();
    for (int64_t step = 0; step <= lastStep(); ++step)
      heldRows.push_back(mayLack(step) ? addClamped(row(step), plan.shape.length - 1, "row") : row(step));
    held.assign(heldRows.size(), CollectedLists(b, int64_t(plan.perThread)));
    if (!hasSpareRows())
      return;
    Value number = applyMap(b, kernel.mapOf({row(lastStep())}, {}), kernel.ids()).front();
    hasLastRow = b.cmpI(CodeBuilder::IPred::ult, number, plan.shape.length);
  }

  using Indices = llvm::function_ref<SmallVector<AffineExpr>(ArrayRef<AffineExpr>)>;

  /// From the dims, and the number of a column in the vector if it has several, to `indices` of its place.
  IndexingMap vectorMap(ArrayRef<IndexingVariable> variables, AffineExpr atVector, AffineExpr atRow,
                        Indices indices) const {
    bool hasSlices = plan.shape.slices() > 1;
    AffineExpr ofSlice = hasSlices ? atVector % plan.vectorsOfSlice() : atVector;
    AffineExpr column = ofSlice * int64_t(plan.perThread);
    SmallVector<IndexingVariable, 1> ranges;
    if (plan.perThread > 1) {
      column = column + getAffineSymbolExpr(0, context);
      ranges.push_back({Interval{0, int64_t(plan.perThread) - 1}, {}});
    }
    SmallVector<AffineExpr> merged = {atRow, column};
    if (hasSlices)
      merged.insert(merged.begin(), atVector.floorDiv(plan.vectorsOfSlice()));
    IndexingMap map(AffineMap::get(variables.size(), ranges.size(), indices(merged), context), variables, ranges, {});
    map.simplify();
    return map;
  }
  /// From `dims`.
  IndexingMap heldMap(int64_t step, Indices indices) const {
    return vectorMap(dimVariables, heldVector, heldRows[size_t(step)], indices);
  }
  /// What is held from a stage on of all rows.
  void load(size_t stage) {
    for (auto [step, lists] : llvm::enumerate(held))
      staged.load(stage,
                  heldMap(int64_t(step), [&](ArrayRef<AffineExpr> merged) { return staged.indicesToLoad(merged); }),
                  dims, lists);
  }
  /// From the launch space and the variable of `stepsMap`.
  IndexingMap readMap(Indices indices) const {
    SmallVector<IndexingVariable> variables(kernel.idVariables());
    AffineExpr step = getAffineDimExpr(variables.size(), context);
    variables.push_back({Interval{0, lastStep()}, "step"});
    return vectorMap(variables, vector(), row(step), indices);
  }

  Interval allVectors() const { return {0, plan.vectors() - 1}; }
  Interval allRows() const { return {0, plan.shape.length - 1}; }
  /// A loop over the thread's rows; whether there is one depends on the step.
  IndexingMap stepsMap() const {
    IndexingMap map = kernel.mapOf({}, {plan.rowsPerThread()});
    map.addConstraint(row(getAffineSymbolExpr(0, context)), allRows());
    map.addConstraint(vector(), allVectors());
    map.simplify();
    return map;
  }

  // --- stages

  /// What the thread's rows come to, for each of its columns.
  SmallVector<Values> reduceHeld(ReductionCode &code, const CollectedLists &earlier) {
    int64_t numChains = std::max<int64_t>(maxChains / int64_t(plan.perThread), 1);
    SmallVector<SmallVector<Values>> chains(plan.perThread);
    for (int64_t step = 0; step <= lastStep(); ++step) {
      IndexingMap map = heldMap(step, [&](ArrayRef<AffineExpr> merged) { return code.elementIndices(merged); });
      code.setResultsOfPoints(earlier, held[size_t(step)]);
      Values noOutputs;
      for (auto [own, element] : llvm::zip_equal(chains, code.elements(map, dims, noOutputs))) {
        if (mayLack(step))
          element = code.where(hasLastRow, element);
        if (int64_t(own.size()) < numChains)
          own.push_back(element);
        else
          own[size_t(step % numChains)] = code.apply(own[size_t(step % numChains)], element);
      }
    }
    return llvm::map_to_vector(chains, [&](ArrayRef<Values> own) { return code.combineAll(own); });
  }

  /// The same where each stage reads them.
  SmallVector<Values> reduceRead(ReductionCode &code, const CollectedLists &earlier) {
    code.setResultsOfPoints(earlier);
    Values start = code.start([] { return Values(); }), state;
    size_t numValues = start.size();
    for (unsigned column = 0; column < plan.perThread; ++column)
      llvm::append_range(state, start);
    IndexingMap map = readMap([&](ArrayRef<AffineExpr> merged) { return code.elementIndices(merged); });
    state = kernel.loop(stepsMap(), state, [&](ValueRange steps, ValueRange, ValueRange carried) {
      Values at(kernel.ids()), noOutputs, next;
      llvm::append_range(at, steps);
      for (auto [column, element] : llvm::enumerate(code.elements(map, at, noOutputs)))
        llvm::append_range(next, code.apply(carried.slice(column * numValues, numValues), element));
      return next;
    });
    SmallVector<Values> columns;
    for (size_t column = 0; column < plan.perThread; ++column)
      columns.push_back(Values(ValueRange(state).slice(column * numValues, numValues)));
    return columns;
  }

  /// What all threads of the columns have together, in each of them.
  SmallVector<Values> acrossThreads(ReductionCode &code, SmallVector<Values> columns) {
    if (groupsOfWarp() > 1)
      for (Values &values : columns)
        values = code.shuffle(values, groupsOfWarp() / 2, /*toAll=*/true);
    if (plan.parts() == 1)
      return columns;
    Values shared = storeParts(code, columns);
    int64_t parts = plan.parts(), together = std::min(groupsOfWarp(), parts);
    for (auto [i, values] : llvm::enumerate(columns)) {
      SmallVector<Values> read;
      for (int64_t first = 0; first < parts; first += together) {
        IndexingMap map = kernel.mapOf({constant(int64_t(i)), kernel.thread() % together + first, lane()}, {});
        read.push_back(code.extract(shared, applyMap(b, map, kernel.ids())));
      }
      values = code.combineAll(read);
      if (together > 1)
        values = code.shuffle(values, together / 2, /*toAll=*/true);
    }
    return columns;
  }

  /// [column of the vector][part][lane]: lanes of a warp find theirs in different banks, when they store parts and when
  /// they read those of others. Memory of its own: no thread has to wait for the readers of the stage before.
  Values storeParts(ReductionCode &code, ArrayRef<Values> columns) {
    Values shared = code.allocateShared({int64_t(plan.perThread), int64_t(plan.parts()), int64_t(plan.lanes)});
    IndexingMap where = kernel.mapOf({part(), lane()}, {});
    if (groupsOfWarp() > 1)
      where.addConstraint(groupInWarp(), Interval{0, 0});
    where.simplify();
    Values written = kernel.loop(where, shared, [&](ValueRange, ValueRange at, ValueRange state) {
      Values stored(state);
      for (auto [i, values] : llvm::enumerate(columns))
        stored = code.insert(values, stored, {b.index(int64_t(i)), at[0], at[1]});
      return stored;
    });
    return Values(xla_gpu::SyncThreadsOp::create(b, TypeRange(ValueRange(written)), written).getResults());
  }

  // --- outputs

  void store(const CollectedLists &results) {
    auto at = [&](ValueRange variables) { return results.at(variables); };
    Values launch(kernel.ids());
    auto indices = [&](ArrayRef<AffineExpr> merged) { return staged.elementIndices(merged, merged); };
    if (!plan.inRegisters)
      staged.storeElements({stepsMap(), launch}, {readMap(indices), launch}, at);
    for (int64_t step = 0; plan.inRegisters && step <= lastStep(); ++step) {
      IndexingMap exists = kernel.mapOf({}, {});
      exists.addConstraint(vector(), allVectors());
      exists.addConstraint(row(step), allRows());
      exists.simplify();
      staged.storeElements({exists, launch}, {heldMap(step, indices), dims}, [&](ValueRange variables) {
        Values known = results.at(variables);
        llvm::append_range(known, held[size_t(step)].at(variables));
        return known;
      });
    }
    // One group of each column.
    AffineExpr number = vector() * int64_t(plan.perThread);
    SmallVector<int64_t, 1> sizes;
    if (plan.perThread > 1) {
      number = number + getAffineSymbolExpr(0, context);
      sizes.push_back(plan.perThread);
    }
    IndexingMap map = kernel.mapOf(staged.resultIndices(number), sizes);
    map.addConstraint(group(), Interval{0, 0});
    map.addConstraint(vector(), allVectors());
    map.simplify();
    staged.storeResults({map, launch}, at);
  }

  const ColumnsPlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  StagedCode staged;
  // Where in registers: the launch space, and the vector of columns and the last row where these are not sums of it.
  SmallVector<Value> dims;
  SmallVector<IndexingVariable> dimVariables;
  AffineExpr heldVector;
  SmallVector<AffineExpr> heldRows; ///< by step
  std::vector<CollectedLists> held; ///< by step
  Value hasLastRow;                 ///< where it may be missing
};

} // namespace

llvm::LogicalResult emitHero(const ColumnsPlan &plan, KernelBuilder &kernel) {
  return ColumnsEmitter(plan, kernel).emit();
}

} // namespace hloc
