#pragma once
// Capsules: a folder with what it takes to repeat a run that went wrong.
//
//   DIR/capsule.json    the options, the versions, how it ended, and the environment that mattered
//   DIR/input.hlo, ...  the files that were read
//
// It is written before the work begins, as a crash leaves no time for it, and removed when the work ends well. Who
// repeats somebody else's capsule trusts nobody: options that write files or load programs are not in it, and are
// refused if they are.

#include "Options.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace hloc {

class Capsule {
public:
  /// Of the command line, whose first word is the program. Nothing after an error.
  static std::optional<Capsule> write(llvm::ArrayRef<const char *> arguments, const Command &command,
                                      DiagnosticEngine &diagnostics);
  /// With 4 and 70 it stays, and says so.
  void finish(int exitCode);

private:
  explicit Capsule(std::string folder) : folder(std::move(folder)) {}

  std::string folder;
  std::vector<std::string> files; ///< their names there
  std::string description;        ///< of capsule.json, up to how it ended
};

/// Whether `--reproducer` would be of use for what ended like this.
void sayHowToReproduce(const Command &command, int exitCode);

/// `hloc replay DIR`: repeats it and says whether it still happens. The exit code is that of the repetition.
int runReplay(const ReduceOptions &options);

} // namespace hloc
