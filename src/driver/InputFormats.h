#pragma once
// What an input is: HLO, or IR of a later stage, which compiling goes on from.

#include "Options.h"

#include "hloc/compiler/Observer.h"

namespace hloc {

/// By `--input-format` or the suffix: `.mlir`, `.ll` and `.ptx`; everything else is HLO.
IrKind formatOf(const CompileOptions &options, llvm::StringRef input);

/// Why these options make no sense for `input`; empty if they do. `kind`: the output; `describes`: of kernels, too.
std::string formatRefusal(const CompileOptions &options, llvm::StringRef input, EmitKind kind, bool describes);

} // namespace hloc
