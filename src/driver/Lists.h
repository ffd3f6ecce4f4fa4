#pragma once
// What `--list-ops`, `--list-passes`, `--list-targets`, `--doctor` and `--version` print.

#include "hloc/codegen/Toolchain.h"

#include <string>

namespace hloc {

std::string listOps();
std::string listPasses();
std::string listTargets();
std::string versionText();

} // namespace hloc
