#include "CommandHelp.h"

#include "OptionTable.h"
#include "PassList.h"

#include "hloc/support/Suggestion.h"

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace hloc {

namespace {

constexpr size_t lineWidth = 100, descriptionColumn = 30, commandColumn = 16, exitCodeColumn = 6;

std::vector<std::string> namesOf(const OptionRow &row) {
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef(row.names).split(names, ',');
  return {names.begin(), names.end()};
}

OptionHelp describeOption(const OptionRow &row, Subcommand command) {
  OptionHelp help;
  if (!row.isPositional())
    help.names = namesOf(row);
  help.value = row.value ? row.value : "";
  help.optionalValue = row.bare;
  help.isList = row.isList;
  help.repeats = row.repeats;
  if (row.words)
    help.valueNames = row.words();
  help.closed = row.words && row.wordUse == WordUse::Listed;
  help.description = row.help;
  help.group = command == runCommand && row.groupOfRun ? row.groupOfRun : row.group;
  help.isBasic = row.basicIn & command;
  return help;
}

/// Appends words, no line wider than `lineWidth` if it can be avoided; lines after the first start at `indent`.
void addFilled(std::string &out, llvm::StringRef text, size_t indent) {
  size_t column = out.size() - (out.rfind('\n') + 1);
  bool first = true;
  for (llvm::StringRef word : llvm::split(text, ' ')) {
    if (!first && column + 1 + word.size() > lineWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
  out += '\n';
}

/// `-o, --output FILE`, `--timing[=FILE]`.
std::string signatureOf(const OptionHelp &option) {
  std::string text = llvm::join(option.names, ", ");
  if (option.value.empty())
    return text;
  return text + (option.optionalValue ? "[=" + option.value + "]" : " " + option.value);
}

void addOption(std::string &out, const OptionHelp &option) {
  std::string line = "  " + (option.names.empty() ? option.value : signatureOf(option));
  out += line;
  out += line.size() + 2 <= descriptionColumn ? std::string(descriptionColumn - line.size(), ' ')
                                              : "\n" + std::string(descriptionColumn, ' ');
  addFilled(out, fullDescription(option), descriptionColumn);
}

bool isBasic(const OptionHelp &option) { return option.isBasic; }

const char *summaryOf(Subcommand command) {
  switch (command) {
  case compileCommand:
    return "Compiles HLO text to PTX and cubin, and checks the emitted kernels without a GPU.";
  case runCommand:
    return "Executes kernels, on an emulator or a GPU, and compares with a reference.";
  case optCommand:
    return "Runs passes on MLIR text.";
  case comparisonCommand:
    return "Sets hloc's kernels beside those of others for the same HLO: one table of what each does.";
  case reduceCommand:
    return "Finds the smallest module that still does what a module does: crash, differ, take for ever.";
  case bisectCommand:
    return "Says which pass is to blame for what goes wrong with a module.";
  case lspCommand:
    return "The language server: HLO text in an editor, over standard input and output.";
  case replayCommand:
    return "Repeats what a folder of --reproducer describes, and says whether it still happens.";
  }
  return "";
}

} // namespace

std::vector<std::string> CommandHelp::groups() const {
  std::vector<std::string> groups;
  for (const OptionHelp &option : options)
    if (!option.names.empty() && !llvm::is_contained(groups, option.group))
      groups.push_back(option.group);
  return groups;
}

CommandHelp describeCommand(Subcommand command) {
  CommandHelp help{nameOf(command), summaryOf(command), {}};
  for (const OptionRow &row : optionRows())
    if (row.commands & command)
      help.options.push_back(describeOption(row, command));
  return help;
}

std::vector<CommandHelp> describeCommands() {
  std::vector<CommandHelp> all;
  for (Subcommand command : subcommands)
    all.push_back(describeCommand(command));
  auto opt = llvm::find_if(all, [](const CommandHelp &help) { return help.name == nameOf(optCommand); });
  for (const PassRow &pass : optPasses())
    opt->options.push_back({.names = {"--" + pass.name},
                            .value = "OPTIONS",
                            .optionalValue = true,
                            .description = pass.summary,
                            .group = passGroup});
  return all;
}

std::string fullDescription(const OptionHelp &option) {
  return option.closed ? option.description + ": " + llvm::join(option.valueNames, ", ") : option.description;
}

const std::vector<std::pair<int, std::string>> &exitCodeMeanings() {
  static const std::vector<std::pair<int, std::string>> meanings = {
      {0, "fine"},
      {1, "the input is wrong"},
      {2, "the command line is wrong"},
      {3, "recognised, but unsupported: the message says which op or feature, where, and why"},
      {4, "results or golden files differ, or a check of the emulator, a rule of --lint or a proof found a defect in a "
          "kernel"},
      {5, "the reference cannot tell whether some results are right: no verdict on the kernel"},
      {70, "a bug in hloc"}};
  return meanings;
}

static void addCommands(std::string &out) {
  out += "\nCommands, each with a --help of its own:\n";
  for (Subcommand command : subcommands) {
    const std::string line = std::string("  hloc ") + nameOf(command);
    out += line + std::string(commandColumn - line.size(), ' ');
    addFilled(out, summaryOf(command) + std::string(command == compileCommand ? " The default." : ""), commandColumn);
  }
}

std::string helpText(const CommandHelp &command, HelpExtent extent) {
  std::string out, arguments;
  addFilled(out, command.summary, 0);
  for (const OptionHelp &option : command.options)
    if (option.names.empty())
      arguments += " " + option.value + (option.repeats ? "..." : "");
  const bool isDefault = command.name == nameOf(compileCommand);
  const std::string calledAs = isDefault ? "hloc" : "hloc " + command.name;
  out += fmt::format("\nUsage: {}{} [OPTIONS]\n\n", calledAs, arguments);
  for (const OptionHelp &option : command.options)
    if (option.names.empty())
      addOption(out, option);
  const bool all = extent == HelpExtent::All || llvm::none_of(command.options, isBasic);
  size_t numLeftOut = 0;
  for (const std::string &group : command.groups()) {
    std::string lines;
    for (const OptionHelp &option : command.options)
      if (!option.names.empty() && option.group == group) {
        if (all || option.isBasic)
          addOption(lines, option);
        else
          ++numLeftOut;
      }
    if (!lines.empty())
      out += "\n" + group + ":\n" + lines;
  }
  if (numLeftOut)
    out += fmt::format("\n{} more options: {} --help-all\n", numLeftOut, calledAs);
  if (isDefault)
    addCommands(out);
  out += "\nExit codes:\n";
  for (const auto &[code, meaning] : exitCodeMeanings()) {
    out += fmt::format("  {:>2}  ", code);
    addFilled(out, meaning, exitCodeColumn);
  }
  return out;
}

/// The option that begins like this, if there is one, or one with which all others begin: `--h`. Else the nearest:
/// `--targt`.
static std::string likelyOption(llvm::StringRef wanted, llvm::ArrayRef<std::string> known) {
  auto begins = [&](llvm::StringRef name) { return wanted.size() > 2 && name.starts_with(wanted); };
  for (llvm::StringRef one : llvm::make_filter_range(known, begins))
    if (llvm::all_of(known, [&](llvm::StringRef name) { return !begins(name) || name.starts_with(one); }))
      return suggestion(one);
  return suggestion(nearestName(wanted, llvm::SmallVector<llvm::StringRef>(known.begin(), known.end())));
}

/// Which other commands take an option; empty if none does.
static std::string elsewhere(llvm::StringRef name, Subcommand command) {
  for (Subcommand other : subcommands)
    for (const OptionRow &row : optionRows())
      if ((row.commands & other) && llvm::is_contained(namesOf(row), name))
        return fmt::format("`hloc {}` does not take {}, `hloc {}` does", nameOf(command), name.str(), nameOf(other));
  return "";
}

/// CLI11's words for what an option lacks or cannot read, in ours; others as they are.
static std::string rephrased(llvm::StringRef message) {
  auto [option, lacks] = message.split(": 1 required ");
  if (lacks.consume_back(" missing"))
    return (option + " needs a value: " + lacks).str();
  if (message.consume_front("Could not convert: ")) {
    auto [name, value] = message.split(" = ");
    return (name + " does not take `" + value + "`").str();
  }
  return message.str();
}

std::string usageError(const CLI::App &app, const CLI::Error &error, Subcommand command) {
  std::vector<std::string> unknown;
  for (const std::string &argument : app.remaining())
    if (llvm::StringRef(argument).starts_with("-"))
      unknown.push_back(llvm::StringRef(argument).split('=').first.str());
  if (!dynamic_cast<const CLI::ExtrasError *>(&error))
    return rephrased(error.what());
  if (unknown.empty())
    return "too many arguments: `" + llvm::join(app.remaining(), "`, `") + "`";
  std::vector<std::string> known;
  for (const OptionRow &row : optionRows())
    if (row.commands & command)
      llvm::append_range(known, namesOf(row));
  if (command == optCommand)
    for (const PassRow &pass : optPasses())
      known.push_back("--" + pass.name);
  std::string message;
  for (const std::string &one : unknown) {
    std::string other = elsewhere(one, command);
    message += (message.empty() ? "" : ", ") +
               (other.empty() ? "unknown option `" + one + "`" + likelyOption(one, known) : other);
  }
  return message;
}

} // namespace hloc
