#include "emitters/heroes/ScatterEmitter.h"

#include "emitters/Convert.h"
#include "emitters/ScalarComputation.h"
#include "emitters/heroes/LaneRuns.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {
namespace {

/// Where windows begin along one dimension of the operand.
struct Start {
  unsigned dim;
  int64_t high;       ///< the greatest at which a window is inside
  FunctionRoot value; ///< from an index of the updates
};

class ScatterEmitter {
public:
  ScatterEmitter(const ScatterPlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()), groups(plan.groups()),
        dims(scatterDims(*plan.hero)), numOutputs(unsigned(plan.outputs.size())),
        indexType(plan.hero->operand(numOutputs)->shape().elementType()) {
    ArrayRef<int64_t> sizes = plan.space.dims();
    for (unsigned dim = 0; dim < dims.component.size(); ++dim)
      if (dims.component[dim] >= 0)
        starts.push_back(
            {dim,
             plan.hero->resultShape().dim(dim) - dims.windowSize(dim, sizes),
             {plan.hero->operand(numOutputs), 0, scatterIndexMap(*plan.hero, dims.component[dim], context)}});
  }

  llvm::LogicalResult emit() {
    std::vector<FunctionRequest> requests = {updatesRequest()};
    if (!starts.empty())
      requests.push_back(startsRequest());
    auto emitted = kernel.emitFunctions(requests);
    if (failed(emitted))
      return failure();
    functions = std::move(*emitted);
    SmallVector<Value> arrays;
    for (const ScatterPlan::Output &output : plan.outputs)
      arrays.push_back(kernel.outputs()[output.root]);
    if (plan.runs > 1)
      arrays = plan.acrossLanes ? emitRunsAcrossLanes(arrays) : emitRuns(arrays);
    else
      arrays = plan.oneWindow ? emitNeighbours(arrays) : emitWindows(arrays);
    for (auto [array, output] : llvm::zip_equal(arrays, plan.outputs))
      kernel.outputs()[output.root] = array;
    return success(good);
  }

private:
  FunctionRequest updatesRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(plan.space.dims().begin(), plan.space.dims().end());
    for (const HloInstruction *updates : plan.hero->operands().drop_front(numOutputs + 1))
      request.roots.push_back({updates, 0, IndexingMap::identity(context, plan.space.dims())});
    return request;
  }

  FunctionRequest startsRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(plan.space.dims().begin(), plan.space.dims().end());
    for (const Start &start : starts)
      request.roots.push_back(start.value);
    return request;
  }

  /// A thread's elements have a window each.
  SmallVector<Value> emitWindows(ValueRange arrays) {
    IndexingMap map = kernel.mapOfGroups(plan.space, plan.perThread, plan.space.numElements());
    return kernel.loop(map, arrays, [&](ValueRange, ValueRange at, ValueRange carried) {
      SmallVector<Value> begins = emitStarts(at);
      // Before it is known whether they are needed: loads that wait for nothing.
      SmallVector<Value> updates(kernel.call(functions.front(), at));
      return ifInside(begins, carried,
                      [&](ValueRange window) { return emitElement(at, window, updates, carried, carried); });
    });
  }

  /// A thread's elements are neighbours of one window.
  SmallVector<Value> emitNeighbours(ValueRange arrays) {
    return kernel.loop(threads(), arrays, [&](ValueRange, ValueRange at, ValueRange carried) {
      SmallVector<Value> begins = emitStarts(at);
      if (plan.perThread == 1) {
        SmallVector<Value> updates(kernel.call(functions.front(), at));
        return ifInside(begins, carried,
                        [&](ValueRange window) { return emitElement(at, window, updates, carried, carried); });
      }
      SmallVector<Value> vectors = loadVectors(functions.front(), neighbours(0));
      return ifInside(begins, carried, [&](ValueRange window) { return emitVectors(window, vectors, carried); });
    });
  }

  /// What a thread reads of one of its windows.
  struct WindowOfRun {
    Value exists; ///< null: always
    SmallVector<Value> begins;
    Value update; ///< of several neighbours a vector
  };

  /// A thread's elements are neighbours of one window and the same ones of the windows behind it. The last window of
  /// each place has the combined updates of the others.
  SmallVector<Value> emitRuns(ValueRange arrays) {
    return kernel.loop(threads(), arrays, [&](ValueRange, ValueRange at, ValueRange carried) {
      std::vector<WindowOfRun> windows = loadRun();
      SmallVector<Value> updated(carried), sum;
      for (auto [i, window] : llvm::enumerate(windows)) {
        SmallVector<Value> own = elementsOf(window.update);
        sum = i == 0 ? own : combineIf(samePlace(windows[i - 1], window), sum, own);
        Value isLast;
        if (i + 1 < windows.size()) {
          isLast = b.notI(samePlace(window, windows[i + 1]));
          if (Value next = windows[i + 1].exists)
            isLast = b.orI(isLast, b.notI(next));
        }
        Value matters = both(both(window.exists, isLast), isInside(window.begins));
        updated = emitIf(matters, updated, [&] {
          SmallVector<Value> place = placeOf(window.begins);
          if (plan.perThread == 1)
            return emitElement(at, place, sum, updated, updated);
          auto type = VectorType::get({int64_t(plan.perThread)}, sum.front().getType());
          return emitVectors(place, vector::FromElementsOp::create(b, type, sum).getResult(), updated);
        });
      }
      return updated;
    });
  }

  /// A thread's elements are neighbouring windows of one each, and so are those of the lanes of a warp.
  SmallVector<Value> emitRunsAcrossLanes(ValueRange arrays) {
    SmallVector<Value> missing;
    for (func::FuncOp function : functions)
      for (Type type : function.getResultTypes())
        missing.push_back(zero(VectorType::get({int64_t(plan.runs)}, type)));
    missing.push_back(b.boolean(false));
    // All threads have to get to where lanes meet.
    SmallVector<Value> loaded = kernel.loop(threads(), missing, [&](ValueRange, ValueRange, ValueRange) {
      SmallVector<Value> found = loadVectors(functions.front(), windowsOfRun());
      if (!starts.empty())
        llvm::append_range(found, loadVectors(functions.back(), windowsOfRun()));
      found.push_back(b.boolean(true));
      return found;
    });
    LaneRuns own;
    own.thread = kernel.ids().front();
    own.exists = loaded.pop_back_val();
    own.warpsAreWhole = groups.numElements() % 32 == 0;
    own.isOne = b.boolean(true);
    std::vector<WindowOfRun> windows(plan.runs);
    SmallVector<Value> sums, isFirst; // is all up to this window one run?
    for (auto [i, window] : llvm::enumerate(windows)) {
      for (Value vector : ArrayRef(loaded).drop_front())
        window.begins.push_back(vector::ExtractOp::create(b, vector, int64_t(i)));
      Value update = vector::ExtractOp::create(b, loaded.front(), int64_t(i));
      if (i > 0) {
        Value same = samePlace(windows[i - 1], window);
        update = combineIf(same, sums.back(), update).front();
        own.isOne = b.andI(own.isOne, same);
      }
      sums.push_back(update);
      isFirst.push_back(own.isOne);
      own.firstSum = i == 0 ? update : b.select(own.isOne, update, own.firstSum);
    }
    own.first = windows.front().begins;
    own.last = windows.back().begins;
    own.lastSum = sums.back();
    CombinedRuns combined =
        combineLanes(b, own, [&](Value x, Value y) { return combine(fromStorage(b, x, typeOf(0)), y).front(); });
    sums.back() = combined.lastSum;

    SmallVector<Value> updated(arrays), at = applyMap(b, firstElement(), kernel.ids());
    for (auto [i, window] : llvm::enumerate(windows)) {
      Value isLast = i + 1 < windows.size() ? b.notI(samePlace(window, windows[i + 1])) : Value();
      Value isTaken = b.andI(isFirst[i], combined.isTaken);
      Value matters = both(both(b.andI(own.exists, b.notI(isTaken)), isLast), isInside(window.begins));
      updated =
          emitIf(matters, updated, [&] { return emitElement(at, placeOf(window.begins), sums[i], updated, updated); });
    }
    return updated;
  }

  /// All that a thread reads, before it is known whether it is needed.
  std::vector<WindowOfRun> loadRun() {
    std::vector<WindowOfRun> windows(plan.runs);
    int64_t existing = plan.space.dim(unsigned(plan.alongWindows)) % plan.runs;
    auto isCollected = [](func::FuncOp function) {
      return llvm::all_of(function.getResultTypes(),
                          [](Type type) { return type.isIntOrFloat() && type.getIntOrFloatBitWidth() >= 8; });
    };
    bool collects = existing == 0 && llvm::all_of(functions, isCollected);
    SmallVector<Value> begins, updates;
    if (collects && !starts.empty())
      begins = loadVectors(functions.back(), windowsOfRun());
    if (collects && plan.perThread == 1)
      updates = loadVectors(functions.front(), windowsOfRun());
    for (unsigned i = 0; i < plan.runs; ++i) {
      if (!collects) {
        windows[i] = loadWindow(i, /*mayBeMissing=*/existing != 0 && int64_t(i) >= existing);
        continue;
      }
      for (Value vector : begins)
        windows[i].begins.push_back(vector::ExtractOp::create(b, vector, int64_t(i)));
      windows[i].update = updates.empty() ? loadVectors(functions.front(), neighbours(i)).front()
                                          : vector::ExtractOp::create(b, updates.front(), int64_t(i)).getResult();
    }
    return windows;
  }

  WindowOfRun loadWindow(unsigned number, bool mayBeMissing) {
    IndexingMap map = indicesOf(getAffineConstantExpr(number, context), getAffineConstantExpr(0, context), {});
    auto load = [&](ValueRange at) {
      SmallVector<Value> loaded = emitStarts(at);
      loaded.push_back(plan.perThread == 1 ? kernel.call(functions.front(), at).front()
                                           : loadVectors(functions.front(), neighbours(number)).front());
      return loaded;
    };
    WindowOfRun window;
    SmallVector<Value> loaded;
    if (!mayBeMissing) {
      loaded = load(applyMap(b, map, kernel.ids()));
    } else {
      SmallVector<Value> missing;
      if (!starts.empty())
        for (Type type : functions.back().getResultTypes())
          missing.push_back(zero(type));
      missing.push_back(zero(updateType()));
      missing.push_back(b.boolean(false));
      map.addConstraint(map.result(unsigned(plan.alongWindows)),
                        Interval{0, plan.space.dim(unsigned(plan.alongWindows)) - 1});
      map.simplify();
      loaded = kernel.loop(map, missing, [&](ValueRange, ValueRange at, ValueRange) {
        SmallVector<Value> found = load(at);
        found.push_back(b.boolean(true));
        return found;
      });
      window.exists = loaded.pop_back_val();
    }
    window.update = loaded.pop_back_val();
    window.begins = std::move(loaded);
    return window;
  }

  /// What a thread reads of a window's updates.
  Type updateType() {
    Type type = functions.front().getResultTypes().front();
    return plan.perThread == 1 ? type : VectorType::get({int64_t(plan.perThread)}, type);
  }

  Value zero(Type type) { return arith::ConstantOp::create(b, type, cast<TypedAttr>(b.getZeroAttr(type))); }

  SmallVector<Value> elementsOf(Value update) {
    if (plan.perThread == 1)
      return {update};
    SmallVector<Value> elements;
    for (int64_t i = 0; i < int64_t(plan.perThread); ++i)
      elements.push_back(vector::ExtractOp::create(b, update, i));
    return elements;
  }

  /// Stored `sum` and `own` combined where they have one place, else `own`.
  SmallVector<Value> combineIf(Value samePlace, ValueRange sum, ValueRange own) {
    SmallVector<Value> next;
    for (auto [before, update] : llvm::zip_equal(sum, own))
      next.push_back(b.select(samePlace, combine(fromStorage(b, before, typeOf(0)), update).front(), update));
    return next;
  }

  Value samePlace(const WindowOfRun &one, const WindowOfRun &other) {
    Value same;
    for (auto [x, y] : llvm::zip_equal(one.begins, other.begins))
      same = both(same, b.cmpI(CodeBuilder::IPred::eq, x, y));
    return same ? same : b.boolean(true);
  }

  /// Of conditions, null where there is none.
  Value both(Value x, Value y) { return x && y ? b.andI(x, y) : x ? x : y; }

  IndexingMap firstElement() const {
    return indicesOf(getAffineConstantExpr(0, context), getAffineConstantExpr(0, context), {});
  }

  /// The threads that have elements, and the first of each.
  IndexingMap threads() const {
    AffineExpr first = kernel.firstPosition(plan.perThread);
    IndexingMap map = firstElement();
    map.addConstraint(first, Interval{0, groups.numElements() - plan.perThread});
    map.simplify();
    return map;
  }

  /// Indices of an element of a thread that has some: in window `window` of its run the `neighbour`-th.
  IndexingMap indicesOf(AffineExpr window, AffineExpr neighbour, ArrayRef<int64_t> loopSizes) const {
    SmallVector<AffineExpr> indices = memoryOrderIndices(groups, kernel.firstPosition(plan.perThread) + neighbour);
    if (plan.runs > 1) {
      AffineExpr &along = indices[size_t(plan.alongWindows)];
      along = along * int64_t(plan.runs) + window;
    }
    IndexingMap map = kernel.mapOf(indices, loopSizes);
    map.simplify();
    return map;
  }

  /// All neighbours of one window.
  IndexingMap neighbours(unsigned window) const {
    return indicesOf(getAffineConstantExpr(window, context), getAffineSymbolExpr(0, context),
                     {int64_t(plan.perThread)});
  }

  /// The first neighbour of all windows.
  IndexingMap windowsOfRun() const {
    return indicesOf(getAffineSymbolExpr(0, context), getAffineConstantExpr(0, context), {int64_t(plan.runs)});
  }

  /// A vector of each of the function's results, at the points of a map of one loop.
  SmallVector<Value> loadVectors(func::FuncOp function, const IndexingMap &map) {
    SmallVector<Value> vectors;
    for (Type type : function.getResultTypes())
      vectors.push_back(zero(VectorType::get({map.ranges().front().bounds.upper + 1}, type)));
    return kernel.loop(map, vectors, [&](ValueRange number, ValueRange at, ValueRange carried) {
      SmallVector<Value> next;
      for (auto [value, vector] : llvm::zip_equal(kernel.call(function, at), carried))
        next.push_back(vector::InsertOp::create(b, value, vector, OpFoldResult(number.front())));
      return next;
    });
  }

  /// Vectors of neighbours into one window.
  SmallVector<Value> emitVectors(ValueRange window, ValueRange vectors, ValueRange arrays) {
    return kernel.loop(neighbours(0), arrays, [&](ValueRange number, ValueRange at, ValueRange inner) {
      SmallVector<Value> updates;
      for (Value vector : vectors)
        updates.push_back(vector::ExtractOp::create(b, vector, OpFoldResult(number.front())));
      return emitElement(at, window, updates, arrays, inner);
    });
  }

  SmallVector<Value> emitStarts(ValueRange at) {
    if (starts.empty())
      return {};
    return SmallVector<Value>(kernel.call(functions.back(), at));
  }

  /// Is the whole window inside? Null: always.
  Value isInside(ValueRange begins) {
    Value inside;
    for (auto [start, begin] : llvm::zip_equal(starts, begins))
      inside = both(inside, startIsInside(b, begin, indexType, start.high));
    return inside;
  }

  /// Starts of a window that is inside, as indices.
  SmallVector<Value> placeOf(ValueRange begins) {
    SmallVector<Value> window;
    for (auto [start, begin] : llvm::zip_equal(starts, begins))
      window.push_back(startAsIndex(b, begin, indexType, start.high));
    return window;
  }

  /// What becomes of `arrays` by `body` under a condition.
  SmallVector<Value> emitIf(Value condition, ValueRange arrays, llvm::function_ref<SmallVector<Value>()> body) {
    if (!condition)
      return body();
    auto branch = scf::IfOp::create(b, arrays.getTypes(), condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, arrays);
    b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> updated = body();
    scf::YieldOp::create(b, updated);
    return SmallVector<Value>(branch.getResults());
  }

  /// `body(starts as indices)` where the whole window is inside.
  SmallVector<Value> ifInside(ValueRange begins, ValueRange arrays,
                              llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
    return emitIf(isInside(begins), arrays, [&] { return body(placeOf(begins)); });
  }

  /// Index of the updates, then where its window begins -> index of the output.
  IndexingMap outputMap(unsigned number) const {
    const Shape &array = plan.hero->resultShape(number);
    SmallVector<IndexingVariable> variables;
    for (int64_t size : plan.space.dims())
      variables.push_back({Interval{0, size - 1}, {}});
    SmallVector<AffineExpr> results;
    for (unsigned dim = 0; dim < array.rank(); ++dim) {
      int64_t own = std::max(dims.offset[dim], dims.batchOfOperand[dim]);
      results.push_back(own < 0 ? getAffineConstantExpr(0, context) : getAffineDimExpr(unsigned(own), context));
    }
    for (const Start &start : starts) {
      results[start.dim] = results[start.dim] + getAffineDimExpr(unsigned(variables.size()), context);
      variables.push_back({Interval{0, start.high}, {}});
    }
    IndexingMap map(AffineMap::get(unsigned(variables.size()), 0, results, context), variables, {}, {});
    map = compose(map, bitcastIndexing(array, kernel.graph().roots()[plan.outputs[number].root].shape, context));
    map.simplify();
    return map;
  }

  /// One element of each update into `arrays`, which were `before` when the thread began. Updates are stored values.
  SmallVector<Value> emitElement(ValueRange at, ValueRange window, ValueRange updates, ValueRange before,
                                 ValueRange arrays) {
    SmallVector<Value> operands(at), next;
    llvm::append_range(operands, window);
    SmallVector<SmallVector<Value>> places;
    for (unsigned i = 0; i < numOutputs; ++i)
      places.push_back(applyMap(b, outputMap(i), operands));
    if (plan.access == ScatterPlan::Access::Atomic) {
      for (unsigned i = 0; i < numOutputs; ++i)
        next.push_back(emitAtomic(i, arrays[i], places[i], updates));
      return next;
    }
    SmallVector<Value> values(updates);
    if (plan.access == ScatterPlan::Access::Plain) {
      SmallVector<Value> arguments;
      for (unsigned i = 0; i < numOutputs; ++i)
        arguments.push_back(fromStorage(b, tensor::ExtractOp::create(b, before[i], places[i]), typeOf(i)));
      values = combine(arguments, updates);
    }
    for (unsigned i = 0; i < numOutputs; ++i)
      next.push_back(tensor::InsertOp::create(b, values[i], arrays[i], places[i]));
    return next;
  }

  /// Updates an element of one array. Of several arrays each is updated by itself: nothing depends on the others.
  Value emitAtomic(unsigned number, Value array, ValueRange place, ValueRange updates) {
    return xla_gpu::AtomicRmwOp::create(b, array, place, [&](OpBuilder &inner, Location, Value current) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
      SmallVector<Value> arguments;
      for (unsigned i = 0; i < numOutputs; ++i)
        arguments.push_back(fromStorage(b, i == number ? current : updates[i], typeOf(i)));
      xla_gpu::YieldOp::create(b, combine(arguments, updates)[number]);
    });
  }

  /// The reducer's results, as stored, of what is there and stored updates.
  SmallVector<Value> combine(ValueRange current, ValueRange updates) {
    SmallVector<Value> arguments(current);
    for (unsigned i = 0; i < numOutputs; ++i)
      arguments.push_back(fromStorage(b, updates[i], typeOf(i)));
    auto results = kernel.applyScalars(*plan.hero->computation(AttributeKey::ToApply), arguments);
    good &= succeeded(results);
    SmallVector<Value> stored;
    for (unsigned i = 0; i < numOutputs; ++i)
      stored.push_back(succeeded(results) ? toStorage(b, (*results)[i], typeOf(i)) : updates[i]);
    return stored;
  }

  ElementType typeOf(unsigned number) const { return plan.hero->resultShape(number).elementType(); }

  const ScatterPlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  Shape groups; ///< of windows that a thread takes; their elements are the threads'
  GatherDims dims;
  unsigned numOutputs;
  ElementType indexType;
  std::vector<Start> starts;
  std::vector<func::FuncOp> functions; ///< of the updates; of the starts
  bool good = true;
};

} // namespace

llvm::LogicalResult emitHero(const ScatterPlan &plan, KernelBuilder &kernel) {
  return ScatterEmitter(plan, kernel).emit();
}

} // namespace hloc
