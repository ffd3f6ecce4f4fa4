#pragma once
// RowsPlan: reductions over rows whose results are needed by the rows' own elements, be it to be reduced again or to be
// stored, as one kernel: softmax, layer norm, log-sum-exp.

#include "hloc/fusion/StagedReductions.h"

namespace hloc {

/// A group of threads takes whole rows of memory: what it has of a row is read once and stays in registers, where the
/// stages of reductions and the outputs follow one after the other.
///
///   softmax of f32[4096,1024]: stages max and sum, 32 threads a row, each 8 vectors of 4 elements; 8 rows a block
///
/// What all rows have in common, such as weights, a block of several rows reads once, into shared memory.
///
/// Sums over the rows beside those of the rows, as gradients have them, are made in the same pass: blocks take several
/// rounds of rows, a thread adds up what it has in its columns, and each block leaves partial results, which a kernel
/// of columns combines. Of few rows there is one block, which completes them itself.
///
///   gradient of layer norm of f32[2048,768]: 8 rows a block, 128 blocks, 2 rounds; partial results [128,768]
struct RowsPlan : StagedReductions {
  unsigned perThread = 1;      ///< neighbouring elements that a thread reads at once; divides the length
  uint32_t threadsPerRow = 32; ///< a power of two
  uint32_t rowsPerBlock = 1;   ///< a power of two
  int64_t rounds = 1;          ///< so often a group of threads takes a row; with columns only
  /// Otherwise rows are too long for registers: each stage reads them again.
  bool inRegisters = true;
  /// Elements that a thread reads at once of what is the same in all rows, once a block, into shared memory; divides
  /// `perThread`. 0: each row reads it again.
  unsigned perThreadShared = 0;
  /// Registers for what a thread holds of its row.
  unsigned heldRegisters = 0;

  /// Vectors of `perThread` elements that a row has, and a thread: the last of those need not be there.
  int64_t vectors() const { return shape.length / int64_t(perThread); }
  int64_t vectorsPerThread() const { return (vectors() + threadsPerRow - 1) / int64_t(threadsPerRow); }
  /// That share the rows.
  int64_t blocks() const {
    int64_t perBlock = rounds * int64_t(rowsPerBlock);
    return (shape.count + perBlock - 1) / perBlock;
  }
  bool sharesSameInRows() const { return perThreadShared != 0; }
  /// For which there is room in shared memory then: all threads have as many vectors.
  int64_t sharedColumns() const {
    int64_t step = int64_t(threadsPerRow) * rowsPerBlock * int64_t(perThreadShared);
    return (shape.length + step - 1) / step * step;
  }
  /// What the kernel makes of the columns.
  ReductionStage columnStage() const { return blocks() == 1 ? ReductionStage::Whole : ReductionStage::Partial; }
  std::string toString() const;
};

} // namespace hloc
