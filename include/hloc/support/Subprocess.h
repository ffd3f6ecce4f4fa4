#pragma once
// Running another program to its end: no shell, output captured, bounded in time. Safe to call from several threads.

#include <chrono>
#include <string>
#include <vector>

namespace hloc {

struct ProcessResult {
  bool started = false;  ///< false: `error` says why
  bool timedOut = false; ///< the process was killed
  int exitCode = -1;     ///< valid if it exited by itself
  int signal = 0;        ///< the signal that ended it, or 0
  std::string output;    ///< what it wrote to stdout
  std::string errors;    ///< what it wrote to stderr
  std::string error;     ///< why it could not be started

  bool succeeded() const { return started && !timedOut && signal == 0 && exitCode == 0; }
  /// "exit code 1", "killed by signal 11", "still running after 60 s", or why it did not start.
  std::string describe() const;
};

/// Runs `command` ([0] is the program, looked up on PATH if it has no slash) with an empty stdin.
ProcessResult runProcess(const std::vector<std::string> &command,
                         std::chrono::milliseconds timeout = std::chrono::minutes(10));

} // namespace hloc
