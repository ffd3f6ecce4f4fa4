#pragma once
// Dynamic-update-slice: every thread computes `perThread` neighbouring elements of the updates and stores them where
// the clamped start indices say; the rest of the outputs is there already.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const UpdateSlicePlan &plan, KernelBuilder &kernel);

} // namespace hloc
