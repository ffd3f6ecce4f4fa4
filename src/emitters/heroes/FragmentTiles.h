#pragma once
// Tiles of factors in shared memory, of which warps multiply fragments on tensor cores. Rows of a tile, neighbours of a
// side or of a sum, are chunks of 16 bytes; no eight chunks that are read or written at once are in the same banks.
//
// A register holds as many neighbours of a sum as fill 32 bits, or one f64. Of a fragment of 16 rows, lane 4 i + j has
// register j of row i, of row i + 8, and those four registers on; how it comes by them depends on the width of factors
// and on whether they lie along their sums:
//
//   along sums    8, 16, 32 bits   ldmatrix
//                 64 bits          16 bytes of a row: a register and that four on. Terms change their places so that it
//                 is
//   across        16 bits          ldmatrix transposes
//                 8 bits           ldmatrix transposes pairs, of which bytes are taken: of rows 2 i and 2 i + 1
//                 32, 64 bits      two neighbours: of rows 2 i and 2 i + 1
//
// Warpgroups multiply what is in shared memory: there a tile is panels of rows of up to 128 bytes, each behind the
// other, whose chunks have the places that the hardware's swizzles give them, by the same xor. Rows that are not of 16
// bits and lie across sums they have as fragments.

#include "emitters/heroes/ContractionThreads.h"

#include <array>
#include <vector>

namespace hloc {

class FragmentTiles : ContractionThreads {
public:
  /// `element`: of both tiles. `stage`: the number of theirs that is spoken of, if the plan has several.
  FragmentTiles(const ContractionPlan &plan, KernelBuilder &kernel, mlir::Type element, mlir::Value stage = {})
      : ContractionThreads(plan, kernel), b(kernel.code()), context(kernel.context()), element(element), stage(stage),
        bits(int64_t(element.getIntOrFloatBitWidth())) {}

  /// Where an element is, or a piece of it, by its row and its place in the row.
  mlir::Value placeOf(const ContractionSide &own, AffineExpr row, AffineExpr inRow, int64_t piece = 0);

  /// The products of all terms in the tiles of rows and columns, added to a thread's sums; of pieces of factors, those
  /// of all but the first are sums of their own behind the others. Of several products, what their rows, or columns if
  /// not `shareRows`, are loaded from is the same tile, and loaded once.
  /// `tiles`: that one, then those of each product's other side; `sums`: of each product. `beforeLast`: what is done
  /// before the last terms are multiplied, when nothing is read of the tiles any more.
  static llvm::SmallVector<mlir::Value> multiply(llvm::ArrayRef<FragmentTiles> products, bool shareRows,
                                                 llvm::ArrayRef<mlir::Value> tiles, mlir::ValueRange sums,
                                                 llvm::function_ref<void()> beforeLast = nullptr);
  /// The same where the fragments of the first terms are there, and loaded of the next step's tiles before the last are
  /// multiplied: `next` makes products and tiles of these. Gives their fragments behind the sums.
  struct Step {
    std::vector<FragmentTiles> products;
    llvm::SmallVector<mlir::Value> tiles;
  };
  static llvm::SmallVector<mlir::Value> multiplyAhead(const Step &step, bool shareRows, mlir::ValueRange first,
                                                      mlir::ValueRange sums, llvm::function_ref<Step()> next);
  /// Of as many terms as fragments have: what all products take, one after the other.
  static llvm::SmallVector<mlir::Value> loadTerms(const Step &step, bool shareRows, int64_t term);

  /// As tensor cores know a side's.
  mlir::Type factorsOf(const ContractionSide &own) const;

  // Its parts.

  /// The fragment of the warp's 16 rows number `number`, and as many terms from `term` on as one has.
  mlir::Value loadRows(mlir::Value shared, int64_t number, int64_t term, int64_t piece = 0);
  /// The two of its 16 columns number `number`.
  std::array<mlir::Value, 2> loadColumns(mlir::Value shared, int64_t number, int64_t term, int64_t piece = 0);
  /// The products of fragments, added to a thread's four sums, which are together: two of the upper row, two of the
  /// lower.
  mlir::Value addProducts(mlir::Value rows, mlir::Value columns, mlir::Value sums);
  /// `sums[i]` of a thread are together while fragments are multiplied, and one by one before and after that.
  mlir::Value together(std::array<mlir::Value, 4> sums);
  std::array<mlir::Value, 4> oneByOne(mlir::Value sums);

private:
  static constexpr int64_t linesOfFragment = 8, chunksOfLine = 8, bitsOfChunk = 128;

  /// By piece, those of a warp along a side: of 16 rows, or of 8 columns.
  using Fragments = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;
  Fragments loadAll(const ContractionSide &own, mlir::Value shared, int64_t term);
  /// Taken off the front of `values`.
  Fragments takeAll(const ContractionSide &own, mlir::ValueRange &values) const;
  static llvm::SmallVector<llvm::SmallVector<mlir::Value>> sumsTogether(llvm::MutableArrayRef<FragmentTiles> products,
                                                                        mlir::ValueRange sums);
  static llvm::SmallVector<mlir::Value> sumsOneByOne(llvm::MutableArrayRef<FragmentTiles> products,
                                                     llvm::ArrayRef<llvm::SmallVector<mlir::Value>> sums);
  /// The products of what `loadTerms` gave.
  static void addTerms(llvm::MutableArrayRef<FragmentTiles> products, bool shareRows, mlir::ValueRange fragments,
                       llvm::MutableArrayRef<llvm::SmallVector<mlir::Value>> sums);
  /// Those of all rows by all columns, added to a thread's sums, four together.
  void addAll(const Fragments &rows, const Fragments &columns, llvm::MutableArrayRef<mlir::Value> products);
  /// By four that are together, where they are among a thread's sums.
  llvm::SmallVector<std::array<size_t, 4>> placesOfSums() const;
  llvm::SmallVector<mlir::Value> allTogether(mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> allOneByOne(llvm::ArrayRef<mlir::Value> products);

  int64_t chunkSize() const { return bitsOfChunk / bits; }
  int64_t chunksOfRow(const ContractionSide &own) const;
  bool isByLdmatrix(const ContractionSide &own) const { return bits < 32 || (bits == 32 && own.alongDepth); }
  /// Does each row of a matrix turn its chunks in its own way, as swizzles do?
  bool isTurnedByRow(const ContractionSide &own) const { return tile.ofWarpgroups || isByLdmatrix(own); }
  /// Are bytes transposed by pairs?
  bool isOfPairs(const ContractionSide &own) const { return bits == 8 && !own.alongDepth; }
  AffineExpr rowInShared(const ContractionSide &own, AffineExpr row) const;
  AffineExpr turnOf(const ContractionSide &own, AffineExpr row) const;
  mlir::Value placeInShared(const ContractionSide &own, AffineExpr row, AffineExpr inRow, int64_t piece);
  /// Of 16 rows or columns of the warp, and the terms of a fragment: four registers.
  mlir::Value load(const ContractionSide &own, mlir::Value shared, int64_t number, int64_t term, int64_t piece);
  /// The same of a warpgroup's rows that are held: of 64 rows number `number` those of the warp, from `first` on.
  mlir::Value loadHeld(const ContractionSide &own, mlir::Value shared, int64_t number, int64_t term);
  mlir::Value loadPairsInOrder(const ContractionSide &own, mlir::Value shared, AffineExpr first, int64_t term);
  mlir::Value loadNeighboursInOrder(const ContractionSide &own, mlir::Value shared, AffineExpr first, int64_t term);
  mlir::Value isOne(AffineExpr ofLane);
  mlir::Value loadNeighbours(const ContractionSide &own, mlir::Value shared, AffineExpr side, AffineExpr term,
                             int64_t piece);

  CodeBuilder &b;
  mlir::MLIRContext *context;
  const mlir::Type element;
  const mlir::Value stage;
  const int64_t bits;
};

} // namespace hloc
