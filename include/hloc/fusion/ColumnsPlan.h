#pragma once
// ColumnsPlan: reductions over columns whose results are needed by the columns' own elements, be it to be reduced again
// or to be stored, as one kernel: softmax, norms and the like over a dimension that is not the minor one.

#include "hloc/fusion/StagedReductions.h"

namespace hloc {

/// A block takes whole columns, neighbours in memory: what a thread has of them is read once and stays in registers,
/// where the stages of reductions and the outputs follow one after the other. Columns are counted over all slices, and
/// a block goes on from one slice to the next.
///
///   softmax of f32[512,1024] over 0: stages max and sum; 2 lanes of 4 columns by 64 groups of rows, each thread 8
///   vectors of 4 elements; 128 blocks
struct ColumnsPlan : StagedReductions {
  unsigned perThread = 1; ///< neighbouring columns that a thread has; divides those of a slice
  uint32_t lanes = 1;     ///< threads side by side; a power of two
  uint32_t groups = 32;   ///< threads one above the other, each with every so many-th row; a power of two
  /// Otherwise columns are too long for registers: each stage reads them again.
  bool inRegisters = true;
  /// Registers for what a thread holds of its columns.
  unsigned heldRegisters = 0;

  uint32_t threads() const { return lanes * groups; }
  /// Groups that one warp has: what they come to needs no shared memory.
  uint32_t groupsOfWarp() const { return lanes < lanesPerWarp ? lanesPerWarp / lanes : 1; }
  /// Values of each column that go through shared memory.
  uint32_t parts() const { return groups / groupsOfWarp(); }
  /// Vectors of `perThread` columns, and those of a slice.
  int64_t vectors() const { return shape.count / int64_t(perThread); }
  int64_t vectorsOfSlice() const { return shape.columns / int64_t(perThread); }
  /// The last of a thread's rows need not be there.
  int64_t rowsPerThread() const { return (shape.length + groups - 1) / int64_t(groups); }
  std::string toString() const;

  static constexpr uint32_t lanesPerWarp = 32;
};

} // namespace hloc
