#pragma once
// The passes that LLVM runs on kernels, by name.

#include "hloc/codegen/Pipeline.h"

#include <string>
#include <vector>

namespace hloc {

/// LLVM's passes at `-O<level>`, in order: first those of kernels of one block, then those of the others. hloc's own
/// steps around them are not here.
std::vector<PassName> llvmPasses(unsigned optimizationLevel);

} // namespace hloc
