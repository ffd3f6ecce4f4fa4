#include "emitters/heroes/RowReductionEmitter.h"

#include "emitters/heroes/ReductionCode.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/ShapeMaps.h"

#include <limits>

using namespace mlir;

namespace hloc {
namespace {

/// Chains of a thread that do not wait for each other, and what it carries in all of them: a few registers of 255.
constexpr int64_t maxChains = 4, maxCarried = 32;

class RowReductionEmitter {
public:
  RowReductionEmitter(const RowReductionPlan &plan, KernelBuilder &kernel)
      : plan(plan), frame(plan.frame), kernel(kernel), code(plan.frame, plan.stage, kernel), b(kernel.code()),
        context(kernel.context()) {}

  llvm::LogicalResult emit() {
    if (failed(code.emitFunctions()))
      return failure();
    if (plan.stage == ReductionStage::Whole && int64_t(plan.perThread) % frame.numReduced() == 0) {
      takeWholeRows();
      return code.succeeded();
    }
    Values values = plan.stage == ReductionStage::Combine ? accumulateParts() : accumulate();
    int64_t lanes = std::min<int64_t>(plan.threadsPerRow, lanesPerWarp);
    if (plan.meetsBeforeShuffling) {
      meet(values);
      return code.succeeded();
    }
    if (lanes > 1)
      values = code.shuffle(values, lanes / 2);
    if (plan.threadsPerRow > lanesPerWarp)
      acrossWarps(values);
    else
      storeRows(plan.threadsPerRow, [&](ValueRange) { return values; });
    return code.succeeded();
  }

private:
  using Values = ReductionCode::Values;
  static constexpr int64_t lanesPerWarp = 32;

  AffineExpr threadOfRow() const { return kernel.thread() % int64_t(plan.threadsPerRow); }
  int64_t parts() const { return plan.stage == ReductionStage::Partial ? plan.splits : 1; }
  AffineExpr part() const { return kernel.block() % parts(); }
  AffineExpr partOfRun() const { return part() % plan.partsOfRun; }
  /// Number of the run that a part reads as its `number`-th.
  AffineExpr run(AffineExpr number) const { return part().floorDiv(plan.partsOfRun) * plan.runsPerPart + number; }
  /// The row of the threads that are that many.
  AffineExpr row(int64_t threads) const {
    return kernel.block().floorDiv(parts()) * int64_t(plan.rowsPerBlock) + kernel.thread().floorDiv(threads);
  }

  void keepRowsInside(IndexingMap &map, int64_t threads) const {
    map.addConstraint(row(threads), Interval{0, frame.numResults() - 1});
  }
  void keepRunsInside(IndexingMap &map, AffineExpr run) const {
    if (plan.numRuns() % plan.runsPerPart != 0)
      map.addConstraint(run, Interval{0, plan.numRuns() - 1});
  }

  /// Number of the vector of a run that a thread reads in a step.
  AffineExpr vectorNumber(AffineExpr step) const {
    return partOfRun() * plan.perSplit + step * int64_t(plan.threadsPerRow) + threadOfRow();
  }
  /// Vectors that every run has, whichever element it begins with; at most one less than it may have.
  int64_t vectorsOfAnyRun() const {
    int64_t edge = plan.hasEdges ? int64_t(plan.perThread) - 1 : 0;
    return (plan.runLength - edge) / int64_t(plan.perThread);
  }
  /// The indices of an element of the threads' row, in a run of it.
  SmallVector<AffineExpr> indicesOfRun(AffineExpr run, AffineExpr element) const {
    AffineExpr number = row(plan.threadsPerRow);
    return plan.numRuns() == 1 ? code.mergedIndices(number, element) : code.mergedIndicesOfRun(number, run, element);
  }
  /// Where in the operand's memory a run begins.
  AffineExpr beginOf(AffineExpr run) const {
    return linearize(indicesOfRun(run, getAffineConstantExpr(0, context)), frame.dims, context);
  }
  /// The first element of a vector, counted from the run's first. With edges, vectors begin where the array's do: at
  /// the first multiple of their size that is in the run.
  AffineExpr firstOf(AffineExpr run, AffineExpr vector) const {
    AffineExpr first = vector * int64_t(plan.perThread);
    if (!plan.hasEdges)
      return first;
    AffineExpr begin = beginOf(run);
    return first + begin.ceilDiv(int64_t(plan.perThread)) * int64_t(plan.perThread) - begin;
  }

  /// Some steps of a loop over the vectors of a run.
  struct Steps {
    int64_t first, count;
    Interval parts; ///< for which parts of a run
    bool checked;   ///< there may be no vector
  };

  /// All vectors of a run, or of a part of it. Loops that need no check come apart from those that do.
  SmallVector<Steps, 2> allSteps() const {
    int64_t threads = plan.threadsPerRow, groups = plan.runLength / int64_t(plan.perThread);
    int64_t steps = (plan.perSplit + threads - 1) / threads;
    if (plan.partsOfRun == 1) {
      if (!plan.hasEdges)
        return {{0, steps, {0, 0}, groups % threads != 0}}; // peeled
      int64_t whole = vectorsOfAnyRun() / threads;
      return {{0, whole, {0, 0}, false}, {whole, steps - whole, {0, 0}, true}};
    }
    int64_t wholeParts = vectorsOfAnyRun() / plan.perSplit;
    return {{0, steps, {0, wholeParts - 1}, false}, {0, steps, {wholeParts, plan.partsOfRun - 1}, true}};
  }

  /// Every thread reads each of its vectors once; what it has of them.
  Values accumulate() {
    int64_t numValues = int64_t(frame.accumulators.size());
    int64_t chains = std::min({int64_t(plan.perThread), maxChains, std::max<int64_t>(maxCarried / numValues, 1)});
    // Truth values of a vector are combined by words, see PackBytes.cpp.
    if (llvm::all_of(frame.accumulators, [](const Accumulator &accumulator) { return isPred(accumulator.type); }))
      chains = 1;
    SmallVector<Value> state;
    Values start = startOfRow();
    for (int64_t i = 0; i < chains; ++i)
      llvm::append_range(state, start);
    size_t numCarried = state.size();
    llvm::append_range(state, code.sideOutputs());
    for (const Steps &steps : allSteps())
      if (steps.count > 0 && !steps.parts.isEmpty())
        state = accumulateVectors(steps, chains, state);
    if (plan.hasEdges)
      state = accumulateEdges(state);
    code.setSideOutputs(ValueRange(state).drop_front(numCarried));
    SmallVector<Values> lists;
    for (int64_t i = 0; i < chains; ++i)
      lists.push_back(Values(ValueRange(state).slice(size_t(i * numValues), size_t(numValues))));
    return code.combineAll(lists);
  }

  /// `state`: the accumulators of each chain, then the side outputs.
  SmallVector<Value> accumulateVectors(const Steps &steps, int64_t chains, ValueRange state) {
    AffineExpr ofRun = run(getAffineSymbolExpr(0, context));
    AffineExpr vector = vectorNumber(getAffineSymbolExpr(1, context) + steps.first);
    IndexingMap map = kernel.mapOf({}, {plan.runsPerPart, steps.count});
    map.addConstraint(partOfRun(), steps.parts);
    if (steps.checked)
      map.addConstraint(firstOf(ofRun, vector),
                        Interval{std::numeric_limits<int64_t>::min() / 4, plan.runLength - int64_t(plan.perThread)});
    keepRunsInside(map, ofRun);
    keepRowsInside(map, plan.threadsPerRow);
    map.simplify();
    size_t numValues = frame.accumulators.size(), numCarried = numValues * size_t(chains);
    IndexingMap elementsOfVector = vectorMap(steps);
    return kernel.loop(map, state, [&](ValueRange variables, ValueRange, ValueRange carried) {
      Values sides(carried.drop_front(numCarried));
      SmallVector<Value> next(carried.take_front(numCarried));
      SmallVector<Value> dims(kernel.ids());
      llvm::append_range(dims, variables);
      SmallVector<Values> elements = code.elements(elementsOfVector, dims, sides);
      for (auto [i, element] : llvm::enumerate(elements)) {
        size_t chain = (i % size_t(chains)) * numValues;
        llvm::copy(code.apply(ValueRange(next).slice(chain, numValues), element), next.begin() + ptrdiff_t(chain));
      }
      llvm::append_range(next, sides);
      return next;
    });
  }

  /// What is before the first vector of a run and after the last: fewer elements than two vectors have, which are as
  /// many as threads of a row or more (a vector of 32 bytes of 1-byte numbers, a row's 32 threads).
  SmallVector<Value> accumulateEdges(ValueRange state) {
    int64_t size = plan.perThread, length = plan.runLength, threads = plan.threadsPerRow;
    int64_t steps = (2 * (size - 1) + threads - 1) / threads;
    AffineExpr ofRun = run(getAffineSymbolExpr(0, context)), begin = beginOf(ofRun);
    AffineExpr number = getAffineSymbolExpr(1, context) * threads + threadOfRow();
    AffineExpr numBefore = begin.ceilDiv(size) * size - begin;
    AffineExpr numBetween = (-numBefore + length).floorDiv(size) * size;
    IndexingMap edges = kernel.mapOf({number, numBefore, numBetween}, {plan.runsPerPart, steps});
    keepRunsInside(edges, ofRun);
    edges.simplify();
    // An element beyond the run's end where there is nothing to do: the inner loop checks its dims.
    SmallVector<IndexingVariable> dims(kernel.idVariables());
    AffineExpr numberOfRun = getAffineDimExpr(dims.size(), context);
    dims.push_back({Interval{0, plan.runsPerPart - 1}, "run"});
    AffineExpr element = getAffineDimExpr(dims.size(), context);
    dims.push_back({Interval{0, length - 1}, "element"});
    SmallVector<AffineExpr> indices = code.elementIndices(indicesOfRun(run(numberOfRun), element));
    IndexingMap map(AffineMap::get(dims.size(), 0, indices, context), dims, {}, {});
    map.addConstraint(partOfRun(), Interval{plan.partsOfRun - 1, plan.partsOfRun - 1});
    keepRowsInside(map, threads);
    keepRunsInside(map, run(numberOfRun));
    map.simplify();
    size_t numValues = frame.accumulators.size();
    ArrayAttr numbers = xla_gpu::rangeAttr(context, {0, length / size * size + steps * threads - 1});
    return kernel.loop(edges, state, [&](ValueRange variables, ValueRange known, ValueRange ofEarlierSteps) {
      Value isBefore = b.cmpI(CodeBuilder::IPred::ult, known[0], known[1]);
      SmallVector<Value> at(kernel.ids());
      at.push_back(variables.front());
      Value number = b.select(isBefore, known[0], b.addI(known[0], known[2]));
      number.getDefiningOp()->setAttr(xla_gpu::attr::range, numbers);
      at.push_back(number);
      return kernel.loop(map, at, ofEarlierSteps, [&](ValueRange, ValueRange operandAt, ValueRange carried) {
        SmallVector<Value> next(carried);
        Values sides(carried.take_back(frame.sideRoots.size()));
        Values own = code.elementAt(operandAt, sides);
        // Not applied: it may lie before what the thread has, which matters where the first of equals is chosen.
        llvm::copy(code.combine(carried.take_front(numValues), own), next.begin());
        llvm::copy(sides, next.end() - ptrdiff_t(sides.size()));
        return next;
      });
    });
  }

  /// The launch space and the numbers of a run and a step -> the elements of one vector.
  IndexingMap vectorMap(const Steps &steps) const {
    SmallVector<IndexingVariable> dims(kernel.idVariables());
    AffineExpr ofRun = run(getAffineDimExpr(dims.size(), context));
    dims.push_back({Interval{0, plan.runsPerPart - 1}, "run"});
    AffineExpr step = getAffineDimExpr(dims.size(), context) + steps.first;
    dims.push_back({Interval{0, steps.count - 1}, "step"});
    AffineExpr element = firstOf(ofRun, vectorNumber(step));
    SmallVector<IndexingVariable, 1> ranges;
    if (plan.perThread > 1) {
      element = element + getAffineSymbolExpr(0, context);
      ranges.push_back({Interval{0, int64_t(plan.perThread) - 1}, {}});
    }
    SmallVector<AffineExpr> indices = code.elementIndices(indicesOfRun(ofRun, element));
    IndexingMap map(AffineMap::get(dims.size(), ranges.size(), indices, context), dims, ranges, {});
    map.simplify();
    return map;
  }

  // --- whole rows of one thread

  int64_t rowsPerThread() const { return int64_t(plan.perThread) / frame.numReduced(); }

  /// All threads but the last have equally many.
  void takeWholeRows() {
    int64_t each = rowsPerThread(), whole = frame.numResults() / each, left = frame.numResults() % each;
    if (whole > 0)
      takeWholeRows(each, {0, whole - 1});
    if (left > 0)
      takeWholeRows(left, {whole, whole});
  }

  /// The threads of these numbers read that many rows in vectors, and store their results side by side.
  void takeWholeRows(int64_t count, Interval threads) {
    AffineExpr number = kernel.block() * int64_t(kernel.launch().block.x) + kernel.thread();
    IndexingMap own = kernel.mapOf({}, {});
    own.addConstraint(number, threads);
    own.simplify();
    auto stored = kernel.loop(own, kernel.outputs(), [&](ValueRange, ValueRange, ValueRange outputs) {
      kernel.outputs().assign(outputs.begin(), outputs.end());
      AffineExpr first = number * rowsPerThread();
      IndexingMap where =
          count == 1 ? kernel.mapOf({first}, {}) : kernel.mapOf({first + getAffineSymbolExpr(0, context)}, {count});
      where.addConstraint(number, threads);
      code.storeLists(where, reduceRows(number, count));
      return SmallVector<Value>(ValueRange(kernel.outputs()));
    });
    kernel.outputs().assign(stored.begin(), stored.end());
  }

  /// What the first `count` rows of the thread with this number come to.
  SmallVector<Values> reduceRows(AffineExpr number, int64_t count) {
    int64_t perAccess = int64_t(plan.perThread) & -int64_t(plan.perThread), length = frame.numReduced();
    Values sides = code.sideOutputs();
    SmallVector<Values> rows;
    for (int64_t first = 0; first < count * length; first += perAccess) {
      int64_t size = std::min(perAccess, count * length - first);
      for (auto [i, element] : llvm::enumerate(code.elements(elementsOf(number, first, size), kernel.ids(), sides))) {
        if ((first + int64_t(i)) % length == 0)
          rows.push_back(element);
        else
          rows.back() = code.apply(rows.back(), element);
      }
    }
    code.setSideOutputs(sides);
    return rows;
  }

  /// From the launch space to `count` elements of the thread with this number.
  IndexingMap elementsOf(AffineExpr number, int64_t first, int64_t count) const {
    AffineExpr element = number * int64_t(plan.perThread) + first;
    SmallVector<IndexingVariable, 1> ranges;
    if (count > 1) {
      element = element + getAffineSymbolExpr(0, context);
      ranges.push_back({Interval{0, count - 1}, {}});
    }
    int64_t length = frame.numReduced();
    SmallVector<AffineExpr> indices =
        code.elementIndices(code.mergedIndices(element.floorDiv(length), element % length));
    IndexingMap map(AffineMap::get(kernel.idVariables().size(), ranges.size(), indices, context), kernel.idVariables(),
                    ranges, {});
    map.simplify();
    return map;
  }

  // --- what all rows need

  /// The number of the thread's row; the last for threads without one.
  Value anyRow() {
    Value number = applyMap(b, kernel.mapOf({row(plan.threadsPerRow)}, {}), kernel.ids()).front();
    return b.minU(number, b.index(frame.numResults() - 1));
  }

  Values startOfRow() {
    return code.start([&] {
      AffineExpr number = getAffineDimExpr(0, context);
      SmallVector<AffineExpr> merged = code.mergedIndices(number, getAffineConstantExpr(0, context));
      SmallVector<AffineExpr> indices = code.indicesOf(frame.operandShape(), merged);
      IndexingMap map = IndexingMap::fromSizes(AffineMap::get(1, 0, indices, context), {frame.numResults()});
      map.simplify();
      return code.element(applyMap(b, map, anyRow()));
    });
  }

  /// The same of partial results.
  Values accumulateParts() {
    AffineExpr step = getAffineSymbolExpr(0, context);
    int64_t threads = plan.threadsPerRow;
    AffineExpr number = step * threads + threadOfRow();
    IndexingMap map = kernel.mapOf({number, row(threads)}, {(plan.splits + threads - 1) / threads});
    map.addConstraint(number, Interval{0, plan.splits - 1});
    keepRowsInside(map, threads);
    map.simplify();
    Values first = code.start([&] { return code.extract(kernel.scratch(), {b.index(0), anyRow()}); });
    return kernel.loop(map, first, [&](ValueRange, ValueRange at, ValueRange state) {
      return code.combine(state, code.extract(kernel.scratch(), at));
    });
  }

  /// One thread a row combines what the row's warps have: so few that shuffling them would cost all warps more.
  void acrossWarps(ValueRange values) {
    int64_t warps = int64_t(kernel.launch().block.x) / lanesPerWarp;
    int64_t warpsPerRow = plan.threadsPerRow / lanesPerWarp;
    Values shared = code.allocateShared({warps});
    IndexingMap write = kernel.mapOf({kernel.warp()}, {});
    write.addConstraint(kernel.lane(), Interval{0, 0});
    write.simplify();
    Values written = kernel.loop(
        write, shared, [&](ValueRange, ValueRange at, ValueRange state) { return code.insert(values, state, at); });
    auto sync = xla_gpu::SyncThreadsOp::create(b, TypeRange(ValueRange(written)), written);
    storeRows(1, [&](ValueRange) {
      SmallVector<Values> ofWarps;
      for (int64_t warp = 0; warp < warpsPerRow; ++warp) {
        AffineExpr at = kernel.thread() * warpsPerRow + warp;
        ofWarps.push_back(code.extract(sync.getResults(), applyMap(b, kernel.mapOf({at}, {}), kernel.ids())));
      }
      return code.combineAll(ofWarps);
    });
  }

  /// As many warps as the block has rows combine what all warps of a row have, lane by lane, and then shuffle.
  void meet(ValueRange values) {
    Values shared = code.allocateShared({int64_t(kernel.launch().block.x)});
    Values written = code.insert(values, shared, applyMap(b, kernel.mapOf({kernel.thread()}, {}), kernel.ids()));
    auto sync = xla_gpu::SyncThreadsOp::create(b, TypeRange(ValueRange(written)), written);
    std::vector<Value> &stored = plan.stage == ReductionStage::Partial ? kernel.scratch() : kernel.outputs();
    IndexingMap warps = kernel.mapOf({}, {});
    warps.addConstraint(kernel.thread(), Interval{0, lanesPerWarp * int64_t(plan.rowsPerBlock) - 1});
    warps.simplify();
    SmallVector<Value> results = kernel.loop(warps, stored, [&](ValueRange, ValueRange, ValueRange carried) {
      stored.assign(carried.begin(), carried.end());
      SmallVector<Values> ofWarps;
      for (int64_t warp = 0; warp < int64_t(plan.threadsPerRow) / lanesPerWarp; ++warp) {
        AffineExpr at = kernel.warp() * int64_t(plan.threadsPerRow) + warp * lanesPerWarp + kernel.lane();
        ofWarps.push_back(code.extract(sync.getResults(), applyMap(b, kernel.mapOf({at}, {}), kernel.ids())));
      }
      Values ofRow = code.shuffle(code.combineAll(ofWarps), lanesPerWarp / 2);
      storeRows(lanesPerWarp, [&](ValueRange) { return ofRow; });
      return SmallVector<Value>(ValueRange(stored));
    });
    stored.assign(results.begin(), results.end());
  }

  /// The first of each `threads` neighbouring threads stores what a row comes to.
  void storeRows(int64_t threads, llvm::function_ref<Values(ValueRange)> values) {
    SmallVector<AffineExpr, 2> at = {row(threads)};
    if (plan.stage == ReductionStage::Partial)
      at = {part(), row(threads)};
    IndexingMap map = kernel.mapOf(at, {});
    map.addConstraint(kernel.thread() % threads, Interval{0, 0});
    map.addConstraint(kernel.thread(), Interval{0, threads * int64_t(plan.rowsPerBlock) - 1});
    keepRowsInside(map, threads);
    code.store(map, values);
  }

  const RowReductionPlan &plan;
  const ReductionFrame &frame;
  KernelBuilder &kernel;
  ReductionCode code;
  CodeBuilder &b;
  MLIRContext *context;
};

} // namespace

llvm::LogicalResult emitHero(const RowReductionPlan &plan, KernelBuilder &kernel) {
  return RowReductionEmitter(plan, kernel).emit();
}

} // namespace hloc
