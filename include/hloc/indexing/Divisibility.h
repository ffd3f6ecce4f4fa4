#pragma once
// What is provable about the alignment and the stride of an index: the facts vectorization rests on.
//
// With th in [0, 127] and vector variable s0 in [0, 3], of the index th * 4 + s0:
//   knownDivisor(th * 4) == 4, strideOf(th * 4 + s0, s0) == 1, strideOf((th * 4 + s0) mod 64, s0) == 1 (no wrap inside
//   a vector, since it starts at a multiple of 4 and 4 divides 64), strideOf((th * 4 + s0) floordiv 4, s0) == 0.

#include "hloc/indexing/IndexingMap.h"

namespace hloc {

/// The largest constant known to divide `expression` at every point of the map's domain; positive, or 0 if the
/// expression is always zero (which everything divides: `knownDivisor(e, map) % n == 0` holds then too).
int64_t knownDivisor(mlir::AffineExpr expression, const IndexingMap &map);

/// The coefficient of `variable` (a dim or symbol expression), if raising it by one within its bounds always changes
/// `expression` by that much: through floordiv and mod where they provably do not wrap over the variable's whole range.
/// 0 if the expression does not depend on it. Constraints may be used: points outside of them do not count.
std::optional<int64_t> strideOf(mlir::AffineExpr expression, mlir::AffineExpr variable, const IndexingMap &map);

/// Is `expression < bound` known to hold for all values of `variable` or for none, at every point of the others?
///   (th * 4 + s0) mod 64 < 32: yes for s0, since 32 is a multiple of 4
bool isSameSide(mlir::AffineExpr expression, int64_t bound, mlir::AffineExpr variable, const IndexingMap &map);

/// Of elements `spacing` apart, the first at index `expression` of an array of `elements` elements, in aligned vectors
/// of at most 16 bytes with two or more of them each: how many elements before the first to begin, that `length` from
/// there on be such vectors. None if there is no such place, or vectors of up to 32 bytes might go beyond the array: an
/// aligned vector with an element of the array is all in it if the array consists of such vectors.
std::optional<int64_t> offsetInWideVectors(mlir::AffineExpr expression, const IndexingMap &map, int64_t spacing,
                                           int64_t length, unsigned bits, int64_t elements);

} // namespace hloc
