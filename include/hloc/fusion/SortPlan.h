#pragma once
// What the hero of sorts decides about one of its kernels.

#include "hloc/hlo/HloInstruction.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace hloc {

/// A sort by merging, stable whatever it promises. Rows, the elements along the sorted dimension, are independent. A
/// block has a few short rows, or a tile of a long one, in shared memory: its threads sort some neighbours each in
/// registers, then merge sorted runs, twice as long each time; every thread finds by bisection where in the two runs
/// its own part of the merged one begins. Runs as long as a tile are merged by more kernels, one for each length,
/// which find the same way what of the two runs a tile of the merged one is made of.
///
///   sort f32[1000]: 1 row of 125 threads, 8 elements each; sort f32[10,5000]: tiles of 2048 elements, 3 of each row,
///   then runs of 2048 merged, then of 4096
///
/// Every place is written once, and what is read lies in its row: a comparator that is no order gives some result.
struct SortPlan {
  /// An operand that the comparator reads or whose result is an output.
  struct Value {
    unsigned operand;
    bool isKey;                           ///< the comparator reads it
    llvm::SmallVector<unsigned, 1> roots; ///< indices into FusionGraph::roots() of its result, or bitcasts of it
    /// Between kernels it lies in scratch memory or in its first output, by turns; without an output in other scratch
    /// memory.
    std::optional<unsigned> scratch, insteadOfOutput;
  };
  const HloInstruction *hero;
  llvm::SmallVector<Value, 2> values;
  int64_t rows = 1, length = 1;
  int64_t tile = 1;         ///< elements of a row that a block has at once: all, or a power of two
  int64_t rowsPerBlock = 1; ///< more than one only of whole rows
  unsigned perThread = 1;   ///< neighbours in a row; a power of two
  /// Length of the sorted runs that this kernel merges, a multiple of the tile; 0: it sorts tiles.
  int64_t merged = 0;
  /// Not in outputs: in scratch memory.
  bool fromOutputs = false, toOutputs = true;

  int64_t dimension() const;
  int64_t tilesPerRow() const { return (length + tile - 1) / tile; }
  int64_t threadsPerRow() const { return (tile + int64_t(perThread) - 1) / int64_t(perThread); }
  /// Elements from a row to the next in shared memory, where each thread has room for all of its own.
  int64_t stride() const { return threadsPerRow() * int64_t(perThread); }
  int64_t threads() const { return rowsPerBlock * threadsPerRow(); }
  int64_t blocks() const { return (rows + rowsPerBlock - 1) / rowsPerBlock * tilesPerRow(); }
  /// Is the row sorted after this kernel?
  bool isLast() const { return merged == 0 ? tile == length : length - merged <= merged; }
  /// In shared memory.
  uint64_t sharedBytes() const;
  /// Are rows side by side in memory? Then neighbouring threads read neighbouring rows.
  bool rowsAreMinor() const;
  std::string toString() const;
};

} // namespace hloc
