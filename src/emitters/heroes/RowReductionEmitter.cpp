#include "emitters/heroes/RowReductionEmitter.h"

#include "emitters/heroes/ReductionCode.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/fusion/HloIndexing.h"

using namespace mlir;

namespace hloc {
namespace {

/// Chains of a thread that do not wait for each other.
constexpr int64_t maxChains = 4;

class RowReductionEmitter {
public:
  RowReductionEmitter(const RowReductionPlan &plan, KernelBuilder &kernel)
      : plan(plan), frame(plan.frame), kernel(kernel), code(plan.frame, plan.stage, kernel), b(kernel.code()),
        context(kernel.context()) {}

  llvm::LogicalResult emit() {
    if (failed(code.emitFunctions()))
      return failure();
    Values values = plan.stage == ReductionStage::Combine ? accumulateParts() : accumulate();
    int64_t lanes = std::min<int64_t>(plan.threadsPerRow, lanesPerWarp);
    if (lanes > 1)
      values = code.shuffle(values, lanes / 2);
    if (plan.threadsPerRow > lanesPerWarp)
      acrossWarps(values);
    else
      storeRows(plan.threadsPerRow, [&] { return values; });
    return code.succeeded();
  }

private:
  using Values = ReductionCode::Values;
  static constexpr int64_t lanesPerWarp = 32;

  AffineExpr threadOfRow() const { return kernel.thread() % int64_t(plan.threadsPerRow); }
  int64_t parts() const { return plan.stage == ReductionStage::Partial ? plan.splits : 1; }
  AffineExpr part() const { return kernel.block() % parts(); }
  /// The row of the threads that are that many.
  AffineExpr row(int64_t threads) const {
    return kernel.block().floorDiv(parts()) * int64_t(plan.rowsPerBlock) + kernel.thread().floorDiv(threads);
  }

  void keepRowsInside(IndexingMap &map, int64_t threads) const {
    map.addConstraint(row(threads), Interval{0, frame.numResults() - 1});
  }

  /// Every thread reads each of its vectors once; what it has of them.
  Values accumulate() {
    AffineExpr step = getAffineSymbolExpr(0, context);
    int64_t perThread = plan.perThread, threads = plan.threadsPerRow;
    int64_t groups = frame.numReduced() / perThread;
    AffineExpr inPart = step * threads + threadOfRow();
    AffineExpr group = part() * plan.perSplit + inPart;
    // Which vectors: the row and the number of the vector.
    IndexingMap steps = kernel.mapOf({}, {(plan.perSplit + threads - 1) / threads});
    steps.addConstraint(inPart, Interval{0, plan.perSplit - 1});
    steps.addConstraint(group, Interval{0, groups - 1});
    keepRowsInside(steps, threads);
    steps.simplify();
    int64_t chains = std::min(perThread, maxChains);
    unsigned numValues = frame.accumulators.size();
    SmallVector<Value> carried;
    Values start = startOfRow();
    for (int64_t i = 0; i < chains; ++i)
      llvm::append_range(carried, start);
    size_t numCarried = carried.size();
    llvm::append_range(carried, code.sideOutputs());
    SmallVector<Value> results = kernel.loop(steps, carried, [&](ValueRange variables, ValueRange, ValueRange state) {
      Values sides(state.drop_front(numCarried));
      SmallVector<Value> next(state.take_front(numCarried));
      SmallVector<Values> elements = code.elements(vectorMap(), withVariables(variables), sides);
      for (auto [i, element] : llvm::enumerate(elements)) {
        size_t chain = (i % chains) * numValues;
        Values applied = code.apply(ValueRange(next).slice(chain, numValues), element);
        llvm::copy(applied, next.begin() + ptrdiff_t(chain));
      }
      llvm::append_range(next, sides);
      return next;
    });
    code.setSideOutputs(ValueRange(results).drop_front(numCarried));
    SmallVector<Values> lists;
    for (int64_t i = 0; i < chains; ++i)
      lists.push_back(Values(ValueRange(results).slice(i * numValues, numValues)));
    return code.combineAll(lists);
  }

  SmallVector<Value> withVariables(ValueRange variables) const {
    SmallVector<Value> dims(kernel.ids());
    llvm::append_range(dims, variables);
    return dims;
  }

  /// The launch space and the step -> the elements of one vector.
  IndexingMap vectorMap() const {
    SmallVector<IndexingVariable> dims(kernel.idVariables());
    AffineExpr step = getAffineDimExpr(dims.size(), context);
    dims.push_back({Interval{0, (plan.perSplit + plan.threadsPerRow - 1) / plan.threadsPerRow - 1}, "step"});
    AffineExpr element =
        (part() * plan.perSplit + step * int64_t(plan.threadsPerRow) + threadOfRow()) * int64_t(plan.perThread);
    SmallVector<IndexingVariable, 1> ranges;
    if (plan.perThread > 1) {
      element = element + getAffineSymbolExpr(0, context);
      ranges.push_back({Interval{0, int64_t(plan.perThread) - 1}, {}});
    }
    SmallVector<AffineExpr> indices = code.elementIndices(code.mergedIndices(row(plan.threadsPerRow), element));
    IndexingMap map(AffineMap::get(dims.size(), ranges.size(), indices, context), dims, ranges, {});
    map.simplify();
    return map;
  }

  /// The number of the thread's row; the last for threads without one.
  Value anyRow() {
    Value number = applyMap(b, kernel.mapOf({row(plan.threadsPerRow)}, {}), kernel.ids()).front();
    return b.minU(number, b.index(frame.numResults() - 1));
  }

  Values startOfRow() {
    if (std::optional<Values> identities = code.identities())
      return *identities;
    AffineExpr number = getAffineDimExpr(0, context);
    SmallVector<AffineExpr> merged = code.mergedIndices(number, getAffineConstantExpr(0, context));
    SmallVector<AffineExpr> indices = code.indicesOf(frame.operandShape(), merged);
    IndexingMap map = IndexingMap::fromSizes(AffineMap::get(1, 0, indices, context), {frame.numResults()});
    map.simplify();
    return code.element(applyMap(b, map, anyRow()));
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
    std::optional<Values> first = code.identities();
    if (!first)
      first = code.extract(kernel.scratch(), {b.index(0), anyRow()});
    return kernel.loop(map, *first, [&](ValueRange, ValueRange at, ValueRange state) {
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
    storeRows(1, [&] {
      SmallVector<Values> ofWarps;
      for (int64_t warp = 0; warp < warpsPerRow; ++warp) {
        AffineExpr at = kernel.thread() * warpsPerRow + warp;
        ofWarps.push_back(code.extract(sync.getResults(), applyMap(b, kernel.mapOf({at}, {}), kernel.ids())));
      }
      return code.combineAll(ofWarps);
    });
  }

  /// The first of each `threads` neighbouring threads stores what a row comes to.
  void storeRows(int64_t threads, llvm::function_ref<Values()> values) {
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
