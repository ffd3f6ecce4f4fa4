#pragma once
// Rows: a group of threads reads a row once, and keeps it in registers for several reductions and the outputs.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const RowsPlan &plan, KernelBuilder &kernel);

} // namespace hloc
