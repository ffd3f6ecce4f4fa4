#include "indexing/LinearSum.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numeric>

using namespace hloc;
using mlir::AffineBinaryOpExpr;
using mlir::AffineConstantExpr;
using mlir::AffineExpr;
using mlir::AffineExprKind;

// Negating the smallest integer overflows: it counts as overflow too, so that no rule has to think of it.
static constexpr int64_t smallest = std::numeric_limits<int64_t>::min();

void LinearSum::addConstant(int64_t value) {
  overflowed |= llvm::AddOverflow(constant, value, constant) || constant == smallest;
}

void LinearSum::addTerm(AffineExpr atom, int64_t coefficient) {
  for (auto [index, term] : llvm::enumerate(terms)) {
    if (term.atom != atom)
      continue;
    overflowed |= llvm::AddOverflow(term.coefficient, coefficient, term.coefficient) || term.coefficient == smallest;
    if (term.coefficient == 0)
      terms.erase(terms.begin() + index);
    return;
  }
  if (coefficient != 0)
    terms.push_back({atom, coefficient});
  overflowed |= coefficient == smallest;
}

void LinearSum::add(AffineExpr expression, int64_t factor) {
  auto binary = llvm::dyn_cast<AffineBinaryOpExpr>(expression);
  if (expression.getKind() == AffineExprKind::Add) {
    add(binary.getLHS(), factor);
    add(binary.getRHS(), factor);
    return;
  }
  int64_t product;
  if (auto value = llvm::dyn_cast<AffineConstantExpr>(expression)) {
    overflowed |= llvm::MulOverflow(value.getValue(), factor, product);
    addConstant(product);
    return;
  }
  if (expression.getKind() == AffineExprKind::Mul) {
    if (auto value = llvm::dyn_cast<AffineConstantExpr>(binary.getRHS())) {
      overflowed |= llvm::MulOverflow(value.getValue(), factor, product);
      add(binary.getLHS(), product);
      return;
    }
  }
  addTerm(expression, factor);
}

void LinearSum::add(const LinearSum &other, int64_t factor) {
  overflowed |= other.overflowed;
  int64_t product;
  for (const Term &term : other.terms) {
    overflowed |= llvm::MulOverflow(term.coefficient, factor, product);
    addTerm(term.atom, product);
  }
  overflowed |= llvm::MulOverflow(other.constant, factor, product);
  addConstant(product);
}

int64_t LinearSum::coefficientOf(AffineExpr atom) const {
  for (const Term &term : terms)
    if (term.atom == atom)
      return term.coefficient;
  return 0;
}

bool LinearSum::containsTerms(const LinearSum &part, int64_t factor) const {
  return llvm::all_of(part.terms, [&](const Term &term) {
    int64_t product;
    return !llvm::MulOverflow(term.coefficient, factor, product) && coefficientOf(term.atom) == product;
  });
}

int64_t LinearSum::coefficientGcd() const {
  int64_t gcd = 0;
  for (const Term &term : terms)
    gcd = std::gcd(gcd, term.coefficient);
  return gcd;
}

void LinearSum::sortTerms() {
  if (terms.size() > 1)
    llvm::sort(terms, [](const Term &a, const Term &b) { return compareExpressions(a.atom, b.atom) < 0; });
}

AffineExpr LinearSum::toExpr(mlir::MLIRContext *context) const {
  LinearSum sorted = *this;
  sorted.sortTerms();
  AffineExpr result;
  for (const Term &term : sorted.terms) {
    AffineExpr product = term.coefficient == 1 ? term.atom : term.atom * term.coefficient;
    result = result ? result + product : product;
  }
  if (!result)
    return mlir::getAffineConstantExpr(constant, context);
  return constant == 0 ? result : result + constant;
}

LinearSum LinearSum::of(AffineExpr expression) {
  LinearSum sum;
  sum.add(expression);
  return sum;
}

/// Dims-containing before symbolic, variables before operations, then constants.
static int expressionRank(AffineExpr expression) {
  int symbolic = expression.isSymbolicOrConstant() ? 8 : 0;
  switch (expression.getKind()) {
  case AffineExprKind::DimId:
  case AffineExprKind::SymbolId:
    return symbolic;
  case AffineExprKind::Add:
    return symbolic + 1;
  case AffineExprKind::Mul:
    return symbolic + 2;
  case AffineExprKind::FloorDiv:
    return symbolic + 3;
  case AffineExprKind::CeilDiv:
    return symbolic + 4;
  case AffineExprKind::Mod:
    return symbolic + 5;
  case AffineExprKind::Constant:
    return symbolic + 6;
  }
  llvm_unreachable("all kinds handled");
}

static int compareNumbers(int64_t a, int64_t b) { return a < b ? -1 : (a > b ? 1 : 0); }

int hloc::compareExpressions(AffineExpr a, AffineExpr b) {
  if (a == b)
    return 0;
  if (int order = compareNumbers(expressionRank(a), expressionRank(b)))
    return order;
  if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(a))
    return compareNumbers(dim.getPosition(), llvm::cast<mlir::AffineDimExpr>(b).getPosition());
  if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(a))
    return compareNumbers(symbol.getPosition(), llvm::cast<mlir::AffineSymbolExpr>(b).getPosition());
  if (auto value = llvm::dyn_cast<AffineConstantExpr>(a))
    return compareNumbers(value.getValue(), llvm::cast<AffineConstantExpr>(b).getValue());
  auto left = llvm::cast<AffineBinaryOpExpr>(a), right = llvm::cast<AffineBinaryOpExpr>(b);
  if (int order = compareExpressions(left.getLHS(), right.getLHS()))
    return order;
  return compareExpressions(left.getRHS(), right.getRHS());
}

int64_t hloc::positiveDivisor(AffineExpr expression) {
  auto binary = llvm::dyn_cast<AffineBinaryOpExpr>(expression);
  if (!binary)
    return 0;
  auto value = llvm::dyn_cast<AffineConstantExpr>(binary.getRHS());
  return value && value.getValue() > 0 ? value.getValue() : 0;
}
