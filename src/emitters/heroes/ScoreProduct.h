#pragma once
// A dot of attention whose results are scores, or beside them: factors of a block's rows, which stay in shared memory
// or in registers, by those of keys, piece after piece.

#include "emitters/heroes/FragmentTiles.h"
#include "emitters/heroes/OperandTile.h"
#include "hloc/fusion/AttentionPlan.h"

namespace hloc {

/// Sums of a thread's two rows, by row, two neighbours of each eight columns: four of these together, by eight columns;
/// and back again.
llvm::SmallVector<mlir::Value> sumsTogether(FragmentTiles &dot, llvm::ArrayRef<mlir::Value> sums);
llvm::SmallVector<mlir::Value> sumsOneByOne(FragmentTiles &dot, llvm::ArrayRef<mlir::Value> products);

class ScoreProduct {
public:
  /// `dot` is one of the plan's.
  ScoreProduct(const ContractionPlan &dot, const AttentionPlan &plan, KernelBuilder &kernel, const TilePlace &ofRows,
               const TilePlace &ofKeys);

  const HloInstruction *hero() const { return dot.hero; }
  mlir::Type factorType() const { return rows.factorType(); }

  /// Memory for the rows' factors; unless that was asked for, `bringRows` does so.
  void allocateRows();
  /// Starts to bring the rows' factors to shared memory.
  void bringRows();
  /// Has them in registers: behind a barrier.
  void holdRows();
  /// A thread's scores of the piece of keys in a stage of `tiles`, as they are stored.
  llvm::SmallVector<mlir::Value> multiply(mlir::Value tiles, mlir::Value stage);
  /// The same by warpgroups: starts to make them; and as they are when all products but those of the last so many
  /// starts are there.
  llvm::SmallVector<mlir::Value> start(mlir::Value tiles, mlir::Value stage);
  llvm::SmallVector<mlir::Value> known(llvm::ArrayRef<mlir::Value> started, uint64_t open);
  /// Sums that are known, as scores are stored.
  llvm::SmallVector<mlir::Value> stored(llvm::ArrayRef<mlir::Value> sums);

  OperandTile rows, keys;
  mlir::Value rowTile;

private:
  const ContractionPlan &dot;
  const AttentionPlan &plan;
  KernelBuilder &kernel;
  ContractionValues values;
  llvm::SmallVector<mlir::Value> rowFragments; ///< by terms
};

} // namespace hloc
