#pragma once
// How far an admissible kernel may be from the reference: for each element of a result, the least and the greatest
// value that a right kernel can give.
//
//   FailureOr<BoundedResult> r = interpretBounds(*module, arguments, Backend::Hloc, diagnostics);
//   r->leaves[0].admits(i, x)      is x a result that a right kernel may give at element i?
//
// Admissible is what the ops permit: each float op rounds to its own type; a product that is added to something may be
// left unrounded (contraction); functions are as exact as src/interp/Accuracy.def says; sums may be taken in any order.
// All else is exact, so most elements have one admissible value. A rounding to fewer bits, a conversion to an integer,
// a comparison or a selection gives two values only where the bounds of what is rounded or compared straddle the
// boundary. src/decisions/0004 tells why; src/interp/README.md how.

#include "hloc/interp/Interpreter.h"

namespace hloc {

/// Who made the kernel: what its ops may do differs.
enum class Backend {
  Hloc,  ///< rounds where the HLO does, functions of measured accuracy
  Other, ///< narrow floats may be kept in f32 within a fusion, functions are as exact as the field's compilers make
         ///< them
};

/// The admissible values of one array of a result.
struct AdmissibleArray {
  llvm::SmallVector<int64_t, 2> path; ///< tuple index
  Literal value;                      ///< the reference's, in the array's own type
  /// Of the type's storage: f64 for floats, c128 for complex numbers, the type itself otherwise. Without elements:
  /// `value` alone is admissible, bit for bit but for the payload and sign of a NaN.
  Literal low, high;

  bool isExact() const { return low.numElements() != value.numElements(); }
  /// Nothing is known about this element: a right kernel may give anything there.
  bool isUndecided(int64_t element) const;
  /// Has the element more than one admissible value?
  bool isBranched(int64_t element) const;
  /// Is what `actual`, an array of the type of `value`, holds at position `at` admissible for the element?
  bool admits(int64_t element, const Literal &actual, int64_t at) const;
};

/// Nothing is known about any element.
AdmissibleArray undecidedArray(llvm::ArrayRef<int64_t> path, const Literal &value);

struct BoundedResult {
  std::vector<AdmissibleArray> leaves; ///< arrays of the result in order
  uint64_t mostLoopSteps = 0;          ///< that a loop has taken
};

/// As interpret(). Where nothing rounds this costs no more than that.
llvm::FailureOr<BoundedResult> interpretBounds(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                               Backend backend, DiagnosticEngine &diagnostics,
                                               const InterpreterOptions &options = {});

/// Is each element of the results made of the same element of the arguments, or of scalars, alone?
bool isElementwise(const HloModule &module);
/// As interpretBounds of an elementwise module, but only for some elements, by linear index: the leaves are arrays of
/// one dimension with an entry for each.
llvm::FailureOr<BoundedResult> interpretBoundsAt(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                                 llvm::ArrayRef<int64_t> elements, Backend backend,
                                                 DiagnosticEngine &diagnostics, const InterpreterOptions &options = {});

} // namespace hloc
