#pragma once
// Which smaller sizes may stand for the sizes of a module, wherever they occur: part of shrinking a model
// (ShrinkModule.h). Equal sizes become equal sizes, so that what is elementwise, a broadcast or a contraction stays
// right by itself; the relations between different sizes are these.
//
//   f32[8,768] reshape to f32[8,12,64]     product 768 = 12 * 64
//   concatenate of [100] and [28]          sum 100 + 28 = 128
//   slice of 10 out of 128                 10 fits into 128

#include "llvm/ADT/ArrayRef.h"

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace hloc {

struct SizeRelations {
  using Sizes = std::vector<int64_t>;
  struct Product {
    Sizes left, right;
    auto operator<=>(const Product &) const = default;
  };
  struct Sum {
    Sizes parts;
    int64_t whole;
    auto operator<=>(const Sum &) const = default;
  };
  /// `inner` elements, `stride` apart, lie in `outer`.
  struct Fit {
    int64_t inner, outer, stride;
    auto operator<=>(const Fit &) const = default;
  };

  std::set<int64_t> sizes, fixed; ///< that occur; those among them that have to stay
  std::set<Product> products;
  std::set<Sum> sums;
  std::set<Fit> fits;
};

/// For each size what stands for it: divisors of at least 2 where sizes are in products and sums, and no larger than
/// `target` as far as the relations allow. Sizes up to 4 stay. Deterministic.
std::map<int64_t, int64_t> shrinkSizes(const SizeRelations &relations, int64_t target);

} // namespace hloc
