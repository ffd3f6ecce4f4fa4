#pragma once
// Instructions across the lanes of a warp, and those too rare to translate: shuffles, votes, matrix fragments, ...

#include "Machine.h"

namespace hloc::emulator {

/// `operands[i]` is the i-th source as a lane vector, the elements of a vector operand in a row; predicates are 32-bit
/// zeros and ones. `results[i]` likewise. Lanes outside `mask` are neither read nor written.
void runCollective(Warp &warp, const Decoded &at, uint32_t mask, const void *const *operands, void *const *results);

} // namespace hloc::emulator
