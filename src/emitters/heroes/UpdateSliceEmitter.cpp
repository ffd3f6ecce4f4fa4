#include "emitters/heroes/UpdateSliceEmitter.h"

#include "emitters/SegmentLoops.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace hloc {
namespace {

using Update = UpdateSlicePlan::Update;
using Segment = UpdateSlicePlan::Segment;

/// A start index that is not known.
struct Start {
  unsigned update; ///< number in the segment
  unsigned dim;
  int64_t high; ///< the greatest that it can be
  FunctionRoot value;
};

/// What is known where code is emitted about the starts of a segment's updates in the dimensions in which alignment
/// depends on them.
enum class Alignment {
  Unknown,
  Groups,  ///< multiples of Update::alignedStart
  Bytes,   ///< even: half bytes that begin with one
  InBytes, ///< odd: half bytes that begin in the middle of one
};

class SegmentEmitter {
public:
  SegmentEmitter(const Segment &segment, KernelBuilder &kernel)
      : segment(segment), kernel(kernel), b(kernel.code()), context(kernel.context()) {
    for (unsigned i = 0; i < segment.updates.size(); ++i)
      addStarts(i);
  }

  /// All updates at an index of theirs.
  FunctionRequest updateRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(segment.space.dims().begin(), segment.space.dims().end());
    for (const Update &update : segment.updates)
      request.roots.push_back({update.hero->operand(1), 0, IndexingMap::identity(context, segment.space.dims())});
    return request;
  }
  bool hasStarts() const { return !starts.empty(); }
  FunctionRequest startRequest() const {
    FunctionRequest request;
    for (const Start &start : starts)
      request.roots.push_back(start.value);
    return request;
  }

  /// `startFunction` is null if there are no starts.
  SmallVector<Value> emit(func::FuncOp updateFunction, func::FuncOp startFunction, ValueRange ids, ValueRange outputs) {
    function = updateFunction;
    // Once in a thread. They are read before anything is stored: nobody overwrites what they depend on (the plan).
    clamped.clear();
    if (startFunction)
      for (auto [start, value] : llvm::zip_equal(starts, kernel.call(startFunction, {})))
        clamped.push_back(clampStart(b, value, start.value.instr->shape().elementType(), start.high));
    Value aligned = startsAreMultiples(0);
    if (!aligned)
      return emitGroups(segment, Alignment::Unknown, ids, outputs);
    return emitIf(
        aligned, outputs, [&] { return emitGroups(segment, Alignment::Groups, ids, outputs); },
        [&] { return segment.splitsBytes() ? emitHalfBytes(ids, outputs) : emitElsewhere(ids, outputs); });
  }

private:
  void addStarts(unsigned number) {
    const HloInstruction &hero = *segment.updates[number].hero;
    std::optional<OperandIndexing> indexing = operandIndexing(hero, 1, context);
    unsigned next = 0;
    for (unsigned dim = 0; dim < hero.shape().rank(); ++dim) {
      int64_t high = hero.shape().dim(dim) - hero.operand(1)->shape().dim(dim);
      if (high == 0)
        continue;
      // One scalar a dimension or one vector: the index into it depends on nothing.
      const RuntimeSource &source = indexing->runtimes[next++];
      if (knownStart(hero, dim))
        continue;
      auto constant = AffineMap::get(0, 0, source.indices.affine().getResults(), context);
      starts.push_back({number, dim, high, {hero.operand(source.operand), 0, IndexingMap(constant, {}, {}, {})}});
    }
  }

  /// Are the starts multiples of what groups need, or of `factor`, if it is not 0? Null: groups need nothing.
  Value startsAreMultiples(int64_t factor) {
    Value result;
    for (auto [i, update] : llvm::enumerate(segment.updates)) {
      if (update.alignedStart == 1)
        continue;
      Value start;
      if (std::optional<int64_t> known = knownStart(*update.hero, update.alignedDim))
        start = b.index(*known);
      for (auto [own, value] : llvm::zip_equal(starts, clamped))
        if (own.update == i && own.dim == update.alignedDim)
          start = value;
      int64_t mask = (factor ? factor : update.alignedStart) - 1;
      Value aligned = b.cmpI(CodeBuilder::IPred::eq, b.andI(start, mask), 0);
      result = result ? b.andI(result, aligned) : aligned;
    }
    return result;
  }

  using Branch = llvm::function_ref<SmallVector<Value>()>;
  SmallVector<Value> emitIf(Value condition, ValueRange outputs, Branch then, Branch otherwise) {
    auto branch = scf::IfOp::create(b, outputs.getTypes(), condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, then());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, otherwise());
    return SmallVector<Value>(branch.getResults());
  }

  // --- loops

  SmallVector<Value> emitGroups(const BlockSegment &groups, Alignment alignment, ValueRange ids, ValueRange outputs) {
    auto indicesAt = [&](AffineExpr position) { return memoryOrderIndices(segment.space, position); };
    return emitLoop(groups, indicesAt, alignment, ids, outputs);
  }

  /// Neighbouring threads take neighbouring groups, so that no warp leaves gaps between its stores.
  SmallVector<Value> emitElsewhere(ValueRange ids, ValueRange outputs) {
    return emitGroups(dealt(segment.elements, segment.perThreadElsewhere), Alignment::Unknown, ids, outputs);
  }

  /// Starts that are even put two elements into each byte.
  SmallVector<Value> emitHalfBytes(ValueRange ids, ValueRange outputs) {
    if (segment.perThread == 2)
      return emitSplitBytes(ids, outputs);
    return emitIf(
        startsAreMultiples(2), outputs,
        [&] { return emitGroups(dealt(segment.elements, 2), Alignment::Bytes, ids, outputs); },
        [&] { return emitSplitBytes(ids, outputs); });
  }

  /// The first and the last element of each run share their bytes with others; those between them are whole bytes.
  SmallVector<Value> emitSplitBytes(ValueRange ids, ValueRange outputs) {
    int64_t run = segment.runElements(), runs = segment.elements / run;
    auto atEdge = [&](AffineExpr position) {
      return memoryOrderIndices(segment.space, position.floorDiv(2) * run + position % 2 * (run - 1));
    };
    SmallVector<Value> state = emitLoop(dealt(2 * runs, 1), atEdge, Alignment::InBytes, ids, outputs);
    if (run == 2)
      return state;
    auto inside = [&](AffineExpr position) {
      return memoryOrderIndices(segment.space, position.floorDiv(run - 2) * run + position % (run - 2) + 1);
    };
    return emitLoop(dealt(segment.elements - 2 * runs, 2), inside, Alignment::InBytes, ids, state);
  }

  /// So many of the segment's elements, other groups of them.
  BlockSegment dealt(int64_t elements, unsigned perThread) const {
    BlockSegment groups = segment;
    groups.elements = elements;
    groups.perThread = perThread;
    groups.rounds *= segment.perThread / perThread;
    return groups;
  }

  SmallVector<Value> emitLoop(const BlockSegment &groups, IndicesAt indicesAt, Alignment alignment, ValueRange ids,
                              ValueRange outputs) {
    SmallVector<SmallVector<Value>> startsOf = startsWith(alignment);
    auto store = [&](ValueRange indices, ValueRange state) {
      // All values before all stores: an update may read what it overwrites.
      ValueRange values = kernel.call(function, indices);
      SmallVector<Value> stored(state);
      for (auto [i, update] : llvm::enumerate(segment.updates)) {
        SmallVector<Value> operands(indices);
        llvm::append_range(operands, startsOf[i]);
        SmallVector<Value> at = applyMap(b, outputMap(unsigned(i), alignment), operands);
        stored[update.root] = tensor::InsertOp::create(b, values[i], state[update.root], at);
      }
      return stored;
    };
    return emitElements(groups, indicesAt, kernel, ids, outputs, ElementBody(store));
  }

  // --- where elements go

  /// Factor and summand of a start whose value is handed on as a quotient.
  std::pair<int64_t, int64_t> partsOf(const Start &start, Alignment alignment) const {
    const Update &update = segment.updates[start.update];
    if (alignment == Alignment::Unknown || start.dim != update.alignedDim || update.alignedStart == 1)
      return {1, 0};
    return {alignment == Alignment::Groups ? update.alignedStart : 2, alignment == Alignment::InBytes ? 1 : 0};
  }

  /// By update, what its output map takes for the starts.
  SmallVector<SmallVector<Value>> startsWith(Alignment alignment) {
    SmallVector<SmallVector<Value>> result(segment.updates.size());
    for (auto [start, whole] : llvm::zip_equal(starts, clamped)) {
      auto [factor, summand] = partsOf(start, alignment);
      Value value = whole;
      if (factor != 1) {
        // A value of its own, which no simplification makes a difference of the start and its remainder.
        value = b.shrU(whole, int64_t(llvm::Log2_64(factor)));
        value.getDefiningOp()->setAttr(xla_gpu::attr::range,
                                       xla_gpu::rangeAttr(context, Interval{0, start.high / factor}));
      }
      result[start.update].push_back(value);
    }
    return result;
  }

  /// Index of the update, then the starts of update `number` -> index of its output.
  IndexingMap outputMap(unsigned number, Alignment alignment) const {
    const Update &update = segment.updates[number];
    SmallVector<IndexingVariable> dims;
    SmallVector<AffineExpr> results;
    for (auto [i, size] : llvm::enumerate(segment.space.dims())) {
      dims.push_back({Interval{0, size - 1}, {}});
      results.push_back(getAffineDimExpr(i, context) + knownStart(*update.hero, i).value_or(0));
    }
    for (const Start &start : starts)
      if (start.update == number) {
        auto [factor, summand] = partsOf(start, alignment);
        results[start.dim] = results[start.dim] + getAffineDimExpr(dims.size(), context) * factor + summand;
        dims.push_back({Interval{0, (start.high - summand) / factor}, {}});
      }
    IndexingMap moved(AffineMap::get(dims.size(), 0, results, context), dims, {}, {});
    const Shape &output = kernel.graph().roots()[update.root].shape;
    // The index that the array has under the dimensions of the output.
    IndexingMap map = compose(moved, bitcastIndexing(update.hero->shape(), output, context));
    map.simplify();
    return map;
  }

  const Segment &segment;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  std::vector<Start> starts;
  SmallVector<Value> clamped; ///< the starts, where code is emitted
  func::FuncOp function;
};

} // namespace

llvm::LogicalResult emitHero(const UpdateSlicePlan &plan, KernelBuilder &kernel) {
  std::vector<SegmentEmitter> emitters;
  std::vector<FunctionRequest> requests;
  SmallVector<const BlockSegment *> segments;
  for (const Segment &segment : plan.segments) {
    emitters.emplace_back(segment, kernel);
    segments.push_back(&segment);
    requests.push_back(emitters.back().updateRequest());
    if (emitters.back().hasStarts())
      requests.push_back(emitters.back().startRequest());
  }
  auto functions = kernel.emitFunctions(requests);
  if (failed(functions))
    return failure();
  SmallVector<std::pair<func::FuncOp, func::FuncOp>> functionsOf;
  size_t next = 0;
  for (const SegmentEmitter &emitter : emitters) {
    func::FuncOp update = (*functions)[next++], start;
    if (emitter.hasStarts())
      start = (*functions)[next++];
    functionsOf.push_back({update, start});
  }
  emitSegments(segments, kernel, [&](size_t number, ValueRange ids, ValueRange outputs) {
    auto [update, start] = functionsOf[number];
    return emitters[number].emit(update, start, ids, outputs);
  });
  return success();
}

} // namespace hloc
