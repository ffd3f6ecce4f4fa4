#pragma once
// Contraction: blocks of results, from tiles of both operands in shared memory.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const ContractionPlan &plan, KernelBuilder &kernel);

} // namespace hloc
