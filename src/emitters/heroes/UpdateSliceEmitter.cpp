#include "emitters/heroes/UpdateSliceEmitter.h"

#include "emitters/ElementStorage.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {
namespace {

/// A start index that is not 0 whatever its operand is.
struct Start {
  unsigned update; ///< number in the plan
  unsigned dim;
  int64_t high; ///< the greatest that it can be
  FunctionRoot value;
};

class UpdateSliceEmitter {
public:
  UpdateSliceEmitter(const UpdateSlicePlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()) {
    for (unsigned i = 0; i < plan.updates.size(); ++i)
      addStarts(i);
  }

  llvm::LogicalResult emit() {
    std::vector<FunctionRequest> requests = {updateRequest()};
    if (!starts.empty())
      requests.push_back(startRequest());
    auto functions = kernel.emitFunctions(requests);
    if (failed(functions))
      return failure();
    SmallVector<Value> clamped;
    if (!starts.empty())
      clamped = emitStarts(functions->back());
    emitLoop(functions->front(), clamped);
    return success();
  }

private:
  using Update = UpdateSlicePlan::Update;

  void addStarts(unsigned number) {
    const HloInstruction &hero = *plan.updates[number].hero;
    std::optional<OperandIndexing> indexing = operandIndexing(hero, 1, context);
    unsigned next = 0;
    for (unsigned dim = 0; dim < hero.shape().rank(); ++dim) {
      int64_t high = hero.shape().dim(dim) - hero.operand(1)->shape().dim(dim);
      if (high == 0)
        continue;
      // One scalar a dimension or one vector: the index into it depends on nothing.
      const RuntimeSource &source = indexing->runtimes[next++];
      auto constant = AffineMap::get(0, 0, source.indices.affine().getResults(), context);
      starts.push_back({number, dim, high, {hero.operand(source.operand), 0, IndexingMap(constant, {}, {}, {})}});
    }
  }

  /// All updates at an index of theirs.
  FunctionRequest updateRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(plan.space.dims().begin(), plan.space.dims().end());
    for (const Update &update : plan.updates)
      request.roots.push_back({update.hero->operand(1), 0, IndexingMap::identity(context, plan.space.dims())});
    return request;
  }

  FunctionRequest startRequest() const {
    FunctionRequest request;
    for (const Start &start : starts)
      request.roots.push_back(start.value);
    return request;
  }

  /// Once in a thread. They are read before anything is stored: nobody overwrites what they depend on (the plan).
  SmallVector<Value> emitStarts(func::FuncOp function) {
    SmallVector<Value> results;
    for (auto [start, value] : llvm::zip_equal(starts, kernel.call(function, {})))
      results.push_back(clampStart(b, value, start.value.instr->shape().elementType(), start.high));
    return results;
  }

  /// Index of the update, then the starts of update `number` -> index of its output.
  IndexingMap outputMap(unsigned number) const {
    const Update &update = plan.updates[number];
    SmallVector<IndexingVariable> dims;
    SmallVector<AffineExpr> results;
    for (auto [i, size] : llvm::enumerate(plan.space.dims())) {
      dims.push_back({Interval{0, size - 1}, {}});
      results.push_back(getAffineDimExpr(i, context));
    }
    for (const Start &start : starts)
      if (start.update == number) {
        results[start.dim] = results[start.dim] + getAffineDimExpr(dims.size(), context);
        dims.push_back({Interval{0, start.high}, {}});
      }
    IndexingMap moved(AffineMap::get(dims.size(), 0, results, context), dims, {}, {});
    const Shape &output = kernel.graph().roots()[update.root].shape;
    // The index that the array has under the dimensions of the output.
    IndexingMap map = compose(moved, bitcastIndexing(update.hero->shape(), output, context));
    map.simplify();
    return map;
  }

  void emitLoop(func::FuncOp function, ArrayRef<Value> clamped) {
    SmallVector<Value> buffers;
    for (const Update &update : plan.updates)
      buffers.push_back(kernel.outputs()[update.root]);
    SmallVector<Value> results = kernel.loop(kernel.mapOfGroups(plan.space, plan.perThread, plan.space.numElements()),
                                             buffers, [&](ValueRange, ValueRange indices, ValueRange state) {
                                               // All values before all stores: an update may read what it overwrites.
                                               ValueRange values = kernel.call(function, indices);
                                               SmallVector<Value> stored;
                                               for (unsigned i = 0; i < plan.updates.size(); ++i) {
                                                 SmallVector<Value> operands(indices);
                                                 for (auto [start, value] : llvm::zip_equal(starts, clamped))
                                                   if (start.update == i)
                                                     operands.push_back(value);
                                                 SmallVector<Value> at = applyMap(b, outputMap(i), operands);
                                                 stored.push_back(tensor::InsertOp::create(b, values[i], state[i], at));
                                               }
                                               return stored;
                                             });
    for (auto [i, update] : llvm::enumerate(plan.updates))
      kernel.outputs()[update.root] = results[i];
  }

  const UpdateSlicePlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  std::vector<Start> starts;
};

} // namespace

llvm::LogicalResult emitHero(const UpdateSlicePlan &plan, KernelBuilder &kernel) {
  return UpdateSliceEmitter(plan, kernel).emit();
}

} // namespace hloc
