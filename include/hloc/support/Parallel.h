#pragma once
// Independent pieces of work on several threads.

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>

namespace hloc {

/// What `-j N` and its like mean: `asked`, or as many as there are cores for 0.
unsigned numWorkers(unsigned asked);

/// Calls `work(i)` for each i below `count`, on up to `workers` threads, the calling one among them. Returns when all
/// is done. Calls inside `work`, and beside it, share the threads: none starts one while the process has `workers` - 1
/// others of these calls. What gives up in one thread (Recovery.h) ends all, and is given up by the calling one.
void runInParallel(size_t count, unsigned workers, llvm::function_ref<void(size_t)> work);

} // namespace hloc
