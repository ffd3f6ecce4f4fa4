#pragma once
// Attention whose keys and terms one warpgroup copies by tensor maps into a ring, for others that multiply them.

#include "emitters/KernelBuilder.h"

namespace hloc {

llvm::LogicalResult emitInRing(const AttentionPlan &plan, KernelBuilder &kernel);

} // namespace hloc
