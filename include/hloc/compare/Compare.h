#pragma once
// Comparing what a backend computed with what the interpreter did, and a report of what differs.
//
//   CompareResult r = *compareRun(module, arguments, expected, actual, Backend::Hloc, diagnostics);
//   if (!r.equal()) os << r.report;      // index, both values, what is admissible, ULPs, histogram, the worst ten
//
// The bounds are per element (hloc/interp/Bounds.h). A tolerance given by hand replaces them.

#include "hloc/hlo/HloModule.h"
#include "hloc/interp/Bounds.h"
#include "hloc/support/Diagnostics.h"

#include <string>

namespace hloc {

/// A float passes if any of the four bounds admits it; all zero means bit for bit (but NaN equals NaN and -0 equals
/// +0). Integers and predicates use `integers` alone.
struct Tolerance {
  double ulps = 0;      ///< units in the last place of the expected value, in the result's own type
  double relative = 0;  ///< times the expected value's magnitude
  double absolute = 0;  ///< as it is
  double ofLargest = 0; ///< times the largest finite magnitude of the expected array
  int64_t integers = 0; ///< largest difference of integers
};

/// One array position that differs.
struct Mismatch {
  llvm::SmallVector<int64_t, 2> leaf;  ///< tuple index path
  llvm::SmallVector<int64_t, 6> index; ///< position in the array
  std::string expected, actual;
  std::string admissible; ///< "[low, high]"; empty for the expected value alone
  double difference = 0;  ///< absolute; infinite if one is NaN
  double ulps = 0;
};

struct CompareResult {
  int64_t numElements = 0, numMismatches = 0;
  double largestUlps = 0; ///< over all finite floats, passing ones included
  /// Of comparisons with bounds: the widest distance between the expected and an admissible value, in ULPs; elements
  /// that have more than one admissible value; elements of which the reference knows nothing.
  double widestBound = 0;
  int64_t numBranched = 0, numUndecided = 0;
  std::optional<Mismatch> furthest, firstUndecided; ///< of the elements that pass, the one with the largest difference
  Mismatch first;
  std::vector<Mismatch> worst; ///< at most ten, by difference in ULPs
  std::string report;          ///< for a person; empty if equal
  bool equal() const { return numMismatches == 0; }
  /// Adds what another comparison of the same result, on other arguments, has found. Of neither anything differs.
  void absorb(const CompareResult &other);
};

/// Every element must be one that a right kernel of this backend may give. `expected` is what `interpret(module,
/// arguments, options)` gives. Costs no more than comparing bytes where all are equal, else about another
/// interpretation.
llvm::FailureOr<CompareResult> compareRun(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                          const Literal &expected, const Literal &actual, Backend backend,
                                          DiagnosticEngine &diagnostics, const InterpreterOptions &options = {});

/// What a comparison without mismatches means: the largest difference and where, the widest bound, how many elements
/// have more than one admissible value or none that is known.
std::string describeAgreement(const CompareResult &result);

/// By tolerances. The two must have compatible shapes (a difference is reported as a mismatch of everything). Tuples:
/// `tolerances` has one entry per leaf in order, or one for all.
CompareResult compareLiterals(const Literal &expected, const Literal &actual, llvm::ArrayRef<Tolerance> tolerances);
CompareResult compareLiterals(const Literal &expected, const Literal &actual, const Tolerance &tolerance);

/// "1e-4" (absolute and relative), "abs=1e-5,rel=1e-3,ulps=4,largest=1e-6,int=1" (`absolute` and `relative` are
/// understood as well), "exact". Nothing if malformed.
std::optional<Tolerance> parseTolerance(llvm::StringRef text);

} // namespace hloc
