#include "Children.h"

#include "hloc/support/Subprocess.h"

#include "fmt/format.h"
#include "llvm/Support/FileSystem.h"

namespace hloc {

std::string Ending::describe() const {
  switch (kind) {
  case Kind::Exit:
    return fmt::format("ends with {}", number);
  case Kind::Signal:
    return fmt::format("is killed by signal {}", number);
  case Kind::TimeLimit:
    return fmt::format("takes longer than {:.3g} s", seconds);
  case Kind::NotStarted:
    break;
  }
  return "cannot be started: " + errors;
}

Children::Children(std::string given) : program(std::move(given)) {
  // Not the link itself: a child of a child would be another program.
  llvm::SmallString<256> path;
  if (program.empty())
    program = llvm::sys::fs::real_path("/proc/self/exe", path) ? "/proc/self/exe" : path.str().str();
}

Ending Children::run(const std::vector<std::string> &arguments, double seconds) const {
  std::vector<std::string> command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return runCommand(command, seconds);
}

Ending Children::runCommand(const std::vector<std::string> &command, double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  ProcessResult result = runProcess(command, std::chrono::milliseconds(int64_t(seconds * 1000)));
  Ending ending;
  ending.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ending.output = std::move(result.output);
  ending.errors = result.started ? std::move(result.errors) : std::move(result.error);
  if (result.timedOut)
    ending.kind = Ending::Kind::TimeLimit;
  else if (result.started && result.signal)
    ending.kind = Ending::Kind::Signal;
  else if (result.started)
    ending.kind = Ending::Kind::Exit;
  ending.number = result.signal ? result.signal : result.exitCode;
  return ending;
}

} // namespace hloc
