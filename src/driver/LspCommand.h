#pragma once
// `hloc lsp`: the language server on standard input and output.

#include "Options.h"

namespace hloc {

/// The process exit code: 0 after the messages `shutdown` and `exit`, else 1.
int runLsp(const CompileOptions &options, const LspOptions &lspOptions);

} // namespace hloc
