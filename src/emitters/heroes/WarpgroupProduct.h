#pragma once
// The product of two tiles in shared memory by warpgroups: each multiplies its part, 64 rows at once.

#include "emitters/heroes/FragmentTiles.h"

namespace hloc {

/// Sums of products that were started, when all are there but those of the last `open` starts.
llvm::SmallVector<mlir::Value> awaitProducts(CodeBuilder &b, mlir::ValueRange sums, uint64_t open = 0);

class WarpgroupProduct : ContractionThreads {
public:
  /// `plan`: of a single product; `element`, and the stage of each side: as FragmentTiles has them.
  WarpgroupProduct(const ContractionPlan &plan, KernelBuilder &kernel, mlir::Type element, mlir::Value stageOfRows,
                   mlir::Value stageOfColumns)
      : ContractionThreads(plan, kernel), b(kernel.code()), bits(int64_t(element.getIntOrFloatBitWidth())),
        rowTiles(plan, kernel, element, stageOfRows), columnTiles(plan, kernel, element, stageOfColumns) {}

  /// Starts to add the products of all terms in the tiles to a thread's sums, by row and column; of pieces of factors,
  /// those of all but the first to sums behind the others. Of rows that the plan holds, all products but the last are
  /// there then.
  /// `terms`: how many of them, a multiple of those of one product; 0: all.
  llvm::SmallVector<mlir::Value> add(mlir::Value rows, mlir::Value columns, mlir::ValueRange sums, int64_t terms = 0);
  /// The same of tiles whose sums are promoted: those of the tiles' terms begin with nothing and are waited for, a part
  /// after the other. `made`: the registers in which a part is made, and is left.
  llvm::SmallVector<mlir::Value> addPromoted(mlir::Value rows, mlir::Value columns, mlir::ValueRange sums,
                                             llvm::SmallVectorImpl<mlir::Value> &made);
  /// The same of rows in registers, for each product's terms fragments of theirs, whose pieces are multiplied the last
  /// first; and of so many of the columns.
  llvm::SmallVector<mlir::Value> addHeld(llvm::ArrayRef<llvm::SmallVector<mlir::Value, 1>> rows, mlir::Value columns,
                                         mlir::ValueRange sums, int64_t numColumns);

private:
  static constexpr int64_t bitsOfTerms = 256; ///< of a row, in one product

  /// 64 of the warpgroup's rows, by so many of its columns.
  struct Part {
    int64_t number = 0, firstColumn = 0, numColumns = 0;
  };
  /// The first factor of a part of the warpgroup's.
  mlir::Value firstOf(const ContractionSide &own, const Part &part, unsigned piece);
  llvm::SmallVector<int64_t> layoutOf(const ContractionSide &own) const;
  llvm::SmallVector<int64_t> stepsOf(const ContractionSide &own, int64_t terms) const;
  int64_t bytesOfRow(const ContractionSide &own) const { return plan.panelOf(own) * bits / 8; }
  FragmentTiles &tilesOf(const ContractionSide &own) { return plan.isOfRows(own) ? rowTiles : columnTiles; }
  /// Of a thread's sums those of a part, as a product has them.
  llvm::SmallVector<mlir::Value *> sumsOf(const Part &part, llvm::MutableArrayRef<mlir::Value> sums) const;
  /// Starts the product of a part of both tiles.
  llvm::SmallVector<mlir::Value> start(mlir::Value rows, mlir::Value columns, const Part &part, unsigned ofRows,
                                       unsigned ofColumns, int64_t terms, mlir::ValueRange sums, bool areAnew = false);
  /// Starts the product of a part of the columns by the words of rows in registers, for the terms of `steps`.
  llvm::SmallVector<mlir::Value> startHeld(mlir::ValueRange words, mlir::Value columns, const Part &part,
                                           llvm::ArrayRef<int64_t> steps, mlir::ValueRange sums, bool areAnew = false);
  /// Those of 64 rows number `number`, of all terms from `first` on to `end`.
  llvm::SmallVector<mlir::Value> loadWords(mlir::Value rows, int64_t number, int64_t first, int64_t end);
  llvm::SmallVector<mlir::Value> addHalves(mlir::Value rows, mlir::Value columns, mlir::ValueRange sums);
  void addPieces(mlir::Value rows, mlir::Value columns, unsigned ofRows, unsigned ofColumns, int64_t terms,
                 llvm::MutableArrayRef<mlir::Value> sums);

  CodeBuilder &b;
  const int64_t bits;
  FragmentTiles rowTiles, columnTiles;
};

} // namespace hloc
