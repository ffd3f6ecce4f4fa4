#include "emitters/SegmentLoops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace hloc {
namespace {

/// Which segment a block is part of.
class SegmentChoice {
public:
  SegmentChoice(ArrayRef<const BlockSegment *> segments, KernelBuilder &kernel, SegmentCode code)
      : segments(segments), kernel(kernel), b(kernel.code()), code(code) {}

  /// Segments [begin, end), one of which is this block's: a balanced tree of comparisons with their first blocks.
  SmallVector<Value> emitRange(size_t begin, size_t end, ValueRange outputs) {
    if (end - begin == 1)
      return code(begin, ownIds(*segments[begin]), outputs);
    size_t middle = (begin + end) / 2;
    Value before = b.cmpI(CodeBuilder::IPred::ult, blockId(), segments[middle]->firstBlock);
    auto branch = scf::IfOp::create(b, outputs.getTypes(), before, /*withElseRegion=*/true);
    auto fill = [&](Block *block, size_t first, size_t last) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(block);
      scf::YieldOp::create(b, emitRange(first, last, outputs));
    };
    fill(branch.thenBlock(), begin, middle);
    fill(branch.elseBlock(), middle, end);
    return SmallVector<Value>(branch.getResults());
  }

private:
  Value blockId() const { return kernel.ids()[1]; }

  /// The block's number within the segment, known to be in its range here.
  SmallVector<Value> ownIds(const BlockSegment &segment) {
    IndexingVariable blocks{Interval{segment.firstBlock, int64_t(segment.firstBlock) + segment.blocks - 1}, "bl_x"};
    AffineExpr block = getAffineDimExpr(0, kernel.context());
    AffineMap toOwn = AffineMap::get(1, 0, block - int64_t(segment.firstBlock), kernel.context());
    return {kernel.ids()[0], applyMap(b, IndexingMap(toOwn, {blocks}, {}, {}), {blockId()}).front()};
  }

  ArrayRef<const BlockSegment *> segments;
  KernelBuilder &kernel;
  CodeBuilder &b;
  SegmentCode code;
};

/// The elements of one segment.
class ElementLoops {
public:
  ElementLoops(const BlockSegment &segment, IndicesAt indicesAt, KernelBuilder &kernel, ValueRange ids,
               ArrayRef<ElementBody> bodies)
      : segment(segment), indicesAt(indicesAt), kernel(kernel), context(kernel.context()), ids(ids), bodies(bodies) {}

  SmallVector<Value> emit(ValueRange outputs) {
    int64_t tail = segment.elements % segment.perThread, whole = segment.elements - tail;
    SmallVector<Value> state(outputs);
    AffineExpr round = getAffineSymbolExpr(0, context), element = getAffineSymbolExpr(1, context);
    if (whole > 0) {
      AffineExpr first = base(round);
      IndexingMap map = mapOf(first + element, segment.rounds, segment.perThread);
      map.addConstraint(first, {0, whole - segment.perThread});
      state = bodies.size() == 1 ? emitLoop(std::move(map), state, bodies.front())
                                 : emitRounds(base(getAffineDimExpr(2, context)), std::move(map), state);
    }
    if (tail > 0) {
      // The thread that comes after the last whole group, in the round in which it does.
      int64_t perRound = int64_t(kernel.launch().block.x) * segment.perThread;
      AffineExpr first = base(getAffineConstantExpr(whole / perRound % segment.rounds, context));
      IndexingMap map = mapOf(element + whole, 1, tail);
      map.addConstraint(first, {whole, whole});
      for (ElementBody body : bodies)
        state = emitLoop(map, state, body);
    }
    return state;
  }

private:
  /// A loop over the rounds of `map`, and in it a loop for each body; `first` is the first element, by round.
  SmallVector<Value> emitRounds(AffineExpr first, IndexingMap map, ValueRange outputs) {
    IndexingVariable element = map.ranges()[1];
    SmallVector<IndexingVariable> dims(map.dims());
    IndexingMap rounds(AffineMap::get(2, 1, {}, context), dims, {map.ranges()[0]}, {}, map.constraints());
    rounds.simplify();
    dims.push_back(map.ranges()[0]);
    auto indices = AffineMap::get(3, 1, indicesAt(first + getAffineSymbolExpr(0, context)), context);
    IndexingMap elements(indices, dims, {element}, {});
    elements.simplify();
    return kernel.loop(rounds, ids, outputs, [&](ValueRange round, ValueRange, ValueRange carried) {
      SmallVector<Value> variables(ids), state(carried);
      llvm::append_range(variables, round);
      for (ElementBody body : bodies)
        state = kernel.loop(elements, variables, state,
                            [&](ValueRange, ValueRange at, ValueRange inner) { return body(at, inner); });
      return state;
    });
  }

  /// Position in the segment of a thread's first element of a round.
  AffineExpr base(AffineExpr round) const {
    int64_t perRound = int64_t(kernel.launch().block.x) * segment.perThread;
    return kernel.thread() * segment.perThread + round * perRound +
           getAffineDimExpr(1, context) * (perRound * segment.rounds);
  }

  /// From the thread, the segment's block, a round and an element of its group to the indices of the element at
  /// `position` of the segment's order.
  IndexingMap mapOf(AffineExpr position, int64_t rounds, int64_t count) const {
    IndexingVariable variables[] = {kernel.idVariables()[0], {Interval{0, int64_t(segment.blocks) - 1}, "block"}};
    IndexingVariable loops[] = {{Interval{0, rounds - 1}, {}}, {Interval{0, count - 1}, {}}};
    return IndexingMap(AffineMap::get(2, 2, indicesAt(position), context), variables, loops, {});
  }

  SmallVector<Value> emitLoop(IndexingMap map, ValueRange outputs, ElementBody body) {
    map.simplify();
    return kernel.loop(map, ids, outputs,
                       [&](ValueRange, ValueRange indices, ValueRange carried) { return body(indices, carried); });
  }

  const BlockSegment &segment;
  IndicesAt indicesAt;
  KernelBuilder &kernel;
  MLIRContext *context;
  ValueRange ids;
  ArrayRef<ElementBody> bodies;
};

} // namespace

void emitSegments(ArrayRef<const BlockSegment *> segments, KernelBuilder &kernel, SegmentCode code) {
  SmallVector<Value> outputs = SegmentChoice(segments, kernel, code).emitRange(0, segments.size(), kernel.outputs());
  kernel.outputs().assign(outputs.begin(), outputs.end());
}

SmallVector<Value> emitElements(const BlockSegment &segment, IndicesAt indicesAt, KernelBuilder &kernel, ValueRange ids,
                                ValueRange outputs, ArrayRef<ElementBody> bodies) {
  return ElementLoops(segment, indicesAt, kernel, ids, bodies).emit(outputs);
}

void emitSegments(ArrayRef<SegmentLoop> loops, KernelBuilder &kernel, SegmentBody body) {
  SmallVector<const BlockSegment *> segments;
  for (const SegmentLoop &loop : loops)
    segments.push_back(loop.segment);
  emitSegments(segments, kernel, [&](size_t number, ValueRange ids, ValueRange outputs) {
    const SegmentLoop &loop = loops[number];
    auto indicesAt = [&](AffineExpr position) { return memoryOrderIndices(loop.box, position); };
    auto ofElement = [&](ValueRange indices, ValueRange carried) { return body(number, indices, carried); };
    return emitElements(*loop.segment, indicesAt, kernel, ids, outputs, ElementBody(ofElement));
  });
}

} // namespace hloc
