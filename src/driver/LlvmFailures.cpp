#include "LlvmFailures.h"

#include "hloc/support/ExitCode.h"
#include "hloc/support/Recovery.h"

#include <cstdio>
#include <cstdlib>

namespace hloc {

void endOnLlvmFailure(const LlvmFailure &failure) {
  const bool isGiven = failure.isGiven;
  giveUp({isGiven ? ExitCode::Unsupported : ExitCode::InternalError,
          std::string("LLVM cannot generate code for kernel `") + failure.kernel + "`: " + failure.reason});
  std::fprintf(stderr, "hloc: error: LLVM cannot generate code for kernel `%s`: %s [%s]\n", failure.kernel,
               failure.reason, isGiven ? "unsupported-feature" : "internal");
  if (!isGiven)
    std::fputs("This is a bug in hloc, not in your input. Please report it with the input file and the command line.\n",
               stderr);
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(isGiven ? ExitCode::Unsupported : ExitCode::InternalError));
}

} // namespace hloc
