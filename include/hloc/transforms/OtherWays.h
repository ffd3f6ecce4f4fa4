#pragma once
// The same values computed another way: an op by others. No optimization: where two do not agree on what an op is, such
// as the reference and kernels, it is a third opinion.
//
//   logistic(x)                     1 / (1 + exp(-x))
//   reverse(x), dimensions={0}      gather(x, {n-1, n-2, ..., 0})

#include "hloc/hlo/HloModule.h"

namespace hloc {

/// What an op becomes, for people: `1 / (1 + exp(-x))`. Empty: there is no other way.
llvm::StringRef otherWayOf(Opcode opcode);

/// Expresses all instructions of the opcode by others. False if there are none, or one that it cannot be done for; the
/// module is to be thrown away then.
bool expressOtherwise(HloModule &module, Opcode opcode);

} // namespace hloc
