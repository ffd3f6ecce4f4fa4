#pragma once
// `--prove`: what is proved of each kernel, as a table.

#include "hloc/kernel/Manifest.h"
#include "hloc/support/Diagnostics.h"

namespace hloc {

/// A line a kernel, and below it why something is not proved. What is refuted is reported, too.
std::string printProofs(const Manifest &manifest, DiagnosticEngine &diagnostics);

} // namespace hloc
