#pragma once
// Rows: a group of neighbouring threads takes the vectors of a row in turns, and combines what its threads have.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const RowReductionPlan &plan, KernelBuilder &kernel);

} // namespace hloc
