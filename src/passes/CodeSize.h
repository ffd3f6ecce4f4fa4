#pragma once
// How much code an operation becomes, roughly, for passes that copy bodies of loops.

#include "mlir/IR/Operation.h"

namespace hloc {

/// 1 for what is an instruction or nothing, 20 for most math functions (XLA's rule), more for those that come to many
/// more instructions: a power to 100, one of doubles to 200.
int64_t codeSize(mlir::Operation &op);

} // namespace hloc
