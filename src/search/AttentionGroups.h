#pragma once
// Which values of an entry without fusions one kernel of attention makes (AttentionPlan.h): part of the policy of fusion.
//
//   dot(convert(softmax(scale * dot(q, k))), v): inside the first dot and all between the two, roots {the second dot}

#include "search/RowGroups.h"

namespace hloc {

/// Dots whose factor is made of another dot, with all that is between; `isAttention`: has such a group a hero that
/// multiplies both? `needed`: by id; `materialized`: values that have to be in memory. No instruction is in two groups.
std::vector<RowGroup> groupAttention(const HloComputation &entry, const llvm::BitVector &needed,
                                     llvm::ArrayRef<HloInstruction *> materialized,
                                     llvm::function_ref<bool(const RowGroup &)> isAttention);

} // namespace hloc
