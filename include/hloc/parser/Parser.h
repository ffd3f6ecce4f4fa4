#pragma once
// HLO text -> HloModule. The grammar is the whole of HLO text: full modules, headerless lists of computations, single
// instructions; dumps of XLA and the text jax prints.

#include "hloc/hlo/HloModule.h"
#include "hloc/support/Diagnostics.h"

#include <memory>
#include <vector>

namespace hloc {

/// Parses one module. Sets the engine's file. Null if anything was wrong; several errors are reported in one run,
/// because parsing goes on at the next instruction. Any bytes are fine as input.
std::unique_ptr<HloModule> parseHloModule(std::shared_ptr<const SourceFile> file, DiagnosticEngine &diagnostics);

/// Texts of a file whose modules are separated by lines that are exactly `// -----`.
std::vector<llvm::StringRef> splitModules(llvm::StringRef text);

} // namespace hloc
