#pragma once

#include "Options.h"

namespace hloc {

/// `hloc run`: compiles, executes, compares with a reference. Exit code 4 if results differ.
int runRun(const RunCommandOptions &options);

} // namespace hloc
