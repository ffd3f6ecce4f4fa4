#include "hloc/indexing/SimplifiedMaps.h"

using namespace hloc;

/// What simplify() makes of both is the same, to the text.
static bool areSame(const IndexingMap &a, const IndexingMap &b) {
  auto areAlike = [](llvm::ArrayRef<IndexingVariable> left, llvm::ArrayRef<IndexingVariable> right) {
    return llvm::equal(left, right, [](const IndexingVariable &x, const IndexingVariable &y) {
      return x.bounds == y.bounds && x.name == y.name;
    });
  };
  return a.affine() == b.affine() && a.isKnownEmpty() == b.isKnownEmpty() && areAlike(a.dims(), b.dims()) &&
         areAlike(a.ranges(), b.ranges()) && areAlike(a.runtimes(), b.runtimes()) && a.constraints() == b.constraints();
}

bool SimplifiedMaps::simplify(IndexingMap &map) {
  if (map.knownEmpty || map.isSimplified)
    return false;
  const uint64_t hash = hash_value(map);
  if (auto known = byHash.find(hash); known != byHash.end())
    for (const Entry &entry : known->second)
      if (areSame(entry.before, map)) {
        map = entry.after;
        return entry.changed;
      }
  if (count == most) {
    byHash.clear();
    count = 0;
  }
  ++count;
  IndexingMap before = map;
  const bool changed = map.simplify();
  byHash[hash].push_back({std::move(before), map, changed});
  return changed;
}
