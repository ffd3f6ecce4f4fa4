#include "indexing/ExpressionSimplifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace hloc;
using mlir::AffineBinaryOpExpr;
using mlir::AffineExpr;
using mlir::AffineExprKind;

AffineExpr ExpressionSimplifier::simplify(AffineExpr expression) {
  gaveUp = false;
  AffineExpr result = visit(expression);
  if (!gaveUp)
    return result;
  memo.clear();
  return expression;
}

AffineExpr ExpressionSimplifier::visit(AffineExpr expression) {
  if (llvm::isa<mlir::AffineConstantExpr>(expression))
    return expression;
  if (auto known = memo.find(expression); known != memo.end())
    return known->second;
  AffineExpr result;
  if (expression.getKind() == AffineExprKind::Add || expression.getKind() == AffineExprKind::Mul) {
    LinearSum sum;
    visitSum(expression, 1, sum);
    result = finish(std::move(sum));
  } else {
    result = visitAtom(expression);
  }
  memo[expression] = result;
  memo[result] = result;
  return result;
}

/// Adds `factor` times the simplified expression.
void ExpressionSimplifier::visitSum(AffineExpr expression, int64_t factor, LinearSum &sum) {
  auto binary = llvm::dyn_cast<AffineBinaryOpExpr>(expression);
  if (expression.getKind() == AffineExprKind::Add) {
    visitSum(binary.getLHS(), factor, sum);
    visitSum(binary.getRHS(), factor, sum);
    return;
  }
  if (expression.getKind() == AffineExprKind::Mul) {
    auto value = llvm::dyn_cast<mlir::AffineConstantExpr>(binary.getRHS());
    int64_t product = 0;
    if (value && !llvm::MulOverflow(value.getValue(), factor, product)) {
      visitSum(binary.getLHS(), product, sum);
      return;
    }
    gaveUp |= bool(value);
  }
  sum.add(visitAtom(expression), factor);
}

AffineExpr ExpressionSimplifier::visitAtom(AffineExpr atom) {
  if (llvm::isa<mlir::AffineConstantExpr>(atom))
    return atom;
  if (auto known = memo.find(atom); known != memo.end())
    return known->second;
  AffineExpr result = atom;
  int64_t divisor = positiveDivisor(atom);
  if (atom.getKind() == AffineExprKind::DimId || atom.getKind() == AffineExprKind::SymbolId) {
    if (Interval range = ranges.of(atom); isKnownPoint(range))
      result = mlir::getAffineConstantExpr(range.lower, context);
  } else if (divisor && atom.getKind() != AffineExprKind::Mul) {
    LinearSum inner;
    visitSum(llvm::cast<AffineBinaryOpExpr>(atom).getLHS(), 1, inner);
    combineDigits(inner);
    if (atom.getKind() == AffineExprKind::CeilDiv)
      inner.addConstant(divisor - 1);
    result =
        atom.getKind() == AffineExprKind::Mod ? mod(std::move(inner), divisor) : floorDiv(std::move(inner), divisor);
  }
  memo[atom] = result;
  return result;
}

AffineExpr ExpressionSimplifier::finish(LinearSum sum) {
  combineDigits(sum);
  gaveUp |= sum.overflowed;
  if (sum.overflowed)
    return mlir::getAffineConstantExpr(0, context);
  if (Interval range = ranges.of(sum); isKnownPoint(range))
    return mlir::getAffineConstantExpr(range.lower, context);
  return sum.toExpr(context);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Division rules: sum floordiv c, sum mod c
//===--------------------------------------------------------------------------------------------------------------===//

namespace {

/// A sum cut in two: every high term is a multiple of `unit`, and low lies in [carry * unit, carry * unit + unit - 1].
/// So low cannot carry into the digits above `unit`.
struct Split {
  int64_t unit;
  int64_t carry;
  LinearSum high, low;
};

} // namespace

/// Cuts `sum` at the largest unit > 1 that divides `divisor` and under which no carry happens.
static std::optional<Split> splitWithoutCarry(const LinearSum &sum, int64_t divisor, DomainRanges &ranges) {
  llvm::SmallVector<int64_t, 6> units;
  for (const LinearSum::Term &term : sum.terms)
    units.push_back(std::gcd(term.coefficient, divisor));
  llvm::sort(units, std::greater<>());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  for (int64_t unit : units) {
    if (unit == 1)
      break;
    Split split{unit, 0, {}, {}};
    for (const LinearSum::Term &term : sum.terms)
      (term.coefficient % unit == 0 ? split.high : split.low).terms.push_back(term);
    split.low.constant = sum.constant - llvm::divideFloorSigned(sum.constant, unit) * unit;
    split.high.constant = sum.constant - split.low.constant;
    Interval carry = floorDivide(ranges.of(split.low), unit);
    if (!isKnownPoint(carry))
      continue;
    split.carry = carry.lower;
    return split;
  }
  return std::nullopt;
}

/// (sum + c * extra) / unit, where all coefficients of `sum` are multiples of `unit`.
static LinearSum divideExactly(const LinearSum &sum, int64_t unit, int64_t extra) {
  LinearSum result;
  for (const LinearSum::Term &term : sum.terms)
    result.terms.push_back({term.atom, term.coefficient / unit});
  result.constant = sum.constant / unit;
  result.addConstant(extra);
  return result;
}

/// If all values of `sum` lie in one block [q * divisor, (q + 1) * divisor), adds q to `quotient` and subtracts it
/// here.
bool ExpressionSimplifier::reduceByRange(LinearSum &sum, int64_t divisor, LinearSum &quotient) {
  Interval block = floorDivide(ranges.of(sum), divisor);
  if (!isKnownPoint(block))
    return false;
  int64_t offset;
  sum.overflowed |= llvm::MulOverflow(block.lower, -divisor, offset);
  sum.addConstant(offset);
  quotient.addConstant(block.lower);
  return true;
}

AffineExpr ExpressionSimplifier::floorDiv(LinearSum sum, int64_t divisor) {
  LinearSum quotient;
  if (gaveUp |= sum.overflowed; gaveUp)
    return mlir::getAffineConstantExpr(0, context);
  if (divisor == 1)
    return finish(std::move(sum));
  if (reduceByRange(sum, divisor, quotient))
    return finish(std::move(quotient));

  // Whole multiples leave the division.
  LinearSum rest;
  for (const LinearSum::Term &term : sum.terms)
    if (term.coefficient % divisor == 0)
      quotient.terms.push_back({term.atom, term.coefficient / divisor});
    else
      rest.terms.push_back(term);
  quotient.constant = llvm::divideFloorSigned(sum.constant, divisor);
  rest.constant = sum.constant - quotient.constant * divisor;
  if (rest.terms.empty() || reduceByRange(rest, divisor, quotient))
    return finish(std::move(quotient));

  AffineExpr reduced;
  if (std::optional<Split> split = splitWithoutCarry(rest, divisor, ranges))
    reduced = floorDiv(divideExactly(split->high, split->unit, split->carry), divisor / split->unit);
  else if (!(reduced = floorDivOfInnerDivision(rest, divisor)) && !(reduced = floorDivOfMod(rest, divisor)))
    reduced = rest.toExpr(context).floorDiv(divisor);
  quotient.add(reduced);
  return finish(std::move(quotient));
}

/// (x floordiv a + r) floordiv c -> (x + r * a) floordiv (a * c), if there is exactly one inner division.
AffineExpr ExpressionSimplifier::floorDivOfInnerDivision(const LinearSum &sum, int64_t divisor) {
  const LinearSum::Term *inner = nullptr;
  for (const LinearSum::Term &term : sum.terms) {
    if (term.atom.getKind() != AffineExprKind::FloorDiv || !positiveDivisor(term.atom))
      continue;
    if (inner || term.coefficient != 1)
      return {};
    inner = &term;
  }
  if (!inner)
    return {};
  int64_t innerDivisor = positiveDivisor(inner->atom), product;
  if (llvm::MulOverflow(innerDivisor, divisor, product))
    return {};
  LinearSum scaled;
  scaled.add(sum, innerDivisor);
  scaled.addTerm(inner->atom, -innerDivisor);
  scaled.add(llvm::cast<AffineBinaryOpExpr>(inner->atom).getLHS());
  if (scaled.overflowed)
    return {};
  combineDigits(scaled);
  return floorDiv(std::move(scaled), product);
}

/// ((x mod m) * k + low) floordiv c -> ((x * k + low) floordiv c) mod (m * k / c), if 0 <= low < k and c divides m * k:
/// the dividend is (x * k + low) mod (m * k). In particular (x mod (a * b)) floordiv a -> (x floordiv a) mod b.
AffineExpr ExpressionSimplifier::floorDivOfMod(const LinearSum &sum, int64_t divisor) {
  for (const LinearSum::Term &term : sum.terms) {
    int64_t modulus = term.atom.getKind() == AffineExprKind::Mod ? positiveDivisor(term.atom) : 0, whole;
    if (!modulus || term.coefficient < 1 || llvm::MulOverflow(modulus, term.coefficient, whole) || whole % divisor != 0)
      continue;
    LinearSum low = sum;
    low.addTerm(term.atom, -term.coefficient);
    if (!Interval{0, term.coefficient - 1}.contains(ranges.of(low)))
      continue;
    low.add(llvm::cast<AffineBinaryOpExpr>(term.atom).getLHS(), term.coefficient);
    combineDigits(low);
    return mod(LinearSum::of(floorDiv(std::move(low), divisor)), whole / divisor);
  }
  return {};
}

AffineExpr ExpressionSimplifier::mod(LinearSum sum, int64_t divisor) {
  LinearSum ignored;
  if (gaveUp |= sum.overflowed; gaveUp || divisor == 1)
    return mlir::getAffineConstantExpr(0, context);
  if (reduceByRange(sum, divisor, ignored))
    return finish(std::move(sum));

  // Coefficients and the constant count modulo the divisor only.
  LinearSum rest;
  for (const LinearSum::Term &term : sum.terms)
    if (term.coefficient % divisor != 0)
      rest.terms.push_back(term);
  rest.constant = sum.constant - llvm::divideFloorSigned(sum.constant, divisor) * divisor;
  if (replaceInnerMods(rest, divisor))
    return mod(std::move(rest), divisor);
  if (reduceByRange(rest, divisor, ignored))
    return finish(std::move(rest));

  std::optional<Split> split = splitWithoutCarry(rest, divisor, ranges);
  if (!split)
    return finish(LinearSum::of(rest.toExpr(context) % divisor));
  AffineExpr digit = mod(divideExactly(split->high, split->unit, split->carry), divisor / split->unit);
  LinearSum result = std::move(split->low);
  result.addConstant(-split->carry * split->unit);
  result.add(digit, split->unit);
  return finish(std::move(result));
}

/// Under `mod divisor`, (x mod a) * k counts as x * k if divisor divides a * k.
bool ExpressionSimplifier::replaceInnerMods(LinearSum &sum, int64_t divisor) {
  LinearSum result;
  result.constant = sum.constant;
  bool changed = false;
  for (const LinearSum::Term &term : sum.terms) {
    int64_t product, inner = term.atom.getKind() == AffineExprKind::Mod ? positiveDivisor(term.atom) : 0;
    if (inner && !llvm::MulOverflow(inner, term.coefficient, product) && product % divisor == 0) {
      result.add(llvm::cast<AffineBinaryOpExpr>(term.atom).getLHS(), term.coefficient);
      changed = true;
    } else {
      result.addTerm(term.atom, term.coefficient);
    }
  }
  if (changed) {
    combineDigits(result);
    sum = std::move(result);
  }
  return changed;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Sum rules: digits of one number add up to the number
//===--------------------------------------------------------------------------------------------------------------===//

void ExpressionSimplifier::combineDigits(LinearSum &sum) {
  // Each success removes a floordiv or a mod from the sum or merges two; the limit only guards against surprises.
  constexpr int roundLimit = 64;
  bool changed = sum.terms.size() > 1;
  for (int round = 0; changed && !sum.overflowed && round < roundLimit; ++round) {
    changed = false;
    for (size_t i = 0; i < sum.terms.size() && !changed; ++i) {
      AffineExprKind kind = sum.terms[i].atom.getKind();
      if (!positiveDivisor(sum.terms[i].atom))
        continue;
      changed = (kind == AffineExprKind::Mod && combineModTerm(sum, i)) ||
                (kind == AffineExprKind::FloorDiv && combineDivTerm(sum, i));
    }
  }
}

/// With D = x floordiv c, and term number `index` (x mod c) * k:
///   (x mod c) * k + D * (c * k)                -> x * k
///   (x mod c) * k + ((D + w) mod b) * (c * k)  -> ((x + w * c) mod (b * c)) * k
bool ExpressionSimplifier::combineModTerm(LinearSum &sum, size_t index) {
  AffineExpr atom = sum.terms[index].atom;
  int64_t factor = sum.terms[index].coefficient, divisor = positiveDivisor(atom), scaled;
  if (llvm::MulOverflow(factor, divisor, scaled))
    return false;
  bool plausible = llvm::any_of(sum.terms, [&](const LinearSum::Term &term) { return term.coefficient % scaled == 0; });
  if (!plausible)
    return false;
  AffineExpr dividend = llvm::cast<AffineBinaryOpExpr>(atom).getLHS();
  LinearSum above = LinearSum::of(floorDiv(LinearSum::of(dividend), divisor));
  if (above.overflowed || above.terms.empty())
    return false;

  if (sum.containsTerms(above, scaled)) {
    sum.add(above, -scaled);
    sum.addTerm(atom, -factor);
    sum.add(dividend, factor);
    return true;
  }
  for (const LinearSum::Term &term : sum.terms) {
    int64_t outer = positiveDivisor(term.atom), product;
    if (term.coefficient != scaled || term.atom.getKind() != AffineExprKind::Mod || !outer ||
        llvm::MulOverflow(outer, divisor, product))
      continue;
    LinearSum digit = LinearSum::of(llvm::cast<AffineBinaryOpExpr>(term.atom).getLHS());
    if (!digit.containsTerms(above, 1))
      continue;
    digit.add(above, -1);
    LinearSum whole = LinearSum::of(dividend);
    whole.add(digit, divisor);
    AffineExpr merged = mod(std::move(whole), product);
    sum.addTerm(term.atom, -scaled);
    sum.addTerm(atom, -factor);
    sum.add(merged, factor);
    return true;
  }
  return false;
}

/// x * k - (x floordiv c) * (c * k) -> (x mod c) * k, for term number `index`.
bool ExpressionSimplifier::combineDivTerm(LinearSum &sum, size_t index) {
  AffineExpr atom = sum.terms[index].atom;
  int64_t coefficient = sum.terms[index].coefficient, divisor = positiveDivisor(atom);
  if (coefficient % divisor != 0)
    return false;
  int64_t factor = -(coefficient / divisor);
  LinearSum dividend = LinearSum::of(llvm::cast<AffineBinaryOpExpr>(atom).getLHS());
  if (dividend.overflowed || !sum.containsTerms(dividend, factor))
    return false;
  sum.addTerm(atom, -coefficient);
  sum.add(dividend, -factor);
  sum.add(mod(std::move(dividend), divisor), factor);
  return true;
}
