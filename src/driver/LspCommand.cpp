#include "LspCommand.h"

#include "Compile.h"
#include "Estimates.h"
#include "KernelChild.h"
#include "SystemEnvironment.h"

#include "hloc/lsp/Server.h"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace hloc {

namespace {

/// Standard input and output, without buffers of their own.
class StandardChannel : public lsp::Channel {
public:
  Status read(std::string &into, size_t most, int milliseconds) override {
    pollfd wanted{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&wanted, 1, milliseconds);
    if (ready == 0 || (ready < 0 && errno == EINTR))
      return Status::Nothing;
    const size_t before = into.size();
    into.resize(before + most);
    const ssize_t count = ready < 0 ? -1 : ::read(STDIN_FILENO, into.data() + before, most);
    into.resize(before + size_t(std::max<ssize_t>(count, 0)));
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
      return Status::Nothing;
    return count > 0 ? Status::Data : Status::End;
  }

  bool write(llvm::StringRef bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0 && errno == EAGAIN) { // the client has left it so
        pollfd wanted{STDOUT_FILENO, POLLOUT, 0};
        ::poll(&wanted, 1, -1);
        continue;
      }
      if (count <= 0)
        return false;
      bytes = bytes.drop_front(size_t(count));
    }
    return true;
  }
};

} // namespace

int runLsp(const CompileOptions &options, const LspOptions &lspOptions) {
  std::signal(SIGPIPE, SIG_IGN); // a client that is gone is noticed when it is written to
  lsp::KernelRequest request{compilerOptions(options), options.targets.front(),
                             deviceFor(options, options.targets.front())};
  KernelChild compiler(std::move(request), options.toolchain, lspOptions.timeLimit);
  StandardChannel channel;
  return lsp::serve(channel, lspOptions.timeLimit > 0 ? &compiler : nullptr, {});
}

} // namespace hloc
