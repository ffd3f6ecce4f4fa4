#pragma once
// Bounds of scatters of one array, without a promise that no element gets two updates.

#include "interp/BoundElementwise.h"

namespace hloc::interp {

/// Of a combiner that returns the update: of several updates of one element any may come last.
BoundsPtr boundOverwritten(const BoundStep &step);
/// Of floats and complex numbers by any combiner, where `ends` are the bounds for the order of the text: what other
/// orders of the updates of one element may give.
BoundsPtr boundAnyOrder(const BoundStep &step, const BoundsPtr &ends);

/// Where the indices have bounds: `ends` are the bounds with the indices of the reference. What an update may hit or
/// miss is open; of a sum by that update.
llvm::FailureOr<BoundsPtr> boundOpenTargets(const BoundStep &step, const BoundsPtr &ends);

/// Makes room for zeros instead of subnormal numbers, which additions of f32 by atomic instructions take them for and
/// give instead of them, whatever combiner may become such an addition. `result` has all its other bounds.
void admitZerosForSubnormals(const HloInstruction &scatter, llvm::ArrayRef<Bounded> operands, bool areIndicesOpen,
                             Bounded &result);

} // namespace hloc::interp
