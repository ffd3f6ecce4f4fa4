#pragma once
// What is kept of a comparison, and how it is told.

#include "hloc/compare/Compare.h"

#include <array>

namespace hloc {

/// The differences of one array. Keeps the worst ten and counts the rest by decade of ULPs.
struct LeafReport {
  LeafReport(llvm::ArrayRef<int64_t> path, const Literal &expected, const Literal &actual, const Tolerance &tolerance)
      : path(path.begin(), path.end()), expected(expected), actual(actual), tolerance(&tolerance) {}
  LeafReport(const AdmissibleArray &bounds, const Literal &expected, const Literal &actual)
      : path(bounds.path), expected(expected), actual(actual), bounds(&bounds) {}

  void add(int64_t element, double difference, double ulps);
  /// Where the bounds of an element are.
  int64_t boundOf(int64_t element) const;
  Mismatch mismatch(int64_t element, double difference, double ulps) const;

  /// Differing elements with fewer than 10, 100, ... ULPs; the last two: more, and NaN or infinity against a number.
  static constexpr unsigned numDecades = 10;
  struct Kept {
    int64_t element;
    double difference, ulps;
  };

  llvm::SmallVector<int64_t, 2> path;
  const Literal &expected, &actual;
  const Tolerance *tolerance = nullptr;    ///< what was compared by: this,
  const AdmissibleArray *bounds = nullptr; ///< or these,
  llvm::ArrayRef<int64_t> elements;        ///< of these elements in order, if any are named, else of all
  int64_t numElements = 0, numMismatches = 0;
  double largestUlps = 0;
  double widestBound = 0;
  int64_t numBranched = 0, numUndecided = 0;
  Kept first{-1, 0, 0}, furthest{-1, 0, 0};
  int64_t firstUndecided = -1;
  std::vector<Kept> worst; ///< descending
  std::array<int64_t, numDecades> decades{};
};

void summarise(llvm::ArrayRef<LeafReport> leaves, CompareResult &result);

} // namespace hloc
