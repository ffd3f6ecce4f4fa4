#include "CommandHelp.h"

#include "hloc/support/Suggestion.h"

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace hloc {

namespace {

constexpr size_t lineWidth = 100, descriptionColumn = 30;

std::vector<std::string> namesOf(const CLI::Option &option) {
  std::vector<std::string> names;
  for (const std::string &name : option.get_snames())
    names.push_back("-" + name);
  for (const std::string &name : option.get_lnames())
    names.push_back("--" + name);
  return names;
}

/// What CLI11 prints, without its validators: `FILE` of `FILE:must exist`.
std::string valueOf(const CLI::Option &option) {
  return llvm::StringRef(option.get_type_name()).split(':').first.str();
}

OptionHelp describeOption(const CLI::Option &option, const OptionValueTable &values) {
  OptionHelp help;
  help.names = namesOf(option);
  bool isFlag = option.get_type_size() == 0 || option.get_items_expected_max() == 0;
  help.optionalValue = !option.get_fnames().empty();
  if (!isFlag || help.optionalValue)
    help.value = valueOf(option);
  help.isList = option.get_delimiter() == ',';
  help.repeats = option.get_items_expected_max() > 1;
  if (auto found = values.find(&option); found != values.end()) {
    help.valueNames = found->second.names();
    help.closed = found->second.closed;
  }
  help.description = option.get_description();
  help.group = option.get_group();
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

} // namespace

std::vector<std::string> CommandHelp::groups() const {
  std::vector<std::string> groups;
  for (const OptionHelp &option : options)
    if (!option.names.empty() && !llvm::is_contained(groups, option.group))
      groups.push_back(option.group);
  return groups;
}

CommandHelp describeCommand(const std::string &name, const CLI::App &app, const OptionValueTable &values) {
  CommandHelp help{name, app.get_description(), {}};
  for (const CLI::Option *option : app.get_options())
    if (!option->get_group().empty())
      help.options.push_back(describeOption(*option, values));
  return help;
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
      {4,
       "results or golden files differ, or a check of the emulator, or a rule of --lint, found a defect in a kernel"},
      {5, "the reference cannot tell whether some results are right: no verdict on the kernel"},
      {70, "a bug in hloc"}};
  return meanings;
}

std::string helpText(const CommandHelp &command) {
  std::string out, arguments;
  addFilled(out, command.summary, 0);
  for (const OptionHelp &option : command.options)
    if (option.names.empty())
      arguments += " " + option.value + (option.repeats ? "..." : "");
  bool isDefault = command.name == "compile";
  out += fmt::format("\nUsage: hloc{}{} [OPTIONS]\n\n", isDefault ? "" : " " + command.name, arguments);
  for (const OptionHelp &option : command.options)
    if (option.names.empty())
      addOption(out, option);
  for (const std::string &group : command.groups()) {
    out += "\n" + group + ":\n";
    for (const OptionHelp &option : command.options)
      if (!option.names.empty() && option.group == group)
        addOption(out, option);
  }
  out += isDefault ? "\nSubcommands: hloc compile (the default), hloc run, hloc opt; each has its own --help.\n" : "\n";
  out += "Exit codes:\n";
  for (const auto &[code, meaning] : exitCodeMeanings())
    out += fmt::format("  {:>2}  {}\n", code, meaning);
  return out;
}

/// The option that begins like this, if there is one: `--h`. Else the nearest: `--targt`.
static std::string likelyOption(llvm::StringRef wanted, llvm::ArrayRef<std::string> known) {
  auto begins = [&](llvm::StringRef name) { return wanted.size() > 2 && name.starts_with(wanted); };
  if (llvm::count_if(known, begins) == 1)
    return suggestion(*llvm::find_if(known, begins));
  return suggestion(nearestName(wanted, llvm::SmallVector<llvm::StringRef>(known.begin(), known.end())));
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

std::string usageError(const CLI::App &app, const CLI::Error &error) {
  std::vector<std::string> unknown;
  for (const std::string &argument : app.remaining())
    if (llvm::StringRef(argument).starts_with("-"))
      unknown.push_back(llvm::StringRef(argument).split('=').first.str());
  if (!dynamic_cast<const CLI::ExtrasError *>(&error))
    return rephrased(error.what());
  if (unknown.empty())
    return "too many arguments: `" + llvm::join(app.remaining(), "`, `") + "`";
  std::vector<std::string> known;
  for (const CLI::Option *option : app.get_options())
    llvm::append_range(known, namesOf(*option));
  std::string message;
  for (const std::string &one : unknown)
    message += (message.empty() ? "" : ", ") + ("unknown option `" + one + "`") + likelyOption(one, known);
  return message;
}

} // namespace hloc
