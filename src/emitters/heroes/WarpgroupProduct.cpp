// One idea: a tile is panels of rows of up to 128 bytes, whose chunks are turned as swizzles of the hardware turn them,
// so that a descriptor says where all of them are.

#include "emitters/heroes/WarpgroupProduct.h"

#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {

Value WarpgroupProduct::firstOf(const ContractionSide &own, int64_t number, unsigned piece) {
  const AffineExpr group = warp().floorDiv(ContractionTile::warpsOfGroup);
  AffineExpr first = plan.isOfRows(own)
                         ? group.floorDiv(tile.warpColumns) * (tile.rows() / (tile.warpRows / tile.warpsOfGroup)) +
                               number * ContractionTile::rowsOfGroup
                         : group % tile.warpColumns * tile.columnsOfGroup();
  AffineExpr none = getAffineConstantExpr(0, kernel.context());
  return tilesOf(own).placeOf(own, own.alongDepth ? first : none, own.alongDepth ? none : first, piece);
}

/// Eight rows follow each other, and the next eight those; of rows along the side, panels are behind all their terms.
SmallVector<int64_t> WarpgroupProduct::layoutOf(const ContractionSide &own) const {
  constexpr int64_t bytesOfChunk = 16, rows = 8;
  const int64_t row = bytesOfRow(own), eight = rows * row;
  if (own.alongDepth)
    return {bytesOfChunk, eight, row, 0};
  return row == bytesOfChunk ? SmallVector<int64_t>{eight, eight, 0, 1}
                             : SmallVector<int64_t>{tile.depth * row, eight, row, 1};
}

SmallVector<int64_t> WarpgroupProduct::stepsOf(const ContractionSide &own, int64_t terms) const {
  constexpr int64_t bytesOfTerms = bitsOfTerms / 8;
  const int64_t row = bytesOfRow(own), numSteps = (terms ? terms : tile.depth) * bits / bitsOfTerms;
  SmallVector<int64_t> steps;
  for (int64_t step = 0; step < numSteps; ++step)
    steps.push_back(own.alongDepth ? step * bytesOfTerms / row * (tileSize(own) * row) + step * bytesOfTerms % row
                                   : step * (bitsOfTerms / bits) * row);
  return steps;
}

/// Of eight columns a thread has two, those of the first row, then those of the row eight on.
SmallVector<Value *> WarpgroupProduct::sumsOf(int64_t number, int64_t numColumns, MutableArrayRef<Value> sums) const {
  SmallVector<Value *> own;
  for (int64_t eight = 0; eight < numColumns / ContractionTile::fragmentColumns; ++eight)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < 2; ++i)
        own.push_back(&sums[size_t((2 * number + half) * tile.threadColumns + 2 * eight + i)]);
  return own;
}

static SmallVector<Value> valuesOf(ArrayRef<Value *> places) {
  return llvm::map_to_vector(places, [](const Value *place) { return *place; });
}

void WarpgroupProduct::addPieces(Value rows, Value columns, unsigned ofRows, unsigned ofColumns, int64_t terms,
                                 MutableArrayRef<Value> sums) {
  const Type element = rowTiles.factorsOf(plan.rows), other = columnTiles.factorsOf(plan.columns);
  for (int64_t number = 0; number < tile.threadRows / 2; ++number) {
    const SmallVector<Value *> own = sumsOf(number, tile.columnsOfGroup(), sums);
    const SmallVector<Value> before = valuesOf(own);
    auto made = xla_gpu::MultiplyTilesOp::create(
        b, TypeRange(ValueRange(before)), rows, firstOf(plan.rows, number, ofRows), columns,
        firstOf(plan.columns, 0, ofColumns), before, element, element == other ? TypeAttr() : TypeAttr::get(other),
        layoutOf(plan.rows), layoutOf(plan.columns), stepsOf(plan.rows, terms), stepsOf(plan.columns, terms));
    for (auto [sum, value] : llvm::zip_equal(own, made.getResults()))
      *sum = value;
  }
}

SmallVector<Value> WarpgroupProduct::add(Value rows, Value columns, ValueRange sums, int64_t terms) {
  SmallVector<Value> made(sums);
  const FactorPieces pieces = plan.pieces();
  // The smallest first.
  for (unsigned order = pieces.order + 1; order-- > 0;)
    for (unsigned ofRows = 0; ofRows <= order; ++ofRows)
      if (ofRows < plan.piecesOf(plan.rows) && order - ofRows < plan.piecesOf(plan.columns))
        addPieces(rows, columns, ofRows, order - ofRows, terms,
                  MutableArrayRef(made).slice(order == 0 ? 0 : size_t(plan.results()), size_t(plan.results())));
  return made;
}

SmallVector<Value> WarpgroupProduct::addHeld(ArrayRef<SmallVector<Value, 1>> rows, Value columns, ValueRange sums,
                                             int64_t numColumns) {
  constexpr int64_t words = 4;
  SmallVector<Value> made(sums), held;
  SmallVector<int64_t> steps;
  for (auto [ofTerms, step] : llvm::zip_equal(rows, stepsOf(plan.columns, 0)))
    for (Value piece : llvm::reverse(ofTerms)) {
      for (int64_t word = 0; word < words; ++word)
        held.push_back(vector::ExtractOp::create(b, piece, word));
      steps.push_back(step);
    }
  const SmallVector<Value *> own = sumsOf(0, numColumns, made);
  const SmallVector<Value> before = valuesOf(own);
  auto product =
      xla_gpu::MultiplyHeldOp::create(b, TypeRange(ValueRange(before)), held, columns, firstOf(plan.columns, 0, 0),
                                      before, columnTiles.factorsOf(plan.columns), layoutOf(plan.columns), steps);
  for (auto [sum, value] : llvm::zip_equal(own, product.getResults()))
    *sum = value;
  return made;
}

} // namespace hloc
