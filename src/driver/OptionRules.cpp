#include "OptionRules.h"

#include "InputFormats.h"
#include "Outputs.h"
#include "ValueRules.h"

#include "hloc/support/Diagnostics.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

namespace {

llvm::SmallVector<llvm::StringRef> partsOf(const char *text, char separator) {
  llvm::SmallVector<llvm::StringRef> parts;
  if (text)
    llvm::StringRef(text).split(parts, separator, -1, /*KeepEmpty=*/false);
  return parts;
}

/// "a, b or c"
std::string anyOf(llvm::ArrayRef<std::string> names) {
  return names.size() == 1 ? names.front() : llvm::join(names.drop_back(), ", ") + " or " + names.back();
}

std::string needsRefusal(const OptionRow &row, const GivenOptions &given) {
  std::vector<std::string> all;
  for (llvm::StringRef condition : partsOf(row.needs, '|')) {
    if (given.holds(condition))
      return "";
    if (const OptionRow *other = findOption(given.command, condition.split('=').first))
      all.push_back(condition.str() +
                    (condition.contains('=') || other->isSwitch() ? "" : "=" + std::string(other->value)));
  }
  return all.empty() ? "" : fmt::format("{} needs {}", row.longName(), anyOf(all));
}

std::string excludesRefusal(const OptionRow &row, const GivenOptions &given) {
  for (llvm::StringRef condition : partsOf(row.excludes, ' '))
    if (given.holds(condition))
      return fmt::format("{} and {} exclude each other", row.longName(), condition.str());
  return "";
}

/// Who writes to standard output.
struct Writer {
  std::string name;
  bool owns; ///< else it adds to what is there for people
};

std::vector<Writer> writersOf(const CompileOptions &options, const GivenOptions &given) {
  std::vector<Writer> writers;
  for (const OptionRow *row : given.rows()) {
    const llvm::StringRef value = row->ownsOutput ? row->ownsOutput : "";
    const bool always = value == "*",
               owns = always || (row->ownsOutput && llvm::is_contained(given.valuesOf(*row), value));
    if ((owns || row->reports) && !row->isOutput())
      writers.push_back({row->longName() + (owns && !always ? "=" + value.str() : ""), owns});
  }
  const bool isWritten = options.stopAfter == Stage::All ? options.outputWanted : options.outputAsked;
  if (given.command == compileCommand && isWritten && options.output == "-")
    writers.push_back({given.has("--emit") ? "--emit" : "-o", true});
  return writers;
}

std::string outputRefusal(const CompileOptions &options, const GivenOptions &given) {
  std::vector<Writer> writers = writersOf(options, given);
  for (const Writer &one : writers)
    for (const Writer &other : llvm::ArrayRef(writers).drop_front(&one - writers.data() + 1))
      if (one.owns || other.owns)
        return fmt::format(
            "{} and {} both write to standard output{}", one.name, other.name,
            &other == &writers.back() && (other.name == "-o" || other.name == "--emit") ? "; -o names a file" : "");
  return "";
}

/// Options that are about one input, and texts on standard output, which are for programs: two are none.
std::string countRefusal(const CompileOptions &options, const GivenOptions &given) {
  for (const OptionRow *row : given.rows()) {
    const bool isText =
        row->ownsOutput && !row->isOutput() && llvm::is_contained({"json", "-"}, given.valuesOf(*row).back());
    const char *several = (row->oneInput || isText) && options.inputs.size() > 1 ? "inputs"
                          : isText && options.targets.size() > 1                 ? "targets"
                                                                                 : nullptr;
    if (several)
      return fmt::format("{}{} is about one of the {}, and there are several", row->longName(),
                         isText ? "=" + given.valuesOf(*row).back() : "", several);
  }
  return "";
}

std::vector<std::string> inputsOf(const OptionRow &row) {
  std::vector<std::string> names;
  for (IrKind kind : {IrKind::Hlo, IrKind::Mlir, IrKind::Llvm, IrKind::Ptx})
    if (kind >= row.firstInput && kind <= row.lastInput)
      names.push_back(nameOf(kind));
  return names;
}

/// What acts in a stage that is not reached, or on an input of another kind.
std::string idleRefusal(const Command &command, const GivenOptions &given, DiagnosticEngine &diagnostics) {
  const Stage reached = reachedStage(command);
  for (const OptionRow *row : given.rows()) {
    std::string reason;
    if (row->stage == Stage::All && reached < Stage::All)
      reason = "nothing is assembled";
    else if (row->stage > reached)
      reason = fmt::format("it acts in stage `{}`, and hloc ends after `{}`", nameOf(row->stage), nameOf(reached));
    for (const std::string &input : command.compile.inputs)
      if (IrKind kind = formatOf(command.compile, input);
          reason.empty() && (kind < row->firstInput || kind > row->lastInput))
        reason = fmt::format("it is about {}, and `{}` is {}", anyOf(inputsOf(*row)), input, nameOf(kind));
    if (reason.empty())
      continue;
    reason = row->longName() + " has no effect: " + reason;
    if (!row->onlyWarns)
      return reason;
    diagnostics.report(DiagnosticKind::IgnoredInput, std::move(reason));
  }
  return "";
}

} // namespace

std::string contradiction(const Command &command, const GivenOptions &given, DiagnosticEngine &diagnostics) {
  for (auto refusal : {needsRefusal, excludesRefusal})
    for (const OptionRow *row : given.rows())
      if (std::string reason = refusal(*row, given); !reason.empty())
        return reason;
  if (given.command & (optCommand | lspCommand))
    return "";
  if (command.compile.inputs.empty())
    return fmt::format("no input file; `{} --help` shows how hloc is used", calledAs(given.command));
  if (!(given.command & (compileCommand | runCommand)))
    return searchContradiction(command);
  for (auto refusal : {outputRefusal, countRefusal})
    if (std::string reason = refusal(command.compile, given); !reason.empty())
      return reason;
  std::string reason = idleRefusal(command, given, diagnostics);
  return reason.empty() ? valueContradiction(command, given) : reason;
}

std::string questionContradiction(const GivenOptions &given) {
  const OptionRow *asked = nullptr;
  for (const OptionRow *row : given.rows())
    if (row->questionTakes &&
        (row->ownsOutput == llvm::StringRef("*") || given.holds(row->longName() + "=" + row->ownsOutput))) {
      if (asked)
        return fmt::format("{} and {} both write to standard output", asked->longName(), row->longName());
      asked = row;
    }
  for (const OptionRow *row : given.rows())
    if (row != asked && !row->isPositional() &&
        !llvm::is_contained(partsOf(asked->questionTakes, ' '), row->longName()))
      return fmt::format("{} has no effect: {} prints something instead of compiling", row->longName(),
                         asked->longName());
  return "";
}

} // namespace hloc
