#include "While.h"

#include "fmt/format.h"

namespace hloc {

WhileCondition WhileCondition::parse(llvm::StringRef text) {
  WhileCondition condition;
  condition.ownText = text.str();
  llvm::StringRef rest = text.trim();
  if (llvm::StringRef number = rest; number.consume_front("exit ") && !number.trim().getAsInteger(10, condition.code))
    condition.ownKind = Kind::Exit;
  else if (rest == "crash")
    condition.ownKind = Kind::Crash;
  else if (rest == "timeout")
    condition.ownKind = Kind::TimeLimit;
  else if (text.starts_with("stderr=")) {
    condition.ownKind = Kind::Stderr;
    condition.expected = text.drop_front(llvm::StringRef("stderr=").size()).str();
  } else
    condition.ownKind = Kind::Command;
  return condition;
}

WhileCondition WhileCondition::of(const Ending &ending) {
  switch (ending.kind) {
  case Ending::Kind::Signal:
    return parse("crash");
  case Ending::Kind::TimeLimit:
    return parse("timeout");
  default:
    return parse(fmt::format("exit {}", ending.number));
  }
}

bool WhileCondition::holds(const Ending &ending) const {
  switch (ownKind) {
  case Kind::Exit:
    return ending.exited(code) || (code == 70 && ending.crashed());
  case Kind::Crash:
    return ending.crashed();
  case Kind::TimeLimit:
    return ending.kind == Ending::Kind::TimeLimit;
  case Kind::Stderr:
    return llvm::StringRef(ending.errors).contains(expected);
  case Kind::Command:
    break;
  }
  return false;
}

/// The text is the user's own, and the file's name is no part of it: the shell hands it on as an argument.
std::vector<std::string> WhileCondition::commandFor(const std::string &file) const {
  const bool namesFile = ownText.find("$1") != std::string::npos || ownText.find("${1}") != std::string::npos ||
                         ownText.find("$@") != std::string::npos;
  return {"/bin/sh", "-c", ownText + (namesFile ? "" : " \"$1\""), "hloc-reduce", file};
}

} // namespace hloc
