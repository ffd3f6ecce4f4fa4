#pragma once

#include <optional>
#include <string>

namespace hloc {

/// The process's own variables (hloc/support/Environment.h).
std::optional<std::string> systemEnvironment(const std::string &name);

} // namespace hloc
