#include "KernelChild.h"

#include "fmt/format.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hloc {

void KernelChild::start(std::shared_ptr<const SourceFile> file) {
  end();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return; // poll says that there is no child
  child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    compile(std::move(file), ends[1]);
  }
  ::close(ends[1]);
  pipe = ends[0];
  ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  deadline = Clock::now() + std::chrono::milliseconds(int64_t(seconds * 1000));
}

/// In the child. Its standard streams are those of the protocol: nothing may be written there.
void KernelChild::compile(std::shared_ptr<const SourceFile> file, int out) const {
  constexpr rlim_t mostMemory = rlim_t(8) << 30;
  constexpr int lessUrgent = 10, grace = 2;
  ::setpgid(0, 0);
  (void)!::nice(lessUrgent);
  ::alarm(unsigned(seconds) + grace); // in case that nobody is left who ends it
  const rlimit memory{mostMemory, mostMemory};
  ::setrlimit(RLIMIT_AS, &memory);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::dup2(nothing, fd);
  const std::string text = lsp::printKernelReport(reportKernels(std::move(file), request, Toolchain::discover(tools)));
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(out, text.data() + at, text.size() - at);
    if (written <= 0)
      ::_exit(1);
    at += size_t(written);
  }
  ::_exit(0);
}

std::optional<lsp::KernelReport> KernelChild::poll() {
  if (child <= 0)
    return lsp::KernelReport{.refusal = "no process could be started to compile it"};
  char bytes[1 << 16];
  ssize_t count = 0;
  while ((count = ::read(pipe, bytes, sizeof(bytes))) > 0)
    output.append(bytes, size_t(count));
  if (count == 0)
    return finish();
  if (errno != EAGAIN && errno != EINTR)
    return finish();
  if (Clock::now() < deadline)
    return std::nullopt;
  end();
  return lsp::KernelReport{.refusal = fmt::format("compiling it takes more than {:.3g} s", seconds)};
}

lsp::KernelReport KernelChild::finish() {
  std::optional<lsp::KernelReport> report = lsp::parseKernelReport(output);
  end();
  return report ? *report : lsp::KernelReport{.refusal = "the compiler failed; `hloc FILE` says how"};
}

void KernelChild::end() {
  if (child > 0) {
    ::kill(-child, SIGKILL); // with what it has started
    ::kill(child, SIGKILL);  // if it has no group yet
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (pipe >= 0)
    ::close(pipe);
  child = -1;
  pipe = -1;
  output.clear();
}

} // namespace hloc
