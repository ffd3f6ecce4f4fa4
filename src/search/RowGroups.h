#pragma once
// Which values of an entry without fusions one kernel of rows or of columns makes (StagedReductions.h): part of the
// policy of fusion.
//
//   softmax: reductions `max` and `sum`, roots {div}; with a log-sum-exp beside it {div, lse}

#include "hloc/search/FusionPolicy.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace hloc {

struct RowGroup {
  llvm::SmallVector<HloInstruction *> reductions; ///< over rows, or columns, of one shape; rows with their columns
  llvm::SmallVector<HloInstruction *> roots;      ///< what is needed of it outside, operands before users
  llvm::SmallVector<HloInstruction *> inside;     ///< what depends on the reductions and is needed nowhere else
};

/// Groups among the reductions of `materialized`, the ops that end kernels. `needed`: by id. Groups do not read each
/// other's roots in a circle, neither directly nor through ops of no group. `isOnePass`: has a group of columns, or of
/// rows with columns, a hero that reads its operands once?
std::vector<RowGroup> groupRows(const HloComputation &entry, const llvm::BitVector &needed,
                                llvm::ArrayRef<HloInstruction *> results, llvm::ArrayRef<HloInstruction *> materialized,
                                llvm::function_ref<bool(const RowGroup &)> isOnePass);

} // namespace hloc
