#include "StandardStreams.h"

#include "DiagnosticForm.h"

#include "llvm/Support/raw_ostream.h"

#include <fcntl.h>
#include <unistd.h>

namespace hloc {

void occupyClosedStandardStreams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1)
      continue;
    // The lowest free number is `fd`, for those below are taken. Opened in the wrong direction, so that every use
    // fails with EBADF, as it does on a closed descriptor.
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

namespace {

/// Why something written to `stream` was lost; no error if nothing was.
std::error_code flushed(llvm::raw_fd_ostream &stream) {
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error(); // LLVM's streams end the process with an internal error when they are destroyed with one
  return error;
}

} // namespace

int finishStandardStreams(int code) {
  bool lost = false;
  if (std::error_code error = flushed(llvm::outs())) {
    lost = true;
    printError(DiagnosticKind::UnwritableFile, "cannot write to standard output: " + error.message());
  }
  lost |= bool(flushed(llvm::errs()));
  return lost && code == 0 ? static_cast<int>(exitCode(DiagnosticKind::UnwritableFile)) : code;
}

} // namespace hloc
