#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hloc {

/// Variables by name, as whoever uses the library hands them over: nothing below the driver asks the process for its
/// own. Nothing for one that is not set, or empty.
using Environment = std::function<std::optional<std::string>(const std::string &name)>;

} // namespace hloc
