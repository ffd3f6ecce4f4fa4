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
  const int64_t vector = pieceOf(minor());
  for (int64_t line = 0; line < perThread(major()); ++line)
    for (int64_t piece = 0; piece < perThread(minor()) / vector; ++piece) {
      SmallVector<Value> ofProducts;
      for (size_t first = 0; first < sums.size(); first += size_t(plan.results()))
        llvm::append_range(ofProducts, sumsOfPiece(sums.drop_front(first), line, piece));
      store(mapOfPiece(line, piece, part), ofProducts);
    }
}

SmallVector<Value> OutputTile::sumsOfPiece(ArrayRef<Value> sums, int64_t line, int64_t piece) const {
  const int64_t vector = pieceOf(minor());
  SmallVector<Value> own;
  for (int64_t i = piece * vector; i < (piece + 1) * vector; ++i) {
    const int64_t row = plan.areColumnsOfOutputs() ? i : line, column = plan.areColumnsOfOutputs() ? line : i;
    own.push_back(sums[size_t(row * tile.threadColumns + column)]);
  }
  return own;
}

void OutputTile::addInside(IndexingMap &map, AffineExpr row, AffineExpr column) const {
  for (const auto &[expression, interval] : {isInside(plan.rows, row), isInside(plan.columns, column)})
    map.addConstraint(expression, interval);
}

AffineExpr OutputTile::lineInTile(int64_t line) const {
  const int64_t lines = pieceOf(major());
  return firstOfPiece(major(), line / lines) + line % lines;
}

IndexingMap OutputTile::mapOfPiece(int64_t line, int64_t piece, AffineExpr part) const {
  const int64_t vector = pieceOf(minor());
  AffineExpr rowPosition = firstAlong(major()) + lineInTile(line);
  AffineExpr columnPosition = firstAlong(minor()) + firstOfPiece(minor(), piece) + getAffineSymbolExpr(0, context);
  if (plan.areColumnsOfOutputs())
    std::swap(rowPosition, columnPosition);
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

/// Some of all threads' lines at a time.
void OutputTile::storeThroughShared(ArrayRef<Value> sums, Value shared) {
  const int64_t together = plan.outputLinesOfThread();
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
  for (int64_t first = 0; first < perThread(major()); first += together) {
    for (auto [number, ofProduct] : llvm::enumerate(all))
      ofProduct = putLines(sums.drop_front(number * size_t(plan.results())), first, together, ofProduct);
    synchronize();
    storeLines(first, together, groups, all);
    if (first + together < perThread(major()))
      synchronize();
  }
}

/// Where an element is. Who reads several chunks of 16 bytes, side by side, reads the first ones together with others,
/// then the second ones, and these would be in half of the banks: so in every second eight chunks, or every second one
/// of shorter rows, they change places with neighbours.
AffineExpr OutputTile::placeInShared(AffineExpr line, AffineExpr inLine) const {
  constexpr int64_t chunksOfBanks = 8;
  const int64_t elements = int64_t(elementsOfChunk()), chunks = plan.outputVector / elements,
                width = std::max(tileSize(minor()), chunksOfBanks * elements);
  AffineExpr place = inLine;
  if (plan.storesColumns == plan.areColumnsOfOutputs() && chunks > 1) {
    place = inLine.floorDiv(elements * chunks) * (elements * chunks) + inLine % elements;
    for (int64_t ofBit = elements; ofBit < elements * chunks; ofBit *= 2) {
      AffineExpr before = width % (2 * ofBit * chunksOfBanks) == 0 ? inLine : line * width + inLine;
      place = place + (inLine.floorDiv(ofBit) + before.floorDiv(ofBit * chunksOfBanks)) % 2 * ofBit;
    }
  }
  return line * plan.outputStride() + place;
}

/// So many of a thread's lines, from number `first` on. Of its neighbours among rows, the second ones are behind the
/// first ones of all lanes, if nobody reads across: these would be in the banks of others.
Value OutputTile::putLines(ArrayRef<Value> sums, int64_t first, int64_t together, Value shared) {
  const int64_t lanes = lanesAlong(major()), lines = pieceOf(major());
  for (int64_t number = 0; number < together; ++number)
    for (int64_t piece = 0; piece < perThread(minor()) / pieceOf(minor()); ++piece) {
      AffineExpr line = warpAlong(major()) * (lanes * together) + number / lines * lines * lanes;
      line = arePairsApart() ? line + number % lines * lanes + laneAlong(major())
                             : line + laneAlong(major()) * lines + number % lines;
      // (Chunks change their places, each for itself.)
      const SmallVector<Value> all = sumsOfPiece(sums, first + number, piece);
      for (size_t at = 0; at < all.size(); at += elementsOfChunk())
        shared = putPiece(line, firstOfPiece(minor(), piece) + int64_t(at),
                          ArrayRef(all).slice(at).take_front(elementsOfChunk()), shared);
    }
  return shared;
}

Value OutputTile::putPiece(AffineExpr line, AffineExpr inLine, ArrayRef<Value> sums, Value shared) {
  IndexingMap map = kernel.mapOf({placeInShared(line, inLine)}, {});
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

/// Of the tile, a line of those that are in shared memory, which are each thread's from number `first` on.
AffineExpr OutputTile::lineInTile(AffineExpr line, int64_t first, int64_t together) const {
  const int64_t lanes = lanesAlong(major()), ofWarp = lanes * together;
  const AffineExpr warp = line.floorDiv(ofWarp);
  AffineExpr inWarp = line % ofWarp;
  if (arePairsApart())
    inWarp = inWarp.floorDiv(2 * lanes) * (2 * lanes) + inWarp % lanes * 2 + inWarp.floorDiv(lanes) % 2;
  if (tile.ofWarpgroups && plan.isOfRows(major()))
    return rowOfGroup(warp, inWarp.floorDiv(lanes) + first, inWarp % lanes);
  return warp * (lanes * perThread(major())) + first * lanes + inWarp;
}

/// The outputs of what is in shared memory: in their order in memory, by groups of neighbouring threads, each with the
/// rows of its own warps.
void OutputTile::storeLines(int64_t first, int64_t together, int64_t groups, ValueRange shared) {
  const bool areColumns = plan.areColumnsOfOutputs(), areAcross = plan.storesColumns && !areColumns;
  const int64_t vector = plan.outputVector, threads = tile.threads() / groups,
                lines = tileSize(major()) / perThread(major()) * together / (areColumns ? 1 : groups),
                size = areColumns ? tile.rows() / groups : tile.columns(),
                vectorsTogether = (areAcross ? lines : size) / vector, vectors = lines * size / vector,
                turns = llvm::divideCeil(vectors, threads);
  AffineExpr number = kernel.thread() % threads + getAffineSymbolExpr(0, context) * threads,
             group = kernel.thread().floorDiv(threads);
  AffineExpr line = number.floorDiv(vectorsTogether);
  AffineExpr inLine = number % vectorsTogether * vector + getAffineSymbolExpr(1, context);
  if (areAcross)
    std::swap(line, inLine);
  (areColumns ? inLine : line) = areColumns ? inLine + group * size : line + group * lines;
  AffineExpr rowPosition = firstAlong(major()) + lineInTile(line, first, together);
  AffineExpr columnPosition = firstAlong(minor()) + inLine;
  if (areColumns)
    std::swap(rowPosition, columnPosition);
  SmallVector<AffineExpr> indices(space.rank());
  placeBatch(indices);
  place(plan.rows.dims, rowPosition, indices);
  place(plan.columns.dims, columnPosition, indices);
  indices = space.resultIndices(indices);
  indices.push_back(placeInShared(line, inLine));
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
