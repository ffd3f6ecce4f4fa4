#pragma once
// How blocks and threads share a reduction over rows of [slices, rows, columns], whose columns lie next to each other
// in memory: decisions of the column reduction's plan, apart from what is computed.

#include "hloc/fusion/HeroPlans.h"
#include "hloc/kernel/TargetInfo.h"

namespace hloc {

/// Lanes of a run that is made of several rows.
constexpr int64_t mostLanesOfMergedRows = 256;
/// Widest tile: neighbours along a row, each with an access of its own.
constexpr int64_t mostLanes = 64;

/// What a tiling is chosen for.
struct ColumnReductionSize {
  int64_t slices = 1, rows = 1, columns = 1;
  unsigned elementsPerAccess = 1; ///< of the narrowest stream; a power of two
  unsigned narrowestBits = 32;    ///< of an element of it
  int64_t bytesPerElement = 4;    ///< of all streams together
  int64_t accumulatorBytes = 4;   ///< of one column, all values together
  int64_t piece = 1;              ///< columns that must be one tile's, from a multiple on
};

/// `maySplit`: columns may be several blocks', which leave partial results.
ColumnTiling chooseColumnTiling(const ColumnReductionSize &size, bool maySplit, const TargetInfo &target);
/// For [splits, results] in scratch memory.
ColumnTiling tilingOfPartialResults(int64_t splits, int64_t results, int64_t accumulatorBytes,
                                    const TargetInfo &target);

} // namespace hloc
