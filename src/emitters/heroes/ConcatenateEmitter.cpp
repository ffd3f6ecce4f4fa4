#include "emitters/heroes/ConcatenateEmitter.h"

#include "emitters/SegmentLoops.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <functional>

using namespace mlir;

namespace hloc {
namespace {

class ConcatenateEmitter {
public:
  ConcatenateEmitter(const ConcatenatePlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()), result(plan.heroes.front()->shape()) {}

  llvm::LogicalResult emit() {
    std::vector<FunctionRequest> requests;
    for (const ConcatenateSegment &segment : plan.segments)
      requests.push_back(operandRequest(segment));
    requests.push_back(outputRequest());
    auto emitted = kernel.emitFunctions(requests);
    if (failed(emitted))
      return failure();
    functions = std::move(*emitted);
    // Those of the same blocks are made together.
    SmallVector<SmallVector<size_t>> together;
    SmallVector<const BlockSegment *> segments;
    for (auto [number, segment] : llvm::enumerate(plan.segments)) {
      auto sameBlocks = [&, &segment = segment](const BlockSegment *other) {
        return other->firstBlock == segment.firstBlock;
      };
      auto own = llvm::find_if(segments, sameBlocks);
      if (own == segments.end()) {
        segments.push_back(&segment);
        together.push_back({number});
      } else {
        together[own - segments.begin()].push_back(number);
      }
    }
    emitSegments(segments, kernel, [&](size_t group, ValueRange ids, ValueRange outputs) {
      return emitGroup(together[group], ids, outputs);
    });
    return success();
  }

private:
  /// The heroes' operands of that number, at an index of theirs.
  FunctionRequest operandRequest(const ConcatenateSegment &segment) const {
    FunctionRequest request;
    ArrayRef<int64_t> dims = plan.heroes.front()->operand(segment.operand)->shape().dims();
    request.indexSizes.assign(dims.begin(), dims.end());
    for (const HloInstruction *hero : plan.heroes)
      request.roots.push_back({hero->operand(segment.operand), 0, IndexingMap::identity(context, dims)});
    return request;
  }

  /// The outputs at an index of the result, from the heroes' values there.
  FunctionRequest outputRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(result.dims().begin(), result.dims().end());
    for (const FusionRoot &root : kernel.graph().roots())
      request.roots.push_back({root.instr, root.result, mapTo(root.shape)});
    request.injected.assign(plan.heroes.begin(), plan.heroes.end());
    return request;
  }

  IndexingMap mapTo(const Shape &shape) const {
    IndexingMap map = bitcastIndexing(result, shape, context);
    map.simplify();
    return map;
  }

  SmallVector<Value> emitGroup(ArrayRef<size_t> numbers, ValueRange ids, ValueRange outputs) {
    const ConcatenateSegment &first = plan.segments[numbers.front()];
    const Shape box = plan.shapeOf(first);
    auto indicesAt = [&](AffineExpr position) { return memoryOrderIndices(box, position); };
    std::vector<std::function<SmallVector<Value>(ValueRange, ValueRange)>> bodies;
    for (size_t number : numbers)
      bodies.push_back(
          [this, number](ValueRange indices, ValueRange state) { return emitElement(number, indices, state); });
    return emitElements(first, indicesAt, kernel, ids, outputs, SmallVector<ElementBody>(bodies.begin(), bodies.end()));
  }

  SmallVector<Value> emitElement(size_t number, ValueRange indices, ValueRange outputs) {
    const ConcatenateSegment &segment = plan.segments[number];
    ArrayRef<int64_t> dims = plan.heroes.front()->operand(segment.operand)->shape().dims();
    SmallVector<AffineExpr> shifted;
    for (unsigned i = 0; i < dims.size(); ++i)
      shifted.push_back(getAffineDimExpr(i, context) + (i == plan.dimension() ? segment.offset : 0));
    IndexingMap toResult = IndexingMap::fromSizes(AffineMap::get(dims.size(), 0, shifted, context), dims);
    // All values before all stores: an input may be the buffer of an output.
    ValueRange heroes = kernel.call(functions[number], indices);
    SmallVector<Value> inResult = applyMap(b, toResult, indices);
    ValueRange values = kernel.call(functions.back(), inResult, heroes);
    SmallVector<Value> stored;
    for (auto [i, root] : llvm::enumerate(kernel.graph().roots())) {
      SmallVector<Value> at = applyMap(b, mapTo(root.shape), inResult);
      stored.push_back(tensor::InsertOp::create(b, values[i], outputs[i], at));
    }
    return stored;
  }

  const ConcatenatePlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  const Shape result;
  std::vector<func::FuncOp> functions; ///< of the segments, then of the outputs
};

} // namespace

llvm::LogicalResult emitHero(const ConcatenatePlan &plan, KernelBuilder &kernel) {
  return ConcatenateEmitter(plan, kernel).emit();
}

} // namespace hloc
