#pragma once
// How the elements of a contraction's operand lie in memory: for neighbouring values of each variable of its map.

#include "hloc/fusion/HloIndexing.h"

#include "llvm/ADT/SmallVector.h"

namespace hloc {

/// How far apart in memory elements are that a factor reads for neighbouring values of each variable, near the middle
/// of what it reads. Looks through what the operand is computed of.
class OperandStrides {
public:
  OperandStrides(const HloInstruction &operand, IndexingMap map);

  unsigned bits() const; ///< of an element of what is read
  int64_t ofDim(unsigned dim) { return known(ofDims, dims, dim); }
  int64_t ofRange(unsigned range) { return known(ofRanges, symbols, range); }

  /// Do all runs of `length` neighbours lie in memory as they are, and begin at multiples of as many elements? Those
  /// along a variable, a dim or a range, that begin `start` and multiples of `length` after its zero.
  bool areAlignedPieces(mlir::AffineExpr variable, int64_t start, int64_t length) const;

private:
  /// Not known, or far.
  static constexpr int64_t unknown = int64_t(1) << 40;

  using Known = llvm::SmallVector<std::optional<int64_t>>; ///< by variable

  bool follow();
  /// Tiles are tried one after the other, and ask for the same.
  int64_t known(Known &strides, llvm::SmallVector<int64_t> &point, unsigned variable) {
    if (!strides[variable])
      strides[variable] = difference(point, variable);
    return *strides[variable];
  }
  int64_t difference(llvm::SmallVector<int64_t> &point, unsigned variable);

  IndexingMap map;
  const HloInstruction *source;
  llvm::SmallVector<int64_t> dims, symbols;
  Known ofDims, ofRanges;
};

/// Of runs of `run` elements of `bits`, `stride` elements apart: bits of the sectors that they are in, of each bit.
double spreadOf(int64_t stride, int64_t run, unsigned bits);

} // namespace hloc
