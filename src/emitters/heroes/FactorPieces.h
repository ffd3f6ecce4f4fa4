#pragma once
// What tensor cores multiply instead of a factor.

#include "emitters/CodeBuilder.h"
#include "hloc/hlo/ElementType.h"

namespace hloc {

/// A stored element of type `from` in the type of a fragment, rounded to it. (Of F32, which is as wide as the words of
/// tf32, factorPieces makes one piece.)
mlir::Value asFragmentFactor(CodeBuilder &b, mlir::Value stored, ElementType from, ElementType fragment);

/// An f32 as so many factors of the type that add up to it, or nearly so, the largest first. Infinities and NaN are
/// themselves in the first.
llvm::SmallVector<mlir::Value> factorPieces(CodeBuilder &b, mlir::Value value, ElementType fragment, unsigned number);

/// The same where products of all pieces are added up together: each has the value's sign, and none is zero unless that
/// is, so that products by an infinity are infinities of one sign. (But for rests below the numbers of the type.) An
/// infinity or NaN is itself in the last.
llvm::SmallVector<mlir::Value> piecesOfOneSign(CodeBuilder &b, mlir::Value value, ElementType fragment,
                                               unsigned number);

} // namespace hloc
