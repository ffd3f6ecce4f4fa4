#pragma once
// Maps between the index spaces of dense arrays: linearize, delinearize, reshape, transpose, layout. Sizes only, no
// HLO.

#include "hloc/indexing/IndexingMap.h"

namespace hloc {

/// Row-major linear index of `indices` in an array of `sizes`.
mlir::AffineExpr linearize(llvm::ArrayRef<mlir::AffineExpr> indices, llvm::ArrayRef<int64_t> sizes,
                           mlir::MLIRContext *context);
/// Row-major indices of linear index `linear` in [0, product(sizes)); no mod on the outermost dimension of size > 1.
llvm::SmallVector<mlir::AffineExpr> delinearize(mlir::AffineExpr linear, llvm::ArrayRef<int64_t> sizes,
                                                mlir::MLIRContext *context);

/// Index of `from` that row-major reshaping puts at an index of `to` (dims range over `to`). Element counts are equal.
/// Splits both shapes into minimal groups of equal product, so that untouched dimensions stay plain.
IndexingMap reshapeMap(llvm::ArrayRef<int64_t> to, llvm::ArrayRef<int64_t> from, mlir::MLIRContext *context);

/// result[i] = d[permutation[i]]; dims range over `sizes`.
IndexingMap permutationMap(llvm::ArrayRef<int64_t> permutation, llvm::ArrayRef<int64_t> sizes,
                           mlir::MLIRContext *context);

/// Logical index of `to` -> logical index of `from` when both are the same bytes: the map of `bitcast`. Element counts
/// are equal. Layouts are minor-to-major. A pure permutation or a pure reshape is found as such.
IndexingMap bitcastMap(llvm::ArrayRef<int64_t> to, llvm::ArrayRef<int64_t> toMinorToMajor, llvm::ArrayRef<int64_t> from,
                       llvm::ArrayRef<int64_t> fromMinorToMajor, mlir::MLIRContext *context);

} // namespace hloc
