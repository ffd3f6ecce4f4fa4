#pragma once
// What an input is: HLO, or IR of a later stage, which compiling goes on from.

#include "Options.h"

#include "hloc/compiler/Observer.h"

namespace hloc {

/// By `--input-format` or the suffix: `.mlir`, `.ll` and `.ptx`; everything else is HLO.
IrKind formatOf(const CompileOptions &options, llvm::StringRef input);

/// `MLIR`
const char *nameOf(IrKind kind);

/// What an input is at the end of: an output needs a later stage.
Stage stageOf(IrKind kind);

} // namespace hloc
