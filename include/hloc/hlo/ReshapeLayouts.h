#pragma once
// Which layouts a reshape does not have to move anything between.
//
//   f32[6,4]{1,0} -> f32[2,3,4]{2,1,0}   the same order in memory
//   f32[6,4]{0,1} -> f32[2,3,4]{1,0,2}   too: 6 = 2 * 3 are together, in order
//   f32[6,4]{0,1} -> f32[2,3,4]{2,1,0}   a transpose

#include "hloc/hlo/Shape.h"

#include <optional>

namespace hloc {

/// The layout of an array of `dims` that a reshape to `to`, of as many elements, leaves in its order; nothing if none
/// is.
std::optional<llvm::SmallVector<int64_t, 6>> layoutBeforeReshape(llvm::ArrayRef<int64_t> dims, const Shape &to);

/// Are the elements of both in the same order in memory?
bool reshapeKeepsOrder(const Shape &from, const Shape &to);

} // namespace hloc
