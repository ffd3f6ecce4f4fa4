#include "emitters/heroes/LoopEmitter.h"

#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {
namespace {

class LoopEmitter {
public:
  LoopEmitter(const LoopPlan &plan, const LoopNest &nest, KernelBuilder &kernel)
      : plan(plan), nest(nest), kernel(kernel), first(kernel.graph().roots()[nest.roots.front()].shape) {}

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
    MLIRContext *context = kernel.context();
    int64_t perBlock = int64_t(plan.block.x) * nest.perThread;
    AffineExpr position = getAffineDimExpr(0, context) * nest.perThread + getAffineDimExpr(1, context) * perBlock;
    if (plan.grid.y > 1)
      position = position + getAffineDimExpr(2, context) * (perBlock * plan.grid.x);
    return position;
  }

  IndexingMap map(AffineExpr position, int64_t count, Interval threads) const {
    IndexingMap order = memoryOrderIndexing(first, kernel.context());
    SmallVector<AffineExpr> results;
    for (AffineExpr result : order.affine().getResults())
      results.push_back(result.replaceDims({position}));
    SmallVector<IndexingVariable> ranges;
    if (count > 0)
      ranges.push_back({Interval{0, count - 1}, {}});
    auto affine = AffineMap::get(kernel.ids().size(), ranges.size(), results, kernel.context());
    IndexingMap result(affine, kernel.idVariables(), ranges, {});
    result.addConstraint(base(), threads);
    result.simplify();
    return result;
  }

  /// Whole groups of `perThread` elements. The check depends on the thread alone, not on the element.
  IndexingMap mainMap(int64_t elements) const {
    Interval threads{0, elements - nest.perThread};
    if (nest.perThread == 1)
      return map(base(), 0, threads);
    return map(base() + getAffineSymbolExpr(0, kernel.context()), nest.perThread, threads);
  }

  /// The last elements are the work of the thread that comes after the last whole group.
  IndexingMap tailMap(int64_t firstElement, int64_t count) const {
    return map(getAffineSymbolExpr(0, kernel.context()) + firstElement, count, Interval{firstElement, firstElement});
  }

  void emitLoop(func::FuncOp function, const IndexingMap &indexing) {
    CodeBuilder &b = kernel.code();
    SmallVector<Value> buffers;
    for (unsigned root : nest.roots)
      buffers.push_back(kernel.outputs()[root]);
    auto body = [&](OpBuilder &inner, Location loc, ValueRange, ValueRange indices, ValueRange carried) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
      // All values before all stores: an input may be the buffer of an output.
      ValueRange values = kernel.call(function, indices);
      SmallVector<Value> stored;
      for (auto [i, number] : llvm::enumerate(nest.roots)) {
        const FusionRoot &root = kernel.graph().roots()[number];
        SmallVector<Value> at = applyMap(b, mapTo(root.shape), indices);
        stored.push_back(tensor::InsertOp::create(b, values[i], carried[i], at));
      }
      xla_gpu::YieldOp::create(b, stored);
    };
    auto loop = xla_gpu::LoopOp::create(b, indexing, kernel.ids(), buffers, body);
    for (auto [i, root] : llvm::enumerate(nest.roots))
      kernel.outputs()[root] = loop.getResult(i);
  }

  const LoopPlan &plan;
  const LoopNest &nest;
  KernelBuilder &kernel;
  const Shape first;
};

} // namespace

llvm::LogicalResult emitHero(const LoopPlan &plan, KernelBuilder &kernel) {
  std::vector<LoopEmitter> nests;
  std::vector<FunctionRequest> requests;
  for (const LoopNest &nest : plan.nests) {
    nests.emplace_back(plan, nest, kernel);
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
