#pragma once
// What was asked for and has no effect: said, not passed over.

#include "Options.h"

#include "hloc/support/Diagnostics.h"

namespace hloc {

/// Warns of dump filters that match no pass of hloc.
void warnOfIdleFilters(const DumpOptions &options, unsigned optimizationLevel, DiagnosticEngine &diagnostics);

/// Removes what an earlier run wrote to the dump folder, which is what the index.txt of its folders lists, so that the
/// files there are those of one run. Other files stay.
void removeEarlierDumps(const DumpOptions &options, DiagnosticEngine &diagnostics);

} // namespace hloc
