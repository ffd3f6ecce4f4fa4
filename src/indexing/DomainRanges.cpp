#include "indexing/DomainRanges.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace hloc;
using mlir::AffineBinaryOpExpr;
using mlir::AffineExpr;
using mlir::AffineExprKind;

/// Facts tried for one sum. Facts that overlap combine in exponentially many ways; a few are what real maps need.
static constexpr unsigned factBudget = 48;

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
    addFact(std::move(sum), interval);
  }
}

/// Adds the fact, and what it says without the division if it has exactly one:
/// x floordiv a + r in [l, u] is x + r * a in [l * a, u * a + a - 1].
void DomainRanges::addFact(LinearSum sum, Interval interval) {
  facts.push_back({sum, interval});
  const LinearSum::Term *division = nullptr;
  for (const LinearSum::Term &term : sum.terms) {
    if (term.atom.getKind() != AffineExprKind::FloorDiv || !positiveDivisor(term.atom))
      continue;
    if (division || term.coefficient != 1)
      return;
    division = &term;
  }
  if (!division)
    return;
  int64_t divisor = positiveDivisor(division->atom);
  LinearSum joined = joinDivision(sum, *division, 1);
  Interval scaled = interval * Interval{divisor, divisor};
  if (scaled.upper != unboundedInterval().upper)
    scaled = scaled + Interval{0, divisor - 1};
  scaled = scaled + Interval{-joined.constant, -joined.constant};
  joined.constant = 0;
  if (!joined.overflowed && !joined.isConstant())
    addFact(std::move(joined), scaled);
}

/// With `division` = (x floordiv a) * k, and every coefficient of `sum` a multiple of k: x + (sum / k - x floordiv a) *
/// a, whose floordiv by a is sum / k.
LinearSum DomainRanges::joinDivision(const LinearSum &sum, const LinearSum::Term &division, int64_t factor) {
  LinearSum joined;
  int64_t divisor = positiveDivisor(division.atom), product;
  for (const LinearSum::Term &term : sum.terms) {
    joined.overflowed |= llvm::MulOverflow(term.coefficient / factor, divisor, product);
    if (term.atom != division.atom)
      joined.addTerm(term.atom, product);
  }
  joined.add(llvm::cast<AffineBinaryOpExpr>(division.atom).getLHS());
  return joined;
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
  unsigned budget = factBudget;
  return ofSum(sum, 0, budget);
}

/// If `sum` = factor * fact + rest for some factor, that factor; else 0.
static int64_t factorOf(const LinearSum &fact, const LinearSum &sum) {
  const LinearSum::Term &first = fact.terms.front();
  int64_t coefficient = sum.coefficientOf(first.atom);
  if (coefficient == 0 || coefficient % first.coefficient != 0)
    return 0;
  int64_t factor = coefficient / first.coefficient;
  return sum.containsTerms(fact, factor) ? factor : 0;
}

/// The best of: term by term, and for each fact from number `firstFact` on that divides out, that fact plus the rest.
Interval DomainRanges::ofSum(const LinearSum &sum, size_t firstFact, unsigned &budget) {
  if (sum.overflowed)
    return unboundedInterval();
  Interval result{sum.constant, sum.constant};
  for (const LinearSum::Term &term : sum.terms)
    result = result + ofAtom(term.atom) * Interval{term.coefficient, term.coefficient};
  if (sum.terms.size() < 2)
    return result;
  for (size_t i = firstFact; i < facts.size(); ++i) {
    const Fact &fact = facts[i];
    int64_t factor = fact.sum.terms.size() > 1 ? factorOf(fact.sum, sum) : 0;
    if (factor == 0)
      continue;
    if (budget == 0)
      return result;
    --budget;
    LinearSum rest = sum;
    rest.add(fact.sum, -factor);
    result = result.intersect(fact.interval * Interval{factor, factor} + ofSum(rest, i + 1, budget));
  }
  return facts.empty() ? result : result.intersect(ofSumByJoining(sum, budget));
}

/// (x floordiv a) * k + r * k + rest = ((x + r * a) floordiv a) * k + rest, where a fact may be known of x + r * a.
Interval DomainRanges::ofSumByJoining(const LinearSum &sum, unsigned &budget) {
  Interval result = unboundedInterval();
  for (const LinearSum::Term &division : sum.terms) {
    if (division.atom.getKind() != AffineExprKind::FloorDiv || !positiveDivisor(division.atom))
      continue;
    LinearSum group, rest;
    for (const LinearSum::Term &term : sum.terms)
      (term.coefficient % division.coefficient == 0 ? group : rest).terms.push_back(term);
    if (group.terms.size() < 2)
      continue;
    if (budget == 0)
      return result;
    --budget;
    rest.constant = sum.constant;
    Interval joined = ofSum(joinDivision(group, division, division.coefficient), 0, budget);
    Interval factor{division.coefficient, division.coefficient};
    result = result.intersect(floorDivide(joined, positiveDivisor(division.atom)) * factor + ofSum(rest, 0, budget));
  }
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
