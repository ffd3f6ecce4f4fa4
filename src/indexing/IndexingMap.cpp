#include "hloc/indexing/IndexingMap.h"
#include "hloc/support/Check.h"
#include "indexing/DomainRanges.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace hloc;
using mlir::AffineBinaryOpExpr;
using mlir::AffineExpr;
using mlir::AffineExprKind;

IndexingMap::IndexingMap(mlir::AffineMap map, llvm::ArrayRef<IndexingVariable> dims,
                         llvm::ArrayRef<IndexingVariable> ranges, llvm::ArrayRef<IndexingVariable> runtimes,
                         llvm::ArrayRef<Constraint> constraints)
    : affineMap(map), dimVariables(dims), rangeVariables(ranges), runtimeVariables(runtimes) {
  HLOC_CHECK(map.getNumDims() == dims.size(), "one dimension variable a dim of the affine map");
  HLOC_CHECK(map.getNumSymbols() == ranges.size() + runtimes.size(), "one variable a symbol of the affine map");
  for (auto list : {dims, ranges, runtimes}) {
    if (llvm::any_of(list, [](const IndexingVariable &variable) { return variable.bounds.isEmpty(); })) {
      makeEmpty();
      return;
    }
  }
  for (const Constraint &constraint : constraints)
    addConstraint(constraint.first, constraint.second);
}

static llvm::SmallVector<IndexingVariable> variablesOfSizes(llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<IndexingVariable> variables;
  for (int64_t size : sizes)
    variables.push_back({{0, size - 1}, ""});
  return variables;
}

IndexingMap IndexingMap::fromSizes(mlir::AffineMap map, llvm::ArrayRef<int64_t> dimSizes,
                                   llvm::ArrayRef<int64_t> rangeSizes) {
  return IndexingMap(map, variablesOfSizes(dimSizes), variablesOfSizes(rangeSizes), {});
}

IndexingMap IndexingMap::identity(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> sizes) {
  return fromSizes(mlir::AffineMap::getMultiDimIdentityMap(sizes.size(), context), sizes);
}

void IndexingMap::makeEmpty() {
  llvm::SmallVector<AffineExpr> zeros(affineMap.getNumResults(), mlir::getAffineConstantExpr(0, context()));
  affineMap = mlir::AffineMap::get(affineMap.getNumDims(), affineMap.getNumSymbols(), zeros, context());
  for (auto *list : {&dimVariables, &rangeVariables, &runtimeVariables})
    for (IndexingVariable &variable : *list)
      variable.bounds = {};
  constraintList.clear();
  knownEmpty = true;
}

void IndexingMap::tightenVariable(AffineExpr variable, Interval interval) {
  IndexingVariable *target;
  if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(variable)) {
    target = &dimVariables[dim.getPosition()];
  } else {
    unsigned position = llvm::cast<mlir::AffineSymbolExpr>(variable).getPosition();
    target = position < rangeVariables.size() ? &rangeVariables[position]
                                              : &runtimeVariables[position - rangeVariables.size()];
  }
  target->bounds = target->bounds.intersect(interval);
  if (target->bounds.isEmpty())
    makeEmpty();
}

void IndexingMap::addConstraint(AffineExpr expression, Interval interval) {
  if (knownEmpty)
    return;
  isSimplified = false;
  if (interval.isEmpty())
    return makeEmpty();
  if (auto value = llvm::dyn_cast<mlir::AffineConstantExpr>(expression)) {
    if (!interval.contains(value.getValue()))
      makeEmpty();
    return;
  }
  AffineExprKind kind = expression.getKind();
  if (kind == AffineExprKind::DimId || kind == AffineExprKind::SymbolId)
    return tightenVariable(expression, interval);
  for (Constraint &constraint : constraintList) {
    if (constraint.first != expression)
      continue;
    constraint.second = constraint.second.intersect(interval);
    if (constraint.second.isEmpty())
      makeEmpty();
    return;
  }
  constraintList.push_back({expression, interval});
}

Interval IndexingMap::range(AffineExpr expression) const {
  if (knownEmpty)
    return {};
  return DomainRanges(*this).of(expression);
}

IndexingMap IndexingMap::symbolsToDims() const {
  unsigned numDims = dimVariables.size(), numSymbols = affineMap.getNumSymbols();
  if (numSymbols == 0)
    return *this;
  llvm::SmallVector<AffineExpr> replacements;
  for (unsigned i = 0; i < numSymbols; ++i)
    replacements.push_back(mlir::getAffineDimExpr(numDims + i, context()));
  IndexingMap result = *this;
  result.isSimplified = false;
  result.affineMap = affineMap.replaceDimsAndSymbols({}, replacements, numDims + numSymbols, 0);
  result.dimVariables.append(rangeVariables.begin(), rangeVariables.end());
  result.dimVariables.append(runtimeVariables.begin(), runtimeVariables.end());
  result.rangeVariables.clear();
  result.runtimeVariables.clear();
  for (Constraint &constraint : result.constraintList)
    constraint.first = constraint.first.replaceSymbols(replacements);
  return result;
}

IndexingMap IndexingMap::withResults(llvm::ArrayRef<unsigned> which) const {
  IndexingMap result = *this;
  result.affineMap = affineMap.getSubMap(which);
  return result;
}

/// The value at a point, or nothing on overflow or a division by something that is not positive.
static std::optional<int64_t> evaluateAt(AffineExpr expression, llvm::ArrayRef<int64_t> dims,
                                         llvm::ArrayRef<int64_t> symbols) {
  if (auto value = llvm::dyn_cast<mlir::AffineConstantExpr>(expression))
    return value.getValue();
  if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(expression))
    return dims[dim.getPosition()];
  if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(expression))
    return symbols[symbol.getPosition()];
  auto binary = llvm::cast<AffineBinaryOpExpr>(expression);
  std::optional<int64_t> left = evaluateAt(binary.getLHS(), dims, symbols);
  std::optional<int64_t> right = evaluateAt(binary.getRHS(), dims, symbols);
  if (!left || !right)
    return std::nullopt;
  int64_t result;
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    return llvm::AddOverflow(*left, *right, result) ? std::nullopt : std::optional(result);
  case AffineExprKind::Mul:
    return llvm::MulOverflow(*left, *right, result) ? std::nullopt : std::optional(result);
  default:
    break;
  }
  if (*right <= 0)
    return std::nullopt;
  if (expression.getKind() == AffineExprKind::FloorDiv)
    return llvm::divideFloorSigned(*left, *right);
  if (expression.getKind() == AffineExprKind::CeilDiv)
    return llvm::divideCeilSigned(*left, *right);
  int64_t remainder = *left % *right;
  return remainder < 0 ? remainder + *right : remainder;
}

std::optional<llvm::SmallVector<int64_t>> IndexingMap::evaluate(llvm::ArrayRef<int64_t> dims,
                                                                llvm::ArrayRef<int64_t> symbols) const {
  HLOC_CHECK(dims.size() == dimVariables.size(), "one value a dimension variable");
  HLOC_CHECK(symbols.size() == affineMap.getNumSymbols(), "one value a range and runtime variable");
  if (knownEmpty)
    return std::nullopt;
  for (auto [variable, value] : llvm::zip(dimVariables, dims))
    if (!variable.bounds.contains(value))
      return std::nullopt;
  for (auto [variable, value] :
       llvm::zip(llvm::concat<const IndexingVariable>(rangeVariables, runtimeVariables), symbols))
    if (!variable.bounds.contains(value))
      return std::nullopt;
  for (const Constraint &constraint : constraintList) {
    std::optional<int64_t> value = evaluateAt(constraint.first, dims, symbols);
    if (!value || !constraint.second.contains(*value))
      return std::nullopt;
  }
  llvm::SmallVector<int64_t> results;
  for (AffineExpr expression : affineMap.getResults()) {
    std::optional<int64_t> value = evaluateAt(expression, dims, symbols);
    if (!value)
      return std::nullopt;
    results.push_back(*value);
  }
  return results;
}

bool IndexingMap::operator==(const IndexingMap &other) const {
  return affineMap == other.affineMap && knownEmpty == other.knownEmpty && dimVariables == other.dimVariables &&
         rangeVariables == other.rangeVariables && runtimeVariables == other.runtimeVariables &&
         constraintList.size() == other.constraintList.size() &&
         llvm::all_of(constraintList, [&](const Constraint &constraint) {
           return llvm::is_contained(other.constraintList, constraint); // expressions are distinct within a list
         });
}

llvm::hash_code hloc::hash_value(const IndexingMap &map) {
  llvm::hash_code hash = llvm::hash_combine(hash_value(map.affine()), map.isKnownEmpty());
  for (auto variables : {map.dims(), map.ranges(), map.runtimes()})
    for (const IndexingVariable &variable : variables)
      hash = llvm::hash_combine(hash, variable.bounds.lower, variable.bounds.upper);
  size_t constraints = 0; // a sum, since their order does not count
  for (const IndexingMap::Constraint &constraint : map.constraints())
    constraints += llvm::hash_combine(constraint.first, constraint.second.lower, constraint.second.upper);
  return llvm::hash_combine(hash, constraints);
}
