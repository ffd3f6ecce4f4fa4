#pragma once
// Which values of an entry without fusions one kernel of attention makes (AttentionPlan.h): part of the policy of
// fusion.
//
//   dot(convert(softmax(scale * dot(q, k))), v): inside the first dot and all between the two, roots {the second dot}
//
// And of its gradients, whose groups make scores again, and read what the first makes of rows:
//
//   ds = p (do v - sum(p do v)), p = exp(q k - max) / sum: roots {max, sum, sum(p do v), dq = ds k}; {ds q}; {p do}

#include "search/RowGroups.h"

namespace hloc {

/// Dots whose factor is made of another dot, or of two, with all that is between; `isAttention`: has such a group a
/// hero that multiplies all? `needed`: by id; `materialized`: values that have to be in memory. Roots are in one group
/// each.
std::vector<RowGroup> groupAttention(const HloComputation &entry, const llvm::BitVector &needed,
                                     llvm::ArrayRef<HloInstruction *> materialized,
                                     llvm::function_ref<bool(const RowGroup &)> isAttention);

} // namespace hloc
