#pragma once
// An affine expression seen as a sum: coefficient * atom + ... + constant.
//
//   (d0 floordiv 4) * 8 + d1 - 3   is   {8 * [d0 floordiv 4], 1 * [d1]}, constant -3
//
// An atom is a variable or anything that is neither a sum nor a product with a constant (floordiv, ceildiv, mod). Terms
// have distinct atoms, non-zero coefficients and, once normalized, an order that depends on structure only (never on
// addresses).

#include "hloc/indexing/IndexingMap.h"

namespace hloc {

struct LinearSum {
  struct Term {
    mlir::AffineExpr atom;
    int64_t coefficient;
  };
  llvm::SmallVector<Term, 6> terms;
  int64_t constant = 0;
  /// A coefficient or the constant left int64: the sum means nothing and must be given up.
  bool overflowed = false;

  /// Adds `factor * expression`, taking sums and products with constants apart.
  void add(mlir::AffineExpr expression, int64_t factor = 1);
  void addTerm(mlir::AffineExpr atom, int64_t coefficient);
  void addConstant(int64_t value);
  void add(const LinearSum &other, int64_t factor = 1);

  bool isConstant() const { return terms.empty(); }
  /// 0 if the atom is not in the sum.
  int64_t coefficientOf(mlir::AffineExpr atom) const;
  /// Whether every term of `part` times `factor` is here with exactly that coefficient. Constants are not compared.
  bool containsTerms(const LinearSum &part, int64_t factor) const;
  /// Greatest common divisor of the coefficients; 0 without terms. The constant does not count.
  int64_t coefficientGcd() const;

  void sortTerms();
  /// The expression, in canonical order, constant last.
  mlir::AffineExpr toExpr(mlir::MLIRContext *context) const;

  static LinearSum of(mlir::AffineExpr expression);
};

/// Order by structure: negative, 0 or positive. Expressions with dims come before those of symbols only, as MLIR keeps
/// them, and variables before compound expressions.
int compareExpressions(mlir::AffineExpr a, mlir::AffineExpr b);

/// The value if the right operand of a floordiv, ceildiv or mod is a positive constant, else 0.
int64_t positiveDivisor(mlir::AffineExpr expression);

} // namespace hloc
