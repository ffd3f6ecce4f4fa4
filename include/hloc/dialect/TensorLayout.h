#pragma once
// The order in which the elements of a tensor lie in memory.

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

namespace hloc::xla_gpu {

/// Dimensions from the fastest varying to the slowest: the encoding `dense<[...]>`, or descending without one.
llvm::SmallVector<int64_t> minorToMajor(mlir::RankedTensorType type);

/// `type` with this layout; no encoding if it is the default one.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> minorToMajor);

/// Whether the encoding is absent or a permutation of the dimensions.
bool hasValidLayout(mlir::RankedTensorType type);

} // namespace hloc::xla_gpu
