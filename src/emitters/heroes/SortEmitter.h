#pragma once
// Sort: tiles of rows in shared memory, and merges of sorted runs.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const SortPlan &plan, KernelBuilder &kernel);

} // namespace hloc
