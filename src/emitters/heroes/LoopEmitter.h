#pragma once
// Loop: every thread computes one or several groups of `perThread` consecutive elements, in memory order, of all
// outputs of a nest. Takes every fusion.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const LoopPlan &plan, KernelBuilder &kernel);

} // namespace hloc
