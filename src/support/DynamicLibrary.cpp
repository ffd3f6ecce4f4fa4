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
    message += (message.empty() ? "" : "; ") + candidate + ": " + (reason ? reason : "not found");
  }
}

void *DynamicLibrary::symbol(const char *symbolName) const { return handle ? ::dlsym(handle, symbolName) : nullptr; }

} // namespace hloc
