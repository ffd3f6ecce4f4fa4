// Dropping variables that no result uses. A constraint that mentions one may go with it only if for every point of what
// remains some value of the dropped variables satisfies it: a witness value is looked for.

#include "indexing/DomainRanges.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

#include <map>

using namespace hloc;
using mlir::AffineExpr;

/// Points tried one by one when no corner of the dropped variables is a witness.
static constexpr int64_t enumerationLimit = 4096;

namespace {

/// Variables are numbered dims first, then symbols.
class UnusedVariables {
public:
  UnusedVariables(const IndexingMap &map, bool dimsToo, bool symbolsToo);

  /// Variables that can go, and the constraints that go with them.
  llvm::SmallBitVector droppedVariables, droppedConstraints;
  bool provedEmpty = false;

private:
  using Component = llvm::SmallVector<unsigned, 4>;
  void decide(const Component &variables);
  bool isWitness(llvm::ArrayRef<unsigned> variables, llvm::ArrayRef<int64_t> values,
                 llvm::ArrayRef<unsigned> constraints);
  bool findWitness(llvm::ArrayRef<unsigned> variables, llvm::ArrayRef<unsigned> constraints, bool &isExhaustive);
  llvm::SmallBitVector variablesOf(AffineExpr expression) const;
  Interval boundsOf(unsigned variable) const;

  const IndexingMap &map;
  unsigned numDims, numVariables;
  llvm::SmallVector<llvm::SmallBitVector, 4> constraintVariables;
  std::optional<DomainRanges> boundsOnly;
};

} // namespace

llvm::SmallBitVector UnusedVariables::variablesOf(AffineExpr expression) const {
  llvm::SmallBitVector result(numVariables);
  expression.walk([&](AffineExpr inner) {
    if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(inner))
      result.set(dim.getPosition());
    else if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(inner))
      result.set(numDims + symbol.getPosition());
  });
  return result;
}

Interval UnusedVariables::boundsOf(unsigned variable) const {
  if (variable < numDims)
    return map.dims()[variable].bounds;
  unsigned symbol = variable - numDims;
  unsigned numRanges = map.ranges().size();
  return symbol < numRanges ? map.ranges()[symbol].bounds : map.runtimes()[symbol - numRanges].bounds;
}

UnusedVariables::UnusedVariables(const IndexingMap &map, bool dimsToo, bool symbolsToo)
    : map(map), numDims(map.dims().size()), numVariables(numDims + map.affine().getNumSymbols()) {
  llvm::SmallBitVector candidates(numVariables);
  if (dimsToo)
    candidates.set(0, numDims);
  if (symbolsToo)
    candidates.set(numDims, numVariables);
  for (AffineExpr expression : map.affine().getResults())
    candidates.reset(variablesOf(expression));
  droppedVariables.resize(numVariables);
  if (candidates.none())
    return;
  droppedConstraints.resize(map.constraints().size());

  llvm::EquivalenceClasses<unsigned> classes;
  for (unsigned variable : candidates.set_bits())
    classes.insert(variable);
  for (const IndexingMap::Constraint &constraint : map.constraints()) {
    constraintVariables.push_back(variablesOf(constraint.first));
    int first = -1;
    for (unsigned variable : constraintVariables.back().set_bits()) {
      if (!candidates.test(variable))
        continue;
      if (first >= 0)
        classes.unionSets(first, variable);
      first = variable;
    }
  }
  std::map<unsigned, Component> components;
  for (unsigned variable : candidates.set_bits())
    components[classes.getLeaderValue(variable)].push_back(variable);
  for (const auto &[leader, variables] : components)
    decide(variables);
}

void UnusedVariables::decide(const Component &variables) {
  llvm::SmallBitVector own(numVariables);
  for (unsigned variable : variables)
    own.set(variable);
  llvm::SmallVector<unsigned, 4> constraints;
  for (auto [index, mentioned] : llvm::enumerate(constraintVariables))
    if (mentioned.anyCommon(own))
      constraints.push_back(index);
  bool isExhaustive = false;
  if (!constraints.empty() && !map.isKnownEmpty() && !findWitness(variables, constraints, isExhaustive)) {
    provedEmpty |= isExhaustive;
    return;
  }
  droppedVariables |= own;
  for (unsigned constraint : constraints)
    droppedConstraints.set(constraint);
}

bool UnusedVariables::isWitness(llvm::ArrayRef<unsigned> variables, llvm::ArrayRef<int64_t> values,
                                llvm::ArrayRef<unsigned> constraints) {
  llvm::DenseMap<AffineExpr, AffineExpr> replacement;
  for (auto [variable, value] : llvm::zip(variables, values)) {
    AffineExpr expression = variable < numDims ? mlir::getAffineDimExpr(variable, map.context())
                                               : mlir::getAffineSymbolExpr(variable - numDims, map.context());
    replacement[expression] = mlir::getAffineConstantExpr(value, map.context());
  }
  if (!boundsOnly)
    boundsOnly.emplace(map, std::nullopt, /*useConstraints=*/false);
  return llvm::all_of(constraints, [&](unsigned index) {
    const IndexingMap::Constraint &constraint = map.constraints()[index];
    return constraint.second.contains(boundsOnly->of(constraint.first.replace(replacement)));
  });
}

/// Tries the lower and the upper corner, then every point if there are few. `isExhaustive` is set if no point was left
/// out and the constraints mention no other variable: then no witness means that the domain is empty.
bool UnusedVariables::findWitness(llvm::ArrayRef<unsigned> variables, llvm::ArrayRef<unsigned> constraints,
                                  bool &isExhaustive) {
  llvm::SmallVector<int64_t, 4> lower, upper;
  Interval points{1, 1};
  for (unsigned variable : variables) {
    Interval bounds = boundsOf(variable);
    lower.push_back(bounds.lower);
    upper.push_back(bounds.upper);
    points = points * Interval{bounds.size(), bounds.size()};
  }
  if (isWitness(variables, lower, constraints) || isWitness(variables, upper, constraints))
    return true;
  bool mentionsOthers =
      llvm::any_of(constraints, [&](unsigned index) { return constraintVariables[index].count() > variables.size(); });
  if (points.upper > enumerationLimit || mentionsOthers)
    return false;
  llvm::SmallVector<int64_t, 4> point = lower;
  while (true) {
    if (isWitness(variables, point, constraints))
      return true;
    size_t i = 0;
    while (i < point.size() && point[i] == upper[i])
      point[i] = lower[i], ++i;
    if (i == point.size())
      break;
    ++point[i];
  }
  isExhaustive = llvm::all_of(constraints, [&](unsigned index) {
    return llvm::all_of(constraintVariables[index].set_bits(),
                        [&](unsigned variable) { return llvm::is_contained(variables, variable); });
  });
  return false;
}

template <typename List> static void eraseMarked(List &list, llvm::ArrayRef<bool> marks) {
  unsigned position = 0;
  llvm::erase_if(list, [&](const auto &) { return marks[position++]; });
}

/// New expressions for the old variables: those that stay are numbered without gaps.
static llvm::SmallVector<AffineExpr> renumber(llvm::ArrayRef<bool> dropped,
                                              llvm::function_ref<AffineExpr(unsigned)> makeVariable) {
  llvm::SmallVector<AffineExpr> result;
  unsigned next = 0;
  for (bool isDropped : dropped)
    result.push_back(makeVariable(isDropped ? 0 : next++));
  return result;
}

llvm::SmallVector<bool> IndexingMap::removeUnused(bool dimsToo, bool symbolsToo) {
  unsigned numDims = dimVariables.size(), numSymbols = affineMap.getNumSymbols();
  UnusedVariables unused(*this, dimsToo, symbolsToo);
  if (unused.provedEmpty) {
    makeEmpty();
    return removeUnused(dimsToo, symbolsToo);
  }
  llvm::SmallVector<bool> dims, symbols;
  for (unsigned i = 0; i < numDims; ++i)
    dims.push_back(unused.droppedVariables.test(i));
  for (unsigned i = 0; i < numSymbols; ++i)
    symbols.push_back(unused.droppedVariables.test(numDims + i));
  llvm::SmallVector<bool> result = dimsToo ? dims : symbols;
  if (unused.droppedVariables.none())
    return result;

  isSimplified &= unused.droppedConstraints.none(); // the order of variables stays
  auto newDims = renumber(dims, [&](unsigned i) { return mlir::getAffineDimExpr(i, context()); });
  auto newSymbols = renumber(symbols, [&](unsigned i) { return mlir::getAffineSymbolExpr(i, context()); });
  llvm::SmallVector<Constraint, 2> keptConstraints;
  for (auto [index, constraint] : llvm::enumerate(constraintList))
    if (!unused.droppedConstraints.test(index))
      keptConstraints.push_back({constraint.first.replaceDimsAndSymbols(newDims, newSymbols), constraint.second});
  constraintList = std::move(keptConstraints);
  affineMap =
      affineMap.replaceDimsAndSymbols(newDims, newSymbols, llvm::count(dims, false), llvm::count(symbols, false));
  eraseMarked(dimVariables, dims);
  llvm::ArrayRef<bool> marks = symbols;
  size_t numRanges = rangeVariables.size();
  eraseMarked(rangeVariables, marks.take_front(numRanges));
  eraseMarked(runtimeVariables, marks.drop_front(numRanges));
  return result;
}

llvm::SmallVector<bool> IndexingMap::removeUnusedSymbols() { return removeUnused(false, true); }
llvm::SmallVector<bool> IndexingMap::removeUnusedDims() { return removeUnused(true, false); }
