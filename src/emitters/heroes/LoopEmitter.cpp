#include "emitters/heroes/LoopEmitter.h"

#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {
namespace {

class LoopEmitter {
public:
  LoopEmitter(const LoopNest &nest, KernelBuilder &kernel)
      : nest(nest), kernel(kernel), first(kernel.graph().roots()[nest.roots.front()].shape) {}

  /// All outputs of the nest from one function: its indices are those of the first output.
  FunctionRequest request() const {
    FunctionRequest result;
    result.indexSizes.assign(first.dims().begin(), first.dims().end());
    for (unsigned number : nest.roots) {
      const FusionRoot &root = kernel.graph().roots()[number];
      result.roots.push_back({root.instr, root.result, mapTo(root.shape)});
    }
    return result;
  }

  void emit(func::FuncOp function) {
    int64_t tail = nest.elements % nest.perThread;
    if (nest.elements != tail)
      emitLoop(function, mainMap(nest.elements - tail));
    if (tail != 0)
      emitLoop(function, tailMap(nest.elements - tail, tail));
  }

private:
  IndexingMap mapTo(const Shape &shape) const {
    IndexingMap map = bitcastIndexing(first, shape, kernel.context());
    map.simplify();
    return map;
  }

  /// Position of a thread's first element.
  AffineExpr base() const {
    int64_t perBlock = int64_t(kernel.launch().block.x) * nest.perThread;
    return kernel.thread() * nest.perThread + kernel.block() * perBlock;
  }

  /// Element `position` of the memory order, for the threads whose first element lies in `threads`.
  IndexingMap map(AffineExpr position, ArrayRef<int64_t> loopSizes, Interval threads) const {
    IndexingMap order = memoryOrderIndexing(first, kernel.context());
    SmallVector<AffineExpr> results;
    for (AffineExpr result : order.affine().getResults())
      results.push_back(result.replaceDims({position}));
    IndexingMap result = kernel.mapOf(results, loopSizes);
    result.addConstraint(base(), threads);
    result.simplify();
    return result;
  }

  /// Whole groups of `perThread` elements. The check depends on the thread alone, not on the element.
  IndexingMap mainMap(int64_t elements) const {
    Interval threads{0, elements - nest.perThread};
    if (nest.perThread == 1)
      return map(base(), {}, threads);
    return map(base() + getAffineSymbolExpr(0, kernel.context()), {int64_t(nest.perThread)}, threads);
  }

  /// The last elements are the work of the thread that comes after the last whole group.
  IndexingMap tailMap(int64_t firstElement, int64_t count) const {
    return map(getAffineSymbolExpr(0, kernel.context()) + firstElement, {count}, Interval{firstElement, firstElement});
  }

  void emitLoop(func::FuncOp function, const IndexingMap &indexing) {
    CodeBuilder &b = kernel.code();
    SmallVector<Value> buffers;
    for (unsigned root : nest.roots)
      buffers.push_back(kernel.outputs()[root]);
    SmallVector<Value> results =
        kernel.loop(indexing, buffers, [&](ValueRange, ValueRange indices, ValueRange carried) {
          // All values before all stores: an input may be the buffer of an output.
          ValueRange values = kernel.call(function, indices);
          SmallVector<Value> stored;
          for (auto [i, number] : llvm::enumerate(nest.roots)) {
            SmallVector<Value> at = applyMap(b, mapTo(kernel.graph().roots()[number].shape), indices);
            stored.push_back(tensor::InsertOp::create(b, values[i], carried[i], at));
          }
          return stored;
        });
    for (auto [i, root] : llvm::enumerate(nest.roots))
      kernel.outputs()[root] = results[i];
  }

  const LoopNest &nest;
  KernelBuilder &kernel;
  const Shape first;
};

} // namespace

llvm::LogicalResult emitHero(const LoopPlan &plan, KernelBuilder &kernel) {
  std::vector<LoopEmitter> nests;
  std::vector<FunctionRequest> requests;
  for (const LoopNest &nest : plan.nests) {
    nests.emplace_back(nest, kernel);
    requests.push_back(nests.back().request());
  }
  auto functions = kernel.emitFunctions(requests);
  if (failed(functions))
    return failure();
  for (auto [nest, function] : llvm::zip_equal(nests, *functions))
    nest.emit(function);
  return success();
}

} // namespace hloc
