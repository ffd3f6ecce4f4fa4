#pragma once
// What ptxas makes of PTX whose target its text names: of hloc's kernels and of anybody's.

#include "hloc/codegen/Assemble.h"

#include <optional>

namespace hloc {

/// For the target that the PTX names. Nothing where there is no ptxas, or if it refuses.
std::optional<Cubin> machineCodeOf(const std::string &ptx, const Toolchain &toolchain);

/// Of the sections that have code.
std::optional<double> codeBytes(llvm::StringRef cubin);

} // namespace hloc
