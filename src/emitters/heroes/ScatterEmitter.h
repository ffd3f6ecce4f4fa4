#pragma once
// Scatter: one thread for each few elements of the updates.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const ScatterPlan &plan, KernelBuilder &kernel);

} // namespace hloc
