#include "Reproducer.h"

#include "Children.h"
#include "CommandHelp.h"
#include "DiagnosticForm.h"
#include "Lists.h"
#include "OptionTable.h"
#include "SystemEnvironment.h"

#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

constexpr const char *descriptionName = "capsule.json";
constexpr int64_t formatVersion = 1;

/// What is known of a machine and may have mattered. Told, not repeated: it may name programs.
constexpr const char *environmentNames[] = {"CUDA_HOME",        "CUDA_PATH",  "VIRTUAL_ENV",    "HLOC_CUDA_DRIVER",
                                            "HLOC_CUBLASLT",    "HLOC_CUDNN", "HLOC_CACHE_DIR", "HLOC_NO_CACHE",
                                            "HLOC_CACHE_LIMIT", "XLA_FLAGS"};

/// What writes files, runs or loads programs, or is about the terminal.
bool isLeftOut(const OptionRow &row) {
  static constexpr llvm::StringLiteral names[] = {"--output",
                                                  "--outputs",
                                                  "--report",
                                                  "--report-diff",
                                                  "--dump-after-each-pass",
                                                  "--dump-filter",
                                                  "--dump-changed",
                                                  "--dump-locations",
                                                  "--v",
                                                  "--timing",
                                                  "--xla_dump_to",
                                                  "--xla_dump_hlo_pass_re",
                                                  "--xla_dump_emitter_re",
                                                  "--xla_dump_hlo_as_text",
                                                  "--golden",
                                                  "--update-golden",
                                                  "--color",
                                                  "--progress",
                                                  "--cuda-path",
                                                  "--ptxas",
                                                  "--libdevice",
                                                  "--reproducer"};
  const bool writes = row.longName() == "--manifest" && row.commands == compileCommand;
  return row.isHelp() || row.questionTakes || writes || llvm::is_contained(names, row.longName());
}

bool namesFile(const OptionRow &row) {
  return row.isPositional() || llvm::StringRef(row.value ? row.value : "").starts_with("FILE");
}

struct GivenWord {
  const OptionRow *row;
  std::optional<std::string> value;
};

const OptionRow *rowOf(Subcommand command, llvm::StringRef name) {
  for (const OptionRow &row : optionRows())
    if ((row.commands & command) && llvm::is_contained(llvm::split(row.names, ','), name))
      return &row;
  return nullptr;
}

const OptionRow *inputRow(Subcommand command) { return rowOf(command, "input"); }

/// The words of a command line that has been found right.
std::vector<GivenWord> wordsOf(Subcommand command, llvm::ArrayRef<const char *> arguments) {
  std::vector<GivenWord> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef word = arguments[i];
    if (!word.starts_with("-") || word == "-") {
      words.push_back({inputRow(command), word.str()});
      continue;
    }
    std::optional<std::string> value;
    llvm::StringRef name = word;
    if (!word.starts_with("--") && word.size() > 2) { // -j4
      name = word.take_front(2);
      value = word.drop_front(2).str();
    } else if (word.contains('=')) {
      name = word.split('=').first;
      value = word.split('=').second.str();
    }
    const OptionRow *row = rowOf(command, name);
    if (!row)
      continue;
    if (!value && !row->isSwitch() && i + 1 < arguments.size())
      value = arguments[++i];
    words.push_back({row, value});
  }
  return words;
}

llvm::json::Object environment() {
  llvm::json::Object known;
  for (const char *name : environmentNames)
    if (std::optional<std::string> value = systemEnvironment(name))
      known[name] = llvm::json::fixUTF8(*value);
  return known;
}

std::string textOf(llvm::json::Object object) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
  return text;
}

/// Is it ours to write into?
bool isFree(const std::string &folder) {
  std::error_code error;
  llvm::sys::fs::directory_iterator first(folder, error);
  return error || first == llvm::sys::fs::directory_iterator() || llvm::sys::fs::exists(folder + "/" + descriptionName);
}

} // namespace

std::optional<Capsule> Capsule::write(llvm::ArrayRef<const char *> arguments, const Command &command,
                                      DiagnosticEngine &diagnostics) {
  Capsule capsule(command.compile.reproducerFolder);
  auto fail = [&](DiagnosticKind kind, std::string why) {
    diagnostics.report(kind, std::move(why));
    return std::nullopt;
  };
  std::string error;
  if (!isFree(capsule.folder))
    return fail(DiagnosticKind::BadUsage,
                fmt::format("--reproducer: `{}` is not empty, and no reproducer", capsule.folder));
  if (!createFolders(capsule.folder, error))
    return fail(DiagnosticKind::UnwritableFile, fmt::format("cannot make `{}`: {}", capsule.folder, error));
  const bool isNamed = arguments.size() > 1 && llvm::StringRef(arguments[1]) == nameOf(command.subcommand);
  llvm::json::Array words;
  for (const GivenWord &word : wordsOf(command.subcommand, arguments.drop_front(isNamed ? 2 : 1))) {
    if (isLeftOut(*word.row))
      continue;
    llvm::json::Object entry;
    if (!word.row->isPositional())
      entry["option"] = word.row->longName();
    if (word.value && namesFile(*word.row)) {
      std::optional<std::string> bytes = *word.value == "-" ? std::nullopt : readFile(*word.value, error);
      if (*word.value == "-")
        return fail(DiagnosticKind::BadUsage, "--reproducer copies what is read, and standard input is read once");
      if (!bytes)
        return fail(DiagnosticKind::UnreadableFile, fmt::format("cannot read `{}`: {}", *word.value, error));
      const std::string name = fmt::format("{}{}", word.row->isPositional() ? "input" : word.row->longName().substr(2),
                                           capsule.files.empty() ? "" : std::to_string(capsule.files.size())) +
                               llvm::sys::path::extension(*word.value).str();
      if (!writeFile(capsule.folder + "/" + name, *bytes, error))
        return fail(DiagnosticKind::UnwritableFile, fmt::format("cannot write `{}`: {}", name, error));
      capsule.files.push_back(name);
      entry["file"] = llvm::json::fixUTF8(name);
    } else if (word.value)
      entry["value"] = llvm::json::fixUTF8(*word.value);
    words.push_back(std::move(entry));
  }
  llvm::json::Object description;
  description["format"] = formatVersion;
  description["versions"] = versionText();
  description["command"] = nameOf(command.subcommand);
  description["arguments"] = std::move(words);
  description["environment"] = environment();
  capsule.description = textOf(std::move(description));
  if (!writeFileAtomically(capsule.folder + "/" + descriptionName, capsule.description, error))
    return fail(DiagnosticKind::UnwritableFile, fmt::format("cannot write `{}`: {}", descriptionName, error));
  return capsule;
}

void Capsule::finish(int exitCode) {
  const std::string file = folder + "/" + descriptionName;
  if (exitCode != int(ExitCode::Mismatch) && exitCode != int(ExitCode::InternalError)) {
    for (const std::string &name : files)
      (void)llvm::sys::fs::remove(folder + "/" + name);
    (void)llvm::sys::fs::remove(file);
    (void)llvm::sys::fs::remove(folder); // if there is nothing else in it
    return;
  }
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(description);
  if (!parsed)
    return llvm::consumeError(parsed.takeError());
  (*parsed->getAsObject())["ending"] = exitCode;
  std::string error;
  (void)writeFileAtomically(file, textOf(std::move(*parsed->getAsObject())), error);
  llvm::errs() << fmt::format("hloc: `hloc replay {}` repeats this\n", folder);
}

void sayHowToReproduce(const Command &command, int exitCode) {
  const bool isOfRun = command.subcommand == runCommand && exitCode == int(ExitCode::Mismatch);
  if (!isOfRun && exitCode != int(ExitCode::InternalError))
    return;
  if (command.compile.reproducerFolder.empty() && (command.subcommand & (compileCommand | runCommand)))
    llvm::errs() << "hloc: --reproducer=DIR keeps what it takes to repeat this; `hloc reduce` makes the module small, "
                    "`hloc bisect` says what is to blame\n";
}

//===--- replay -------------------------------------------------------------------------------------------------===//

namespace {

/// capsule.json, of which nothing is believed.
class ReadCapsule {
public:
  /// What is wrong with it; empty if nothing is.
  std::string read(const std::string &folder) {
    std::string error;
    std::optional<std::string> text = readFile(folder + "/" + descriptionName, error);
    if (!text)
      return fmt::format("cannot read `{}/{}`: {}", folder, descriptionName, error);
    llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(*text);
    if (!parsed)
      return fmt::format("`{}` is no JSON: {}", descriptionName, llvm::toString(parsed.takeError()));
    const llvm::json::Object *object = parsed->getAsObject();
    if (!object || object->getInteger("format") != formatVersion)
      return fmt::format("`{}` is no capsule of format {}", descriptionName, formatVersion);
    versions = object->getString("versions").value_or("").str();
    ending = object->getInteger("ending");
    const llvm::StringRef name = object->getString("command").value_or("");
    const Subcommand command = name == nameOf(runCommand) ? runCommand : compileCommand;
    if (name != nameOf(command))
      return fmt::format("it is about `hloc {}`, which is not repeated", name.str());
    arguments = {nameOf(command)};
    const llvm::json::Array *words = object->getArray("arguments");
    for (const llvm::json::Value &word : words ? *words : llvm::json::Array())
      if (std::string refusal = add(folder, command, word.getAsObject()); !refusal.empty())
        return refusal;
    if (command == compileCommand)
      arguments.insert(arguments.end(), {"-o", "/dev/null"});
    return "";
  }

  std::vector<std::string> arguments;
  std::string versions;
  std::optional<int64_t> ending;

private:
  std::string add(const std::string &folder, Subcommand command, const llvm::json::Object *word) {
    if (!word)
      return "an argument is no object";
    const llvm::StringRef option = word->getString("option").value_or("");
    const OptionRow *row = option.empty() ? inputRow(command) : findOption(command, option);
    if (!row || (option.empty() != row->isPositional()))
      return fmt::format("`hloc {}` has no option {}", nameOf(command), option.str());
    if (isLeftOut(*row))
      return fmt::format("{} has no place in a capsule", row->longName());
    std::string value = word->getString("value").value_or("").str();
    if (std::optional<llvm::StringRef> file = word->getString("file")) {
      if (file->empty() || file->contains('/') || file->starts_with("."))
        return fmt::format("`{}` is no name of a file in the folder", file->str());
      value = folder + "/" + file->str();
    } else if (namesFile(*row))
      return fmt::format("{} names no file of the folder", row->longName());
    if (row->isPositional())
      arguments.push_back((llvm::StringRef(value).starts_with("-") ? "./" : "") + value);
    else
      arguments.push_back(value.empty() ? row->longName() : row->longName() + "=" + value);
    return "";
  }
};

} // namespace

int runReplay(const ReduceOptions &options) {
  ReadCapsule capsule;
  if (std::string refusal = capsule.read(options.input); !refusal.empty()) {
    DiagnosticEngine diagnostics;
    diagnostics.report(DiagnosticKind::BadModule, std::move(refusal));
    printDiagnostics(diagnostics, useColour(options.colour));
    return static_cast<int>(diagnostics.exitCode());
  }
  if (capsule.versions != versionText())
    llvm::errs() << "hloc: this is another version than that of the capsule:\n" << capsule.versions;
  const Ending now = Children().run(capsule.arguments, options.timeout > 0 ? options.timeout : 600);
  llvm::outs() << now.output;
  llvm::errs() << now.errors;
  const bool goesWrong = now.crashed() || now.exited(4) || now.kind == Ending::Kind::TimeLimit;
  const bool isSame =
      capsule.ending ? now.exited(int(*capsule.ending)) || (*capsule.ending == 70 && now.crashed()) : goesWrong;
  llvm::outs() << fmt::format("{}: it {}{}\n",
                              isSame      ? "it still happens"
                              : goesWrong ? "something else happens"
                                          : "it no longer happens",
                              now.describe(),
                              isSame           ? ""
                              : capsule.ending ? fmt::format(", then it ended with {}", *capsule.ending)
                                               : ", then it did not come to an end");
  if (now.kind == Ending::Kind::Exit)
    return now.number;
  return static_cast<int>(now.crashed() ? ExitCode::InternalError : ExitCode::Mismatch);
}

} // namespace hloc
