// One idea: a chunk, eight neighbours of 16 bits, is what both an access of a thread and a row of a fragment's matrix
// are. Where chunks lie is decided in one place, for those who write them and those who load fragments.

#include "emitters/heroes/FragmentTiles.h"

#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {

int64_t FragmentTiles::chunksOfRow(const ContractionSide &own) const {
  return (own.alongDepth ? tile.depth : tileSize(own)) / chunkSize;
}

Value FragmentTiles::placeOf(const ContractionSide &own, AffineExpr row, AffineExpr inRow) {
  const int64_t chunks = chunksOfRow(own), different = std::min(chunks, chunkSize);
  AffineExpr turn = row.floorDiv(chunkSize / different) % different;
  IndexingMap parts = kernel.mapOf({row, inRow.floorDiv(chunkSize), turn, inRow % chunkSize}, {});
  parts.simplify();
  SmallVector<Value> at = applyMap(b, parts, kernel.ids());
  Value chunk = b.xorI(at[1], at[2]);
  chunk.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(context, Interval{0, chunks - 1}));
  const int64_t rows = tileSize(own) * tile.depth / (chunks * chunkSize);
  AffineExpr d0 = getAffineDimExpr(0, context), d1 = getAffineDimExpr(1, context), d2 = getAffineDimExpr(2, context);
  AffineExpr place = (d0 * chunks + d1) * chunkSize + d2;
  SmallVector<IndexingVariable> variables = {
      {Interval{0, rows - 1}, {}}, {Interval{0, chunks - 1}, {}}, {Interval{0, chunkSize - 1}, {}}};
  SmallVector<Value> operands = {at[0], chunk, at[3]};
  if (stage) {
    place = place + getAffineDimExpr(3, context) * plan.tileElements(own);
    variables.push_back({Interval{0, tile.stages - 1}, "stage"});
    operands.push_back(stage);
  }
  IndexingMap joined(AffineMap::get(unsigned(variables.size()), 0, place), variables, {}, {});
  return applyMap(b, joined, operands).front();
}

Value FragmentTiles::load(const ContractionSide &own, Value shared, int64_t number, int64_t term) {
  const int64_t ofWarp = tileSize(own) / (&own == &plan.rows ? tile.warpRows : tile.warpColumns);
  // Rows have their second eight in the next matrix, columns theirs in the one after that.
  AffineExpr matrix = lane().floorDiv(chunkSize), inner = lane() % chunkSize;
  AffineExpr odd = matrix % 2 * chunkSize, high = matrix.floorDiv(2) * chunkSize;
  AffineExpr side =
      warpAlong(own) * ofWarp + ContractionTile::fragmentRows * number + (&own == &plan.rows ? odd : high);
  AffineExpr depth = (&own == &plan.rows ? high : odd) + term;
  AffineExpr row = (own.alongDepth ? side : depth) + inner;
  Value at = placeOf(own, row, own.alongDepth ? depth : side);
  return xla_gpu::LoadFragmentsOp::create(b, VectorType::get({4}, b.getI32Type()), shared, at,
                                          /*transposed=*/!own.alongDepth);
}

Value FragmentTiles::loadRows(Value shared, int64_t number, int64_t term) {
  return load(plan.rows, shared, number, term);
}

std::array<Value, 2> FragmentTiles::loadColumns(Value shared, int64_t number, int64_t term) {
  Value both = load(plan.columns, shared, number, term);
  auto half = [&](int64_t first) -> Value {
    return vector::FromElementsOp::create(
        b, VectorType::get({2}, b.getI32Type()),
        ValueRange{vector::ExtractOp::create(b, both, first), vector::ExtractOp::create(b, both, first + 1)});
  };
  Value first = half(0);
  return {first, half(2)};
}

void FragmentTiles::addProducts(Value rows, Value columns, std::array<Value *, 4> sums) {
  Value before = vector::FromElementsOp::create(b, VectorType::get({4}, b.getF32Type()),
                                                ValueRange{*sums[0], *sums[1], *sums[2], *sums[3]});
  Value after = xla_gpu::MultiplyFragmentsOp::create(b, before.getType(), rows, columns, before, element);
  for (auto [number, sum] : llvm::enumerate(sums))
    *sum = vector::ExtractOp::create(b, after, int64_t(number));
}

SmallVector<Value> FragmentTiles::multiply(ArrayRef<Value> tiles, ValueRange sums) {
  const int64_t numRows = tile.threadRows / 2, numColumns = tile.threadColumns / 2;
  SmallVector<Value> next(sums);
  auto sumAt = [&](int64_t row, int64_t column) { return &next[row * tile.threadColumns + column]; };
  for (int64_t term = 0; term < tile.depth; term += ContractionTile::fragmentDepth) {
    SmallVector<Value> rows, columns; // of 16 rows; of 8 columns
    for (int64_t i = 0; i < numRows; ++i)
      rows.push_back(loadRows(tiles[0], i, term));
    for (int64_t i = 0; i < numColumns; i += 2)
      llvm::append_range(columns, loadColumns(tiles[1], i / 2, term));
    for (int64_t i = 0; i < numRows; ++i)
      for (int64_t j = 0; j < numColumns; ++j)
        addProducts(
            rows[size_t(i)], columns[size_t(j)],
            {sumAt(2 * i, 2 * j), sumAt(2 * i, 2 * j + 1), sumAt(2 * i + 1, 2 * j), sumAt(2 * i + 1, 2 * j + 1)});
  }
  return next;
}

} // namespace hloc
