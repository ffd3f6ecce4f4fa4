#include "emitters/heroes/InputSlicesEmitter.h"

#include "emitters/SegmentLoops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {
namespace {

class InputSlicesEmitter {
public:
  InputSlicesEmitter(const InputSlicesPlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()) {}

  llvm::LogicalResult emit() {
    std::vector<FunctionRequest> requests = {sourceRequest()};
    functionOfWindow.resize(plan.windows.size());
    for (auto [i, window] : llvm::enumerate(plan.windows)) {
      if (window.heroes.empty() || window.roots.empty() || window.heroes.front()->shape().numElements() == 0)
        continue;
      functionOfWindow[i] = requests.size();
      requests.push_back(outputRequest(window));
    }
    auto emitted = kernel.emitFunctions(requests);
    if (failed(emitted))
      return failure();
    functions = std::move(*emitted);
    SmallVector<SegmentLoop> loops;
    for (const SliceRegion &region : plan.regions)
      loops.push_back({&region, plan.shapeOf(region)});
    emitSegments(loops, kernel, [&](size_t number, ValueRange indices, ValueRange outputs) {
      return emitElement(plan.regions[number], indices, outputs);
    });
    return success();
  }

private:
  const FusionRoot &root(unsigned number) const { return kernel.graph().roots()[number]; }

  /// What slices read, then the outputs that are not sliced, at an index of the sliced array.
  FunctionRequest sourceRequest() {
    FunctionRequest request;
    request.indexSizes.assign(plan.space.dims().begin(), plan.space.dims().end());
    IndexingMap identity = IndexingMap::identity(context, plan.space.dims());
    for (const SliceWindow &window : plan.windows) {
      for (const HloInstruction *hero : window.heroes)
        if (sources.try_emplace(hero->operand(0), request.roots.size()).second)
          request.roots.push_back({hero->operand(0), 0, identity});
      if (window.heroes.empty()) {
        firstWhole = request.roots.size();
        for (unsigned number : window.roots)
          request.roots.push_back({root(number).instr, root(number).result, identity});
      }
    }
    return request;
  }

  /// The outputs of a window at an index of its slices, from their values there.
  FunctionRequest outputRequest(const SliceWindow &window) const {
    FunctionRequest request;
    request.indexSizes.assign(window.sizes.begin(), window.sizes.end());
    for (unsigned number : window.roots)
      request.roots.push_back({root(number).instr, root(number).result, mapTo(window, root(number).shape)});
    request.injected.assign(window.heroes.begin(), window.heroes.end());
    return request;
  }

  /// From an index of the window's slices to the output's.
  IndexingMap mapTo(const SliceWindow &window, const Shape &shape) const {
    IndexingMap map = bitcastIndexing(window.heroes.front()->shape(), shape, context);
    map.simplify();
    return map;
  }

  SmallVector<Value> emitElement(const SliceRegion &region, ValueRange indices, ValueRange outputs) {
    SmallVector<AffineExpr> inSpace;
    for (unsigned i = 0; i < region.sizes.size(); ++i)
      inSpace.push_back(getAffineDimExpr(i, context) * region.strides[i] + region.starts[i]);
    AffineMap toSpace = AffineMap::get(inSpace.size(), 0, inSpace, context);
    ValueRange values =
        kernel.call(functions.front(), applyMap(b, IndexingMap::fromSizes(toSpace, region.sizes), indices));
    SmallVector<Value> stored(outputs);
    for (unsigned number : region.windows)
      emitWindow(region, number, indices, values, stored);
    return stored;
  }

  /// Stores the element to the outputs of a window, if it is in it.
  void emitWindow(const SliceRegion &region, unsigned number, ValueRange indices, ValueRange values,
                  SmallVectorImpl<Value> &stored) {
    const SliceWindow &window = plan.windows[number];
    if (plan.covers(window, region))
      return storeWindow(region, number, indices, values, stored);
    Value inside;
    for (unsigned i = 0; i < region.sizes.size(); ++i) {
      Interval own = window.indicesIn(region, i);
      auto test = [&](CodeBuilder::IPred predicate, Value index, int64_t bound) {
        Value holds = b.cmpI(predicate, index, bound);
        inside = inside ? b.andI(inside, holds) : holds;
      };
      if (own.lower > 0)
        test(CodeBuilder::IPred::sge, indices[i], own.lower);
      if (own.upper < region.sizes[i] - 1)
        test(CodeBuilder::IPred::sle, indices[i], own.upper);
      if (int64_t step = window.strides[i] / region.strides[i]; step != 1) {
        AffineMap phase = AffineMap::get(1, 0, getAffineDimExpr(0, context) % step, context);
        Value of = applyMap(b, IndexingMap::fromSizes(phase, {region.sizes[i]}), {indices[i]}).front();
        test(CodeBuilder::IPred::eq, of, own.lower % step);
      }
    }
    SmallVector<Value> before;
    for (unsigned root : window.roots)
      before.push_back(stored[root]);
    auto branch = scf::IfOp::create(b, TypeRange(ValueRange(before)), inside, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      SmallVector<Value> inner(stored.begin(), stored.end()), results;
      storeWindow(region, number, indices, values, inner);
      for (unsigned root : window.roots)
        results.push_back(inner[root]);
      scf::YieldOp::create(b, results);
      b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(b, before);
    }
    for (auto [i, root] : llvm::enumerate(window.roots))
      stored[root] = branch.getResult(i);
  }

  /// The region's indices are known to be in the window here.
  void storeWindow(const SliceRegion &region, unsigned number, ValueRange indices, ValueRange values,
                   SmallVectorImpl<Value> &stored) {
    const SliceWindow &window = plan.windows[number];
    SmallVector<IndexingVariable> bounds;
    SmallVector<AffineExpr> moved;
    for (unsigned i = 0; i < region.sizes.size(); ++i) {
      AffineExpr inSpace = getAffineDimExpr(i, context) * region.strides[i] + (region.starts[i] - window.starts[i]);
      bounds.push_back({window.indicesIn(region, i), {}});
      moved.push_back(inSpace.floorDiv(window.strides[i]));
    }
    IndexingMap toWindow(AffineMap::get(bounds.size(), 0, moved, context), bounds, {}, {});
    toWindow.simplify();
    SmallVector<Value> inWindow = applyMap(b, toWindow, indices);
    if (window.heroes.empty()) {
      for (auto [i, root] : llvm::enumerate(window.roots))
        stored[root] = tensor::InsertOp::create(b, values[firstWhole + i], stored[root], inWindow);
      return;
    }
    SmallVector<Value> heroes;
    for (const HloInstruction *hero : window.heroes)
      heroes.push_back(values[sources.at(hero->operand(0))]);
    ValueRange results = kernel.call(functions[functionOfWindow[number]], inWindow, heroes);
    for (auto [i, number] : llvm::enumerate(window.roots)) {
      SmallVector<Value> at = applyMap(b, mapTo(window, root(number).shape), inWindow);
      stored[number] = tensor::InsertOp::create(b, results[i], stored[number], at);
    }
  }

  const InputSlicesPlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  llvm::DenseMap<const HloInstruction *, size_t> sources; ///< number among the first function's results
  size_t firstWhole = 0;                                  ///< likewise, of the outputs that are not sliced
  std::vector<size_t> functionOfWindow;
  std::vector<func::FuncOp> functions;
};

} // namespace

llvm::LogicalResult emitHero(const InputSlicesPlan &plan, KernelBuilder &kernel) {
  return InputSlicesEmitter(plan, kernel).emit();
}

} // namespace hloc
