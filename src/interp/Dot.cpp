// dot: operands brought to [batch, rows, depth] and [batch, depth, columns], then multiplied.

#include "interp/MatrixProduct.h"
#include "interp/Ops.h"
#include "interp/Strided.h"

namespace hloc::interp {

namespace {

using Dims = llvm::SmallVector<int64_t, 6>;

Dims freeDims(const Shape &shape, llvm::ArrayRef<int64_t> batch, llvm::ArrayRef<int64_t> contracting) {
  Dims free;
  for (unsigned i = 0; i < shape.rank(); ++i)
    if (!llvm::is_contained(batch, int64_t(i)) && !llvm::is_contained(contracting, int64_t(i)))
      free.push_back(i);
  return free;
}

Dims joined(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b, llvm::ArrayRef<int64_t> c) {
  Dims all(a.begin(), a.end());
  all.append(b.begin(), b.end());
  all.append(c.begin(), c.end());
  return all;
}

int64_t sizeOf(const Shape &shape, llvm::ArrayRef<int64_t> dims) {
  int64_t size = 1;
  for (int64_t dim : dims)
    size *= shape.dim(unsigned(dim));
  return size;
}

} // namespace

llvm::FailureOr<Value> evaluateDot(Step &step) {
  const Literal &lhs = step.array(0), &rhs = step.array(1);
  llvm::ArrayRef<int64_t> lhsBatch = step.instr.ints(AttributeKey::LhsBatchDims);
  llvm::ArrayRef<int64_t> rhsBatch = step.instr.ints(AttributeKey::RhsBatchDims);
  llvm::ArrayRef<int64_t> lhsDepth = step.instr.ints(AttributeKey::LhsContractingDims);
  llvm::ArrayRef<int64_t> rhsDepth = step.instr.ints(AttributeKey::RhsContractingDims);
  Dims rows = freeDims(lhs.shape(), lhsBatch, lhsDepth), columns = freeDims(rhs.shape(), rhsBatch, rhsDepth);
  ElementType type = step.shape().elementType();
  if (!MatrixProduct::supports(lhs.shape().elementType(), type) ||
      !MatrixProduct::supports(rhs.shape().elementType(), type))
    return step.unsupported("products of these types are not defined", DiagnosticKind::UnsupportedType);
  MatrixProduct product{sizeOf(lhs.shape(), rows), sizeOf(rhs.shape(), columns), sizeOf(lhs.shape(), lhsDepth), type};
  Literal left = transposed(lhs, joined(lhsBatch, rows, lhsDepth));
  Literal right = transposed(rhs, joined(rhsBatch, rhsDepth, columns));
  Literal result(step.shape());
  for (int64_t batch = 0; batch < sizeOf(lhs.shape(), lhsBatch); ++batch)
    product.run(left, batch * product.rows * product.depth, right, batch * product.depth * product.columns, result,
                batch * product.rows * product.columns);
  return Value(std::move(result));
}

} // namespace hloc::interp
