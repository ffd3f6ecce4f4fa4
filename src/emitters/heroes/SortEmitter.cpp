#include "emitters/heroes/SortEmitter.h"

#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace hloc {
namespace {

class SortEmitter {
public:
  SortEmitter(const SortPlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()),
        space(plan.hero->resultShape(plan.values.front().operand)) {
    AffineExpr block = kernel.block();
    tileNumber = getAffineConstantExpr(0, context);
    if (plan.tilesPerRow() > 1) {
      tileNumber = block % plan.tilesPerRow();
      block = block.floorDiv(plan.tilesPerRow());
    }
    firstRow = block * plan.rowsPerBlock;
    firstOfTile = tileNumber * plan.tile;
  }

  llvm::LogicalResult emit() {
    SmallVector<Value> shared;
    for (const SortPlan::Value &value : plan.values)
      shared.push_back(xla_gpu::AllocateSharedOp::create(
          b, RankedTensorType::get({plan.rowsPerBlock * plan.stride()}, storageType(typeOf(value), context))));
    if (plan.merged != 0)
      shared = mergeTile(shared);
    else if (failed(sortTiles(shared)))
      return failure();
    storeTiles(shared);
    return success(good);
  }

private:
  /// An element of each of the plan's values, as stored; null where it was not asked for.
  using Element = SmallVector<Value, 2>;
  using Elements = SmallVector<Element, 8>;

  ElementType typeOf(const SortPlan::Value &value) const { return plan.hero->resultShape(value.operand).elementType(); }
  int64_t perThread() const { return plan.perThread; }

  // --- whole numbers. Places in shared memory are of 32 bits; those in a row too, where they and sums of two fit.

  Type local() { return b.getI32Type(); }
  Type inRow() { return plan.length < int64_t(1) << 30 ? b.getI32Type() : b.getI64Type(); }
  Value number(Value index, Type type) { return arith::IndexCastOp::create(b, type, index); }
  Value place(Value number) { return b.toIndex(number, /*isSigned=*/true); }
  Value of(AffineExpr expression, Type type) {
    IndexingMap map = kernel.mapOf({expression}, {});
    map.simplify();
    return number(applyMap(b, map, kernel.ids()).front(), type);
  }
  Value less(Value x, Value y) { return b.cmpI(CodeBuilder::IPred::slt, x, y); }

  // --- where elements are

  /// Number of a row and place in it -> index of the sort's results. Rows are counted as they lie in memory.
  IndexingMap indicesInRow() const {
    SmallVector<int64_t> others, sizes;
    for (int64_t dim : llvm::reverse(space.minorToMajor()))
      if (dim != plan.dimension()) {
        others.push_back(dim);
        sizes.push_back(space.dim(unsigned(dim)));
      }
    SmallVector<AffineExpr> indices(space.rank(), getAffineDimExpr(1, context));
    for (auto [dim, index] : llvm::zip_equal(others, delinearize(getAffineDimExpr(0, context), sizes, context)))
      indices[size_t(dim)] = index;
    IndexingMap map = IndexingMap::fromSizes(AffineMap::get(2, 0, indices, context), {plan.rows, plan.length});
    map.simplify();
    return map;
  }

  IndexingMap indicesInOutput(const SortPlan::Value &value, unsigned root) const {
    const Shape &result = plan.hero->resultShape(value.operand), &output = kernel.graph().roots()[root].shape;
    IndexingMap map = compose(indicesInRow(), bitcastIndexing(result, output, context));
    map.simplify();
    return map;
  }

  /// An element between kernels, at the number of a row and a place in it.
  Value extract(const SortPlan::Value &value, ValueRange at) {
    if (plan.fromOutputs && !value.roots.empty()) {
      unsigned root = value.roots.front();
      return tensor::ExtractOp::create(b, kernel.outputs()[root], applyMap(b, indicesInOutput(value, root), at));
    }
    return tensor::ExtractOp::create(b, kernel.scratch()[plan.fromOutputs ? *value.insteadOfOutput : *value.scratch],
                                     at);
  }

  // --- comparing

  Value zero(Type type) {
    if (auto complex = dyn_cast<ComplexType>(type)) {
      Value part = zero(complex.getElementType());
      return b.complex(part, part);
    }
    return arith::ConstantOp::create(b, type, cast<TypedAttr>(b.getZeroAttr(type)));
  }

  /// Does `x` come before `y`?
  Value comesBefore(const Element &x, const Element &y) {
    SmallVector<Value> arguments(2 * size_t(plan.hero->numOperands()));
    for (auto [i, value] : llvm::enumerate(plan.values)) {
      if (!value.isKey)
        continue;
      arguments[2 * value.operand] = fromStorage(b, x[i], typeOf(value));
      arguments[2 * value.operand + 1] = fromStorage(b, y[i], typeOf(value));
    }
    for (auto [i, argument] : llvm::enumerate(arguments))
      if (!argument) // nobody reads it
        argument = zero(valueType(plan.hero->operand(unsigned(i / 2))->shape().elementType(), context));
    auto results = kernel.applyScalars(*plan.hero->computation(AttributeKey::ToApply), arguments);
    good &= succeeded(results);
    return succeeded(results) ? results->front() : b.boolean(false);
  }

  Element choose(Value condition, const Element &x, const Element &y) {
    Element chosen;
    for (auto [one, other] : llvm::zip_equal(x, y))
      chosen.push_back(one ? b.select(condition, one, other) : Value());
    return chosen;
  }

  /// What is at a place of shared memory: of all values, of keys only, or of the others.
  enum class Which { All, Keys, Others };
  Element readAt(ValueRange shared, Value index, Which which) {
    Element element;
    for (auto [value, tensor] : llvm::zip_equal(plan.values, shared)) {
      bool wanted = which == Which::All || (which == Which::Keys) == value.isKey;
      element.push_back(wanted ? tensor::ExtractOp::create(b, tensor, index).getResult() : Value());
    }
    return element;
  }

  // --- merging in shared memory

  /// The part of a block's shared memory that a thread works on.
  struct Row {
    Value base;  ///< where it begins
    Value count; ///< elements that there are; at least one
  };
  /// Two neighbouring sorted runs of it: [begin, middle) and [middle, end), counted from its beginning.
  struct Runs {
    Value begin, middle, end;
    int64_t longest; ///< that one of them may be
  };

  /// A place of a row, the last one if it is beyond, on either side.
  Value clamp(const Row &row, Value at) { return b.minU(at, b.addI(row.count, -1)); }
  Element read(const Row &row, ValueRange shared, Value at, Which which) {
    return readAt(shared, place(b.addI(row.base, clamp(row, at))), which);
  }

  /// Of the first `count` elements of the merged runs so many are of the first run, whose elements precede equal ones
  /// of the second.
  Value bisect(const Row &row, const Runs &runs, Value count, ValueRange shared) {
    Value ofFirst = b.subI(runs.middle, runs.begin), ofSecond = b.subI(runs.end, runs.middle);
    Value low = b.maxS(b.subI(count, ofSecond), b.integer(local(), 0)), high = b.minS(count, ofFirst);
    int64_t steps = llvm::Log2_64_Ceil(uint64_t(runs.longest) + 1);
    auto found = kernel.loop(kernel.mapOf({}, {steps}), {low, high}, [&](ValueRange, ValueRange, ValueRange limits) {
      Value middle = b.shrU(b.addI(limits[0], limits[1]), 1);
      Element first = read(row, shared, b.addI(runs.begin, middle), Which::Keys);
      Value inSecond = b.addI(b.subI(count, middle), -1);
      Element second = read(row, shared, b.addI(runs.middle, inSecond), Which::Keys);
      return halve(limits, middle, comesBefore(second, first));
    });
    return found.front();
  }

  /// The half of [low, high] that is left: up to `middle`, or beyond it.
  SmallVector<Value> halve(ValueRange limits, Value middle, Value goesDown) {
    Value open = less(limits[0], limits[1]);
    Value low = b.select(goesDown, limits[0], b.addI(middle, 1)), high = b.select(goesDown, middle, limits[1]);
    return {b.select(open, low, limits[0]), b.select(open, high, limits[1])};
  }

  /// A thread's elements of the merged runs, the first of which is number `first` of them.
  Elements mergeOwn(const Row &row, const Runs &runs, Value first, ValueRange shared) {
    Value ofFirst = bisect(row, runs, first, shared);
    Value one = b.addI(runs.begin, ofFirst), other = b.addI(runs.middle, b.subI(first, ofFirst));
    Element next = read(row, shared, one, Which::Keys), nextOther = read(row, shared, other, Which::Keys);
    Elements merged;
    for (int64_t i = 0; i < perThread(); ++i) {
      Value isLeft = less(one, runs.middle), otherIsLeft = less(other, runs.end);
      Value takesOther = b.andI(otherIsLeft, b.orI(b.notI(isLeft), comesBefore(nextOther, next)));
      Value taken = b.select(takesOther, other, one), after = b.addI(taken, 1);
      Element element = choose(takesOther, nextOther, next), rest = read(row, shared, taken, Which::Others);
      for (auto [value, moved] : llvm::zip_equal(element, rest))
        value = value ? value : moved;
      merged.push_back(element);
      if (i + 1 == perThread())
        break;
      Element following = read(row, shared, after, Which::Keys);
      next = choose(takesOther, next, following);
      nextOther = choose(takesOther, following, nextOther);
      one = b.select(takesOther, one, after);
      other = b.select(takesOther, after, other);
    }
    return merged;
  }

  SmallVector<Value> synchronize(ValueRange shared) {
    return SmallVector<Value>(xla_gpu::SyncThreadsOp::create(b, TypeRange(shared), shared).getResults());
  }

  /// Where a thread's own element of that number lies: all have room for as many.
  Value ownPlace(int64_t i) {
    return applyMap(b, kernel.mapOf({kernel.thread() * perThread() + i}, {}), kernel.ids()).front();
  }

  /// When all threads have read what they need, each puts back its own elements.
  SmallVector<Value> replace(const Elements &elements, ValueRange shared) {
    SmallVector<Value> tensors = synchronize(shared);
    for (auto [i, element] : llvm::enumerate(elements)) {
      Value index = ownPlace(int64_t(i));
      for (auto [value, tensor] : llvm::zip_equal(element, tensors))
        tensor = tensor::InsertOp::create(b, value, tensor, index);
    }
    return synchronize(tensors);
  }

  // --- the first kernel

  /// Sorts what is in shared memory of each row.
  llvm::LogicalResult sortTiles(SmallVector<Value> &shared) {
    FunctionRequest request;
    request.indexSizes.assign(space.dims().begin(), space.dims().end());
    for (const SortPlan::Value &value : plan.values)
      request.roots.push_back({plan.hero->operand(value.operand), 0, IndexingMap::identity(context, space.dims())});
    auto functions = kernel.emitFunctions(request);
    if (failed(functions))
      return failure();
    shared = synchronize(fill(shared, [&](ValueRange at) {
      return SmallVector<Value>(kernel.call(functions->front(), applyMap(b, indicesInRow(), at)));
    }));
    Row row{of(kernel.thread().floorDiv(plan.threadsPerRow()) * plan.stride(), local()), elementsOfTile()};
    Value first = of(kernel.thread() % plan.threadsPerRow() * perThread(), local());
    if (plan.tile == 1)
      return success();
    if (perThread() > 1)
      shared = replace(sortOwn(row, first, shared), shared);
    int64_t rounds = 0;
    while (perThread() << rounds < plan.tile)
      ++rounds;
    if (rounds == 0)
      return success();
    shared = kernel.loop(kernel.mapOf({}, {rounds}), shared, [&](ValueRange round, ValueRange, ValueRange tensors) {
      Value length = b.shl(b.integer(local(), perThread()), number(round.front(), local()));
      Value mask = b.subI(b.integer(local(), 0), b.shl(length, 1)), inside = clamp(row, first);
      Runs runs;
      runs.begin = b.andI(inside, mask);
      runs.middle = b.minS(b.addI(runs.begin, length), row.count);
      runs.end = b.minS(b.addI(runs.middle, length), row.count);
      runs.longest = perThread() << (rounds - 1);
      return replace(mergeOwn(row, runs, b.subI(inside, runs.begin), tensors), tensors);
    });
    return success();
  }

  /// How many elements of its row a tile has.
  Value elementsOfTile() {
    if (plan.length % plan.tile == 0)
      return b.integer(local(), plan.tile);
    Value left = of(plan.length - firstOfTile, inRow());
    return b.castI(b.minS(left, b.integer(inRow(), plan.tile)), local(), true);
  }

  /// A thread's neighbours, by exchanging neighbours in turns.
  Elements sortOwn(const Row &row, Value first, ValueRange shared) {
    // Where all have been filled, none is sought elsewhere.
    bool isFilled = plan.tile % perThread() == 0;
    Elements own;
    for (int64_t i = 0; i < perThread(); ++i)
      own.push_back(isFilled ? readAt(shared, ownPlace(i), Which::All)
                             : read(row, shared, b.addI(first, i), Which::All));
    for (int64_t turn = 0; turn < perThread(); ++turn)
      for (int64_t i = turn % 2; i + 1 < perThread(); i += 2) {
        Value exists = less(b.addI(first, i + 1), row.count);
        Value exchanged = b.andI(exists, comesBefore(own[i + 1], own[i]));
        Element lower = choose(exchanged, own[i + 1], own[i]);
        own[i + 1] = choose(exchanged, own[i], own[i + 1]);
        own[i] = lower;
      }
    return own;
  }

  /// The elements of a block's tiles that a thread moves: one of as many as there are threads, in the order of memory.
  /// Results: number of the row, place in it, place in shared memory.
  IndexingMap elementsToMove() const {
    AffineExpr element = kernel.thread() + getAffineSymbolExpr(0, context) * plan.threads();
    AffineExpr row = element.floorDiv(plan.tile), at = element % plan.tile;
    if (plan.rowsAreMinor() && plan.rowsPerBlock > 1) {
      row = element % plan.rowsPerBlock;
      at = element.floorDiv(plan.rowsPerBlock);
    }
    IndexingMap map = kernel.mapOf({firstRow + row, firstOfTile + at, row * plan.stride() + at}, {perThread()});
    map.addConstraint(element, Interval{0, plan.rowsPerBlock * plan.tile - 1});
    map.simplify();
    return map;
  }

  /// Fills shared memory with `load(row, place in it)`; where there is nothing, with what is last in each direction.
  SmallVector<Value> fill(ValueRange shared, llvm::function_ref<SmallVector<Value>(ValueRange)> load) {
    return kernel.loop(elementsToMove(), shared, [&](ValueRange, ValueRange at, ValueRange tensors) {
      SmallVector<Value> where = {insideRows(at[0]), at[1]};
      if (plan.length % plan.tile != 0)
        where[1] = b.minU(at[1], b.index(plan.length - 1));
      SmallVector<Value> next;
      for (auto [value, tensor] : llvm::zip_equal(load(where), tensors))
        next.push_back(tensor::InsertOp::create(b, value, tensor, at[2]));
      return next;
    });
  }

  /// The number of a row, or of the last one for blocks and threads that have none.
  Value insideRows(Value row) {
    const Dim3 &grid = kernel.launch().grid;
    int64_t most = int64_t(grid.x) * grid.y / plan.tilesPerRow() * plan.rowsPerBlock;
    return most <= plan.rows ? row : b.minU(row, b.index(plan.rows - 1));
  }

  void storeTiles(ValueRange shared) {
    IndexingMap map = elementsToMove();
    map.addConstraint(map.result(0), Interval{0, plan.rows - 1});
    map.addConstraint(map.result(1), Interval{0, plan.length - 1});
    map.simplify();
    SmallVector<Value> buffers;
    llvm::append_range(buffers, kernel.outputs());
    llvm::append_range(buffers, kernel.scratch());
    size_t numOutputs = kernel.outputs().size();
    auto stored = kernel.loop(map, buffers, [&](ValueRange, ValueRange at, ValueRange before) {
      SmallVector<Value> next(before);
      auto insert = [&](Value value, size_t buffer, ValueRange where) {
        next[buffer] = tensor::InsertOp::create(b, value, next[buffer], where);
      };
      for (auto [value, tensor] : llvm::zip_equal(plan.values, shared)) {
        Value element = tensor::ExtractOp::create(b, tensor, at[2]);
        if (!plan.toOutputs) {
          insert(element, numOutputs + *value.scratch, at.take_front(2));
          continue;
        }
        if (value.roots.empty() && !plan.isLast())
          insert(element, numOutputs + *value.insteadOfOutput, at.take_front(2));
        // Before the last kernel one place is enough.
        for (unsigned root : ArrayRef(value.roots).take_front(plan.isLast() ? value.roots.size() : 1))
          insert(element, root, applyMap(b, indicesInOutput(value, root), at.take_front(2)));
      }
      return next;
    });
    kernel.outputs().assign(stored.begin(), stored.begin() + ptrdiff_t(numOutputs));
    kernel.scratch().assign(stored.begin() + ptrdiff_t(numOutputs), stored.end());
  }

  // --- the others

  /// Two sorted runs of a row in memory, and which elements of the merged one are a block's.
  struct LongRuns {
    Value row;                ///< its number
    Value begin, middle, end; ///< in the row
    Value first, last;        ///< of the merged elements
  };

  LongRuns runsOfTile() {
    LongRuns runs;
    IndexingMap rowOf = kernel.mapOf({firstRow}, {});
    rowOf.simplify();
    runs.row = insideRows(applyMap(b, rowOf, kernel.ids()).front());
    AffineExpr first = firstOfTile % (2 * plan.merged);
    Value length = b.integer(inRow(), plan.length), merged = b.integer(inRow(), plan.merged);
    runs.first = of(first, inRow());
    runs.begin = of(firstOfTile - first, inRow());
    runs.middle = b.minS(b.addI(runs.begin, merged), length);
    runs.end = b.minS(b.addI(runs.middle, merged), length);
    runs.last = b.minS(b.addI(runs.first, plan.tile), b.subI(runs.end, runs.begin));
    return runs;
  }

  Element readLong(const LongRuns &runs, Value at, Which which) {
    Value inside = b.minU(at, b.integer(inRow(), plan.length - 1));
    SmallVector<Value> where = {runs.row, place(inside)};
    Element element;
    for (const SortPlan::Value &value : plan.values) {
      bool wanted = which == Which::All || value.isKey;
      element.push_back(wanted ? extract(value, where) : Value());
    }
    return element;
  }

  /// bisect of runs in memory, for two counts at once.
  SmallVector<Value> bisectLong(const LongRuns &runs, ArrayRef<Value> counts) {
    Value ofFirst = b.subI(runs.middle, runs.begin), ofSecond = b.subI(runs.end, runs.middle);
    SmallVector<Value> limits;
    for (Value count : counts) {
      limits.push_back(b.maxS(b.subI(count, ofSecond), b.integer(inRow(), 0)));
      limits.push_back(b.minS(count, ofFirst));
    }
    int64_t steps = llvm::Log2_64_Ceil(uint64_t(plan.merged) + 1);
    auto found = kernel.loop(kernel.mapOf({}, {steps}), limits, [&](ValueRange, ValueRange, ValueRange before) {
      SmallVector<Value> next;
      for (auto [i, count] : llvm::enumerate(counts)) {
        ValueRange own = before.slice(2 * i, 2);
        Value middle = b.shrU(b.addI(own[0], own[1]), 1), inSecond = b.addI(b.subI(count, middle), -1);
        Element first = readLong(runs, b.addI(runs.begin, middle), Which::Keys);
        Element second = readLong(runs, b.addI(runs.middle, inSecond), Which::Keys);
        llvm::append_range(next, halve(own, middle, comesBefore(second, first)));
      }
      return next;
    });
    return {found[0], found[2]};
  }

  /// Merges the two parts of runs that a tile of the merged one is made of.
  SmallVector<Value> mergeTile(ValueRange empty) {
    LongRuns runs = runsOfTile();
    SmallVector<Value> found = bisectLong(runs, {runs.first, runs.last});
    // Of no order anything may be found.
    Value begin = found[0], count = b.subI(runs.last, runs.first);
    Value ofFirst = b.maxS(b.minS(b.subI(found[1], begin), count), b.integer(inRow(), 0));
    Value fromSecond = b.subI(b.addI(runs.middle, b.subI(runs.first, begin)), ofFirst);
    Value fromFirst = b.addI(runs.begin, begin);
    SmallVector<Value> shared =
        synchronize(kernel.loop(elementsToMove(), empty, [&](ValueRange, ValueRange at, ValueRange tensors) {
          Value own = number(at[2], inRow());
          Value from = b.addI(b.select(less(own, ofFirst), fromFirst, fromSecond), own);
          SmallVector<Value> next;
          for (auto [value, tensor] : llvm::zip_equal(readLong(runs, from, Which::All), tensors))
            next.push_back(tensor::InsertOp::create(b, value, tensor, at[2]));
          return next;
        }));
    Row row{b.integer(local(), 0), b.castI(count, local(), true)};
    Value first = of(kernel.thread() * perThread(), local());
    Runs own{b.integer(local(), 0), b.castI(ofFirst, local(), true), row.count, plan.tile};
    return replace(mergeOwn(row, own, b.minS(first, row.count), shared), shared);
  }

  const SortPlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  const Shape space;
  AffineExpr firstRow, tileNumber, firstOfTile;
  bool good = true;
};

} // namespace

llvm::LogicalResult emitHero(const SortPlan &plan, KernelBuilder &kernel) { return SortEmitter(plan, kernel).emit(); }

} // namespace hloc
