#pragma once
// What is known of a module's kernels beside their text: of launches, and of what the HLO asks for.

#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/lint/Lint.h"

#include <map>
#include <string>

namespace hloc {

/// By kernel name. `fused`: what the kernels were made of; null: not known, and then of launches nothing is known
/// either.
std::map<std::string, lint::KernelFacts> lintFactsOf(const Manifest &manifest, const HloModule *fused);

} // namespace hloc
