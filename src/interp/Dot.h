#pragma once
// The product of arrays with batch, free and contracted dimensions, for ops and for calls of libraries.

#include "interp/Strided.h"

#include "hloc/hlo/HloInstruction.h"

namespace hloc::interp {

struct DotDims {
  Index lhsBatch, rhsBatch, lhsDepth, rhsDepth;

  DotDims() = default;
  explicit DotDims(const HloInstruction &dot);
};

/// Both operands of one sum type (MatrixProduct.h); so is the result, of dims [batch..., lhs free..., rhs free...].
Literal dotSums(const Literal &lhs, const Literal &rhs, const DotDims &dims);

} // namespace hloc::interp
