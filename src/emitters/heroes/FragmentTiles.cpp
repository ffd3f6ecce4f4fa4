// One idea: a chunk, 16 bytes of neighbours, is what both an access of a thread and a row of a fragment's matrix are.
// Where chunks lie is decided in one place, for those who write them and those who load fragments.

#include "emitters/heroes/FragmentTiles.h"

#include "emitters/ElementStorage.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {

// --- where factors lie

int64_t FragmentTiles::chunksOfRow(const ContractionSide &own) const {
  if (tile.ofWarpgroups)
    return plan.panelOf(own) / chunkSize();
  return (own.alongDepth ? tile.depth : tileSize(own)) / chunkSize();
}

/// Of 16 rows of bytes across sums, those come first that are the first two of four: the rows of a matrix, of which
/// each pair is half a register. Warpgroups have them where tensor maps put them.
AffineExpr FragmentTiles::rowInShared(const ContractionSide &own, AffineExpr row) const {
  if (!isOfPairs(own) || tile.ofWarpgroups)
    return row;
  return row.floorDiv(16) * 16 + row.floorDiv(2) % 2 * 8 + row.floorDiv(4) % 4 * 2 + row % 2;
}

/// Chunk number c of a row is where c xor this would be. ldmatrix reads one chunk of each of eight rows; of shorter
/// rows than 128 bytes those that share 128 need no other turn. Lanes that read neighbours read pairs of chunks of four
/// rows at once, of f64 every second one; along sums four chunks of two.
AffineExpr FragmentTiles::turnOf(const ContractionSide &own, AffineExpr row) const {
  const int64_t different = std::min(chunksOfRow(own), chunksOfLine);
  const int64_t together = isTurnedByRow(own) ? 1 : own.alongDepth ? 4 : 2;
  const int64_t rows = isTurnedByRow(own) || own.alongDepth || bits == 32 ? chunksOfLine / different : 2;
  if (together >= different)
    return getAffineConstantExpr(0, context);
  return row.floorDiv(rows) % (different / together) * together;
}

Value FragmentTiles::placeOf(const ContractionSide &own, AffineExpr row, AffineExpr inRow, int64_t piece) {
  return placeInShared(own, rowInShared(own, row), inRow, piece);
}

Value FragmentTiles::placeInShared(const ContractionSide &own, AffineExpr row, AffineExpr inRow, int64_t piece) {
  const int64_t size = chunkSize();
  int64_t chunks = chunksOfRow(own);
  AffineExpr line = row, chunk = inRow.floorDiv(size), turn = turnOf(own, row);
  if (tile.ofWarpgroups) { // panels of rows follow each other
    line = row + inRow.floorDiv(chunks * size) * (own.alongDepth ? tileSize(own) : tile.depth);
    chunk = chunk % chunks;
  }
  if (const int64_t rows = chunksOfLine / chunks; isOfPairs(own) && rows > 2) {
    // Rows of different matrices that are written at once have different halves of 128 bytes.
    line = row.floorDiv(rows);
    chunk = row % rows * chunks + chunk;
    turn = turn + row.floorDiv(linesOfFragment) % 2 * (chunksOfLine / 2);
    chunks = chunksOfLine;
  }
  IndexingMap parts = kernel.mapOf({line, chunk, turn, inRow % size}, {});
  parts.simplify();
  SmallVector<Value> at = applyMap(b, parts, kernel.ids());
  Value turned = b.xorI(at[1], at[2]);
  turned.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(context, Interval{0, chunks - 1}));
  const int64_t lines = tileSize(own) * tile.depth / (chunks * size);
  AffineExpr d0 = getAffineDimExpr(0, context), d1 = getAffineDimExpr(1, context), d2 = getAffineDimExpr(2, context);
  AffineExpr place = (d0 * chunks + d1) * size + d2 + piece * plan.pieceElements(own);
  SmallVector<IndexingVariable> variables = {
      {Interval{0, lines - 1}, {}}, {Interval{0, chunks - 1}, {}}, {Interval{0, size - 1}, {}}};
  SmallVector<Value> operands = {at[0], turned, at[3]};
  if (stage) {
    place = place + getAffineDimExpr(3, context) * plan.stageElements(own);
    variables.push_back({Interval{0, tile.stages - 1}, "stage"});
    operands.push_back(stage);
  }
  IndexingMap joined(AffineMap::get(unsigned(variables.size()), 0, place), variables, {}, {});
  return applyMap(b, joined, operands).front();
}

// --- from shared memory to registers

Value FragmentTiles::loadHeld(const ContractionSide &own, Value shared, int64_t number, int64_t term) {
  const AffineExpr first =
      rowOfGroup(warpAlong(own), getAffineConstantExpr(2 * number, context), getAffineConstantExpr(0, context));
  return bits == 8 ? loadPairsInOrder(own, shared, first, term) : loadNeighboursInOrder(own, shared, first, term);
}

/// Does it hold for the lane?
Value FragmentTiles::isOne(AffineExpr ofLane) {
  IndexingMap map = kernel.mapOf({ofLane}, {});
  map.simplify();
  return b.cmpI(CodeBuilder::IPred::eq, applyMap(b, map, kernel.ids()).front(), b.index(1));
}

/// Rows are terms here, in their order in memory, of which those eight on are in the same banks. A matrix has two of
/// each four of 16: if it were the first two of all, rows 0 and 8 would meet. So of the last eight it has the other
/// two, and the lanes which get those (the last two of four) have the matrices swapped.
Value FragmentTiles::loadPairsInOrder(const ContractionSide &own, Value shared, AffineExpr first, int64_t term) {
  const AffineExpr line = lane() % linesOfFragment, matrix = lane().floorDiv(linesOfFragment),
                   half = (matrix + lane().floorDiv(4)) % 2;
  const AffineExpr row = term + matrix.floorDiv(2) * 16 + line.floorDiv(2) * 4 + half * 2 + lane() % 2;
  Value at = placeInShared(own, row, first, /*piece=*/0);
  return xla_gpu::LoadFragmentsOp::create(b, VectorType::get({4}, b.getI32Type()), shared, at,
                                          isOne((lane() % 4).floorDiv(2)), /*transposed=*/true);
}

/// A lane's two terms are four rows apart. Half a warp reads two chunks of four rows at once, which swizzles put where
/// those of a neighbouring row are; if every second lane begins with its second term, they are of all eight places.
Value FragmentTiles::loadNeighboursInOrder(const ContractionSide &own, Value shared, AffineExpr first, int64_t term) {
  const AffineExpr ofTerm = lane() % 4, isOdd = lane() % 2;
  Value padding = ub::PoisonOp::create(b, element), read[2];
  for (int64_t i = 0; i < 2; ++i) {
    Value at = placeInShared(own, term + ofTerm + (isOdd + i) % 2 * 4, first + lane().floorDiv(4) * 2, /*piece=*/0);
    read[i] =
        vector::TransferReadOp::create(b, VectorType::get({2}, element), shared, at, padding, ArrayRef<bool>{true});
  }
  Value isSwapped = isOne(isOdd);
  SmallVector<Value> registers;
  for (int64_t ofTerms = 0; ofTerms < 2; ++ofTerms)
    for (int64_t ofSide = 0; ofSide < 2; ++ofSide) {
      auto word = [&](Value neighbours) {
        return b.bitcast(vector::ExtractOp::create(b, neighbours, ofSide), b.getI32Type());
      };
      registers.push_back(b.select(isSwapped, word(read[1 - ofTerms]), word(read[ofTerms])));
    }
  return vector::FromElementsOp::create(b, VectorType::get({4}, b.getI32Type()), registers);
}

Value FragmentTiles::load(const ContractionSide &own, Value shared, int64_t number, int64_t term, int64_t piece) {
  if (plan.holdsRows() && plan.isOfRows(own))
    return loadHeld(own, shared, number, term);
  const bool isRows = plan.isOfRows(own);
  const int64_t ofWarp = tileSize(own) / (isRows ? tile.warpRows : tile.warpColumns);
  AffineExpr first = warpAlong(own) * ofWarp + ContractionTile::fragmentRows * number;
  AffineExpr from = getAffineConstantExpr(term, context);
  if (!isByLdmatrix(own))
    return loadNeighbours(own, shared, first, from, piece);
  AffineExpr matrix = lane().floorDiv(linesOfFragment), inner = lane() % linesOfFragment;
  Value at;
  if (isOfPairs(own)) {
    at = placeInShared(own, lane() + term, first, piece);
  } else {
    // Rows have their second eight in the next matrix, columns theirs in the one after that.
    const int64_t half = plan.fragmentDepth() / 2;
    AffineExpr side = first + (isRows ? matrix % 2 : matrix.floorDiv(2)) * linesOfFragment;
    AffineExpr depth = (isRows ? matrix.floorDiv(2) : matrix % 2) * half + term;
    at = placeInShared(own, (own.alongDepth ? side : depth) + inner, own.alongDepth ? depth : side, piece);
  }
  return xla_gpu::LoadFragmentsOp::create(b, VectorType::get({4}, b.getI32Type()), shared, at, /*swapped=*/Value(),
                                          /*transposed=*/!own.alongDepth);
}

/// Registers in the order of a fragment of rows: both of one, and of the terms four registers on.
Value FragmentTiles::loadNeighbours(const ContractionSide &own, Value shared, AffineExpr side, AffineExpr term,
                                    int64_t piece) {
  AffineExpr line = lane().floorDiv(4), inLine = lane() % 4;
  Value padding = ub::PoisonOp::create(b, element);
  Value read[2];
  for (int64_t i = 0; i < 2; ++i) {
    // Of f64 a lane's terms are neighbours, on both sides.
    AffineExpr depth = term + (bits == 64 ? inLine * 2 : inLine + 4 * i);
    Value at = own.alongDepth ? placeInShared(own, side + line + linesOfFragment * i, depth, piece)
                              : placeInShared(own, bits == 64 ? depth + i : depth, side + line * 2, piece);
    read[i] =
        vector::TransferReadOp::create(b, VectorType::get({2}, element), shared, at, padding, ArrayRef<bool>{true});
  }
  const Type reg = bits == 64 ? element : b.getI32Type();
  SmallVector<Value> registers;
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t ofSide = i % 2, ofTerms = i / 2;
    Value value =
        vector::ExtractOp::create(b, read[own.alongDepth ? ofSide : ofTerms], own.alongDepth ? ofTerms : ofSide);
    registers.push_back(bits == 64 ? value : arith::BitcastOp::create(b, reg, value));
  }
  return vector::FromElementsOp::create(b, VectorType::get({4}, reg), registers);
}

Value FragmentTiles::loadRows(Value shared, int64_t number, int64_t term, int64_t piece) {
  return load(plan.rows, shared, number, term, piece);
}

std::array<Value, 2> FragmentTiles::loadColumns(Value shared, int64_t number, int64_t term, int64_t piece) {
  Value both = load(plan.columns, shared, number, term, piece);
  const Type reg = cast<VectorType>(both.getType()).getElementType();
  auto of = [&](int64_t first, int64_t second) -> Value {
    return vector::FromElementsOp::create(
        b, VectorType::get({2}, reg),
        ValueRange{vector::ExtractOp::create(b, both, first), vector::ExtractOp::create(b, both, second)});
  };
  const bool isInOrderOfRows = plan.isInterleaved(plan.columns) || !isByLdmatrix(plan.columns);
  Value first = isInOrderOfRows ? of(0, 2) : of(0, 1);
  return {first, isInOrderOfRows ? of(1, 3) : of(2, 3)};
}

// --- products

/// As tensor cores know them.
Type FragmentTiles::factorsOf(const ContractionSide &own) const {
  if (element.isInteger(8)) {
    const ElementType type = plan.fragmentType(own);
    if (isFloat(type))
      return patternFloatType(type, context);
    return IntegerType::get(context, 8, isSigned(type) ? IntegerType::Signed : IntegerType::Unsigned);
  }
  return element.isF32() ? FloatTF32Type::get(context) : element;
}

Value FragmentTiles::together(std::array<Value, 4> sums) {
  return vector::FromElementsOp::create(b, VectorType::get({4}, sums[0].getType()), ValueRange(sums));
}

std::array<Value, 4> FragmentTiles::oneByOne(Value sums) {
  std::array<Value, 4> result;
  for (auto [number, sum] : llvm::enumerate(result))
    sum = vector::ExtractOp::create(b, sums, int64_t(number));
  return result;
}

Value FragmentTiles::addProducts(Value rows, Value columns, Value sums) {
  const Type ofRows = factorsOf(plan.rows), ofColumns = factorsOf(plan.columns);
  return xla_gpu::MultiplyFragmentsOp::create(b, sums.getType(), rows, columns, sums, TypeAttr::get(ofRows),
                                              ofRows == ofColumns ? TypeAttr() : TypeAttr::get(ofColumns));
}

SmallVector<std::array<size_t, 4>> FragmentTiles::placesOfSums() const {
  SmallVector<std::array<size_t, 4>> places; // by number of others, rows, columns
  for (int64_t others = 0; others < plan.sumsOfProduct(); others += plan.results())
    for (int64_t row = 0; row < tile.threadRows / 2; ++row)
      for (int64_t column = 0; column < tile.threadColumns / 2; ++column) {
        auto at = [&](int64_t i, int64_t j) {
          const int64_t inPair = plan.isInterleaved(plan.columns) ? 2 * j + column % 2 : column % 2 * 2 + j;
          return size_t(others + (2 * row + i) * tile.threadColumns + column / 2 * 4 + inPair);
        };
        places.push_back({at(0, 0), at(0, 1), at(1, 0), at(1, 1)});
      }
  return places;
}

SmallVector<Value> FragmentTiles::allTogether(ValueRange sums) {
  return llvm::map_to_vector(placesOfSums(), [&](const std::array<size_t, 4> &at) {
    return together({sums[at[0]], sums[at[1]], sums[at[2]], sums[at[3]]});
  });
}

SmallVector<Value> FragmentTiles::allOneByOne(ArrayRef<Value> products) {
  SmallVector<Value> sums(size_t(plan.sumsOfProduct()));
  for (auto [product, at] : llvm::zip_equal(products, placesOfSums()))
    for (auto [sum, place] : llvm::zip_equal(oneByOne(product), at))
      sums[place] = sum;
  return sums;
}

FragmentTiles::Fragments FragmentTiles::loadAll(const ContractionSide &own, Value shared, int64_t term) {
  Fragments all(plan.piecesOf(own));
  for (auto [piece, fragments] : llvm::enumerate(all))
    if (plan.isOfRows(own))
      for (int64_t i = 0; i < tile.threadRows / 2; ++i)
        fragments.push_back(loadRows(shared, i, term, int64_t(piece)));
    else
      for (int64_t i = 0; i < tile.threadColumns / 4; ++i)
        llvm::append_range(fragments, loadColumns(shared, i, term, int64_t(piece)));
  return all;
}

FragmentTiles::Fragments FragmentTiles::takeAll(const ContractionSide &own, ValueRange &values) const {
  const auto number = size_t((plan.isOfRows(own) ? tile.threadRows : tile.threadColumns) / 2);
  Fragments all(plan.piecesOf(own));
  for (SmallVector<Value> &fragments : all) {
    fragments.assign(values.begin(), values.begin() + ptrdiff_t(number));
    values = values.drop_front(number);
  }
  return all;
}

void FragmentTiles::addAll(const Fragments &rows, const Fragments &columns, MutableArrayRef<Value> products) {
  const FactorPieces pieces = plan.pieces();
  auto multiplyPieces = [&](unsigned ofRows, unsigned ofColumns) {
    Value *sum = products.begin() + (ofRows + ofColumns == 0 ? 0 : plan.results() / 4);
    for (Value fragment : rows[ofRows])
      for (Value other : columns[ofColumns]) {
        *sum = addProducts(fragment, other, *sum);
        ++sum;
      }
  };
  // The smallest first.
  for (unsigned order = pieces.order + 1; order-- > 0;)
    for (unsigned ofRows = 0; ofRows <= order; ++ofRows)
      if (ofRows < rows.size() && order - ofRows < columns.size())
        multiplyPieces(ofRows, order - ofRows);
}

SmallVector<SmallVector<Value>> FragmentTiles::sumsTogether(MutableArrayRef<FragmentTiles> products, ValueRange sums) {
  SmallVector<SmallVector<Value>> together;
  for (FragmentTiles &product : products) {
    const auto own = size_t(product.plan.sumsOfProduct());
    together.push_back(product.allTogether(sums.take_front(own)));
    sums = sums.drop_front(own);
  }
  return together;
}

SmallVector<Value> FragmentTiles::sumsOneByOne(MutableArrayRef<FragmentTiles> products,
                                               ArrayRef<SmallVector<Value>> sums) {
  SmallVector<Value> all;
  for (auto [product, together] : llvm::zip_equal(products, sums))
    llvm::append_range(all, product.allOneByOne(together));
  return all;
}

SmallVector<Value> FragmentTiles::loadTerms(const Step &step, bool shareRows, int64_t term) {
  SmallVector<Value> fragments;
  auto load = [&](FragmentTiles product, bool ofRows, Value tile) {
    for (const SmallVector<Value> &ofPiece :
         product.loadAll(ofRows ? product.plan.rows : product.plan.columns, tile, term))
      llvm::append_range(fragments, ofPiece);
  };
  load(step.products.front(), shareRows, step.tiles.front());
  for (auto [product, tile] : llvm::zip_equal(step.products, ArrayRef(step.tiles).drop_front()))
    load(product, !shareRows, tile);
  return fragments;
}

void FragmentTiles::addTerms(MutableArrayRef<FragmentTiles> products, bool shareRows, ValueRange fragments,
                             MutableArrayRef<SmallVector<Value>> sums) {
  auto sideOf = [](FragmentTiles &product, bool isRows) -> const ContractionSide & {
    return isRows ? product.plan.rows : product.plan.columns;
  };
  const Fragments shared = products.front().takeAll(sideOf(products.front(), shareRows), fragments);
  for (auto [product, sum] : llvm::zip_equal(products, sums)) {
    const Fragments own = product.takeAll(sideOf(product, !shareRows), fragments);
    product.addAll(shareRows ? shared : own, shareRows ? own : shared, sum);
  }
}

SmallVector<Value> FragmentTiles::multiply(ArrayRef<FragmentTiles> products, bool shareRows, ArrayRef<Value> tiles,
                                           ValueRange sums, llvm::function_ref<void()> beforeLast) {
  Step step{products.vec(), SmallVector<Value>(tiles)};
  SmallVector<SmallVector<Value>> together = sumsTogether(step.products, sums);
  const ContractionPlan &plan = products.front().plan;
  for (int64_t term = 0; term < plan.tile.depth; term += plan.fragmentDepth()) {
    const SmallVector<Value> fragments = loadTerms(step, shareRows, term);
    if (beforeLast && term + plan.fragmentDepth() == plan.tile.depth)
      beforeLast();
    addTerms(step.products, shareRows, fragments, together);
  }
  return sumsOneByOne(step.products, together);
}

SmallVector<Value> FragmentTiles::multiplyAhead(const Step &step, bool shareRows, ValueRange first, ValueRange sums,
                                                llvm::function_ref<Step()> next) {
  std::vector<FragmentTiles> products(step.products);
  SmallVector<SmallVector<Value>> together = sumsTogether(products, sums);
  const ContractionPlan &plan = products.front().plan;
  SmallVector<Value> fragments(first);
  for (int64_t term = plan.fragmentDepth(); term <= plan.tile.depth; term += plan.fragmentDepth()) {
    SmallVector<Value> following =
        term < plan.tile.depth ? loadTerms(step, shareRows, term) : loadTerms(next(), shareRows, 0);
    addTerms(products, shareRows, fragments, together);
    fragments = std::move(following);
  }
  SmallVector<Value> made = sumsOneByOne(products, together);
  llvm::append_range(made, fragments);
  return made;
}

} // namespace hloc
