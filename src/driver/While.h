#pragma once
// --while: what a candidate has to do to be as good as the input.
//
//   exit 4           `hloc run` of it ends with this code; 70 is also a signal
//   crash, timeout   it is killed by a signal, or ends with 70; it takes longer than a candidate may
//   stderr=TEXT      it writes this to standard error
//   grep -q tanh     anything else: a command of the shell ends with 0, of which $1 is the candidate's file

#include "Children.h"

#include <string>
#include <vector>

namespace hloc {

class WhileCondition {
public:
  /// Of what --while says.
  static WhileCondition parse(llvm::StringRef text);
  /// Of how the input ends: the same way.
  static WhileCondition of(const Ending &ending);

  enum class Kind { Exit, Crash, TimeLimit, Stderr, Command };
  Kind kind() const { return ownKind; }
  const std::string &text() const { return ownText; }
  /// Of one that is not a command.
  bool holds(const Ending &ending) const;
  /// Of one that is.
  std::vector<std::string> commandFor(const std::string &file) const;

private:
  Kind ownKind = Kind::Exit;
  int code = 0;
  std::string ownText;  ///< as --while says it
  std::string expected; ///< the text of stderr=
};

} // namespace hloc
