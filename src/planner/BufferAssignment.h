#pragma once
// Where temporaries lie: in one block of memory, in which those that are never needed at the same time share places.
//
//   launch f(p; 1)  launch g(1; 2)  launch h(2; 3)  launch k(3; result)        of 1 KiB each
//   1 lives from step 0 to 1, 2 from 1 to 2, 3 from 2 to 3: 1 and 3 lie at 0, 2 at 1024; 2 KiB
//
// Steps are numbered as they stand in the tree, condition and body of a loop and the branches of a choice in line. A
// buffer lives from the first step that names it to the last. What goes into a loop from outside, out of it, or round
// it lives as long as the loop: what is read in it before it is written, or named outside of it too.

#include "hloc/kernel/Manifest.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace hloc {

/// First and last step that a buffer is needed in.
struct Lifetime {
  uint32_t begin = 0, end = 0;
  bool overlaps(const Lifetime &other) const { return begin <= other.end && other.begin <= end; }
};

/// Whether the argument is where a launch makes a value without having read what was there.
using DefinesArgument = llvm::function_ref<bool(const LaunchStep &launch, size_t argument)>;

/// By buffer; nothing for those that no step names.
std::vector<std::optional<Lifetime>> findLifetimes(const Steps &steps, size_t numBuffers, DefinesArgument defines);

struct BufferInterval {
  uint64_t bytes = 0;
  Lifetime lifetime;
};
struct Packing {
  std::vector<uint64_t> offsets; ///< multiples of bufferPlacement
  uint64_t bytes = 0;            ///< of the block
};
/// Best fit, the largest or those that live longest first, whatever needs less. (XLA does the same.)
Packing packIntervals(llvm::ArrayRef<BufferInterval> intervals);

/// Gives the temporaries their offsets. Results and parameters keep memory of their own.
void placeTemporaries(std::vector<ModuleBuffer> &buffers, const Steps &steps, DefinesArgument defines);

} // namespace hloc
