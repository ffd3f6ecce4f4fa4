#pragma once

#include "Options.h"

namespace hloc {

/// With what follows from the options of compilation.
RunCommandOptions settledRun(const RunCommandOptions &options);

/// `hloc run`: compiles, executes, compares with a reference. Exit code 4 if results differ.
int runRun(const RunCommandOptions &options);

} // namespace hloc
