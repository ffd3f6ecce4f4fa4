#include "indexing/DomainRanges.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace hloc;
using mlir::AffineBinaryOpExpr;
using mlir::AffineExpr;
using mlir::AffineExprKind;

Interval hloc::unboundedInterval() {
  return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
}

Interval hloc::floorDivide(Interval interval, int64_t divisor) {
  if (interval.isEmpty())
    return {};
  Interval all = unboundedInterval();
  return {interval.lower == all.lower ? all.lower : llvm::divideFloorSigned(interval.lower, divisor),
          interval.upper == all.upper ? all.upper : llvm::divideFloorSigned(interval.upper, divisor)};
}

bool hloc::isKnownPoint(Interval interval) {
  Interval all = unboundedInterval();
  return interval.isPoint() && interval.lower != all.lower && interval.upper != all.upper;
}

DomainRanges::DomainRanges(const IndexingMap &map, std::optional<size_t> skipped, bool useConstraints) {
  for (const IndexingVariable &dim : map.dims())
    dimBounds.push_back(dim.bounds);
  for (const IndexingVariable &range : map.ranges())
    symbolBounds.push_back(range.bounds);
  for (const IndexingVariable &runtime : map.runtimes())
    symbolBounds.push_back(runtime.bounds);
  if (!useConstraints)
    return;
  for (auto [index, constraint] : llvm::enumerate(map.constraints())) {
    if (index == skipped)
      continue;
    LinearSum sum = LinearSum::of(constraint.first);
    if (sum.overflowed || sum.isConstant())
      continue;
    Interval interval = constraint.second + Interval{-sum.constant, -sum.constant};
    sum.constant = 0;
    facts.push_back({std::move(sum), interval});
  }
}

Interval DomainRanges::of(AffineExpr expression) {
  switch (expression.getKind()) {
  case AffineExprKind::Constant: {
    int64_t value = llvm::cast<mlir::AffineConstantExpr>(expression).getValue();
    return {value, value};
  }
  case AffineExprKind::Add:
  case AffineExprKind::Mul:
    return of(LinearSum::of(expression));
  default:
    return ofAtom(expression);
  }
}

Interval DomainRanges::of(const LinearSum &sum) {
  if (sum.overflowed)
    return unboundedInterval();
  Interval result{sum.constant, sum.constant};
  for (const LinearSum::Term &term : sum.terms)
    result = result + ofAtom(term.atom) * Interval{term.coefficient, term.coefficient};
  if (sum.terms.size() > 1)
    for (const Fact &fact : facts)
      if (fact.sum.terms.size() > 1)
        result = result.intersect(ofSumByFact(sum, fact));
  return result;
}

/// The range of `sum` = factor * fact + rest, if the fact divides out; else everything.
Interval DomainRanges::ofSumByFact(const LinearSum &sum, const Fact &fact) {
  const LinearSum::Term &first = fact.sum.terms.front();
  int64_t coefficient = sum.coefficientOf(first.atom);
  if (coefficient == 0 || coefficient % first.coefficient != 0)
    return unboundedInterval();
  int64_t factor = coefficient / first.coefficient;
  if (!sum.containsTerms(fact.sum, factor))
    return unboundedInterval();
  Interval result = Interval{sum.constant, sum.constant} + fact.interval * Interval{factor, factor};
  for (const LinearSum::Term &term : sum.terms)
    if (fact.sum.coefficientOf(term.atom) == 0)
      result = result + ofAtom(term.atom) * Interval{term.coefficient, term.coefficient};
  return result;
}

Interval DomainRanges::ofAtom(AffineExpr atom) {
  if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(atom))
    return dimBounds[dim.getPosition()];
  if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(atom))
    return symbolBounds[symbol.getPosition()];
  if (auto known = atomRanges.find(atom); known != atomRanges.end())
    return known->second;

  Interval result = unboundedInterval();
  if (int64_t divisor = positiveDivisor(atom)) {
    Interval inner = of(llvm::cast<AffineBinaryOpExpr>(atom).getLHS());
    Interval quotient = floorDivide(inner, divisor);
    if (atom.getKind() == AffineExprKind::FloorDiv)
      result = quotient;
    else if (atom.getKind() == AffineExprKind::CeilDiv)
      result = floorDivide(inner + Interval{divisor - 1, divisor - 1}, divisor);
    else if (atom.getKind() == AffineExprKind::Mod)
      result = isKnownPoint(quotient) ? inner + quotient * Interval{-divisor, -divisor} : Interval{0, divisor - 1};
  }
  for (const Fact &fact : facts)
    if (fact.sum.terms.size() == 1 && fact.sum.terms.front().atom == atom && fact.sum.terms.front().coefficient == 1)
      result = result.intersect(fact.interval);
  atomRanges[atom] = result;
  return result;
}
