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
      emitLoop(function, kernel.mapOfGroups(first, nest.perThread, nest.elements - tail));
    if (tail != 0)
      emitLoop(function, tailMap(nest.elements - tail, tail));
  }

private:
  IndexingMap mapTo(const Shape &shape) const {
    IndexingMap map = bitcastIndexing(first, shape, kernel.context());
    map.simplify();
    return map;
  }

  /// The last elements are the work of the thread that comes after the last whole group.
  IndexingMap tailMap(int64_t firstElement, int64_t count) const {
    AffineExpr position = getAffineSymbolExpr(0, kernel.context()) + firstElement;
    IndexingMap map = kernel.mapOf(memoryOrderIndices(first, position), {count});
    map.addConstraint(kernel.firstPosition(nest.perThread), Interval{firstElement, firstElement});
    map.simplify();
    return map;
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
