#include "LlvmFailures.h"

#include "DiagnosticForm.h"

#include "hloc/support/ExitCode.h"
#include "hloc/support/Recovery.h"

#include <cstdio>
#include <cstdlib>

namespace hloc {

void endOnLlvmFailure(const LlvmFailure &failure) {
  const bool isGiven = failure.isGiven;
  const std::string what =
      std::string("LLVM cannot generate code for kernel `") + failure.kernel + "`: " + failure.reason;
  giveUp({isGiven ? ExitCode::Unsupported : ExitCode::InternalError, what});
  printError(isGiven ? DiagnosticKind::UnsupportedFeature : DiagnosticKind::Internal, what);
  if (!isGiven)
    std::fputs("This is a bug in hloc, not in your input. Please report it with the input file and the command line.\n",
               stderr);
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(isGiven ? ExitCode::Unsupported : ExitCode::InternalError));
}

} // namespace hloc
