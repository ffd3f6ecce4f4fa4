#pragma once
// How much code an operation becomes, roughly, for passes that copy bodies of loops.

#include "mlir/IR/Operation.h"

namespace hloc {

/// 1 for what is an instruction or nothing, 20 for a math function that is not (XLA's rule), 200 for one of doubles,
/// which a library computes in as many instructions.
int64_t codeSize(mlir::Operation &op);

} // namespace hloc
