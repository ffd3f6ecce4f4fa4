#pragma once
// SimplifiedMaps: maps with what they simplify to, so that equal ones are simplified once.
//
// Passes compose the maps of an index with those of the indices it is made of again and again: of those that are
// simplified on the way, six of ten in attention, and three of ten in a dot, are equal to an earlier one.

#include "hloc/indexing/IndexingMap.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace hloc {

/// Of one MLIRContext, which has to outlive it.
class SimplifiedMaps {
public:
  /// The same as map.simplify(), to the names of variables and the order of constraints.
  bool simplify(IndexingMap &map);

private:
  struct Entry {
    IndexingMap before, after;
    bool changed;
  };
  /// All are forgotten when there are as many.
  static constexpr size_t most = 1 << 14;
  llvm::DenseMap<uint64_t, std::vector<Entry>> byHash;
  size_t count = 0;
};

} // namespace hloc
