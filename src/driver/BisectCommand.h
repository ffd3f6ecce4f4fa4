#pragma once

#include "Options.h"

namespace hloc {

/// `hloc bisect`: what is to blame for what goes wrong with a module. The process exit code: that of the run.
int runBisect(const ReduceOptions &options);

} // namespace hloc
