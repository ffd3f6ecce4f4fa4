#include "hloc/indexing/MapPool.h"

namespace hloc {

double pointsOf(llvm::ArrayRef<IndexingVariable> variables) {
  double points = 1;
  for (const IndexingVariable &variable : variables)
    points *= double(variable.bounds.size());
  return points;
}

unsigned MapPool::intern(IndexingMap map) {
  llvm::SmallVector<unsigned, 1> &candidates = byHash[hash_value(map)];
  for (unsigned candidate : candidates)
    if ((*this)[candidate] == map)
      return candidate;
  maps.push_back(std::move(map));
  candidates.push_back(maps.size());
  return maps.size();
}

MapPool::Composition MapPool::composed(unsigned first, unsigned second) {
  auto [entry, isNew] = compositions.try_emplace({first, second});
  if (!isNew)
    return entry->second;
  IndexingMap map = first == same ? (*this)[second] : compose((*this)[first], (*this)[second]);
  map.simplify();
  if (!map.isKnownEmpty()) {
    const double points = pointsOf(map.ranges());
    map.removeUnusedSymbols();
    entry->second.kept = pointsOf(map.ranges()) / points;
  }
  entry->second.map = intern(std::move(map));
  return entry->second;
}

} // namespace hloc
