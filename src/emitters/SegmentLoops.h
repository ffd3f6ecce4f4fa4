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

} // namespace hloc
