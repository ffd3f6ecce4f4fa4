#pragma once
// The command line as data: what `--help`, the man page and the completions of shells are made of. It is read from the
// CLI11 application that parses the command line, so that an option is described in one place: where it is declared.

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
class Error;
class Option;
} // namespace CLI

namespace hloc {

/// Names that may stand as an option's value.
struct OptionValues {
  std::function<std::vector<std::string>()> names; ///< asked for when help is, because some take a while to list
  bool closed = true;                              ///< nothing else may stand there; else these are worth offering
};
/// CLI11 has no place for them that does not change how it parses.
using OptionValueTable = std::map<const CLI::Option *, OptionValues>;

struct OptionHelp {
  std::vector<std::string> names;      ///< `-o`, `--output`; of the positional argument none
  std::string value;                   ///< `FILE`, `DIR`, `FILE.npz`; empty if it takes none
  bool optionalValue = false;          ///< `--timing` and `--timing=FILE`
  bool isList = false;                 ///< values separated by commas
  bool repeats = false;                ///< of the positional argument: several are taken
  std::vector<std::string> valueNames; ///< of OptionValues
  bool closed = false;                 ///< of OptionValues
  std::string description;
  std::string group; ///< `Dumps`
};

struct CommandHelp {
  std::string name; ///< `compile`, `run`, `opt`
  std::string summary;
  std::vector<OptionHelp> options; ///< in the order of their declaration; those of a group stand together

  /// Without the positional argument's.
  std::vector<std::string> groups() const;
};

/// Options without a group are hidden, as CLI11 has it.
CommandHelp describeCommand(const std::string &name, const CLI::App &app, const OptionValueTable &values);

/// All subcommands: compile, run, opt.
std::vector<CommandHelp> describeCommands();
CommandHelp describeOpt();

/// What `--help` prints: a line an option, filled to 100 columns.
std::string helpText(const CommandHelp &command);
/// The description with the values of a closed set.
std::string fullDescription(const OptionHelp &option);
/// The meanings of the exit codes (ExitCode.h), in order.
const std::vector<std::pair<int, std::string>> &exitCodeMeanings();

/// What CLI11 says is wrong, or of an option it does not know, which one may be meant.
std::string usageError(const CLI::App &app, const CLI::Error &error);

} // namespace hloc
