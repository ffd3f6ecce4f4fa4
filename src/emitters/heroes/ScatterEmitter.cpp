#include "emitters/heroes/ScatterEmitter.h"

#include "emitters/Convert.h"
#include "emitters/ScalarComputation.h"
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
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()), dims(scatterDims(*plan.hero)),
        numOutputs(unsigned(plan.outputs.size())), indexType(plan.hero->operand(numOutputs)->shape().elementType()) {
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
    AffineExpr first = kernel.firstPosition(plan.perThread);
    IndexingMap threads = kernel.mapOf(memoryOrderIndices(plan.space, first), {});
    threads.addConstraint(first, Interval{0, plan.space.numElements() - plan.perThread});
    threads.simplify();
    return kernel.loop(threads, arrays, [&](ValueRange, ValueRange at, ValueRange carried) {
      SmallVector<Value> begins = emitStarts(at);
      if (plan.perThread == 1) {
        SmallVector<Value> updates(kernel.call(functions.front(), at));
        return ifInside(begins, carried,
                        [&](ValueRange window) { return emitElement(at, window, updates, carried, carried); });
      }
      SmallVector<Value> vectors = loadUpdates();
      return ifInside(begins, carried, [&](ValueRange window) {
        return kernel.loop(neighbours(), carried, [&](ValueRange number, ValueRange own, ValueRange inner) {
          SmallVector<Value> updates;
          for (Value vector : vectors)
            updates.push_back(vector::ExtractOp::create(b, vector, OpFoldResult(number.front())));
          return emitElement(own, window, updates, carried, inner);
        });
      });
    });
  }

  /// The indices of the elements of a thread that has some.
  IndexingMap neighbours() const {
    AffineExpr position = kernel.firstPosition(plan.perThread) + getAffineSymbolExpr(0, context);
    IndexingMap map = kernel.mapOf(memoryOrderIndices(plan.space, position), {int64_t(plan.perThread)});
    map.simplify();
    return map;
  }

  SmallVector<Value> loadUpdates() {
    SmallVector<Value> vectors;
    for (Type type : functions.front().getResultTypes()) {
      auto vector = VectorType::get({int64_t(plan.perThread)}, type);
      vectors.push_back(arith::ConstantOp::create(b, vector, cast<TypedAttr>(b.getZeroAttr(vector))));
    }
    return kernel.loop(neighbours(), vectors, [&](ValueRange number, ValueRange at, ValueRange carried) {
      SmallVector<Value> next;
      for (auto [value, vector] : llvm::zip_equal(kernel.call(functions.front(), at), carried))
        next.push_back(vector::InsertOp::create(b, value, vector, OpFoldResult(number.front())));
      return next;
    });
  }

  SmallVector<Value> emitStarts(ValueRange at) {
    if (starts.empty())
      return {};
    return SmallVector<Value>(kernel.call(functions.back(), at));
  }

  /// `body(starts as indices)` where the whole window is inside.
  SmallVector<Value> ifInside(ValueRange begins, ValueRange arrays,
                              llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
    Value inside;
    for (auto [start, begin] : llvm::zip_equal(starts, begins)) {
      Value fits = startIsInside(b, begin, indexType, start.high);
      inside = inside ? b.andI(inside, fits) : fits;
    }
    if (!inside)
      return body({});
    auto branch = scf::IfOp::create(b, arrays.getTypes(), inside, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, arrays);
    b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> window;
    for (auto [start, begin] : llvm::zip_equal(starts, begins))
      window.push_back(startAsIndex(b, begin, indexType, start.high));
    scf::YieldOp::create(b, body(window));
    return SmallVector<Value>(branch.getResults());
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
    if (plan.access == ScatterPlan::Access::Atomic)
      return {emitAtomic(arrays.front(), places.front(), updates.front())};
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

  Value emitAtomic(Value array, ValueRange place, Value update) {
    return xla_gpu::AtomicRmwOp::create(b, array, place, [&](OpBuilder &inner, Location, Value current) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
      SmallVector<Value> next = combine(fromStorage(b, current, typeOf(0)), update);
      xla_gpu::YieldOp::create(b, next);
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
