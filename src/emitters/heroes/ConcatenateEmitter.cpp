#include "emitters/heroes/ConcatenateEmitter.h"

#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
    SmallVector<Value> outputs = emitSegments(0, plan.segments.size(), kernel.outputs());
    kernel.outputs().assign(outputs.begin(), outputs.end());
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

  /// Segments [begin, end), one of which is this block's: a balanced tree of comparisons with their first blocks.
  SmallVector<Value> emitSegments(size_t begin, size_t end, ValueRange outputs) {
    if (end - begin == 1)
      return emitSegment(begin, outputs);
    size_t middle = (begin + end) / 2;
    Value before = b.cmpI(CodeBuilder::IPred::ult, blockId(), plan.segments[middle].firstBlock);
    auto branch = scf::IfOp::create(b, outputs.getTypes(), before, /*withElseRegion=*/true);
    auto fill = [&](Block *block, size_t first, size_t last) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(block);
      scf::YieldOp::create(b, emitSegments(first, last, outputs));
    };
    fill(branch.thenBlock(), begin, middle);
    fill(branch.elseBlock(), middle, end);
    return SmallVector<Value>(branch.getResults());
  }

  Value blockId() const { return kernel.ids()[1]; }

  SmallVector<Value> emitSegment(size_t number, ValueRange outputs) {
    const ConcatenateSegment &segment = plan.segments[number];
    // The block's number within the segment, known to be in its range here.
    IndexingVariable blocks{Interval{segment.firstBlock, int64_t(segment.firstBlock) + segment.blocks - 1}, "bl_x"};
    AffineMap toOwn = AffineMap::get(1, 0, getAffineDimExpr(0, context) - int64_t(segment.firstBlock), context);
    Value ownBlock = applyMap(b, IndexingMap(toOwn, {blocks}, {}, {}), {blockId()}).front();
    SmallVector<Value> ids = {kernel.ids()[0], ownBlock};

    int64_t tail = segment.elements % segment.perThread, whole = segment.elements - tail;
    SmallVector<Value> state(outputs);
    AffineExpr round = getAffineSymbolExpr(0, context), element = getAffineSymbolExpr(1, context);
    if (whole > 0) {
      AffineExpr first = base(segment, round);
      IndexingMap map = segmentMap(segment, first + element, segment.rounds, segment.perThread);
      map.addConstraint(first, {0, whole - segment.perThread});
      state = emitLoop(number, ids, std::move(map), state);
    }
    if (tail > 0) {
      // The thread that comes after the last whole group, in the round in which it does.
      int64_t perRound = int64_t(kernel.launch().block.x) * segment.perThread;
      AffineExpr first = base(segment, getAffineConstantExpr(whole / perRound % segment.rounds, context));
      IndexingMap map = segmentMap(segment, element + whole, 1, tail);
      map.addConstraint(first, {whole, whole});
      state = emitLoop(number, ids, std::move(map), state);
    }
    return state;
  }

  /// Position in the segment of a thread's first element of a round.
  AffineExpr base(const ConcatenateSegment &segment, AffineExpr round) const {
    int64_t perRound = int64_t(kernel.launch().block.x) * segment.perThread;
    return kernel.thread() * segment.perThread + round * perRound +
           getAffineDimExpr(1, context) * (perRound * segment.rounds);
  }

  /// From the thread, the segment's block, a round and an element of its group to the operand's index of the element at
  /// `position` of the segment's memory order.
  IndexingMap segmentMap(const ConcatenateSegment &segment, AffineExpr position, int64_t rounds, int64_t count) const {
    SmallVector<AffineExpr> results = memoryOrderIndices(plan.shapeOf(segment), position);
    IndexingVariable ids[] = {kernel.idVariables()[0], {Interval{0, int64_t(segment.blocks) - 1}, "block"}};
    IndexingVariable loops[] = {{Interval{0, rounds - 1}, {}}, {Interval{0, count - 1}, {}}};
    return IndexingMap(AffineMap::get(2, 2, results, context), ids, loops, {});
  }

  SmallVector<Value> emitLoop(size_t number, ValueRange ids, IndexingMap map, ValueRange outputs) {
    map.simplify();
    const ConcatenateSegment &segment = plan.segments[number];
    ArrayRef<int64_t> dims = plan.heroes.front()->operand(segment.operand)->shape().dims();
    SmallVector<AffineExpr> shifted;
    for (unsigned i = 0; i < dims.size(); ++i)
      shifted.push_back(getAffineDimExpr(i, context) + (i == plan.dimension() ? segment.offset : 0));
    IndexingMap toResult = IndexingMap::fromSizes(AffineMap::get(dims.size(), 0, shifted, context), dims);
    return kernel.loop(map, ids, outputs, [&](ValueRange, ValueRange indices, ValueRange carried) {
      // All values before all stores: an input may be the buffer of an output.
      ValueRange heroes = kernel.call(functions[number], indices);
      SmallVector<Value> inResult = applyMap(b, toResult, indices);
      ValueRange values = kernel.call(functions.back(), inResult, heroes);
      SmallVector<Value> stored;
      for (auto [i, root] : llvm::enumerate(kernel.graph().roots())) {
        SmallVector<Value> at = applyMap(b, mapTo(root.shape), inResult);
        stored.push_back(tensor::InsertOp::create(b, values[i], carried[i], at));
      }
      return stored;
    });
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
