#include "hloc/support/Check.h"
#include "hloc/support/ExitCode.h"

#include <cstdio>
#include <cstdlib>

void hloc::reportInternalError(const char *file, int line, const char *what) {
  std::fprintf(stderr,
               "hloc: internal error: %s (%s:%d)\n"
               "This is a bug in hloc, not in your input. Please report it with the input file and the command line.\n",
               what, file, line);
  std::fflush(nullptr);
#ifdef HLOC_FUZZ_ABORTS
  std::abort(); // libFuzzer keeps the input of a crash, not of an exit
#endif
  std::_Exit(static_cast<int>(ExitCode::InternalError));
}
