#include "hloc/indexing/ShapeMaps.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"

#include <functional>
#include <numeric>

using namespace hloc;
using mlir::AffineExpr;

using Sizes = llvm::ArrayRef<int64_t>;

static int64_t product(Sizes sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

static llvm::SmallVector<AffineExpr> dimExprs(unsigned count, mlir::MLIRContext *context) {
  llvm::SmallVector<AffineExpr> result;
  for (unsigned i = 0; i < count; ++i)
    result.push_back(mlir::getAffineDimExpr(i, context));
  return result;
}

AffineExpr hloc::linearize(llvm::ArrayRef<AffineExpr> indices, Sizes sizes, mlir::MLIRContext *context) {
  HLOC_CHECK(indices.size() == sizes.size(), "one index a dimension");
  AffineExpr result = mlir::getAffineConstantExpr(0, context);
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] > 1)
      result = indices[i] * stride + result;
    stride *= sizes[i];
  }
  return result;
}

llvm::SmallVector<AffineExpr> hloc::delinearize(AffineExpr linear, Sizes sizes, mlir::MLIRContext *context) {
  llvm::SmallVector<AffineExpr> result(sizes.size(), mlir::getAffineConstantExpr(0, context));
  if (product(sizes) == 0)
    return result;
  size_t outermost = llvm::find_if(sizes, [](int64_t size) { return size > 1; }) - sizes.begin();
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > outermost;) {
    if (sizes[i] == 1)
      continue;
    AffineExpr quotient = stride == 1 ? linear : linear.floorDiv(stride);
    result[i] = i == outermost ? quotient : quotient % sizes[i];
    stride *= sizes[i];
  }
  return result;
}

/// The reshape of indices `source` of an array of `to` into one of `from`: both are walked from the left and cut
/// wherever the products so far agree, so that each group of dimensions is reshaped on its own.
static llvm::SmallVector<AffineExpr> reshapeIndices(llvm::ArrayRef<AffineExpr> source, Sizes to, Sizes from,
                                                    mlir::MLIRContext *context) {
  HLOC_CHECK(product(to) == product(from), "a reshape keeps the number of elements");
  llvm::SmallVector<AffineExpr> result;
  if (product(to) == 0) {
    result.assign(from.size(), mlir::getAffineConstantExpr(0, context));
    return result;
  }
  size_t toEnd = 0, fromEnd = 0;
  while (toEnd < to.size() || fromEnd < from.size()) {
    size_t toBegin = toEnd, fromBegin = fromEnd;
    int64_t toProduct = toEnd < to.size() ? to[toEnd++] : 1;
    int64_t fromProduct = fromEnd < from.size() ? from[fromEnd++] : 1;
    while (toProduct != fromProduct) {
      if (toProduct < fromProduct)
        toProduct *= to[toEnd++];
      else
        fromProduct *= from[fromEnd++];
    }
    Sizes toGroup = to.slice(toBegin, toEnd - toBegin), fromGroup = from.slice(fromBegin, fromEnd - fromBegin);
    AffineExpr linear = linearize(source.slice(toBegin, toEnd - toBegin), toGroup, context);
    llvm::append_range(result, delinearize(linear, fromGroup, context));
  }
  return result;
}

static IndexingMap mapOver(Sizes sizes, llvm::ArrayRef<AffineExpr> results, mlir::MLIRContext *context) {
  return IndexingMap::fromSizes(mlir::AffineMap::get(sizes.size(), 0, results, context), sizes);
}

IndexingMap hloc::reshapeMap(Sizes to, Sizes from, mlir::MLIRContext *context) {
  return mapOver(to, reshapeIndices(dimExprs(to.size(), context), to, from, context), context);
}

IndexingMap hloc::permutationMap(Sizes permutation, Sizes sizes, mlir::MLIRContext *context) {
  HLOC_CHECK(permutation.size() == sizes.size(), "a permutation of all dimensions");
  llvm::SmallVector<AffineExpr> results;
  for (int64_t dim : permutation)
    results.push_back(mlir::getAffineDimExpr(dim, context));
  return mapOver(sizes, results, context);
}

IndexingMap hloc::bitcastMap(Sizes to, Sizes toMinorToMajor, Sizes from, Sizes fromMinorToMajor,
                             mlir::MLIRContext *context) {
  HLOC_CHECK(to.size() == toMinorToMajor.size() && from.size() == fromMinorToMajor.size(),
             "a layout of all dimensions");
  // Physical order is major to minor. There the bitcast is a row-major reshape, which is plain where dimensions match.
  llvm::SmallVector<AffineExpr> toPhysical;
  llvm::SmallVector<int64_t> toPhysicalSizes, fromPhysicalSizes;
  for (int64_t dim : llvm::reverse(toMinorToMajor)) {
    toPhysical.push_back(mlir::getAffineDimExpr(dim, context));
    toPhysicalSizes.push_back(to[dim]);
  }
  for (int64_t dim : llvm::reverse(fromMinorToMajor))
    fromPhysicalSizes.push_back(from[dim]);
  auto fromPhysical = reshapeIndices(toPhysical, toPhysicalSizes, fromPhysicalSizes, context);
  llvm::SmallVector<AffineExpr> results(from.size());
  for (auto [index, dim] : llvm::zip(fromPhysical, llvm::reverse(fromMinorToMajor)))
    results[dim] = index;
  return mapOver(to, results, context);
}
