#include "hloc/support/Check.h"
#include "hloc/support/ExitCode.h"
#include "hloc/support/Recovery.h"

#include <cstdio>
#include <cstdlib>
#include <string>

void hloc::reportInternalError(const char *file, int line, const char *what) {
  giveUp({ExitCode::InternalError, std::string(what) + " (" + file + ":" + std::to_string(line) + ")"});
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
