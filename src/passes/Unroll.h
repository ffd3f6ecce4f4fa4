#pragma once
// Unrolling that folds index computations as it copies them.

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hloc {

/// Replaces a loop of known bounds by its `trips` iterations.
void unrollFully(mlir::scf::ForOp loop, int64_t lower, int64_t step, int64_t trips);

} // namespace hloc
