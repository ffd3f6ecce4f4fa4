#pragma once
// Interval evaluation of expressions over a domain: bounds of the variables plus constraints known to hold.
//
// A constraint narrows every sum that contains it: with `d0 * 128 + d1 in [0, 999]` known, `d0 * 512 + d1 * 4 + s0` is
// 4 * [0, 999] + s0. Results are remembered, so one object serves many expressions over the same domain.

#include "indexing/LinearSum.h"
#include "llvm/ADT/DenseMap.h"

namespace hloc {

class DomainRanges {
public:
  /// Constraints other than number `skipped` count as known.
  explicit DomainRanges(const IndexingMap &map, std::optional<size_t> skipped = std::nullopt,
                        bool useConstraints = true);

  Interval of(mlir::AffineExpr expression);
  Interval of(const LinearSum &sum);

private:
  struct Fact {
    LinearSum sum; ///< no constant
    Interval interval;
  };
  Interval ofAtom(mlir::AffineExpr atom);
  Interval ofSum(const LinearSum &sum, size_t firstFact, unsigned &budget);
  Interval ofSumByJoining(const LinearSum &sum, unsigned &budget);
  void addFact(LinearSum sum, Interval interval);
  static LinearSum joinDivision(const LinearSum &sum, const LinearSum::Term &division, int64_t factor);

  llvm::SmallVector<Interval, 8> dimBounds, symbolBounds;
  llvm::SmallVector<Fact, 4> facts;
  llvm::DenseMap<mlir::AffineExpr, Interval> atomRanges;
};

/// Every value of floor(x / divisor) for x in `interval`; saturated ends stay saturated. The divisor is positive.
Interval floorDivide(Interval interval, int64_t divisor);

/// Whether `interval` is one value, and that value is not merely where int64 ends.
bool isKnownPoint(Interval interval);

/// The whole of int64, for "nothing known".
Interval unboundedInterval();

} // namespace hloc
