#pragma once
// A text compiled in memory, with the options of the command line: what the library offers (include/hloc.h).

#include "hloc/compiler/Observer.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"

#include <memory>
#include <string>
#include <vector>

namespace hloc {

/// What one target's compilation gives.
struct CompiledTarget {
  std::string target;   ///< `sm_90`
  std::string ptx;      ///< of all kernels
  std::string cubin;    ///< empty unless `--emit=cubin` asks for machine code
  std::string manifest; ///< as `--manifest` writes it: JSON
};

/// Compiles the HLO in `source`. `options` are words such as `--target=sm_80`: those that say what is compiled, for
/// what and how; what writes files or prints is refused, as is what is none. Nothing is printed. After an error, or
/// once the observer has all cancelled, there may be targets, which are complete.
std::vector<CompiledTarget> compileText(std::shared_ptr<const SourceFile> source, llvm::ArrayRef<std::string> options,
                                        CompileObserver &observer, DiagnosticEngine &diagnostics);

/// The options that compileText takes, by their long names, as `--target`.
llvm::ArrayRef<llvm::StringLiteral> optionsOfTexts();

/// Has failures of LLVM end as those of hloc do: by exit code, or where somebody can go on (Recovery.h), there.
void hearLlvmFailures();

} // namespace hloc
