#pragma once
// Tiles that follow each other in two stages of one shared tensor: of each operand those that are copied, or that go
// through registers.

#include "emitters/heroes/OperandTile.h"
#include "hloc/fusion/AttentionPlan.h"

namespace hloc {

class ArrivingTiles {
public:
  /// As many as there is shared memory for; one is what the other is not.
  static constexpr int64_t stages = AttentionPlan::stagesOfTiles;
  static_assert(stages == 2);

protected:
  using Values = llvm::SmallVector<mlir::Value>;

  /// There are up to `numbers` turns.
  ArrivingTiles(CodeBuilder &b, int64_t numbers) : b(b), numbers(numbers) {}

  /// Of those two stages, and more behind them that others take.
  void allocate(int64_t elementsOfStage, int64_t numStages, mlir::Type element);
  mlir::IntegerAttr alignment(); ///< of tiles
  mlir::Value synchronized(mlir::Value tile);
  /// Copied, and arrived at the threads that copied it.
  mlir::Value arrived(mlir::Value tile);

  /// Starts to bring a tile to a stage that nobody reads; returns what is in registers until it `arrive`s.
  Values begin(OperandTile &operand, mlir::Value number, mlir::Value stage);
  /// The same of the tile of the turn after it, if there is one before `end`.
  Values beginFollowing(OperandTile &operand, mlir::Value turn, mlir::Value stage, mlir::Value end,
                        mlir::ValueRange otherwise, llvm::function_ref<mlir::Value(mlir::Value turn)> numberOf);
  /// Behind it all have the tile, and nobody reads the one that was multiplied before.
  void arrive(OperandTile &operand, mlir::ValueRange loaded, mlir::Value stage);
  /// Where there may be no turns, if they begin with a `first` one, nobody has waited for its tile.
  void awaitUnused(OperandTile &operand, mlir::Value first);

  mlir::Value stageOf(int64_t tile) { return b.index(tile % stages); }
  mlir::Value otherStage(mlir::Value stage);

  CodeBuilder &b;
  mlir::Value tiles;         ///< in their stages
  bool ofWarpgroups = false; ///< do these multiply them where they are?
  bool bringsOthers = false; ///< are other tiles copied, which arrive with the next of these?

private:
  const int64_t numbers;
};

} // namespace hloc
