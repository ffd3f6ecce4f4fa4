#pragma once

#include "hloc/dialect/XlaGpu.h"
#include "passes/TensorMemory.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <optional>

namespace hloc {

/// An update that one instruction of some hardware does: current = kind(current, operand).
struct NativeUpdate {
  mlir::LLVM::AtomicBinOp kind;
  mlir::Value operand; ///< made outside of the body of the op
};
std::optional<NativeUpdate> matchNativeUpdate(xla_gpu::AtomicRmwOp op);

/// Emits the update of `op` on the element of `pointer` it addresses, before `op`: one hardware instruction where the
/// body is an operation the hardware has (of a vector: as few as alignment and target allow), else a compare-and-swap
/// loop on the word that holds the element. Ordering is relaxed, scope is the device. Leaves `op` itself to the caller;
/// its body is used up.
llvm::LogicalResult lowerAtomic(xla_gpu::AtomicRmwOp op, mlir::Value pointer, int64_t maxVectorBytes,
                                int64_t computeCapability);

} // namespace hloc
