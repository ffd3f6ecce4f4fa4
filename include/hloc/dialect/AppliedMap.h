#pragma once
// AppliedMap: an indexing map together with the values of its dimensions, as it is rewritten.
//
//   %k = xla_gpu.apply_indexing #(d0) -> (d0 * 4)(%t)
//   AppliedMap::of(%k).composeProducers() is {(d0) -> (d0 * 4), [%t]}: an index as a function of thread ids, induction
//   variables and loaded values, whatever chain of ops computed it.

#include "hloc/dialect/XlaGpu.h"

namespace hloc::xla_gpu {

struct AppliedMap {
  /// Dimensions only: range variables of an op become trailing dimensions. Constraints are facts about the operands.
  IndexingMap map;
  llvm::SmallVector<mlir::Value> operands;

  static AppliedMap of(ApplyIndexingOp op);
  /// The identity map over `indices`, bounds from rangeOf.
  static AppliedMap identity(mlir::ValueRange indices, mlir::MLIRContext *context);

  /// Replaces constant operands, merges equal ones, intersects bounds with what rangeOf knows, simplifies, drops unused
  /// dimensions. Returns whether anything changed. Leaves a map whose domain would be empty alone (unreachable code).
  bool simplify();

  enum class When {
    Always,    ///< up to the size limit
    Profitable ///< the producer has no other user, or the composed map is smaller than the two
  };
  /// Substitutes apply_indexing ops that produce operands, repeatedly. Stops where the expression would exceed
  /// `maxExpressionSize` nodes. Returns whether anything changed.
  bool composeProducers(When when = When::Always);
  static constexpr unsigned maxExpressionSize = 256;

  /// The linear index of an element in the row-major order of `sizes`.
  void linearize(llvm::ArrayRef<int64_t> sizes);
  /// Applies `second` to the results.
  void then(const IndexingMap &second);

  /// One value per result: a constant, an operand, or the result of one apply_indexing.
  llvm::SmallVector<mlir::Value> materialize(mlir::OpBuilder &builder, mlir::Location loc) const;

private:
  void replaceDims(llvm::MutableArrayRef<mlir::AffineExpr> replacements, llvm::ArrayRef<IndexingVariable> dims);
  bool bindConstants();
  bool mergeEqualOperands();
  bool tightenBounds();
  bool composeOne(unsigned dim, ApplyIndexingOp producer, unsigned result, When when);
};

/// Nodes of an expression counted as a tree.
unsigned expressionSize(mlir::AffineExpr expression);

} // namespace hloc::xla_gpu
