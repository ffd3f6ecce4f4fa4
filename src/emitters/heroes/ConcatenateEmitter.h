#pragma once
// Concatenate: every operand has blocks of its own, which write its part of the outputs in memory order.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const ConcatenatePlan &plan, KernelBuilder &kernel);

} // namespace hloc
