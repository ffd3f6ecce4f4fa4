// One idea: a tile is panels of rows of up to 128 bytes, whose chunks are turned as swizzles of the hardware turn them,
// so that a descriptor says where all of them are.

#include "emitters/heroes/WarpgroupProduct.h"

#include "emitters/heroes/ContractionPlaces.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/support/Check.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {

Value WarpgroupProduct::firstOf(const ContractionSide &own, const Part &part, unsigned piece) {
  const AffineExpr group = warp().floorDiv(ContractionTile::warpsOfGroup);
  AffineExpr first = plan.isOfRows(own)
                         ? group.floorDiv(tile.warpColumns) * (tile.rows() / (tile.warpRows / tile.warpsOfGroup)) +
                               part.number * ContractionTile::rowsOfGroup
                         : group % tile.warpColumns * tile.columnsOfGroup() + part.firstColumn;
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
SmallVector<Value *> WarpgroupProduct::sumsOf(const Part &part, MutableArrayRef<Value> sums) const {
  constexpr int64_t columns = ContractionTile::fragmentColumns;
  SmallVector<Value *> own;
  for (int64_t eight = part.firstColumn / columns; eight < (part.firstColumn + part.numColumns) / columns; ++eight)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < 2; ++i)
        own.push_back(&sums[size_t((2 * part.number + half) * tile.threadColumns + 2 * eight + i)]);
  return own;
}

SmallVector<Value> awaitProducts(CodeBuilder &b, ValueRange sums, uint64_t open) {
  return SmallVector<Value>(xla_gpu::AwaitProductsOp::create(b, TypeRange(sums), sums, open).getResults());
}

static SmallVector<Value> valuesOf(ArrayRef<Value *> places) {
  return llvm::map_to_vector(places, [](const Value *place) { return *place; });
}

SmallVector<Value> WarpgroupProduct::start(Value rows, Value columns, const Part &part, unsigned ofRows,
                                           unsigned ofColumns, int64_t terms, ValueRange sums, bool areAnew) {
  const Type element = rowTiles.factorsOf(plan.rows), other = columnTiles.factorsOf(plan.columns);
  auto made = xla_gpu::MultiplyTilesOp::create(
      b, TypeRange(sums), rows, firstOf(plan.rows, part, ofRows), columns, firstOf(plan.columns, part, ofColumns), sums,
      element, element == other ? TypeAttr() : TypeAttr::get(other), layoutOf(plan.rows), layoutOf(plan.columns),
      stepsOf(plan.rows, terms), stepsOf(plan.columns, terms), areAnew);
  return SmallVector<Value>(made.getResults());
}

void WarpgroupProduct::addPieces(Value rows, Value columns, unsigned ofRows, unsigned ofColumns, int64_t terms,
                                 MutableArrayRef<Value> sums) {
  for (int64_t number = 0; number < tile.threadRows / 2; ++number) {
    const Part part{number, 0, tile.columnsOfGroup()};
    const SmallVector<Value *> own = sumsOf(part, sums);
    for (auto [sum, value] : llvm::zip_equal(own, start(rows, columns, part, ofRows, ofColumns, terms, valuesOf(own))))
      *sum = value;
  }
}

/// Where another warpgroup multiplies, it does so while this one waits and adds. All parts of all steps are made in the
/// same registers: ptxas gives each its own if it may, has too few, and then has products wait for each other (C7512).
/// And LLVM would add several behind the last of them, if sums were not kept here.
SmallVector<Value> WarpgroupProduct::addPromoted(Value rows, Value columns, ValueRange sums,
                                                 SmallVectorImpl<Value> &made) {
  SmallVector<Value> added(sums);
  ContractionValues values(b, plan);
  for (int64_t number = 0; number < tile.threadRows / 2; ++number) {
    SmallVector<Value> words;
    if (plan.holdsRows())
      words = loadWords(rows, number, 0, tile.depth);
    for (int64_t first = 0; first < tile.columnsOfGroup(); first += plan.columnsPromoted()) {
      const Part part{number, first, plan.columnsPromoted()};
      const SmallVector<Value *> own = sumsOf(part, added);
      made = plan.holdsRows() ? startHeld(words, columns, part, stepsOf(plan.columns, 0), made, /*areAnew=*/true)
                              : start(rows, columns, part, 0, 0, 0, made, /*areAnew=*/true);
      made = awaitProducts(b, made);
      for (auto [sum, value] : llvm::zip_equal(own, made))
        *sum = values.add(*sum, value);
      xla_gpu::KeepOp::create(b, valuesOf(own));
    }
  }
  return added;
}

/// While half of a step's terms are multiplied, the other half's rows are loaded. A half has registers of its own in
/// all steps, which its products of the step before may read as long as they are open: there are two halves at least,
/// so that those which may be open when one is loaded are the other's.
SmallVector<Value> WarpgroupProduct::addHalves(Value rows, Value columns, ValueRange sums) {
  SmallVector<Value> made(sums);
  const SmallVector<int64_t> steps = stepsOf(plan.columns, 0);
  const size_t ofHalf = steps.size() / 2;
  HLOC_CHECK(ofHalf > 0, "rows that are held are overwritten while they are multiplied");
  for (int64_t number = 0; number < tile.threadRows / 2; ++number)
    for (size_t first = 0; first < steps.size(); first += ofHalf) {
      const Part part{number, 0, tile.columnsOfGroup()};
      const SmallVector<Value *> own = sumsOf(part, made);
      xla_gpu::AwaitProductsOp::create(b, TypeRange(), ValueRange(), uint64_t(1));
      const SmallVector<Value> words = loadWords(rows, number, int64_t(first) * plan.fragmentDepth(),
                                                 int64_t(first + ofHalf) * plan.fragmentDepth());
      for (auto [sum, value] :
           llvm::zip_equal(own, startHeld(words, columns, part, ArrayRef(steps).slice(first, ofHalf), valuesOf(own))))
        *sum = value;
    }
  return made;
}

/// Behind `words`, those of a fragment of 16 rows.
static void appendWords(CodeBuilder &b, Value fragment, SmallVectorImpl<Value> &words) {
  for (int64_t word = 0; word < cast<VectorType>(fragment.getType()).getNumElements(); ++word)
    words.push_back(vector::ExtractOp::create(b, fragment, word));
}

SmallVector<Value> WarpgroupProduct::loadWords(Value rows, int64_t number, int64_t first, int64_t end) {
  SmallVector<Value> words;
  for (int64_t term = first; term < end; term += plan.fragmentDepth())
    appendWords(b, rowTiles.loadRows(rows, number, term), words);
  return words;
}

SmallVector<Value> WarpgroupProduct::startHeld(ValueRange words, Value columns, const Part &part,
                                               ArrayRef<int64_t> steps, ValueRange sums, bool areAnew) {
  const Type element = rowTiles.factorsOf(plan.rows), other = columnTiles.factorsOf(plan.columns);
  auto made = xla_gpu::MultiplyHeldOp::create(b, TypeRange(sums), words, columns, firstOf(plan.columns, part, 0), sums,
                                              element, element == other ? TypeAttr() : TypeAttr::get(other),
                                              layoutOf(plan.columns), steps, areAnew);
  return SmallVector<Value>(made.getResults());
}

SmallVector<Value> WarpgroupProduct::add(Value rows, Value columns, ValueRange sums, int64_t terms) {
  if (plan.holdsRows())
    return addHalves(rows, columns, sums);
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
  SmallVector<Value> made(sums), held;
  SmallVector<int64_t> steps;
  for (auto [ofTerms, step] : llvm::zip_equal(rows, stepsOf(plan.columns, 0)))
    for (Value piece : llvm::reverse(ofTerms)) {
      appendWords(b, piece, held);
      steps.push_back(step);
    }
  const Part part{0, 0, numColumns};
  const SmallVector<Value *> own = sumsOf(part, made);
  for (auto [sum, value] : llvm::zip_equal(own, startHeld(held, columns, part, steps, valuesOf(own))))
    *sum = value;
  return made;
}

} // namespace hloc
