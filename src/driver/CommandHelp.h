#pragma once
// What `--help`, the man page and the completions of shells are made of: the rows of the option table for each command,
// and the passes that `hloc opt` takes.

#include "Options.h"

#include <string>
#include <vector>

namespace CLI {
class App;
class Error;
} // namespace CLI

namespace hloc {

struct OptionHelp {
  std::vector<std::string> names = {};      ///< `-o`, `--output`; of the positional argument none
  std::string value = {};                   ///< `FILE`, `DIR`, `FILE.npz`; empty if it takes none
  bool optionalValue = false;               ///< `--timing` and `--timing=FILE`
  bool isList = false;                      ///< values separated by commas
  bool repeats = false;                     ///< of the positional argument: several are taken
  std::vector<std::string> valueNames = {}; ///< names that may stand as its value
  bool closed = false;                      ///< nothing else may, and the description lists them
  std::string description = {};
  std::string group = {}; ///< `Dumps`
  bool isBasic = false;   ///< --help has it, not --help-all alone
};

struct CommandHelp {
  std::string name; ///< `compile`, `run`, `opt`
  std::string summary;
  std::vector<OptionHelp> options; ///< in the order of their declaration; those of a group stand together

  /// Without the positional argument's.
  std::vector<std::string> groups() const;
};

CommandHelp describeCommand(Subcommand command);
/// All subcommands: compile, run, opt.
std::vector<CommandHelp> describeCommands();

/// Commands of few options, none of which are marked as basic, have all of them in both.
enum class HelpExtent { Basic, All };
/// What `--help` and `--help-all` print: a line an option, filled to 100 columns.
std::string helpText(const CommandHelp &command, HelpExtent extent);
/// The description with the values of a closed set.
std::string fullDescription(const OptionHelp &option);
/// The meanings of the exit codes (ExitCode.h), in order.
const std::vector<std::pair<int, std::string>> &exitCodeMeanings();

/// What CLI11 says is wrong, or of an option it does not know, which one may be meant.
std::string usageError(const CLI::App &app, const CLI::Error &error, Subcommand command);

} // namespace hloc
