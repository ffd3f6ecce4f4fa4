#pragma once
// What is kept of a comparison, and how it is told.

#include "compare/Distance.h"
#include "hloc/compare/Compare.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <array>

namespace hloc {

/// What is found in one array. Keeps the worst ten of what is rejected and counts the rest by decade of ULPs.
struct LeafReport {
  using Text = llvm::function_ref<std::string()>; ///< made where it is kept

  LeafReport(llvm::ArrayRef<int64_t> path, const Literal &expected, const Literal &actual)
      : path(path.begin(), path.end()), expected(expected), actual(actual) {}

  /// An element that is not bit for bit what was expected. `isSame`: it is all the same, a NaN for a NaN.
  void note(int64_t element, const Distance &apart, Text admissible, bool passes, bool isSame);
  /// The further end of what is admissible for an element.
  void noteBound(int64_t element, const Distance &apart, Text admissible);
  /// Adds what was found in elements behind those of this report.
  void append(const LeafReport &later);
  Mismatch mismatch(int64_t element, const Distance &apart, std::string admissible) const;

  /// Differing elements with fewer than 10, 100, ... ULPs; the last two: more, and NaN or infinity against a number.
  static constexpr unsigned numDecades = 10;
  struct Kept {
    int64_t element = -1;
    Distance apart;
    std::string admissible;
    double rank = -1;
  };

  llvm::SmallVector<int64_t, 2> path;
  const Literal &expected, &actual;
  const Tolerance *tolerance = nullptr; ///< what was compared by, if not by bounds
  int64_t numMismatches = 0;
  int64_t numBranched = 0, numUndecided = 0, numUndecidedEqual = 0, numWeak = 0, numUnknown = 0;
  double largestUlps = 0;
  Kept first, furthest, widestBound, firstWeak, firstUnknown;
  std::vector<Kept> worst; ///< descending
  std::array<int64_t, numDecades> decades{};

private:
  void keepWorst(const Kept &kept);
  double largestExpected() const;

  mutable std::optional<double> largest; ///< once it has been asked for
};

/// Adds up what was found in the arrays of a result.
void summarise(llvm::ArrayRef<LeafReport> leaves, CompareResult &result);

/// `[low, high]`
std::string rangeText(const std::string &low, const std::string &high);

bool hasSameBytes(const Literal &a, const Literal &b, int64_t element);
const Literal &leafOf(const Literal &literal, llvm::ArrayRef<int64_t> path);
/// Nothing if the shapes agree.
std::optional<CompareResult> differentShapes(const Literal &expected, const Literal &actual);

} // namespace hloc
