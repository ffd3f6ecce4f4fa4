#pragma once
// The order that a sort or a top-k gives its rows, which lie along one dimension.

#include "interp/Machine.h"
#include "interp/Strided.h"

namespace hloc::interp {

/// The permutation that brings `dim` last, and its inverse.
struct DimLast {
  Index to, back;
  DimLast(unsigned rank, int64_t dim) : back(rank) {
    for (unsigned i = 0; i < rank; ++i)
      if (int64_t(i) != dim)
        to.push_back(i);
    to.push_back(dim);
    for (unsigned i = 0; i < rank; ++i)
      back[size_t(to[i])] = i;
  }
};

/// Row by row the positions of the elements that come first, second, ...; `operands` have the sorted dimension last.
llvm::FailureOr<std::vector<int64_t>> orderOfSort(Step &step, llvm::ArrayRef<Literal> operands);
/// By total order (so NaN is largest), ties by position.
llvm::FailureOr<std::vector<int64_t>> orderOfTopK(Step &step, const Literal &operand, bool largest);

} // namespace hloc::interp
