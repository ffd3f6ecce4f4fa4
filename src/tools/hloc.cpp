#include "hloc.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  int code = hloc_main(argc, argv);
  std::fflush(nullptr);
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return code; // leaks are looked for at a proper exit
#endif
#endif
  // Taking contexts and dialects apart takes as long as a small kernel's passes, for memory that is given back anyway.
  std::_Exit(code);
}
