#pragma once
// What ptxas says, as data and as our diagnostics.

#include "hloc/support/Subprocess.h"

#include "llvm/ADT/StringRef.h"

namespace hloc {

class DiagnosticEngine;

/// Turns a failed run into diagnostics: an unknown target or PTX version is a limit of that ptxas, too few registers or
/// too much shared memory one of the kernel, anything else our bug, with the PTX line. If the engine has a file, that
/// is the PTX, somebody else's: anything else is an error at its line.
void reportPtxasFailure(const ProcessResult &result, llvm::StringRef ptx, llvm::StringRef kernel,
                        DiagnosticEngine &diagnostics);

} // namespace hloc
