#pragma once
// `hloc compare`: one table of what hloc and others have made of the same HLO.

#include "Options.h"

namespace hloc {

/// The process exit code: that of hloc's own kernels, else 4 if a peer's are wrong, else that of the first peer that
/// could not be looked at.
int runCompare(const CompareOptions &options);

} // namespace hloc
