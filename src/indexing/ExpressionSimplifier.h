#pragma once
// Rewrites affine expressions into a canonical, cheap form that is equal on every point of a domain.
//
//   d0 in [0, 127], s0 in [0, 3]:  (d0 * 4 + s0) mod 64 -> (d0 mod 16) * 4 + s0,  (d0 * 4 + s0) floordiv 4 -> d0
//
// What it knows: floordiv and mod of sums whose low part cannot carry, digits of one number that add up to the number
// again, nested divisions, ranges from bounds and constraints. The rules are in Division rules and Sum rules of the
// .cpp.

#include "indexing/DomainRanges.h"

namespace hloc {

class ExpressionSimplifier {
public:
  ExpressionSimplifier(DomainRanges &ranges, mlir::MLIRContext *context) : ranges(ranges), context(context) {}

  /// The simplified expression, or the expression itself if its coefficients do not fit int64.
  mlir::AffineExpr simplify(mlir::AffineExpr expression);

private:
  mlir::AffineExpr visit(mlir::AffineExpr expression);
  mlir::AffineExpr visitAtom(mlir::AffineExpr atom);
  void visitSum(mlir::AffineExpr expression, int64_t factor, LinearSum &sum);

  mlir::AffineExpr floorDiv(LinearSum sum, int64_t divisor);
  mlir::AffineExpr mod(LinearSum sum, int64_t divisor);
  mlir::AffineExpr floorDivOfInnerDivision(const LinearSum &sum, int64_t divisor);
  mlir::AffineExpr floorDivOfMod(const LinearSum &sum, int64_t divisor);
  bool replaceInnerMods(LinearSum &sum, int64_t divisor);
  bool reduceByRange(LinearSum &sum, int64_t divisor, LinearSum &quotient);

  void combineDigits(LinearSum &sum);
  bool combineModTerm(LinearSum &sum, size_t index);
  bool combineDivTerm(LinearSum &sum, size_t index);

  mlir::AffineExpr finish(LinearSum sum);

  DomainRanges &ranges;
  mlir::MLIRContext *context;
  llvm::DenseMap<mlir::AffineExpr, mlir::AffineExpr> memo;
  bool gaveUp = false;
};

} // namespace hloc
