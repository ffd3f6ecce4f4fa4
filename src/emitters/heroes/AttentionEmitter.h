#pragma once
// Attention: rows of a dot's results, which become factors of another in the registers of a warp.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitHero(const AttentionPlan &plan, KernelBuilder &kernel);

} // namespace hloc
