#pragma once
// Tiles of 16-bit factors in shared memory, of which warps multiply fragments on tensor cores. Rows of a tile,
// neighbours of a side or of a sum, are chunks of eight; no eight chunks that are read or written at once are in the
// same banks.

#include "emitters/heroes/ContractionThreads.h"

#include <array>

namespace hloc {

class FragmentTiles : ContractionThreads {
public:
  /// `element`: of both tiles. `stage`: the number of theirs that is spoken of, if the plan has several.
  FragmentTiles(const ContractionPlan &plan, KernelBuilder &kernel, mlir::Type element, mlir::Value stage = {})
      : ContractionThreads(plan, kernel), b(kernel.code()), context(kernel.context()), element(element), stage(stage) {}

  /// Where an element is, by its row and its place in the row: chunk number c of row r is where c xor r would be; of
  /// shorter rows than eight chunks, those that share 128 bytes have the same r.
  mlir::Value placeOf(const ContractionSide &own, AffineExpr row, AffineExpr inRow);

  /// The products of all terms in the tiles of rows and columns, added to a thread's sums.
  llvm::SmallVector<mlir::Value> multiply(llvm::ArrayRef<mlir::Value> tiles, mlir::ValueRange sums);

  // Its parts.

  /// The fragment of the warp's 16 rows number `number`, and the 16 terms from `term` on.
  mlir::Value loadRows(mlir::Value shared, int64_t number, int64_t term);
  /// The two of its 16 columns number `number`.
  std::array<mlir::Value, 2> loadColumns(mlir::Value shared, int64_t number, int64_t term);
  /// Adds the products of fragments to a thread's four sums: two of the upper row, two of the lower.
  void addProducts(mlir::Value rows, mlir::Value columns, std::array<mlir::Value *, 4> sums);

private:
  static constexpr int64_t chunkSize = 8;

  int64_t chunksOfRow(const ContractionSide &own) const;
  /// Four matrices of 8x8: of 16 rows or columns of the warp, and 16 terms.
  mlir::Value load(const ContractionSide &own, mlir::Value shared, int64_t number, int64_t term);

  CodeBuilder &b;
  mlir::MLIRContext *context;
  const mlir::Type element;
  const mlir::Value stage;
};

} // namespace hloc
