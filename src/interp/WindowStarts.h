#pragma once
// Where gather and scatter find the starts of their windows.

#include "hloc/hlo/HloModule.h"
#include "interp/Strided.h"

namespace hloc::interp {

/// The dims below `rank` that are not among `left`.
Index without(unsigned rank, llvm::ArrayRef<int64_t> left);

/// The dimension numbers, under the names of gather. "Window" is the array of gather's result or scatter's update.
struct WindowDims {
  Index windowDims;  ///< dims of the window array that run inside a window
  Index scatterDims; ///< its other dims: one window for each index of theirs
  Index droppedDims; ///< operand dims absent from the window array: collapsed or inserted, and batching
  llvm::ArrayRef<int64_t> operandDimOfIndex; ///< component of the start vector -> operand dim
  llvm::ArrayRef<int64_t> operandBatching, indexBatching;
  int64_t indexVectorDim;
};

WindowDims gatherDims(const HloInstruction &instr);
WindowDims scatterDims(const HloInstruction &instr, const Shape &updates);
/// Sizes of a scatter's windows along the operand's dims.
Index scatterWindow(const WindowDims &dims, const Shape &updates, unsigned operandRank);

/// Reads the start vectors. An index array without the vector dimension has vectors of one component.
class StartReader {
public:
  StartReader(const Literal &indices, const WindowDims &dims, unsigned operandRank)
      : indices(indices), dims(dims), operandRank(operandRank), strides(rowMajorStrides(indices.shape().dims())) {
    for (unsigned i = 0; i < indices.shape().rank(); ++i)
      if (int64_t(i) != dims.indexVectorDim)
        batchDims.push_back(i);
  }

  /// Dims of the index array that name a window each, in order.
  Index batchSizes() const {
    Index sizes;
    for (int64_t dim : batchDims)
      sizes.push_back(indices.shape().dim(unsigned(dim)));
    return sizes;
  }

  /// Start of the window at a batch position, one component per operand dim.
  Index start(llvm::ArrayRef<int64_t> batch) const {
    int64_t base = 0;
    for (size_t i = 0; i < batch.size(); ++i)
      base += batch[i] * strides[size_t(batchDims[i])];
    bool hasVector = dims.indexVectorDim < int64_t(indices.shape().rank());
    int64_t step = hasVector ? strides[size_t(dims.indexVectorDim)] : 0;
    Index made(operandRank, 0);
    for (size_t i = 0; i < dims.operandDimOfIndex.size(); ++i)
      made[size_t(dims.operandDimOfIndex[i])] = component(base + int64_t(i) * step);
    for (size_t i = 0; i < dims.operandBatching.size(); ++i) {
      auto position = size_t(llvm::find(batchDims, dims.indexBatching[i]) - batchDims.begin());
      made[size_t(dims.operandBatching[i])] = batch[position];
    }
    return made;
  }

private:
  /// u64 values beyond the signed range are too large, not negative.
  int64_t component(int64_t at) const {
    int64_t value = indices.getInt(at);
    return indices.shape().elementType() == ElementType::U64 && value < 0 ? INT64_MAX : value;
  }

  const Literal &indices;
  const WindowDims &dims;
  unsigned operandRank;
  Index strides, batchDims;
};

} // namespace hloc::interp
