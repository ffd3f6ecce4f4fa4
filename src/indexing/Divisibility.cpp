#include "hloc/indexing/Divisibility.h"
#include "indexing/ExpressionSimplifier.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstdlib>
#include <numeric>

using namespace hloc;
using mlir::AffineExpr;
using mlir::AffineExprKind;

namespace {

class Analysis {
public:
  explicit Analysis(const IndexingMap &map) : map(map), ranges(map), simplifier(ranges, map.context()) {}

  AffineExpr simplify(AffineExpr expression) { return simplifier.simplify(expression); }
  int64_t divisor(const LinearSum &sum);
  int64_t divisorWithoutMods(LinearSum sum, llvm::function_ref<bool(const LinearSum::Term &)> chosen);
  int64_t divisorOfAtom(AffineExpr atom);
  int64_t findDivisorOfAtom(AffineExpr atom);
  std::optional<int64_t> stride(const LinearSum &sum, AffineExpr variable);
  std::optional<int64_t> strideOfAtom(AffineExpr atom, AffineExpr variable);

private:
  bool staysInBlock(const LinearSum &sum, AffineExpr variable, int64_t stride, int64_t divisor);
  int64_t divisorByConstraint(AffineExpr atom);

  const IndexingMap &map;
  DomainRanges ranges;
  ExpressionSimplifier simplifier;
  llvm::DenseMap<AffineExpr, int64_t> divisors; ///< of atoms: each is looked at once, however deep it is nested
};

} // namespace

int64_t Analysis::divisor(const LinearSum &sum) {
  if (sum.overflowed)
    return 1;
  int64_t result = std::abs(sum.constant);
  for (const LinearSum::Term &term : sum.terms) {
    int64_t factor = divisorOfAtom(term.atom), product;
    if (llvm::MulOverflow(factor, std::abs(term.coefficient), product))
      product = std::abs(term.coefficient);
    result = std::gcd(result, product);
  }
  if (result == 0)
    return 0;
  auto isMod = [](const LinearSum::Term &term) { return term.atom.getKind() == AffineExprKind::Mod; };
  result = std::max(result, divisorWithoutMods(sum, isMod));
  // One may cancel against others: `x - x mod 4` where x has a mod of its own.
  if (llvm::count_if(sum.terms, isMod) > 1)
    for (const LinearSum::Term &one : llvm::make_filter_range(sum.terms, isMod))
      result =
          std::max(result, divisorWithoutMods(sum, [&](const LinearSum::Term &term) { return term.atom == one.atom; }));
  return result;
}

/// x mod m differs from x by a multiple of m: what is left of `d0 - d0 mod 4` is a multiple of 4. Of those mods that
/// are `chosen`.
int64_t Analysis::divisorWithoutMods(LinearSum sum, llvm::function_ref<bool(const LinearSum::Term &)> chosen) {
  int64_t moduli = 0;
  for (const LinearSum::Term &term : LinearSum(sum).terms) {
    int64_t modulus = positiveDivisor(term.atom), product;
    if (!modulus || !chosen(term) || llvm::MulOverflow(modulus, std::abs(term.coefficient), product))
      continue;
    moduli = std::gcd(moduli, product);
    sum.addTerm(term.atom, -term.coefficient);
    sum.add(llvm::cast<mlir::AffineBinaryOpExpr>(term.atom).getLHS(), term.coefficient);
  }
  if (moduli == 0 || sum.overflowed)
    return 1;
  int64_t result = std::gcd(moduli, std::abs(sum.constant));
  for (const LinearSum::Term &term : sum.terms) {
    int64_t factor = divisorOfAtom(term.atom), product;
    result = std::gcd(
        result, llvm::MulOverflow(factor, std::abs(term.coefficient), product) ? std::abs(term.coefficient) : product);
  }
  return result;
}

/// A constraint `atom mod m in [0, 0]` makes m a divisor.
int64_t Analysis::divisorByConstraint(AffineExpr atom) {
  int64_t result = 1;
  for (const IndexingMap::Constraint &constraint : map.constraints()) {
    int64_t modulus = positiveDivisor(constraint.first);
    if (constraint.first.getKind() == AffineExprKind::Mod && modulus && constraint.second == Interval{0, 0} &&
        llvm::cast<mlir::AffineBinaryOpExpr>(constraint.first).getLHS() == atom)
      result = std::lcm(result, modulus);
  }
  return result;
}

int64_t Analysis::divisorOfAtom(AffineExpr atom) {
  if (auto known = divisors.find(atom); known != divisors.end())
    return known->second;
  return divisors[atom] = findDivisorOfAtom(atom);
}

int64_t Analysis::findDivisorOfAtom(AffineExpr atom) {
  if (Interval range = ranges.of(atom); isKnownPoint(range))
    return std::abs(range.lower);
  int64_t result = divisorByConstraint(atom), modulus = positiveDivisor(atom);
  if (!modulus)
    return result;
  int64_t inner = divisor(LinearSum::of(llvm::cast<mlir::AffineBinaryOpExpr>(atom).getLHS()));
  if (atom.getKind() == AffineExprKind::Mod)
    return std::max(result, std::gcd(inner, modulus));
  if (atom.getKind() == AffineExprKind::FloorDiv || atom.getKind() == AffineExprKind::CeilDiv)
    return std::max(result, inner % modulus == 0 ? inner / modulus : 1);
  return result;
}

std::optional<int64_t> Analysis::stride(const LinearSum &sum, AffineExpr variable) {
  if (sum.overflowed)
    return std::nullopt;
  int64_t result = 0;
  for (const LinearSum::Term &term : sum.terms) {
    std::optional<int64_t> part = strideOfAtom(term.atom, variable);
    int64_t product;
    if (!part || llvm::MulOverflow(*part, term.coefficient, product) || llvm::AddOverflow(result, product, result))
      return std::nullopt;
  }
  return result;
}

static bool dependsOn(AffineExpr expression, AffineExpr variable) {
  if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(variable))
    return expression.isFunctionOfDim(dim.getPosition());
  return expression.isFunctionOfSymbol(llvm::cast<mlir::AffineSymbolExpr>(variable).getPosition());
}

std::optional<int64_t> Analysis::strideOfAtom(AffineExpr atom, AffineExpr variable) {
  if (atom == variable)
    return 1;
  if (!dependsOn(atom, variable))
    return 0;
  int64_t divisor = positiveDivisor(atom);
  AffineExprKind kind = atom.getKind();
  if (!divisor || (kind != AffineExprKind::FloorDiv && kind != AffineExprKind::Mod))
    return std::nullopt;
  LinearSum inner = LinearSum::of(llvm::cast<mlir::AffineBinaryOpExpr>(atom).getLHS());
  std::optional<int64_t> step = stride(inner, variable);
  if (!step)
    return std::nullopt;
  bool isMod = kind == AffineExprKind::Mod;
  if (*step % divisor == 0)
    return isMod ? 0 : *step / divisor;
  if (staysInBlock(inner, variable, *step, divisor))
    return isMod ? *step : 0;
  return std::nullopt;
}

/// Whether sum floordiv divisor keeps its value while `variable` runs over its bounds: the lowest value of each run is
/// start = multiple of g + r with g a divisor of `divisor`, so start mod divisor <= divisor - g + r, and the run is
/// |stride| * (size - 1) long.
bool Analysis::staysInBlock(const LinearSum &sum, AffineExpr variable, int64_t stride, int64_t divisor) {
  Interval bounds = ranges.of(variable);
  Interval length = Interval{std::abs(stride), std::abs(stride)} * Interval{bounds.size() - 1, bounds.size() - 1};
  if (length.upper >= divisor)
    return false;
  int64_t lowest = stride > 0 ? bounds.lower : bounds.upper;
  AffineExpr point = mlir::getAffineConstantExpr(lowest, map.context());
  AffineExpr start = simplify(sum.toExpr(map.context()).replace(variable, point));
  LinearSum startSum = LinearSum::of(start);
  int64_t residue = startSum.constant;
  startSum.constant = 0;
  int64_t unit = std::gcd(this->divisor(startSum), divisor);
  residue = residue - llvm::divideFloorSigned(residue, unit) * unit;
  return residue + length.upper < unit;
}

int64_t hloc::knownDivisor(AffineExpr expression, const IndexingMap &map) {
  if (map.isKnownEmpty())
    return 0;
  Analysis analysis(map);
  return analysis.divisor(LinearSum::of(analysis.simplify(expression)));
}

std::optional<int64_t> hloc::strideOf(AffineExpr expression, AffineExpr variable, const IndexingMap &map) {
  if (map.isKnownEmpty())
    return 0;
  Analysis analysis(map);
  return analysis.stride(LinearSum::of(analysis.simplify(expression)), variable);
}

/// Sides are a matter of the sign of expression - bound, and a quotient that stays keeps its sign.
bool hloc::isSameSide(AffineExpr expression, int64_t bound, AffineExpr variable, const IndexingMap &map) {
  Interval range = map.range(expression);
  if (range.upper < bound || range.lower >= bound)
    return true;
  uint64_t points = std::min<uint64_t>(map.range(variable).size(), uint64_t(1) << 32);
  AffineExpr quotient = (expression - bound).floorDiv(int64_t(llvm::bit_ceil(points)));
  return strideOf(quotient, variable, map) == 0;
}

std::optional<int64_t> hloc::offsetInWideVectors(AffineExpr expression, const IndexingMap &map, int64_t spacing,
                                                 int64_t length, unsigned bits, int64_t elements) {
  int64_t most = 128 / bits, longest = 256 / bits;
  for (int64_t offset = 0; offset < spacing; ++offset) {
    int64_t divisor = knownDivisor(expression - offset, map);
    int64_t aligned = divisor == 0 ? longest : std::min(divisor & -divisor, longest);
    if (std::min({aligned, most, length & -length}) >= 2 * spacing && elements % aligned == 0)
      return offset;
  }
  return std::nullopt;
}
