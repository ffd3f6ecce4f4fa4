#pragma once
// Values of a function as expressions: what arith and xla_gpu say of integers.

#include "prove/Accesses.h"
#include "prove/Decide.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace hloc::prove {

class Values {
public:
  explicit Values(KernelAccesses &kernel) : kernel(kernel), variables(kernel.variables) {}

  /// Of an integer; something of memory if it is not known.
  mlir::AffineExpr of(mlir::Value value);
  void set(mlir::Value value, mlir::AffineExpr expression) { known[value] = expression; }
  void forget(mlir::Value value) { known.erase(value); }
  /// Computes the results of `op` if they are integers.
  void compute(mlir::Operation *op, llvm::ArrayRef<Constraint> path);
  /// What holds where `condition` is `truth`, added to `path`.
  void assume(mlir::Value condition, bool truth, llvm::SmallVectorImpl<Constraint> &path);
  void addConstraint(mlir::AffineExpr expression, Interval interval, llvm::SmallVectorImpl<Constraint> &path);
  static bool isInteger(mlir::Type type) { return type.isIndex() || type.isSignlessInteger(); }
  static Interval typeRange(mlir::Type type);

private:
  /// Of operands: what is the same of them for all threads is the same of the result.
  mlir::AffineExpr unknown(Interval bounds, mlir::ValueRange operands);
  /// Wherever the path leads.
  bool isNonNegative(mlir::AffineExpr expression, llvm::ArrayRef<Constraint> path) const;
  mlir::AffineExpr compare(mlir::arith::CmpIOp op, llvm::ArrayRef<Constraint> path);
  mlir::AffineExpr compareUnsigned(mlir::arith::CmpIOp op, llvm::ArrayRef<Constraint> path);
  mlir::AffineExpr select(mlir::arith::SelectOp op);
  mlir::AffineExpr computeArith(mlir::Operation *op, llvm::ArrayRef<Constraint> path);
  mlir::AffineExpr product(mlir::AffineExpr lhs, mlir::AffineExpr rhs);
  mlir::AffineExpr minimum(mlir::Operation *op, bool isMinimum, bool isUnsigned);

  KernelAccesses &kernel;
  Variables &variables;
  llvm::DenseMap<mlir::Value, mlir::AffineExpr> known;
};

} // namespace hloc::prove
