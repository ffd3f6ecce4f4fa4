#pragma once
// What tests of the runtime have in common, against libraries and a driver that need no GPU (tests/fake-cuda).

#include "hloc/runtime/CudaDevice.h"
#include "hloc/support/DynamicLibrary.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>

namespace hloc::test {

/// An environment variable for the life of a test.
struct Setting {
  const char *name;
  Setting(const char *name, const std::string &value) : name(name) { ::setenv(name, value.c_str(), 1); }
  ~Setting() { ::unsetenv(name); }
};

/// What was called of the fake library in a file, whose functions begin with `prefix`, since `forget`.
inline std::string callsOf(const std::string &file, const std::string &prefix) {
  return DynamicLibrary({file}).function<const char *()>((prefix + "Log").c_str())();
}
inline void forget(const std::string &file, const std::string &prefix) {
  DynamicLibrary({file}).function<void()>((prefix + "Reset").c_str())();
}

} // namespace hloc::test
