#pragma once
// Bounds of elementwise ops.

#include "interp/BoundedValue.h"
#include "interp/Machine.h"

#include "hloc/interp/Bounds.h"

namespace hloc::interp {

/// One op whose bounds are wanted: its operands, and the value that the reference gives it.
struct BoundStep {
  const HloInstruction &instr;
  llvm::ArrayRef<Bounded> operands;
  const Literal &value;
  Machine &machine;
  Backend backend;
  bool keepUnrounded; ///< may the result of a product be added to something?
  /// Further roundings, in units of the roundoff, of each sum or product that is not exact: other orders of a fold.
  double orderRoundings = 0;

  /// The op's own function on other operands, with a result of the dimensions of `value`. The type is its own, or that
  /// of bounds.
  llvm::FailureOr<Literal> evaluate(std::vector<Literal> operands, bool asBounds) const;
};

/// The greater or the lesser of a value and the same value: compilers make it that value.
bool choosesOfOne(const HloInstruction &instr);

/// Bounds of the result of an elementwise op, `select` and `bitcast-convert` included; null where the value alone is
/// admissible. Sets `unrounded` for products (see Bounded).
llvm::FailureOr<BoundsPtr> boundElementwise(const BoundStep &step, BoundsPtr &unrounded);

/// Where every operand but scalars has the result's dimensions and the op is exact and monotone in each operand: the
/// least and the greatest of its values on the operands' bounds.
llvm::FailureOr<BoundsPtr> boundsAtCorners(const BoundStep &step);

// By kind of element: BoundReal.cpp, BoundComplex.cpp, BoundInteger.cpp.
BoundsPtr boundReal(const BoundStep &step, BoundsPtr &unrounded);
/// `direction`: instead of the op's own.
BoundsPtr boundRealCompare(const BoundStep &step, std::optional<ComparisonDirection> direction = std::nullopt);
BoundsPtr boundComplex(const BoundStep &step);
/// Of a convert of weights of an online softmax: rounded at any scale (BoundOnline.cpp).
BoundsPtr boundRescaled(const BoundStep &step);
llvm::FailureOr<BoundsPtr> boundInteger(const BoundStep &step);

/// -1, 0, 1 as a bound of real numbers, integers or predicates is below, at or above another.
int order(const Literal &a, const Literal &b, int64_t element);
void copyElement(const Literal &from, int64_t source, Literal &to, int64_t target);

/// Makes the bounds of a value hold what another may be.
void admit(Bounded &value, const Bounded &other);
/// The bounds of `known`, but of the elements for which `isOpen`, of which nothing is known.
BoundsPtr openWhere(const Bounded &known, llvm::function_ref<bool(int64_t element)> isOpen);

/// Null if no element has more than one admissible value.
BoundsPtr nullIfExact(std::shared_ptr<Bounds> bounds);

} // namespace hloc::interp
