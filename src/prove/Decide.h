#pragma once
// Whether an expression is in an interval wherever its conditions hold: by intervals, by the rational relaxation of
// MLIR's Presburger library, or by trying all values where these are few.

#include "prove/Variables.h"

#include "hloc/kernel/Proofs.h"

namespace hloc::prove {

struct Decision {
  ProofVerdict verdict = ProofVerdict::Unknown;
  std::optional<Point> where; ///< Refuted: conditions hold, and the expression is outside
};

Decision isWithin(const Variables &variables, mlir::AffineExpr expression, Interval interval,
                  llvm::ArrayRef<Constraint> where);

/// False only if no values of the variables meet the constraints.
bool mayHold(const Variables &variables, llvm::ArrayRef<Constraint> constraints);

/// All points of the variables that `constraints` and `expressions` depend on, up to `most`; false if there are more,
/// or some are values of memory. `visit` returns whether to go on.
bool forEachPoint(const Variables &variables, llvm::ArrayRef<unsigned> which, int64_t most,
                  llvm::function_ref<bool(llvm::MutableArrayRef<int64_t>)> visit);

/// Variables that others are functions of, as far as the expressions depend on them; nothing if some are of memory.
std::optional<llvm::SmallVector<unsigned>> inputsOf(const Variables &variables,
                                                    llvm::ArrayRef<mlir::AffineExpr> expressions,
                                                    llvm::ArrayRef<Constraint> constraints);

} // namespace hloc::prove
