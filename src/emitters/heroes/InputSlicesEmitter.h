#pragma once
// Input slices: regions of the sliced arrays have blocks of their own; what is computed there goes to all outputs that
// show it.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const InputSlicesPlan &plan, KernelBuilder &kernel);

} // namespace hloc
