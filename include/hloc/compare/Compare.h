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
  std::string admissible; ///< "[low, high]"; "about [low, high]" by disturbed runs; empty: the expected value alone
  double difference = 0;  ///< absolute; infinite if one is NaN
  double ulps = 0;        ///< 0 for integers and predicates
  double ofLargest = 0;   ///< the difference in units of the largest element that is expected; 0 without one
};

/// How far the further end of what is admissible is from the expected value, for an element that has both.
struct WidestBound {
  double ulps = 0;
  double ofLargest = 0; ///< the same distance, in units of the largest element of its array
  std::optional<Mismatch> at;
};

/// What is known of the elements of one comparison or, after absorb(), of several.
///
///   numCompared = equal, or admissible by their bounds
///               + numUndecidedEqual
///               + numUndecided ( = numWeak + numUnknown + what the weaker check rejects)
///               + what the bounds reject
///   numMismatches = what the bounds and what the weaker check reject
struct CompareResult {
  int64_t numElements = 0; ///< of the result; several comparisons of it have the same
  /// Elements of all comparisons together. All counts that follow are of these.
  int64_t numCompared = 0;
  int64_t numMismatches = 0;
  int64_t numBranched = 0; ///< with more than one admissible value, undecided ones included
  /// Without bounds, and not the expected value; and without bounds, and bit for bit the expected value (or any NaN for
  /// a NaN).
  int64_t numUndecided = 0, numUndecidedEqual = 0;
  /// Of numUndecided: as far from the expected value as disturbed runs of the program are (decisions/0010), and those
  /// of which these tell nothing either.
  int64_t numWeak = 0, numUnknown = 0;

  double largestUlps = 0;  ///< over all finite floats, passing ones included
  WidestBound widestBound; ///< by part of the largest element
  /// The one with the largest difference of the elements that pass, by bounds, tolerance or the weaker check.
  std::optional<Mismatch> furthest;
  std::optional<Mismatch> firstWeak, firstUnknown;
  Mismatch first;
  std::vector<Mismatch> worst; ///< at most ten, by difference in ULPs
  std::string report;          ///< for a person; empty if equal

  /// Nothing was rejected. Whether what is not known may count as agreement is for the caller to say.
  bool equal() const { return numMismatches == 0; }
  /// Adds what another comparison has found: of the same result on other arguments or, where the caller adds up
  /// `numElements`, of another result. Of neither anything differs.
  void absorb(const CompareResult &other);
};

/// Of which elements that are not the expected ones the weaker check is made (decisions/0010). Within bounds, however
/// wide, only its rejection counts.
enum class WeakCheck {
  None,         ///< those without bounds count as unknown
  Open,         ///< those without bounds, or with infinite ones; the results are a kernel's
  OpenToReject, ///< the same where unknown elements are as good as accepted ones: no run is made that could only accept
  OpenOrWide    ///< also those with bounds so wide that they say little; the results are anybody's
};

/// Every element must be one that a right kernel of this backend may give. `expected` is what `interpret(module,
/// arguments, options)` gives. Costs no more than comparing bytes where all are equal, else about another
/// interpretation; where the weaker check is made, up to fourteen more, of a small step 38. `proven`: what a kernel
/// gave that is known to be right by its steps; the same is right, too, and what is the same but for a few elements is
/// so by no other roundings.
llvm::FailureOr<CompareResult> compareRun(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                          const Literal &expected, const Literal &actual, Backend backend,
                                          DiagnosticEngine &diagnostics, const InterpreterOptions &options = {},
                                          WeakCheck check = WeakCheck::Open, const Literal *proven = nullptr);

/// What a comparison without mismatches means: the largest difference and where, the widest bound, how many elements
/// have more than one admissible value, and how many have no bounds and what is known of these. `unknown`: what is to
/// be said of numUnknown.
std::string describeAgreement(const CompareResult &result, llvm::StringRef unknown = "of which nothing is known");

/// By tolerances. The two must have compatible shapes (a difference is reported as a mismatch of everything). Tuples:
/// `tolerances` has one entry per leaf in order, or one for all.
CompareResult compareLiterals(const Literal &expected, const Literal &actual, llvm::ArrayRef<Tolerance> tolerances);
CompareResult compareLiterals(const Literal &expected, const Literal &actual, const Tolerance &tolerance);

/// An element as text, as reports have it.
std::string elementText(const Literal &array, int64_t element);

/// "1e-4" (absolute and relative), "abs=1e-5,rel=1e-3,ulps=4,largest=1e-6,int=1" (`absolute` and `relative` are
/// understood as well), "exact". Nothing if malformed.
std::optional<Tolerance> parseTolerance(llvm::StringRef text);

} // namespace hloc
