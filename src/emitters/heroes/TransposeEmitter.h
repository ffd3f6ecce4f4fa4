#pragma once
// Transpose: a tile goes through shared memory, so that both its loads and its stores are coalesced.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const TransposePlan &plan, KernelBuilder &kernel);

} // namespace hloc
