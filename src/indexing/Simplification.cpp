// IndexingMap::simplify: constraints first, until nothing moves, then the results under what the constraints say.

#include "indexing/ExpressionSimplifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

using namespace hloc;
using mlir::AffineExpr;
using mlir::AffineExprKind;

/// Rounds after which a form that still changes is accepted as it is. Two or three are what real maps take.
static constexpr int roundLimit = 8;
/// Above this many constraints each is simplified under the bounds alone, so that the cost stays linear.
static constexpr size_t manyConstraints = 12;

static Interval shift(Interval interval, int64_t offset) { return interval + Interval{offset, offset}; }

/// {x : x * factor in interval} for a positive factor.
static Interval divideInwards(Interval interval, int64_t factor) {
  Interval all = unboundedInterval();
  return {interval.lower == all.lower ? all.lower : llvm::divideCeilSigned(interval.lower, factor),
          interval.upper == all.upper ? all.upper : llvm::divideFloorSigned(interval.upper, factor)};
}

bool IndexingMap::simplify() {
  if (knownEmpty || isSimplified)
    return false;
  bool changed = false;
  for (int round = 0; round < roundLimit && !constraintList.empty(); ++round) {
    bool changedNow = simplifyConstraints();
    changed |= changedNow;
    if (knownEmpty)
      return true;
    if (!changedNow)
      break;
  }
  for (int round = 0; round < roundLimit && simplifyResults(); ++round)
    changed = true;
  isSimplified = true;
  return changed;
}

/// A permutation, a broadcast: results that are variables of more than one value, or constants.
static bool isPlain(const IndexingMap &map, AffineExpr result) {
  if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(result))
    return !map.dims()[dim.getPosition()].bounds.isPoint();
  return llvm::isa<mlir::AffineConstantExpr>(result);
}

bool IndexingMap::simplifyResults() {
  if (llvm::all_of(affineMap.getResults(), [&](AffineExpr result) { return isPlain(*this, result); }))
    return false;
  DomainRanges ranges(*this);
  ExpressionSimplifier simplifier(ranges, context());
  llvm::SmallVector<AffineExpr> results;
  for (AffineExpr expression : affineMap.getResults())
    results.push_back(simplifier.simplify(expression));
  if (llvm::ArrayRef<AffineExpr>(results) == affineMap.getResults())
    return false;
  affineMap = mlir::AffineMap::get(affineMap.getNumDims(), affineMap.getNumSymbols(), results, context());
  return true;
}

bool IndexingMap::simplifyConstraints() {
  bool changed = false;
  for (size_t i = 0; i < constraintList.size() && !knownEmpty;) {
    size_t countBefore = constraintList.size();
    changed |= simplifyConstraint(i);
    if (constraintList.size() == countBefore)
      ++i;
  }
  auto before = [](const Constraint &a, const Constraint &b) { return compareExpressions(a.first, b.first) < 0; };
  if (!llvm::is_sorted(constraintList, before)) {
    llvm::sort(constraintList, before);
    changed = true;
  }
  return changed;
}

/// `sum` in `interval`, where multiples of `unit` alone decide: with sum = high + low and high a multiple of unit, the
/// values of high that are allowed do not depend on low. Then `sum` becomes high / unit.
static bool dropLowPart(LinearSum &sum, Interval &interval, int64_t unit, DomainRanges &ranges) {
  LinearSum high, low;
  for (const LinearSum::Term &term : sum.terms)
    (term.coefficient % unit == 0 ? high : low).terms.push_back(term);
  if (low.terms.empty())
    return false;
  Interval lowRange = ranges.of(low), highRange = ranges.of(high), all = unboundedInterval();
  auto isBounded = [&](Interval range) { return range.lower > all.lower / 4 && range.upper < all.upper / 4; };
  if (!isBounded(lowRange) || !isBounded(highRange))
    return false;
  if (interval.intersect(highRange + lowRange).isEmpty())
    return false; // the caller finds it infeasible; below, differences of its ends could overflow
  Interval result = divideInwards(highRange, unit);
  if (interval.lower > highRange.lower + lowRange.lower) {
    int64_t strict = llvm::divideCeilSigned(interval.lower - lowRange.lower, unit);
    if (strict != llvm::divideCeilSigned(interval.lower - lowRange.upper, unit))
      return false;
    result.lower = strict;
  }
  if (interval.upper < highRange.upper + lowRange.upper) {
    int64_t strict = llvm::divideFloorSigned(interval.upper - lowRange.upper, unit);
    if (strict != llvm::divideFloorSigned(interval.upper - lowRange.lower, unit))
      return false;
    result.upper = strict;
  }
  for (LinearSum::Term &term : high.terms)
    term.coefficient /= unit;
  sum = std::move(high);
  interval = result;
  return true;
}

/// One step of rewriting `sum in interval` (no constant in sum) into an equivalent simpler one; false if none applies.
static bool stepConstraint(LinearSum &sum, Interval &interval, DomainRanges &ranges) {
  int64_t gcd = sum.coefficientGcd();
  if (gcd > 1) {
    for (LinearSum::Term &term : sum.terms)
      term.coefficient /= gcd;
    interval = divideInwards(interval, gcd);
    return true;
  }
  sum.sortTerms();
  if (sum.terms.front().coefficient < 0) {
    for (LinearSum::Term &term : sum.terms)
      term.coefficient = -term.coefficient;
    interval = -interval;
    return true;
  }
  if (sum.terms.size() == 1) {
    AffineExpr atom = sum.terms.front().atom;
    int64_t divisor = positiveDivisor(atom);
    if (atom.getKind() != AffineExprKind::FloorDiv || !divisor)
      return false;
    sum = LinearSum::of(llvm::cast<mlir::AffineBinaryOpExpr>(atom).getLHS());
    interval = interval * Interval{divisor, divisor};
    if (interval.upper != std::numeric_limits<int64_t>::max())
      interval = interval + Interval{0, divisor - 1};
    interval = shift(interval, -sum.constant);
    sum.constant = 0;
    return true;
  }
  llvm::SmallVector<int64_t, 6> units;
  for (const LinearSum::Term &term : sum.terms)
    units.push_back(std::abs(term.coefficient));
  llvm::sort(units, std::greater<>());
  for (int64_t unit : units)
    if (unit > 1 && dropLowPart(sum, interval, unit, ranges))
      return true;
  return false;
}

/// `sum in interval` bounds the range variables in it: fewer loop iterations. Dimension variables keep their bounds
/// (they are thread and block ids, whose range is what is launched), runtime variables theirs (they come clamped).
bool IndexingMap::tightenLoops(const LinearSum &sum, Interval interval, DomainRanges &ranges) {
  bool changed = false;
  for (const LinearSum::Term &term : sum.terms) {
    auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(term.atom);
    if (!symbol || symbol.getPosition() >= rangeVariables.size() || sum.terms.size() == 1)
      continue;
    LinearSum rest = sum;
    rest.addTerm(term.atom, -term.coefficient);
    Interval allowed = interval + -ranges.of(rest);
    if (term.coefficient < 0)
      allowed = -allowed;
    allowed = divideInwards(allowed, std::abs(term.coefficient));
    Interval &bounds = rangeVariables[symbol.getPosition()].bounds;
    Interval tight = bounds.intersect(allowed);
    if (tight == bounds)
      continue;
    changed = true;
    bounds = tight;
    if (tight.isEmpty()) {
      makeEmpty();
      return true;
    }
  }
  return changed;
}

/// Rewrites, drops or turns into a bound constraint number `index`. Every step is sound under the *other* constraints,
/// so the conjunction keeps its meaning. Returns whether anything changed.
bool IndexingMap::simplifyConstraint(size_t index) {
  Constraint before = constraintList[index];
  DomainRanges ranges(*this, index, constraintList.size() <= manyConstraints);
  ExpressionSimplifier simplifier(ranges, context());
  LinearSum sum = LinearSum::of(simplifier.simplify(before.first));
  if (sum.overflowed)
    return false;
  Interval interval = shift(before.second, -sum.constant);
  sum.constant = 0;
  while (!sum.isConstant() && stepConstraint(sum, interval, ranges) && !interval.isEmpty() && !sum.overflowed) {
  }
  if (sum.overflowed)
    return false;

  Interval possible = ranges.of(sum);
  if (interval.contains(possible)) {
    constraintList.erase(constraintList.begin() + index);
    return true;
  }
  interval = interval.intersect(possible);
  if (interval.isEmpty()) {
    makeEmpty();
    return true;
  }
  AffineExpr expression = sum.toExpr(context());
  bool tightened = tightenLoops(sum, interval, ranges);
  if (knownEmpty || (expression == before.first && interval == before.second))
    return tightened;
  constraintList.erase(constraintList.begin() + index);
  size_t count = constraintList.size();
  addConstraint(expression, interval);
  if (!knownEmpty && constraintList.size() > count) {
    // Keep its place, so that a caller that walks by index meets every constraint.
    std::rotate(constraintList.begin() + index, constraintList.end() - 1, constraintList.end());
  }
  return true;
}
