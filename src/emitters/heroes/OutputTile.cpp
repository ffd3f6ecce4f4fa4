// One idea: sums of all products are complete at an index of the heroes, and all outputs are made there; only who makes
// them differs.
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
  for (const HloInstruction *hero : heroes)
    request.injected.push_back(hero);
  return request;
}

/// What is made of the heroes' values at an index of them.
SmallVector<Value> OutputTile::insertOutputs(ValueRange at, ValueRange ofHeroes, ValueRange before) {
  ValueRange results = kernel.call(function, at, ofHeroes);
  SmallVector<Value> next(before);
  for (auto [result, number, place] : llvm::zip_equal(results, plan.roots, places))
    next[number] = tensor::InsertOp::create(b, result, next[number], applyMap(b, place, at));
  return next;
}

SmallVector<Value> OutputTile::vectorsOf(ArrayRef<Value> sums) {
  const size_t neighbours = sums.size() / plan.numProducts();
  SmallVector<Value> vectors;
  for (; !sums.empty(); sums = sums.drop_front(neighbours))
    vectors.push_back(vector::FromElementsOp::create(b, VectorType::get({int64_t(neighbours)}, values().computed()),
                                                     sums.take_front(neighbours)));
  return vectors;
}

void OutputTile::storeNeighbours(const IndexingMap &map, ArrayRef<Value> sums) {
  const SmallVector<Value> all = vectorsOf(sums);
  SmallVector<Value> made =
      kernel.loop(map, kernel.outputs(), [&](ValueRange element, ValueRange at, ValueRange before) {
        SmallVector<Value> ofHeroes;
        for (Value ofProduct : all)
          ofHeroes.push_back(values().stored(vector::ExtractOp::create(b, ofProduct, OpFoldResult(element.front()))));
        return insertOutputs(at, ofHeroes, before);
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
    const SmallVector<Value> all = vectorsOf(piece);
    SmallVector<Value> stored =
        kernel.loop(map, kernel.scratch(), [&](ValueRange element, ValueRange at, ValueRange before) {
          SmallVector<Value> next;
          for (auto [ofProduct, scratch] : llvm::zip_equal(all, before)) {
            Value sum = vector::ExtractOp::create(b, ofProduct, OpFoldResult(element.front()));
            next.push_back(tensor::InsertOp::create(b, sum, scratch, at));
          }
          return next;
        });
    kernel.scratch().assign(stored.begin(), stored.end());
  });
}

void OutputTile::forEachPiece(ArrayRef<Value> sums, AffineExpr part, StorePiece store) {
  int64_t vector = pieceOf(plan.columns);
  for (int64_t row = 0; row < tile.threadRows; ++row)
    for (int64_t piece = 0; piece < tile.threadColumns / vector; ++piece) {
      SmallVector<Value> ofProducts;
      for (int64_t first = row * tile.threadColumns + piece * vector; first < int64_t(sums.size());
           first += plan.results())
        llvm::append_range(ofProducts, sums.slice(first, vector));
      store(mapOfPiece(row, piece, part), ofProducts);
    }
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
  // Each warpgroup of a ring stores its own rows, so that none waits until the other's sums are complete, and one
  // multiplies while the other stores. (In memory that others gave, one's rows lie anywhere.)
  const int64_t groups = tile.hasProducer && !shared ? tile.warpRows / tile.warpsOfGroup : 1;
  SmallVector<Value> all; // by product
  if (shared)
    all = {shared};
  while (all.size() < plan.numProducts())
    all.push_back(xla_gpu::AllocateSharedOp::create(
        b, RankedTensorType::get({plan.outputElements()}, storageType(type, context))));
  auto synchronize = [&] {
    auto barrier = xla_gpu::SyncThreadsOp::create(b, TypeRange(ValueRange(all)), all);
    if (tile.hasProducer) { // the others are elsewhere
      barrier.setThreads(uint64_t(tile.threads() / groups));
      barrier.setEach(groups > 1);
    }
    all = SmallVector<Value>(barrier.getResults());
  };
  if (plan.rounds > 1) // of the tile before, all have read what others wrote
    synchronize();
  for (int64_t first = 0; first < tile.threadRows; first += together) {
    for (auto [number, ofProduct] : llvm::enumerate(all))
      for (int64_t row = 0; row < together; ++row)
        for (int64_t piece = 0; piece < tile.threadColumns / vector; ++piece) {
          const int64_t at = int64_t(number) * plan.results() + (first + row) * tile.threadColumns + vector * piece;
          ofProduct = putPiece(row, together, piece, sums.slice(at, vector), ofProduct);
        }
    synchronize();
    storeRows(first, together, groups, all);
    if (first + together < tile.threadRows)
      synchronize();
  }
}

/// Where an element is. Who reads several chunks of 16 bytes, side by side, reads the first ones together with others,
/// then the second ones, and these would be in half of the banks: so in every second eight chunks, or every second one
/// of shorter rows, they change places with neighbours.
AffineExpr OutputTile::placeInShared(AffineExpr row, AffineExpr column) const {
  constexpr int64_t bitsOfChunk = 128, chunksOfBanks = 8;
  const int64_t elements = bitsOfChunk / int64_t(deviceBits(type)), chunks = plan.outputVector / elements,
                width = std::max(tile.columns(), chunksOfBanks * elements);
  AffineExpr place = column;
  if (!plan.storesColumns && chunks > 1) {
    place = column.floorDiv(elements * chunks) * (elements * chunks) + column % elements;
    for (int64_t ofBit = elements; ofBit < elements * chunks; ofBit *= 2) {
      AffineExpr before = width % (2 * ofBit * chunksOfBanks) == 0 ? column : row * width + column;
      place = place + (column.floorDiv(ofBit) + before.floorDiv(ofBit * chunksOfBanks)) % 2 * ofBit;
    }
  }
  return row * plan.outputStride() + place;
}

Value OutputTile::putPiece(int64_t row, int64_t together, int64_t piece, ArrayRef<Value> sums, Value shared) {
  const int64_t rows = pieceOf(plan.rows);
  AffineExpr rowInShared = warpAlong(plan.rows) * (tile.laneRows() * together) + row / rows * rows * tile.laneRows() +
                           laneAlong(plan.rows) * rows + row % rows;
  IndexingMap map = kernel.mapOf({placeInShared(rowInShared, firstOfPiece(plan.columns, piece))}, {});
  map.simplify();
  Value at = applyMap(b, map, kernel.ids()).front();
  SmallVector<Value> stored;
  for (Value sum : sums)
    stored.push_back(values().stored(sum));
  auto stores = VectorType::get({int64_t(sums.size())}, storageType(type, context));
  Value vector = vector::FromElementsOp::create(b, stores, stored);
  return vector::TransferWriteOp::create(b, b.getLoc(), vector, shared, ValueRange{at}, ArrayRef<bool>{true})
      .getResult();
}

/// The outputs of those of each thread's rows, from `first` on, that are in shared memory: in their order in memory, by
/// groups of neighbouring threads, each with the rows of its own warps.
void OutputTile::storeRows(int64_t first, int64_t together, int64_t groups, ValueRange shared) {
  const int64_t vector = plan.outputVector, ofWarp = tile.laneRows() * together, rows = tile.warpRows * ofWarp / groups,
                threads = tile.threads() / groups,
                vectorsOfLine = (plan.storesColumns ? rows : tile.columns()) / vector,
                vectors = rows * tile.columns() / vector, turns = llvm::divideCeil(vectors, threads);
  AffineExpr number = kernel.thread() % threads + getAffineSymbolExpr(0, context) * threads;
  AffineExpr row = number.floorDiv(vectorsOfLine);
  AffineExpr column = number % vectorsOfLine * vector + getAffineSymbolExpr(1, context);
  if (plan.storesColumns)
    std::swap(row, column);
  row = row + kernel.thread().floorDiv(threads) * rows;
  const AffineExpr warp = row.floorDiv(ofWarp), inWarp = row % ofWarp;
  AffineExpr rowPosition =
      firstAlong(plan.rows) +
      (tile.ofWarpgroups ? rowOfGroup(warp, inWarp.floorDiv(tile.laneRows()) + first, inWarp % tile.laneRows())
                         : warp * (tile.laneRows() * tile.threadRows) + first * tile.laneRows() + inWarp);
  AffineExpr columnPosition = firstAlong(plan.columns) + column;
  SmallVector<AffineExpr> indices(space.rank());
  placeBatch(indices);
  place(plan.rows.dims, rowPosition, indices);
  place(plan.columns.dims, columnPosition, indices);
  indices = space.resultIndices(indices);
  indices.push_back(placeInShared(row, column));
  IndexingMap map = kernel.mapOf(indices, {turns, vector});
  addInside(map, rowPosition, columnPosition);
  if (vectors % threads != 0)
    map.addConstraint(number, Interval{0, vectors - 1});
  map.simplify();
  SmallVector<Value> made = kernel.loop(map, kernel.outputs(), [&](ValueRange, ValueRange at, ValueRange before) {
    SmallVector<Value> ofHeroes;
    for (Value ofProduct : shared)
      ofHeroes.push_back(tensor::ExtractOp::create(b, ofProduct, at.back()));
    return insertOutputs(at.drop_back(), ofHeroes, before);
  });
  kernel.outputs().assign(made.begin(), made.end());
}

} // namespace hloc
