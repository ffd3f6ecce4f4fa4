#pragma once
// The passes of all stages by name and description: for `--list-passes`, `opt --help`, and to check dump filters.

#include <string>
#include <vector>

namespace hloc {

struct PassRow {
  std::string stage;   ///< hlo, mlir, llvm, ptx
  std::string name;    ///< as dumps and --timing have it
  std::string summary; ///< what it does, one sentence
};

/// At `-O<optimizationLevel>`, in the order in which they run; one that runs twice is there twice.
std::vector<PassRow> passesInOrder(unsigned optimizationLevel);

/// The passes of the kernel pipeline and the others that `hloc opt` takes, each once, by the names it takes them by.
std::vector<PassRow> optPasses();

/// Makes the passes of the kernel pipeline known by name to MLIR's registry, which is global. Once, on first use.
void registerKernelPasses();

} // namespace hloc
