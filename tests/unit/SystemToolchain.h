#pragma once
// The tools that are there for whoever runs the tests, as hloc finds them.

#include "hloc/codegen/Toolchain.h"

#include <cstdlib>

namespace hloc::test {

inline const Toolchain &systemToolchain() {
  static const Toolchain found = [] {
    ToolchainOptions options;
    options.environment = [](const std::string &name) {
      const char *value = std::getenv(name.c_str());
      return value && *value ? std::optional<std::string>(value) : std::nullopt;
    };
    return Toolchain::discover(options);
  }();
  return found;
}

} // namespace hloc::test
