#pragma once
// `--remarks`: what a kernel's plan says about its speed, at its place in the HLO text.

#include "hloc/hlo/HloComputation.h"
#include "hloc/kernel/KernelSpec.h"
#include "hloc/support/Diagnostics.h"

namespace hloc {

/// The kernel's remarks whose kind matches the regular expression. `fusion`: the computation it was made of. What was
/// said before, of the same computation for another GPU or another call, is not said again.
void reportRemarks(const KernelSpec &kernel, const HloComputation &fusion, const std::string &kinds,
                   DiagnosticEngine &diagnostics);

} // namespace hloc
