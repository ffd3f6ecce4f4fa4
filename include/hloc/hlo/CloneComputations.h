#pragma once
// Copies of computations, in another module or where they are called. `cloneModule` (HloModule.h) copies all that an
// entry reaches.

#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Twine.h"

#include <vector>

namespace hloc {

class HloEditor;

/// What instructions call, directly or through others, in the order of their module: callees before callers.
std::vector<HloComputation *> calledComputations(const HloModule &module, llvm::ArrayRef<HloInstruction *> callers);

/// Adds copies to `made`, which is on the same arena. What the originals call of each other, the copies call of each
/// other; callees stand before callers. The copies by their originals.
llvm::DenseMap<const HloComputation *, HloComputation *> cloneComputations(llvm::ArrayRef<HloComputation *> originals,
                                                                           HloModule &made);

/// Copies what `callee` computes of `arguments`, one for each parameter, in front of `before`, named
/// `<prefix>.<instruction>`; its result.
HloInstruction *placeComputation(const HloComputation &callee, llvm::ArrayRef<HloInstruction *> arguments,
                                 const llvm::Twine &prefix, HloInstruction &before, HloEditor &editor);

} // namespace hloc
