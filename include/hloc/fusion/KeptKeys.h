#pragma once
// Which keys a mask leaves the rows of an attention, as far as it is made of positions.
//
//   select(compare(iota of keys, iota of rows), LE), scores, -inf): row d0 has keys up to d0
//   ... and(.., compare(subtract(rows, keys), 512), LT)):            and from d0 - 511 on

#include "hloc/hlo/HloInstruction.h"
#include "hloc/indexing/IndexingMap.h"

#include <optional>

namespace hloc {

/// Of the row number d0: none: nothing is known. There may be fewer, unless that `isAll`.
struct KeptKeys {
  mlir::AffineExpr first, last;
  bool isAll = false; ///< a row has all keys from `first` to `last`
  explicit operator bool() const { return first || last; }
  /// The same of all of the `rows` rows from `rows * d0` on; as far as that follows.
  KeptKeys ofTile(int64_t rows) const;
  /// Those that each of these rows has; nothing if that does not follow.
  std::optional<KeptKeys> ofEachIn(int64_t rows) const;
};

/// Of keys for which `predicate` has the value `isKept`. `place`: from (batch, row, key) to its index.
KeptKeys keptKeys(const HloInstruction &predicate, bool isKept, const IndexingMap &place);

} // namespace hloc
