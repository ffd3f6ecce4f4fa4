#include "hloc/support/DynamicLibrary.h"

#include <dlfcn.h>

namespace hloc {

DynamicLibrary::DynamicLibrary(const std::vector<std::string> &names) {
  for (const std::string &candidate : names) {
    handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) {
      opened = candidate;
      message.clear();
      return;
    }
    const char *reason = ::dlerror();
    std::string why = reason ? reason : "not found"; // that begins with the name in glibc
    message += (message.empty() ? "" : "; ") + (why.starts_with(candidate) ? why : candidate + ": " + why);
  }
}

bool DynamicLibrary::canOpen() {
  static const bool hasLoader = ::dlopen(nullptr, RTLD_NOW) != nullptr; // the program itself
  return hasLoader;
}

void *DynamicLibrary::symbol(const char *symbolName) const { return handle ? ::dlsym(handle, symbolName) : nullptr; }

} // namespace hloc
