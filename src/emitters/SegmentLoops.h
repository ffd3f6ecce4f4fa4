#pragma once
// Segments: what a kernel does where each of its blocks belongs to one of several pieces of work (BlockSegment).
//
//   two segments of 256 and 128 blocks, 4 elements a thread:
//   if (block < 256) for i in 0..3 body(0, indices of element 4 * (block * 128 + thread) + i) else ... body(1, ...)

#include "emitters/KernelBuilder.h"

namespace hloc {

struct SegmentLoop {
  const BlockSegment *segment;
  Shape box; ///< its elements are walked in this layout's order
};

/// What is done for one element: gets the number of the segment, the element's indices in the box, and the outputs so
/// far; returns the outputs.
using SegmentBody =
    llvm::function_ref<llvm::SmallVector<mlir::Value>(size_t number, mlir::ValueRange indices, mlir::ValueRange)>;

/// Which segment a block is part of is decided once, by its number; then come the segment's elements that are the
/// thread's.
void emitSegments(llvm::ArrayRef<SegmentLoop> segments, KernelBuilder &kernel, SegmentBody body);

/// What is done for a segment: gets its number, the thread's id and the number of the block within the segment, and the
/// outputs so far; returns the outputs.
using SegmentCode =
    llvm::function_ref<llvm::SmallVector<mlir::Value>(size_t number, mlir::ValueRange ids, mlir::ValueRange outputs)>;
/// The first of the two steps alone.
void emitSegments(llvm::ArrayRef<const BlockSegment *> segments, KernelBuilder &kernel, SegmentCode code);

/// The second: a loop over the elements of `segment` that are the thread's. `indicesAt` says where the element at a
/// position of the segment's order is; the body gets these indices and the outputs so far. Of several bodies each is
/// done for all elements of a group before the next one is.
using IndicesAt = llvm::function_ref<llvm::SmallVector<mlir::AffineExpr>(mlir::AffineExpr position)>;
using ElementBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange indices, mlir::ValueRange)>;
llvm::SmallVector<mlir::Value> emitElements(const BlockSegment &segment, IndicesAt indicesAt, KernelBuilder &kernel,
                                            mlir::ValueRange ids, mlir::ValueRange outputs,
                                            llvm::ArrayRef<ElementBody> bodies);

} // namespace hloc
