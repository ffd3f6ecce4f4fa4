#pragma once
// In which dimensions the matrices of a contraction are found.

#include "hloc/hlo/HloInstruction.h"
#include "hloc/indexing/IndexingMap.h"

#include "llvm/ADT/SmallVector.h"

namespace hloc {

/// The result's dimensions, some of them in two parts: of a convolution's features the groups, and of the positions
/// along a dilated dimension those that meet the same taps of the window, which are every so many. Each part is a
/// batch: what belongs to it is multiplied by factors of its own.
///
///   64 features in 4 groups: 4, 16; 28 positions of a base with holes between its elements: 14, 2
///
/// A bitcast of the result: a dimension's parts stand in its place, and lie in memory as it does.
class ContractionSpace {
public:
  ContractionSpace() = default;
  explicit ContractionSpace(const HloInstruction &contraction);

  const Shape &shape() const { return parts; }
  unsigned rank() const { return unsigned(ofResult.size()); }
  int64_t dim(unsigned number) const { return parts.dim(number); }
  /// Of which dimension of the result it is a part.
  unsigned resultDim(unsigned number) const { return ofResult[number]; }
  /// The result's index, from one of the space.
  llvm::SmallVector<mlir::AffineExpr> resultIndices(llvm::ArrayRef<mlir::AffineExpr> indices) const;
  IndexingMap toResult(mlir::MLIRContext *context) const;

private:
  Shape parts;
  llvm::SmallVector<unsigned> ofResult;
};

} // namespace hloc
