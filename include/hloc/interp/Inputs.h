#pragma once
// Generated arguments for a module: the same for the same seed everywhere, and such that the module's promises hold.
//
//   gather indices lie inside, unique_indices are unique and sorted ones sorted, the init of a sum is 0, a matrix to be
//   factorised is positive definite. Floats are moderate, so that sums stay finite; in modules of elementwise ops
//   alone, some are special (NaN, infinities, -0, subnormals, the largest), and so are some integers.

#include "hloc/hlo/HloModule.h"

namespace hloc {

std::vector<Literal> makeArguments(const HloModule &module, uint64_t seed = 0);

} // namespace hloc
