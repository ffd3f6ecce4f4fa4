#pragma once
// A ring of stages in shared memory that one thread of a block fills by tensor maps, and the others multiply.

#include "emitters/KernelBuilder.h"

namespace hloc {

/// One more warpgroup than those that multiply, the producer, has the thread that fills stages. Of a stage two
/// barriers: number `stage` for what it is filled with to be there, and behind all of these, for the stage to be free.
class TileRing {
public:
  /// `tile`: how many stages there are, who multiplies, and for how many blocks of a cluster a side is copied.
  /// `mayTell`: may those that multiply tell something, for which there is one more barrier? `areLoaded`: does each
  /// warp load of stages what it multiplies, so that it has to say itself when it has done so?
  TileRing(const ContractionTile &tile, KernelBuilder &kernel, bool mayTell = false, bool areLoaded = false)
      : tile(tile), kernel(kernel), b(kernel.code()), mayTell(mayTell),
        threadsOfUser(areLoaded ? threadsOfWarp : threadsOfGroup) {}

  /// Who fills and who multiplies, each by the code that it is given; both have the memory that the kernel writes.
  /// `registersOfConsumers`: of those that multiply, which the others give away what they have for it; 0: none.
  void run(int64_t registersOfConsumers, llvm::function_ref<void()> fill, llvm::function_ref<void()> multiply);

  /// A stage, and which phase of its barriers is waited for.
  struct Turn {
    mlir::Value stage, parity;
  };
  static constexpr size_t valuesOfTurn = 2;
  /// Before the first one of those that fill, or multiply.
  Turn beforeFills() { return beforeFirst(0); }
  Turn beforeUses() { return beforeFirst(1); }
  Turn following(const Turn &turn);
  /// So many stages on.
  mlir::Value stageAfter(mlir::Value stage, int64_t number = 1) { return stageAfter(b, tile.stages, stage, number); }
  static mlir::Value stageAfter(CodeBuilder &b, int64_t stages, mlir::Value stage, int64_t number = 1);

  /// Waits for a stage to be free, which the first time it is; so many bytes are on their way to it then.
  void begin(const Turn &turn, int64_t bytes);
  mlir::Value allBarriers() { return barriers; }
  /// Waits for what a stage is filled with; `tiles` with that, for those who read elements of them.
  llvm::SmallVector<mlir::Value> await(const Turn &turn, mlir::ValueRange tiles = {});
  /// A warpgroup, or warp, has done with a stage, for all blocks that fill it; `where`, if that is not always so.
  void release(mlir::Value stage, mlir::Value where = {});

  /// A barrier of those that multiply.
  llvm::SmallVector<mlir::Value> synchronized(mlir::ValueRange tensors);
  /// What is before it in those that multiply, and a barrier of theirs, is there behind `awaitTold` of who fills; once.
  void tell();
  void awaitTold();

private:
  static constexpr int64_t threadsOfGroup = 128, threadsOfWarp = 32;

  Turn beforeFirst(int64_t parity) { return {b.index(tile.stages - 1), b.integer(b.getI32Type(), parity)}; }
  void byThread(int64_t number, llvm::function_ref<void()> make);
  void syncCluster();
  mlir::Value freeAt(mlir::Value stage);

  const ContractionTile &tile;
  KernelBuilder &kernel;
  CodeBuilder &b;
  const bool mayTell;
  const int64_t threadsOfUser; ///< of whom one says when they have done with a stage
  mlir::Value barriers;
  mlir::Value isFirstOfUser; ///< of those that multiply
};

} // namespace hloc
