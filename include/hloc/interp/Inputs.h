#pragma once
// Generated arguments for a module: the same for the same seed everywhere, and such that the module's promises hold.
//
//   gather indices lie inside, unique_indices are unique and sorted ones sorted, the init of a sum is 0, a matrix to be
//   factorised is positive definite. Floats are moderate, so that sums stay finite; in modules of elementwise ops
//   alone, some are special (NaN, infinities, -0, subnormals, the largest), and so are some integers.

#include "hloc/hlo/HloModule.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/Support/LogicalResult.h"

namespace hloc {

/// Reports parameters that have no values (dynamic, opaque) and arguments of more than `maxBytes` in total.
llvm::FailureOr<std::vector<Literal>> makeArguments(const HloModule &module, DiagnosticEngine &diagnostics,
                                                    uint64_t seed = 0, uint64_t maxBytes = uint64_t(8) << 30);

} // namespace hloc
