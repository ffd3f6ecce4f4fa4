#pragma once

#include "Options.h"

namespace hloc {

/// `hloc reduce`: the smallest module that still does what the input does. The process exit code.
int runReduce(const ReduceOptions &options);

} // namespace hloc
