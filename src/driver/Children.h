#pragma once
// This program, run as a child: a crash or an endless loop is the child's, and what it says is caught.
//
//   Children children;
//   Ending ending = children.run({"run", "f.hlo", "--seed=1"}, 10);      // ending.describe(): "ends with 4"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace hloc {

/// How a child ended.
struct Ending {
  enum class Kind { Exit, Signal, TimeLimit, NotStarted } kind = Kind::NotStarted;
  int number = 0;             ///< the exit code, or the signal
  std::string output, errors; ///< what it wrote; of a child that could not be started, why
  double seconds = 0;

  bool exited(int code) const { return kind == Kind::Exit && number == code; }
  /// A signal, which is our bug as much as exit code 70.
  bool crashed() const { return kind == Kind::Signal || exited(70); }
  /// "ends with 4", "is killed by signal 11", "takes longer than 10 s"
  std::string describe() const;
};

class Children {
public:
  /// `program`: what is run; empty: this program.
  explicit Children(std::string program = "");

  /// Ends it after so many seconds. Safe to call from several threads.
  Ending run(const std::vector<std::string> &arguments, double seconds) const;
  /// The same of any command.
  static Ending runCommand(const std::vector<std::string> &command, double seconds);

private:
  std::string program;
};

} // namespace hloc
