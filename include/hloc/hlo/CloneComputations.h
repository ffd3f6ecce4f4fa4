#pragma once
// Copies of computations in another module. `cloneModule` (HloModule.h) copies all that an entry reaches.

#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace hloc {

/// What instructions call, directly or through others, in the order of their module: callees before callers.
std::vector<HloComputation *> calledComputations(const HloModule &module, llvm::ArrayRef<HloInstruction *> callers);

/// Adds copies to `made`, which is on the same arena. What the originals call of each other, the copies call of each
/// other; callees stand before callers. The copies by their originals.
llvm::DenseMap<const HloComputation *, HloComputation *> cloneComputations(llvm::ArrayRef<HloComputation *> originals,
                                                                           HloModule &made);

} // namespace hloc
