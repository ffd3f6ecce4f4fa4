#include "hloc/support/Subprocess.h"

#include "fmt/format.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace hloc {

namespace {

/// A pipe whose ends do not leak into other children started at the same time.
struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void closeWrite() {
    if (write >= 0)
      ::close(write);
    write = -1;
  }
  ~Pipe() {
    closeWrite();
    if (read >= 0)
      ::close(read);
  }
};

/// Starts the process; returns 0 or an errno value.
int spawn(const std::vector<std::string> &command, const Pipe &output, const Pipe &errors, pid_t &pid) {
  std::vector<char *> arguments;
  for (const std::string &argument : command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write, STDERR_FILENO);
  int code = ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

/// Reads both pipes until both are closed. False when `deadline` passed first.
bool drain(Pipe &output, Pipe &errors, ProcessResult &result, std::chrono::steady_clock::time_point deadline) {
  pollfd polled[2] = {{output.read, POLLIN, 0}, {errors.read, POLLIN, 0}};
  std::string *sinks[2] = {&result.output, &result.errors};
  char buffer[1 << 16];
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return false;
    int ready = ::poll(polled, 2, static_cast<int>(std::min<int64_t>(left.count(), 1000)));
    if (ready < 0 && errno != EINTR)
      return true;
    for (int i = 0; i < 2 && ready > 0; ++i) {
      if (polled[i].fd < 0 || !polled[i].revents)
        continue;
      ssize_t got = ::read(polled[i].fd, buffer, sizeof buffer);
      if (got > 0)
        sinks[i]->append(buffer, static_cast<size_t>(got));
      else if (got == 0 || errno != EINTR)
        polled[i].fd = -1; // poll ignores negative descriptors
    }
  }
  return true;
}

} // namespace

std::string ProcessResult::describe() const {
  if (!started)
    return error;
  if (timedOut)
    return "did not end in time";
  if (signal)
    return fmt::format("killed by signal {} ({})", signal, ::strsignal(signal));
  return fmt::format("exit code {}", exitCode);
}

ProcessResult runProcess(const std::vector<std::string> &command, std::chrono::milliseconds timeout) {
  ProcessResult result;
  Pipe output, errors;
  if (!output.open() || !errors.open()) {
    result.error = std::strerror(errno);
    return result;
  }
  pid_t pid = -1;
  if (int code = spawn(command, output, errors, pid)) {
    result.error = std::strerror(code);
    return result;
  }
  result.started = true;
  output.closeWrite();
  errors.closeWrite();
  if (!drain(output, errors, result, std::chrono::steady_clock::now() + timeout)) {
    result.timedOut = true;
    ::kill(pid, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status))
    result.exitCode = WEXITSTATUS(status);
  else if (WIFSIGNALED(status))
    result.signal = WTERMSIG(status);
  return result;
}

} // namespace hloc
