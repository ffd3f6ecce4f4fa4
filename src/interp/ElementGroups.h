#pragma once
// Elements of an argument that meet in one result.

#include "hloc/hlo/Shape.h"

namespace hloc::interp {

/// As far as one knows: all with the same index but for reduced dimensions (Demand::reducedDims).
class ElementGroups {
public:
  ElementGroups(const Shape &shape, uint64_t reducedDims) {
    for (unsigned d = shape.rank(); d-- > 0;) {
      bool reduced = d >= 64 || (reducedDims >> d & 1);
      dims.push_back({shape.dim(d), reduced ? 0 : count});
      if (!reduced)
        count *= shape.dim(d);
    }
    size = count ? shape.numElements() / count : 0;
  }
  /// The group of an element by its row-major number.
  int64_t of(int64_t element) const {
    int64_t group = 0;
    for (const Dim &dim : dims) {
      group += element % dim.size * dim.stride;
      element /= dim.size;
    }
    return group;
  }
  int64_t count = 1, size = 1; ///< of groups, and of each

private:
  struct Dim {
    int64_t size, stride;
  };
  llvm::SmallVector<Dim, 6> dims; ///< minor first
};

} // namespace hloc::interp
