#pragma once
// Column reduction: neighbouring threads read neighbouring columns, each as many as one load brings, from many rows;
// what the threads of a block have of a column is combined through shared memory, what blocks have by another kernel.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const ColumnReductionPlan &plan, KernelBuilder &kernel);

} // namespace hloc
