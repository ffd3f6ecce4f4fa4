#pragma once
// `hloc opt`: mlir-opt for the kernel pipeline. Passes run in the order of the command line; an option of a pass is
// written as in a textual pipeline: --hloc-lower-tensors='max-vector-bytes=32'.

#include "Options.h"

namespace hloc {

/// The process exit code.
int runOpt(const OptOptions &options);

/// To standard output: the passes and their own options, for --help.
void printPasses();

} // namespace hloc
