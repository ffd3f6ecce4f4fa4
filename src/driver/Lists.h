#pragma once
// What `--list-kernels`, `--list-ops`, `--list-heroes`, `--list-passes`, `--list-targets`, `--list-rules`,
// `--doctor` and `--version` print.

#include "hloc/codegen/Toolchain.h"

#include "hloc/kernel/Manifest.h"

#include "hloc/codegen/CubinCache.h"

#include <string>

namespace hloc {

/// A line a kernel: instruction, line of the text, emitter, launch, registers, bytes, op_name.
std::string listKernels(const Manifest &manifest);
std::string listOps();
/// What each emitter takes, and how it does it: a paragraph each.
std::string listHeroes();
std::string listPasses(unsigned optimizationLevel);
std::string listRules();
/// Of all rules, or those of --fast-math.
std::string listRewrites(bool fastMathOnly);
std::string listTargets();
std::string versionText();
/// Of --cache-stats.
std::string cacheStatistics(const CacheSettings &settings);

} // namespace hloc
