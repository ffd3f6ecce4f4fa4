// compose(): substitution with memory, so that a subexpression shared by many results is rewritten once.

#include "hloc/support/Check.h"
#include "indexing/DomainRanges.h"

#include "llvm/ADT/STLExtras.h"

using namespace hloc;
using mlir::AffineExpr;
using mlir::AffineExprKind;

namespace {

class Substitution {
public:
  Substitution(llvm::ArrayRef<AffineExpr> dims, llvm::ArrayRef<AffineExpr> symbols) : dims(dims), symbols(symbols) {}

  AffineExpr operator()(AffineExpr expression) {
    if (llvm::isa<mlir::AffineConstantExpr>(expression))
      return expression;
    if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(expression))
      return dims[dim.getPosition()];
    if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(expression))
      return symbols[symbol.getPosition()];
    if (auto known = memo.find(expression); known != memo.end())
      return known->second;
    auto binary = llvm::cast<mlir::AffineBinaryOpExpr>(expression);
    AffineExpr left = (*this)(binary.getLHS()), right = (*this)(binary.getRHS());
    AffineExpr result = left == binary.getLHS() && right == binary.getRHS()
                            ? expression
                            : mlir::getAffineBinaryOpExpr(expression.getKind(), left, right);
    memo[expression] = result;
    return result;
  }

private:
  llvm::ArrayRef<AffineExpr> dims, symbols;
  llvm::DenseMap<AffineExpr, AffineExpr> memo;
};

} // namespace

static void appendSymbols(llvm::SmallVectorImpl<AffineExpr> &list, unsigned begin, unsigned count,
                          mlir::MLIRContext *context) {
  for (unsigned i = 0; i < count; ++i)
    list.push_back(mlir::getAffineSymbolExpr(begin + i, context));
}

template <typename List> static llvm::SmallVector<IndexingVariable> concatenate(List a, List b) {
  llvm::SmallVector<IndexingVariable> result(a.begin(), a.end());
  result.append(b.begin(), b.end());
  return result;
}

IndexingMap hloc::compose(const IndexingMap &first, const IndexingMap &second) {
  HLOC_CHECK(first.numResults() == second.dims().size(), "a result of the first map a dimension of the second");
  mlir::MLIRContext *context = first.context();
  unsigned numDims = first.dims().size();
  unsigned secondRanges = second.ranges().size(), firstRanges = first.ranges().size();
  unsigned secondRuntimes = second.runtimes().size(), firstRuntimes = first.runtimes().size();

  // New symbols: ranges of second, ranges of first, runtimes of second, runtimes of first.
  unsigned allRanges = secondRanges + firstRanges;
  llvm::SmallVector<AffineExpr> firstDims, firstSymbols, secondSymbols;
  for (unsigned i = 0; i < numDims; ++i)
    firstDims.push_back(mlir::getAffineDimExpr(i, context));
  appendSymbols(firstSymbols, secondRanges, firstRanges, context);
  appendSymbols(firstSymbols, allRanges + secondRuntimes, firstRuntimes, context);
  appendSymbols(secondSymbols, 0, secondRanges, context);
  appendSymbols(secondSymbols, allRanges, secondRuntimes, context);

  Substitution inFirst(firstDims, firstSymbols);
  llvm::SmallVector<AffineExpr> middle;
  for (AffineExpr expression : first.affine().getResults())
    middle.push_back(inFirst(expression));
  Substitution inSecond(middle, secondSymbols);
  llvm::SmallVector<AffineExpr> results;
  for (AffineExpr expression : second.affine().getResults())
    results.push_back(inSecond(expression));

  auto map = mlir::AffineMap::get(numDims, allRanges + secondRuntimes + firstRuntimes, results, context);
  IndexingMap result(map, first.dims(), concatenate(second.ranges(), first.ranges()),
                     concatenate(second.runtimes(), first.runtimes()));
  if (first.isKnownEmpty() || second.isKnownEmpty()) {
    result.addConstraint(mlir::getAffineConstantExpr(0, context), Interval{});
    return result;
  }
  for (const IndexingMap::Constraint &constraint : second.constraints())
    result.addConstraint(inSecond(constraint.first), constraint.second);
  for (const IndexingMap::Constraint &constraint : first.constraints())
    result.addConstraint(inFirst(constraint.first), constraint.second);
  DomainRanges ranges(first);
  for (auto [index, variable] : llvm::enumerate(second.dims()))
    if (!variable.bounds.contains(ranges.of(first.result(index))))
      result.addConstraint(middle[index], variable.bounds);
  return result;
}
