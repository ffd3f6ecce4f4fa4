#pragma once
// Columns: a block reads some whole columns once, and keeps them in registers for several reductions and the outputs.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const ColumnsPlan &plan, KernelBuilder &kernel);

} // namespace hloc
