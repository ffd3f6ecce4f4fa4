#pragma once
// Walking arrays by strides. Every data movement is one strided copy: transpose permutes strides, broadcast has zeros,
// reverse negative ones, pad and slice offsets.

#include "hloc/hlo/Literal.h"

namespace hloc::interp {

using Index = llvm::SmallVector<int64_t, 6>;

/// Elements to the next index of each dimension, row-major.
Index rowMajorStrides(llvm::ArrayRef<int64_t> dims);
int64_t product(llvm::ArrayRef<int64_t> dims);
/// Row-major linear index.
int64_t linearIndex(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> strides);

/// Advances a row-major index; false when it wraps to the start.
inline bool increment(llvm::MutableArrayRef<int64_t> index, llvm::ArrayRef<int64_t> dims) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++index[i] < dims[i])
      return true;
    index[i] = 0;
  }
  return false;
}

/// One side of a copy: bytes of element 0 of the box, and the stride of each dimension in elements.
template <typename Byte> struct StridedView {
  Byte *data;
  Index strides;
};
using StridedSource = StridedView<const uint8_t>;
using StridedTarget = StridedView<uint8_t>;

/// target[i...] = source[i...] for all i in the box `dims`, elements of `width` bytes. The two do not overlap.
void copyStrided(llvm::ArrayRef<int64_t> dims, unsigned width, StridedTarget target, StridedSource source);

/// A view of an array from the element at `start` (empty: the first) on, taking every `step`-th index of a dimension.
StridedSource sourceAt(const Literal &literal, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> step = {});
StridedTarget targetAt(Literal &literal, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> step = {});

/// The elements at one index of dimension `dim`, without that dimension, dense.
Literal sliceAt(const Literal &operand, unsigned dim, int64_t index);

/// The operand with its dimensions in another order (result dim i = operand dim `permutation[i]`), dense.
Literal transposed(const Literal &operand, llvm::ArrayRef<int64_t> permutation);

} // namespace hloc::interp
