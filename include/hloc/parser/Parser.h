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

/// What could be read of a text, whether or not it is right.
struct ReadModule {
  std::unique_ptr<HloModule> module; ///< null: it is no HLO text at all
  /// Computations with errors, without the instructions that have them or use what has.
  std::vector<std::unique_ptr<HloComputation>> broken;
  bool isRight = false; ///< it is what parseHloModule returns
};

/// For those who show a text while it is written. Reports what parseHloModule does.
ReadModule readHloModule(std::shared_ptr<const SourceFile> file, DiagnosticEngine &diagnostics);

/// Texts of a file whose modules are separated by lines that are exactly `// -----`.
std::vector<llvm::StringRef> splitModules(llvm::StringRef text);

} // namespace hloc
