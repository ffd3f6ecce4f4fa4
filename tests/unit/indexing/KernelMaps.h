#pragma once
// The index maps kernels are made of, for tests of how well they simplify.

#include "hloc/indexing/ShapeMaps.h"
#include "unit/indexing/MapTesting.h"

#include <functional>
#include <numeric>

namespace hloc::testing {

using Sizes = llvm::SmallVector<int64_t>;

inline int64_t elementCount(llvm::ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

/// (th_x, bl_x)[s0] -> index of `sizes`: blocks of 128 threads, `unroll` consecutive elements a thread.
inline IndexingMap threadMap(llvm::ArrayRef<int64_t> sizes, int64_t unroll, mlir::MLIRContext *context) {
  int64_t count = elementCount(sizes), blocks = (count + 128 * unroll - 1) / (128 * unroll);
  mlir::AffineExpr thread = mlir::getAffineDimExpr(0, context), block = mlir::getAffineDimExpr(1, context);
  mlir::AffineExpr linear = (block * 128 + thread) * unroll + mlir::getAffineSymbolExpr(0, context);
  auto results = delinearize(linear, sizes, context);
  IndexingMap map(mlir::AffineMap::get(2, 1, results, context), {{{0, 127}, "th_x"}, {{0, blocks - 1}, "bl_x"}},
                  {{{0, unroll - 1}, ""}}, {});
  map.addConstraint(linear, {0, count - 1});
  map.simplify();
  return map;
}

/// The index into memory of a row-major array: what is left of a map once the tensor is flattened.
inline IndexingMap flattenMap(llvm::ArrayRef<int64_t> sizes, mlir::MLIRContext *context) {
  return reshapeMap(sizes, {elementCount(sizes)}, context);
}

inline IndexingMap fromText(llvm::StringRef text, mlir::MLIRContext *context) { return parseMap(text, context); }

/// Composes from left to right, simplifying after each step as the emitters do.
inline IndexingMap chain(std::initializer_list<IndexingMap> maps) {
  IndexingMap result = *maps.begin();
  for (auto map = maps.begin() + 1; map != maps.end(); ++map) {
    result = compose(result, *map);
    result.simplify();
  }
  return result;
}

} // namespace hloc::testing
