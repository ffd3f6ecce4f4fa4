#pragma once

#include "hloc/dialect/XlaGpu.h"
#include "passes/TensorMemory.h"

namespace hloc {

/// Emits the update of `op` on the element of `pointer` it addresses, before `op`: one hardware instruction where the
/// body is an operation the hardware has, else a compare-and-swap loop on the word that holds the element.
/// Ordering is relaxed, scope is the device. Leaves `op` itself to the caller; its body is used up.
llvm::LogicalResult lowerAtomic(xla_gpu::AtomicRmwOp op, mlir::Value pointer, int64_t maxVectorBytes,
                                int64_t computeCapability);

} // namespace hloc
