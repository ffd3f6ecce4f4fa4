#pragma once
// Runs of windows that go on from lane to lane: each lane of a warp has some in order, and what is to be added to one
// place is added up by the lane that has the first window of that place.
//
//   places   A A A B | B B B B | B C C C      three lanes of four windows
//   updated  A by lane 0 (3 windows), B by lane 0 (6 windows), C by lane 2

#include "emitters/CodeBuilder.h"

namespace hloc {

/// What a lane has by itself.
struct LaneRuns {
  mlir::Value thread;                   ///< number in the block, an index
  mlir::Value exists;                   ///< whether it has any windows
  bool warpsAreWhole = false;           ///< all lanes of a warp have some, or none has
  llvm::SmallVector<mlir::Value> first; ///< place of its first window
  llvm::SmallVector<mlir::Value> last;  ///< of its last
  mlir::Value isOne;                    ///< whether all have one place
  mlir::Value firstSum;                 ///< of the windows with the place of the first, in sequence
  mlir::Value lastSum;                  ///< of those with the place of the last
};

/// What it has to do.
struct CombinedRuns {
  mlir::Value isTaken; ///< the lane before updates the place of the first window, this one included
  mlir::Value lastSum; ///< of the last place, over all lanes that it goes on in
};

/// Called by all lanes of a warp together. `combine` is associative and commutative; elements are integers and floats
/// of 16 to 64 bits, parts of places integers of 8 to 64.
CombinedRuns combineLanes(CodeBuilder &b, const LaneRuns &own,
                          llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

} // namespace hloc
