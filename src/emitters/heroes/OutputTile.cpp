// One idea: a sum is complete at an index of the hero, and all outputs are made there; only who makes them differs.
// Sums of fragments go to others through shared memory, who have neighbours in memory.

#include "emitters/heroes/OutputTile.h"

#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {

FunctionRequest OutputTile::request() const {
  FunctionRequest request;
  request.indexSizes.assign(plan.hero->shape().dims().begin(), plan.hero->shape().dims().end());
  for (auto [number, place] : llvm::zip_equal(plan.roots, places))
    request.roots.push_back({root(number).instr, root(number).result, place});
  request.injected.push_back(plan.hero);
  return request;
}

/// What is made of the hero's value at an index of it.
SmallVector<Value> OutputTile::insertOutputs(ValueRange at, Value value, ValueRange before) {
  ValueRange results = kernel.call(function, at, value);
  SmallVector<Value> next(before);
  for (auto [result, number, place] : llvm::zip_equal(results, plan.roots, places))
    next[number] = tensor::InsertOp::create(b, result, next[number], applyMap(b, place, at));
  return next;
}

Value OutputTile::vectorOf(ArrayRef<Value> sums) {
  return vector::FromElementsOp::create(b, VectorType::get({int64_t(sums.size())}, values.computed()), sums);
}

void OutputTile::storeNeighbours(const IndexingMap &map, ArrayRef<Value> sums) {
  Value all = vectorOf(sums);
  SmallVector<Value> made =
      kernel.loop(map, kernel.outputs(), [&](ValueRange element, ValueRange at, ValueRange before) {
        Value sum = vector::ExtractOp::create(b, all, OpFoldResult(element.front()));
        return insertOutputs(at, values.stored(sum), before);
      });
  kernel.outputs().assign(made.begin(), made.end());
}

// --- each thread its own

void OutputTile::store(ArrayRef<Value> sums, Value shared) {
  if (plan.outputVector)
    return storeThroughShared(sums, shared);
  forEachPiece(sums, {}, [&](const IndexingMap &map, ArrayRef<Value> piece) { storeNeighbours(map, piece); });
}

void OutputTile::storePartial(ArrayRef<Value> sums, AffineExpr part) {
  forEachPiece(sums, part, [&](const IndexingMap &map, ArrayRef<Value> piece) {
    Value all = vectorOf(piece);
    SmallVector<Value> stored = kernel.loop(
        map, kernel.scratch(), [&](ValueRange element, ValueRange at, ValueRange before) -> SmallVector<Value> {
          Value sum = vector::ExtractOp::create(b, all, OpFoldResult(element.front()));
          return {tensor::InsertOp::create(b, sum, before.front(), at)};
        });
    kernel.scratch().assign(stored.begin(), stored.end());
  });
}

void OutputTile::forEachPiece(ArrayRef<Value> sums, AffineExpr part, StorePiece store) {
  int64_t vector = pieceOf(plan.columns);
  for (int64_t row = 0; row < tile.threadRows; ++row)
    for (int64_t piece = 0; piece < tile.threadColumns / vector; ++piece)
      store(mapOfPiece(row, piece, part), sums.slice(row * tile.threadColumns + piece * vector, vector));
}

void OutputTile::addInside(IndexingMap &map, AffineExpr row, AffineExpr column) const {
  for (const auto &[expression, interval] : {isInside(plan.rows, row), isInside(plan.columns, column)})
    map.addConstraint(expression, interval);
}

IndexingMap OutputTile::mapOfPiece(int64_t row, int64_t piece, AffineExpr part) const {
  int64_t rowPiece = pieceOf(plan.rows), vector = pieceOf(plan.columns);
  AffineExpr rowPosition = firstAlong(plan.rows) + firstOfPiece(plan.rows, row / rowPiece) + row % rowPiece;
  AffineExpr first = firstAlong(plan.columns) + firstOfPiece(plan.columns, piece);
  AffineExpr columnPosition = first + getAffineSymbolExpr(0, context);
  SmallVector<AffineExpr> indices(space.rank());
  placeBatch(indices);
  place(plan.rows.dims, rowPosition, indices);
  place(plan.columns.dims, columnPosition, indices);
  indices = space.resultIndices(indices);
  if (part)
    indices.insert(indices.begin(), part);
  IndexingMap map = kernel.mapOf(indices, {vector});
  addInside(map, rowPosition, columnPosition);
  map.simplify();
  return map;
}

// --- through shared memory

/// Some of all threads' rows at a time.
void OutputTile::storeThroughShared(ArrayRef<Value> sums, Value shared) {
  const int64_t together = plan.outputRowsOfThread(), vector = pieceOf(plan.columns);
  if (!shared)
    shared = xla_gpu::AllocateSharedOp::create(
        b, RankedTensorType::get({plan.outputElements()}, storageType(plan.hero->shape().elementType(), context)));
  for (int64_t first = 0; first < tile.threadRows; first += together) {
    for (int64_t row = 0; row < together; ++row)
      for (int64_t piece = 0; piece < tile.threadColumns / vector; ++piece)
        shared = putPiece(row, together, piece, sums.slice((first + row) * tile.threadColumns + vector * piece, vector),
                          shared);
    shared = xla_gpu::SyncThreadsOp::create(b, TypeRange(shared), ValueRange(shared)).getResult(0);
    storeRows(first, together, shared);
    if (first + together < tile.threadRows)
      shared = xla_gpu::SyncThreadsOp::create(b, TypeRange(shared), ValueRange(shared)).getResult(0);
  }
}

Value OutputTile::putPiece(int64_t row, int64_t together, int64_t piece, ArrayRef<Value> sums, Value shared) {
  const int64_t rows = pieceOf(plan.rows);
  AffineExpr rowInShared = warpAlong(plan.rows) * (tile.laneRows() * together) + row / rows * rows * tile.laneRows() +
                           laneAlong(plan.rows) * rows + row % rows;
  IndexingMap map = kernel.mapOf({rowInShared * plan.outputStride() + firstOfPiece(plan.columns, piece)}, {});
  map.simplify();
  Value at = applyMap(b, map, kernel.ids()).front();
  SmallVector<Value> stored;
  for (Value sum : sums)
    stored.push_back(values.stored(sum));
  auto type = VectorType::get({int64_t(sums.size())}, storageType(plan.hero->shape().elementType(), context));
  Value vector = vector::FromElementsOp::create(b, type, stored);
  return vector::TransferWriteOp::create(b, b.getLoc(), vector, shared, ValueRange{at}, ArrayRef<bool>{true})
      .getResult();
}

/// The outputs of those of each thread's rows, from `first` on, that are in shared memory: in their order in memory.
void OutputTile::storeRows(int64_t first, int64_t together, Value shared) {
  const int64_t vector = plan.outputVector, vectorsOfRow = tile.columns() / vector, ofWarp = tile.laneRows() * together;
  const int64_t vectors = tile.warpRows * ofWarp * vectorsOfRow, turns = llvm::divideCeil(vectors, tile.threads());
  AffineExpr number = kernel.thread() + getAffineSymbolExpr(0, context) * tile.threads();
  AffineExpr row = number.floorDiv(vectorsOfRow);
  AffineExpr column = number % vectorsOfRow * vector + getAffineSymbolExpr(1, context);
  AffineExpr rowPosition = firstAlong(plan.rows) + row.floorDiv(ofWarp) * (tile.laneRows() * tile.threadRows) +
                           first * tile.laneRows() + row % ofWarp;
  AffineExpr columnPosition = firstAlong(plan.columns) + column;
  SmallVector<AffineExpr> indices(space.rank());
  placeBatch(indices);
  place(plan.rows.dims, rowPosition, indices);
  place(plan.columns.dims, columnPosition, indices);
  indices = space.resultIndices(indices);
  indices.push_back(row * plan.outputStride() + column);
  IndexingMap map = kernel.mapOf(indices, {turns, vector});
  addInside(map, rowPosition, columnPosition);
  if (vectors % tile.threads() != 0)
    map.addConstraint(number, Interval{0, vectors - 1});
  map.simplify();
  SmallVector<Value> made = kernel.loop(map, kernel.outputs(), [&](ValueRange, ValueRange at, ValueRange before) {
    Value value = tensor::ExtractOp::create(b, shared, at.back());
    return insertOutputs(at.drop_back(), value, before);
  });
  kernel.outputs().assign(made.begin(), made.end());
}

} // namespace hloc
