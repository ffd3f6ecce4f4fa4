#pragma once
// Indices with divisions, written as sums of digits: variables are divided into digits, and sums that are divided are
// made one variable, until every expression is linear. Digits and values of the variables correspond one to one.
//
//   (th floordiv 8, th mod 8 * 4 + s), th in [0, 63], s in [0, 3]: digits a, b in [0, 7], s in [0, 3]; (a, 4 b + s)
//   ((th + 128 bl) floordiv 60, (th + 128 bl) mod 60), th + 128 bl in [0, 719]: digits q in [0, 11], r in [0, 59]; (q,
//   r)

#include "prove/Variables.h"

#include <string>

namespace hloc::prove {

struct LinearForm {
  int64_t constant = 0;
  llvm::SmallVector<std::pair<unsigned, int64_t>, 4> terms; ///< digit, factor; no factor is 0
  int64_t factorOf(unsigned digit) const;
};

class Digits {
public:
  /// `which`: variables that the results and constraints are over; the digits are of all of them. Nothing, with the
  /// reason, if there is no such form.
  static std::optional<Digits> of(const Variables &variables, llvm::ArrayRef<unsigned> which,
                                  llvm::ArrayRef<mlir::AffineExpr> results, llvm::ArrayRef<Constraint> constraints,
                                  std::string &why);

  std::vector<int64_t> counts; ///< a digit is in [0, count - 1]
  std::vector<LinearForm> results;
  std::vector<std::pair<LinearForm, Interval>> constraints;
  std::vector<mlir::AffineExpr> inputs; ///< values of `which`, over digits
  bool isEmpty = false;                 ///< no point meets the constraints

  Interval range(const LinearForm &form) const;
  /// The digit counts from its other end.
  void flip(unsigned digit);
  /// Values of `which`.
  llvm::SmallVector<int64_t> inputsAt(llvm::ArrayRef<int64_t> digits) const;
};

} // namespace hloc::prove
