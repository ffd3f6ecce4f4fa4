#include "emitters/SegmentLoops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace hloc {
namespace {

class SegmentEmitter {
public:
  SegmentEmitter(ArrayRef<SegmentLoop> segments, KernelBuilder &kernel, SegmentBody body)
      : segments(segments), kernel(kernel), b(kernel.code()), context(kernel.context()), body(body) {}

  /// Segments [begin, end), one of which is this block's: a balanced tree of comparisons with their first blocks.
  SmallVector<Value> emitRange(size_t begin, size_t end, ValueRange outputs) {
    if (end - begin == 1)
      return emitSegment(begin, outputs);
    size_t middle = (begin + end) / 2;
    Value before = b.cmpI(CodeBuilder::IPred::ult, blockId(), segments[middle].segment->firstBlock);
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

  SmallVector<Value> emitSegment(size_t number, ValueRange outputs) {
    const BlockSegment &segment = *segments[number].segment;
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
      IndexingMap map = mapOf(number, first + element, segment.rounds, segment.perThread);
      map.addConstraint(first, {0, whole - segment.perThread});
      state = emitLoop(number, ids, std::move(map), state);
    }
    if (tail > 0) {
      // The thread that comes after the last whole group, in the round in which it does.
      int64_t perRound = int64_t(kernel.launch().block.x) * segment.perThread;
      AffineExpr first = base(segment, getAffineConstantExpr(whole / perRound % segment.rounds, context));
      IndexingMap map = mapOf(number, element + whole, 1, tail);
      map.addConstraint(first, {whole, whole});
      state = emitLoop(number, ids, std::move(map), state);
    }
    return state;
  }

  /// Position in the segment of a thread's first element of a round.
  AffineExpr base(const BlockSegment &segment, AffineExpr round) const {
    int64_t perRound = int64_t(kernel.launch().block.x) * segment.perThread;
    return kernel.thread() * segment.perThread + round * perRound +
           getAffineDimExpr(1, context) * (perRound * segment.rounds);
  }

  /// From the thread, the segment's block, a round and an element of its group to the indices of the element at
  /// `position` of the segment's memory order.
  IndexingMap mapOf(size_t number, AffineExpr position, int64_t rounds, int64_t count) const {
    SmallVector<AffineExpr> results = memoryOrderIndices(segments[number].box, position);
    IndexingVariable ids[] = {kernel.idVariables()[0],
                              {Interval{0, int64_t(segments[number].segment->blocks) - 1}, "block"}};
    IndexingVariable loops[] = {{Interval{0, rounds - 1}, {}}, {Interval{0, count - 1}, {}}};
    return IndexingMap(AffineMap::get(2, 2, results, context), ids, loops, {});
  }

  SmallVector<Value> emitLoop(size_t number, ValueRange ids, IndexingMap map, ValueRange outputs) {
    map.simplify();
    return kernel.loop(map, ids, outputs, [&](ValueRange, ValueRange indices, ValueRange carried) {
      return body(number, indices, carried);
    });
  }

  ArrayRef<SegmentLoop> segments;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  SegmentBody body;
};

} // namespace

void emitSegments(ArrayRef<SegmentLoop> segments, KernelBuilder &kernel, SegmentBody body) {
  SmallVector<Value> outputs = SegmentEmitter(segments, kernel, body).emitRange(0, segments.size(), kernel.outputs());
  kernel.outputs().assign(outputs.begin(), outputs.end());
}

} // namespace hloc
