// One idea: who reads a value says where, so that places are followed back from the factor of the last dot. A
// reduction's operand is where its result is, with the keys in the place of what is reduced.

#include "hloc/fusion/ScorePlaces.h"

#include "hloc/fusion/AttentionPlan.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/ShapeMaps.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace mlir;

namespace hloc {

ScorePlaces::ScorePlaces(const AttentionPlan &plan, MLIRContext *context) : plan(plan), context(context) {
  const ContractionPlan &product = plan.product;
  numSpace = product.space.rank();
  for (unsigned dim = 0; dim < numSpace; ++dim)
    variables.push_back({Interval{0, product.space.dim(dim) - 1}, ""});
  const IndexingMap factor = factorMap(*product.hero, product.space, product.rows.operand, context);
  for (const IndexingVariable &range : factor.ranges())
    variables.push_back(range);
  numVariables = unsigned(variables.size());
  SmallVector<AffineExpr> terms;
  for (unsigned range = 0; range < factor.ranges().size(); ++range)
    terms.push_back(getAffineDimExpr(keyVariable(range), context));
  maps.emplace(plan.weights().id(),
               mapTo(factor.affine().replaceDimsAndSymbols({}, terms, numVariables, 0).getResults()));
  walk(plan.weights());
}

IndexingMap ScorePlaces::mapTo(llvm::ArrayRef<AffineExpr> results) const {
  IndexingMap map(AffineMap::get(numVariables, 0, results, context), variables, {}, {});
  map.simplify();
  return map;
}

const IndexingMap *ScorePlaces::at(const HloInstruction &instr) const {
  auto found = maps.find(behindTuple(instr).id());
  return found == maps.end() ? nullptr : &found->second;
}

bool ScorePlaces::dependsOnKey(const IndexingMap &map) const {
  return llvm::any_of(map.affine().getResults(), [&](AffineExpr result) {
    return llvm::any_of(llvm::seq(numSpace, numVariables),
                        [&](unsigned variable) { return result.isFunctionOfDim(variable); });
  });
}

/// All that the factor is made of, users before operands; nothing is asked of what no dot is behind.
void ScorePlaces::walk(const HloInstruction &weights) {
  std::map<uint32_t, const HloInstruction *> reached = {{weights.id(), &weights}};
  llvm::SmallVector<const HloInstruction *> open = {&weights};
  auto isDot = [&](const HloInstruction &instr) {
    return &instr == plan.scores.hero || (plan.beside && &instr == plan.beside->hero);
  };
  while (!open.empty()) {
    const HloInstruction *instr = open.pop_back_val();
    if (!isDot(*instr))
      for (const HloInstruction *operand : instr->operands())
        if (reached.emplace(operand->id(), operand).second)
          open.push_back(operand);
  }
  std::set<uint32_t> isOfScores;
  for (auto [id, instr] : reached)
    if (isDot(*instr) ||
        llvm::any_of(instr->operands(), [&](auto *operand) { return isOfScores.count(operand->id()) > 0; }))
      isOfScores.insert(id);
  for (auto [id, instr] : llvm::reverse(reached)) {
    auto found = maps.find(id);
    if (!isOfScores.count(id) || isDot(*instr) || found == maps.end())
      continue;
    const IndexingMap map = found->second;
    for (unsigned number = 0; number < instr->numOperands(); ++number) {
      const HloInstruction &operand = *instr->operand(number);
      if (!isOfScores.count(operand.id()))
        continue;
      std::optional<IndexingMap> read = operandMap(*instr, number, map);
      const bool isOwn = read && maps.try_emplace(operand.id(), *read).first->second == *read;
      if (!isOwn && !elsewhere)
        elsewhere = instr;
    }
  }
}

std::optional<IndexingMap> ScorePlaces::operandMap(const HloInstruction &instr, unsigned operand,
                                                   const IndexingMap &map) const {
  if (instr.opcode() == Opcode::GetTupleElement)
    return map;
  if (instr.opcode() == Opcode::Reduce)
    return operand < instr.numOperands() / 2 ? ofReduced(instr, map) : std::nullopt;
  if (!instr.shape().isArray())
    return std::nullopt;
  std::optional<OperandIndexing> indexing = operandIndexing(instr, operand, context);
  if (!indexing || !indexing->runtimes.empty() || !indexing->map.ranges().empty() ||
      !indexing->map.constraints().empty())
    return std::nullopt;
  IndexingMap read = compose(map, indexing->map);
  read.simplify();
  return read;
}

/// With all keys, in the order of the dimensions that are reduced.
std::optional<IndexingMap> ScorePlaces::ofReduced(const HloInstruction &reduce, const IndexingMap &map) const {
  const Shape &operand = reduce.operand(0)->shape();
  const llvm::ArrayRef<int64_t> reduced = reduce.ints(AttributeKey::Dimensions);
  llvm::ArrayRef<AffineExpr> kept = map.affine().getResults();
  llvm::SmallVector<AffineExpr> results;
  unsigned variable = numSpace;
  auto skipSingles = [&] {
    while (variable < numVariables && variables[variable].bounds.size() == 1)
      ++variable;
  };
  for (unsigned dim = 0; dim < operand.rank(); ++dim) {
    if (!llvm::is_contained(reduced, int64_t(dim))) {
      results.push_back(kept.front());
      kept = kept.drop_front();
      continue;
    }
    skipSingles();
    if (operand.dim(dim) == 1) {
      results.push_back(getAffineConstantExpr(0, context));
      continue;
    }
    if (variable == numVariables || variables[variable].bounds.size() != operand.dim(dim))
      return std::nullopt;
    results.push_back(getAffineDimExpr(variable++, context));
  }
  skipSingles();
  if (variable != numVariables || dependsOnKey(map))
    return std::nullopt;
  return mapTo(results);
}

/// Of the results, from where an operand is.
std::optional<IndexingMap> ScorePlaces::ofReduction(const HloInstruction &reduce, const IndexingMap &map) const {
  llvm::SmallVector<AffineExpr> kept;
  for (auto [dim, result] : llvm::enumerate(map.affine().getResults()))
    if (!llvm::is_contained(reduce.ints(AttributeKey::Dimensions), int64_t(dim)))
      kept.push_back(result);
  IndexingMap results = mapTo(kept);
  std::optional<IndexingMap> reduced = ofReduced(reduce, results);
  return reduced && *reduced == map ? std::optional(std::move(results)) : std::nullopt;
}

PlaceAnswer<Rearranged> ScorePlaces::placeThrough(const HloInstruction &instr, unsigned operand,
                                                  const IndexingMap &map) const {
  if (const IndexingMap *own = at(instr))
    return Rearranged{*own};
  if (instr.opcode() == Opcode::GetTupleElement)
    return Rearranged{map};
  std::optional<IndexingMap> own;
  if (instr.opcode() == Opcode::Reduce) {
    if (operand < instr.numOperands() / 2)
      own = ofReduction(instr, map);
  } else if (std::optional<IndexingMap> step = stepThrough(instr, operand, context)) {
    own = compose(map, *step);
    own->simplify();
  }
  return own ? PlaceAnswer<Rearranged>(Rearranged{std::move(*own)}) : Elsewhere();
}

Places<Rearranged> ScorePlaces::follow(const FusionGraph &graph, llvm::ArrayRef<const HloInstruction *> ignored) const {
  Places<Rearranged> places(graph.computation());
  places.set(*plan.scores.hero, {*at(*plan.scores.hero)});
  if (plan.beside)
    places.set(*plan.beside->hero, {*at(*plan.beside->hero)});
  places.follow(graph.instructions(),
                [&](const HloInstruction &instr, unsigned operand, const Rearranged &read) -> PlaceAnswer<Rearranged> {
                  if (llvm::is_contained(ignored, &instr))
                    return Independent();
                  return placeThrough(instr, operand, read.map);
                });
  return places;
}

const HloInstruction &reducedScores(const Places<Rearranged> &places, const HloInstruction &reduce) {
  const llvm::ArrayRef<HloInstruction *> values = reduce.operands().take_front(reduce.numOperands() / 2);
  return **llvm::find_if(values, [&](const HloInstruction *value) { return places.at(*value); });
}

IndexingMap ScorePlaces::ofResult() const {
  llvm::SmallVector<AffineExpr> dims;
  for (unsigned dim = 0; dim < numSpace; ++dim)
    dims.push_back(getAffineDimExpr(dim, context));
  return mapTo(plan.product.space.resultIndices(dims));
}

std::optional<llvm::SmallVector<std::optional<unsigned>>> ScorePlaces::variablesOf(const HloInstruction &dot) const {
  const IndexingMap *map = at(dot);
  if (!map)
    return std::nullopt;
  llvm::SmallVector<std::optional<unsigned>> found;
  llvm::BitVector isTaken(numVariables);
  for (auto [dim, result] : llvm::enumerate(map->affine().getResults())) {
    auto variable = dyn_cast<AffineDimExpr>(result);
    if (dot.shape().dim(unsigned(dim)) == 1) {
      found.push_back(std::nullopt);
      continue;
    }
    if (!variable || isTaken[variable.getPosition()] ||
        variables[variable.getPosition()].bounds != Interval{0, dot.shape().dim(unsigned(dim)) - 1})
      return std::nullopt;
    isTaken[variable.getPosition()] = true;
    found.push_back(variable.getPosition());
  }
  return found;
}

/// From (batch, row) or (batch, row, key) to the domain of the maps.
IndexingMap ScorePlaces::ofPlace(unsigned numDims) const {
  const ContractionPlan &product = plan.product;
  llvm::SmallVector<AffineExpr> results(numVariables, getAffineConstantExpr(0, context));
  auto place = [&](llvm::ArrayRef<unsigned> at, unsigned number) {
    llvm::SmallVector<int64_t> sizes;
    for (unsigned variable : at)
      sizes.push_back(variables[variable].bounds.size());
    for (auto [variable, index] : llvm::zip_equal(at, delinearize(getAffineDimExpr(number, context), sizes, context)))
      results[variable] = index;
  };
  llvm::SmallVector<unsigned> keys;
  for (unsigned range : product.depth)
    keys.push_back(keyVariable(range));
  place(product.batch, 0);
  place(product.rows.dims, 1);
  llvm::SmallVector<IndexingVariable> dims = {{Interval{0, product.batchSize - 1}, "batch"},
                                              {Interval{0, product.rows.size - 1}, "row"}};
  if (numDims == 3) {
    place(keys, 2);
    dims.push_back({Interval{0, product.innerDepth() - 1}, "key"});
  }
  return IndexingMap(AffineMap::get(numDims, 0, results, context), dims, {}, {});
}

IndexingMap ScorePlaces::ofThread(const IndexingMap &map) const {
  IndexingMap result = compose(ofPlace(3), map);
  result.simplify();
  return result;
}

IndexingMap ScorePlaces::ofThreadsRow(const IndexingMap &map) const {
  IndexingMap result = compose(ofPlace(2), map);
  result.simplify();
  return result;
}

} // namespace hloc
