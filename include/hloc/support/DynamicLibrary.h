#pragma once
// Libraries that may or may not be installed (the CUDA driver, nvJitLink), opened at run time.

#include <string>
#include <vector>

namespace hloc {

/// Stays loaded for the life of the process: drivers keep threads and exit handlers that must not be unmapped.
class DynamicLibrary {
public:
  /// Opens the first of `names` (file names or paths) that loads. Without one, `isOpen()` is false and `error()` holds
  /// the loader's message for each name.
  explicit DynamicLibrary(const std::vector<std::string> &names);

  /// Whether any can be opened: false in a program that is linked without a loader.
  static bool canOpen();

  bool isOpen() const { return handle != nullptr; }
  const std::string &error() const { return message; }
  /// The name that was opened.
  const std::string &name() const { return opened; }

  /// Null if the library has no such symbol.
  void *symbol(const char *symbolName) const;
  template <typename Function> Function *function(const char *symbolName) const {
    return reinterpret_cast<Function *>(symbol(symbolName));
  }

private:
  void *handle = nullptr;
  std::string opened;
  std::string message;
};

} // namespace hloc
