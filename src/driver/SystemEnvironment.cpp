#include "SystemEnvironment.h"

#include <cstdlib>

namespace hloc {

std::optional<std::string> systemEnvironment(const std::string &name) {
  const char *value = std::getenv(name.c_str());
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

} // namespace hloc
