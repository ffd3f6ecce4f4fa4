#pragma once
// The options of the command line as a table: a row is all there is to say of an option. Parsing, help, manual page,
// completions and what makes no sense together follow from the rows; Options.cpp and OptionRules.cpp read them.

#include "Options.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <map>

namespace hloc {

/// What the words of a row are for.
enum class WordUse {
  Offered, ///< by completions; others may stand there
  Taken,   ///< no others are
  Listed   ///< nor are others, and the help lists them
};

/// A condition is the long name of an option that is given, or `--name=value`, which also holds of the value that the
/// option has by default.
struct OptionRow {
  const char *names;                             ///< `-o,--output`; of what stands without a name: `input`
  unsigned commands;                             ///< of Subcommand: those that take it
  unsigned basicIn = 0;                          ///< of Subcommand: those whose --help has it, not --help-all alone
  const char *group;                             ///< its heading in the help
  const char *groupOfRun = nullptr;              ///< in that of `hloc run`, if it is another
  const char *value = nullptr;                   ///< what the help calls its value: `FILE`; null: a switch
  const char *bare = nullptr;                    ///< the value it has without `=VALUE`; null: there has to be one
  const char *byDefault = nullptr;               ///< the value it has if it is not given, which is read as one
  std::vector<std::string> (*words)() = nullptr; ///< names of values
  WordUse wordUse = WordUse::Listed;
  bool isList = false;          ///< of words, separated by commas
  bool repeats = false;         ///< may be given several times; lists may anyway
  const char *lone = nullptr;   ///< the word of a list that excludes all others
  const char *sameAs = nullptr; ///< `--compare=steps`: another spelling of that
  const char *needs = nullptr;  ///< conditions of which one has to hold: `--golden`, `--lint|--estimate`
  /// Conditions none of which may hold, separated by blanks.
  const char *excludes = nullptr;
  /// It has standard output for itself: "*", or the value with which it has. No two of these go together.
  const char *ownsOutput = nullptr;
  bool reports = false;        ///< with other values it adds to the report that `hloc run` prints there
  bool replacesOutput = false; ///< no PTX is written by default
  Stage stage = Stage::Parse;  ///< the first in which it has an effect
  IrKind firstInput = IrKind::Hlo, lastInput = IrKind::Ptx; ///< inputs on which it has one
  bool onlyWarns = false;              ///< having no effect is no error: settings of a machine rather than of a command
  bool oneInput = false;               ///< it is about one
  const char *questionTakes = nullptr; ///< it prints something instead of compiling, for which these options matter
  /// Sets what it is about; says what is wrong with the values, in words that follow its name, or nothing.
  std::string (*read)(Command &, llvm::ArrayRef<std::string>) = nullptr;
  const char *help = "";

  bool isPositional() const { return names[0] != '-'; }
  /// It prints options, those that most need or all.
  bool isHelp() const { return names == llvm::StringRef("-h,--help") || isHelpAll(); }
  bool isHelpAll() const { return names == llvm::StringRef("--help-all"); }
  /// It may stand without a value.
  bool isSwitch() const { return !value || bare; }
  /// It is written unless there is something else, without being given.
  bool isOutput() const { return names == llvm::StringRef("-o,--output"); }
  /// `--output`
  std::string longName() const;
};

llvm::ArrayRef<OptionRow> optionRows();
/// The group of the passes of `hloc opt`.
inline constexpr const char *passGroup = "Passes, in the order of the command line";
std::string nameOf(EmitKind kind);
std::string nameOf(Stage stage);
/// What is wrong with a value of a closed set; empty if nothing is.
std::string wordRefusal(const OptionRow &row, llvm::ArrayRef<std::string> values);
/// Null if `command` takes none of this long name.
const OptionRow *findOption(Subcommand command, llvm::StringRef longName);

/// The options of a command line, with their values.
class GivenOptions {
public:
  explicit GivenOptions(Subcommand command) : command(command) {}

  void give(const OptionRow &row, std::vector<std::string> values) { given[&row] = std::move(values); }
  void give(llvm::StringRef name, std::vector<std::string> values) { give(*findOption(command, name), values); }
  void forget(llvm::StringRef name) { given.erase(findOption(command, name)); }
  /// What is not given has this value.
  void settle(llvm::StringRef name, std::string value) { settled[findOption(command, name)] = {std::move(value)}; }

  bool has(llvm::StringRef name) const { return given.count(findOption(command, name)); }
  /// As given, settled or by default.
  std::vector<std::string> valuesOf(const OptionRow &row) const;
  /// The last of them; there has to be one.
  std::string valueOf(llvm::StringRef name) const { return valuesOf(*findOption(command, name)).back(); }
  bool holds(llvm::StringRef condition) const;
  /// In the order of the table.
  std::vector<const OptionRow *> rows() const;

  const Subcommand command;

private:
  std::map<const OptionRow *, std::vector<std::string>> given, settled;
};

} // namespace hloc
