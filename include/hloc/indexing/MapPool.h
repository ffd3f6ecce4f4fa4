#pragma once
// MapPool: indexing maps as numbers, equal maps as equal ones, each pair composed once.
//
//   t = pool.intern((d0, d1) -> (d1, d0)), pool.composed(t, t).map: the number of (d0, d1) -> (d0, d1)

#include "hloc/indexing/IndexingMap.h"

#include "llvm/ADT/DenseMap.h"

#include <deque>

namespace hloc {

/// Of all variables together.
double pointsOf(llvm::ArrayRef<IndexingVariable> variables);

class MapPool {
public:
  /// No map: the indices stay the same, whatever they are. It is not the number of any identity.
  static constexpr unsigned same = 0;

  unsigned intern(IndexingMap map);
  const IndexingMap &operator[](unsigned number) const { return maps[number - 1]; }

  struct Composition {
    unsigned map = same;
    double kept = 1; ///< of all points of range variables: it has none of those that it does not depend on
  };
  /// `second`, which is not `same`, after `first`, simplified.
  Composition composed(unsigned first, unsigned second);

private:
  std::deque<IndexingMap> maps;
  llvm::DenseMap<uint64_t, llvm::SmallVector<unsigned, 1>> byHash;
  llvm::DenseMap<std::pair<unsigned, unsigned>, Composition> compositions;
};

} // namespace hloc
