#pragma once
// Indices of slices and gathers that have bounds.

#include "interp/BoundElementwise.h"

namespace hloc::interp {

/// Of a dynamic-slice, a dynamic-update-slice or a gather: index operands of which each starts where it may in one at
/// least. nullopt where these are many.
std::optional<std::vector<std::vector<Bounded>>> possibleIndices(const HloInstruction &instr,
                                                                 llvm::ArrayRef<Bounded> indices);

} // namespace hloc::interp
