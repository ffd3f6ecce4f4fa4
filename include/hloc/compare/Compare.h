#pragma once
// Comparing two results: how much may differ (Tolerance, from what the module computes) and a report of what does.
//
//   CompareResult r = compareLiterals(expected, actual, toleranceFor(module));
//   if (!r.equal()) os << r.report;      // index, both values, ULPs, histogram, the worst ten

#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/DenseSet.h"

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
  /// An infinity equals the largest finite value of its sign, and a value beyond half the range an infinity. For
  /// results that may overflow at a rounding.
  bool overflowMayDiffer = false;
  std::string why; ///< the op that sets the budget, for reports
};

/// One array position that differs.
struct Mismatch {
  llvm::SmallVector<int64_t, 2> leaf;  ///< tuple index path
  llvm::SmallVector<int64_t, 6> index; ///< position in the array
  std::string expected, actual;
  double difference = 0; ///< absolute; infinite if one is NaN
  double ulps = 0;
};

struct CompareResult {
  int64_t numElements = 0, numMismatches = 0;
  double largestUlps = 0; ///< over all finite floats, passing ones included
  Mismatch first;
  std::vector<Mismatch> worst; ///< at most ten, by difference in ULPs
  std::string report;          ///< for a person; empty if equal
  bool equal() const { return numMismatches == 0; }
};

/// Absolute differences that are allowed in addition, by array leaf in order and element. See Roundings.h.
using Allowances = std::vector<std::vector<double>>;

/// The two must have compatible shapes (a difference is reported as a mismatch of everything). Tuples: `tolerances` has
/// one entry per leaf in order, or one for all; `allowances` is empty or has one.
CompareResult compareLiterals(const Literal &expected, const Literal &actual, llvm::ArrayRef<Tolerance> tolerances,
                              const Allowances &allowances = {});
CompareResult compareLiterals(const Literal &expected, const Literal &actual, const Tolerance &tolerance);

/// The bounds for each leaf of the entry's result. Bit for bit where only data movement, integer ops and exact float
/// ops lead to it; otherwise a budget of ULPs that grows with the ops on the path, in the coarsest float type among
/// them.
std::vector<Tolerance> toleranceFor(const HloModule &module);
/// Relative error that an op adds by itself where its operands are exact; 0 for exact ones.
double errorOf(const HloInstruction &instr);
/// Conversions to fewer bits of what may be wrong already: a backend may round elsewhere.
llvm::DenseSet<const HloInstruction *> inexactRoundings(const HloModule &module);
Tolerance toleranceFor(const HloModule &module, unsigned resultLeaf);
/// "1e-4" (absolute and relative), "abs=1e-5,rel=1e-3,ulps=4,largest=1e-6,int=1", "exact". Nothing if malformed.
std::optional<Tolerance> parseTolerance(llvm::StringRef text);

} // namespace hloc
