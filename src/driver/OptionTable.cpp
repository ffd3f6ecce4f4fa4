// The rows, and how values become what they are about.

#include "OptionTable.h"

#include "CommandHelp.h"
#include "Completions.h"
#include "Lists.h"
#include "ManPage.h"
#include "PassList.h"
#include "WhatIf.h"

#include "hloc/codegen/Pipeline.h"
#include "hloc/compare/Compare.h"
#include "hloc/fusion/FusionPlan.h"
#include "hloc/kernel/Estimate.h"
#include "hloc/lint/Lint.h"
#include "hloc/support/Suggestion.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"

namespace hloc {

namespace {

using Words = std::vector<std::string>;
using Values = llvm::ArrayRef<std::string>;

//===--- sets of values -----------------------------------------------------------------------------------------===//

/// The values of an option by name, in the order in which they are listed.
template <typename Enum> using Choices = std::vector<std::pair<std::string, Enum>>;

#define CHOICES(Enum, ...)                                                                                             \
  const Choices<Enum> &choicesOf(Enum) {                                                                               \
    using enum Enum;                                                                                                   \
    static const Choices<Enum> all = {__VA_ARGS__};                                                                    \
    return all;                                                                                                        \
  }
CHOICES(EmitKind, {"hlo", Hlo}, {"hlo-fused", HloFused}, {"dot", Dot}, {"plan-dot", PlanDot}, {"mlir", Mlir},
        {"llvm", Llvm}, {"ptx", Ptx}, {"cubin", Cubin}, {"fatbin", Fatbin}, {"manifest", Manifest})
CHOICES(Stage, {"parse", Parse}, {"verify", Verify}, {"fuse", Fuse}, {"plan", Plan}, {"emit", Emit}, {"mlir", Mlir},
        {"llvm", Llvm}, {"ptx", Ptx})
CHOICES(AssemblerChoice, {"auto", Auto}, {"nvjitlink", NvJitLink}, {"ptxas", Ptxas})
CHOICES(ColourChoice, {"auto", Auto}, {"always", Always}, {"never", Never})
CHOICES(DiagnosticForm, {"text", Text}, {"json", Json})
CHOICES(ProgressChoice, {"auto", Auto}, {"always", Always}, {"never", Never})
CHOICES(Platform, {"emulator", Emulator}, {"cuda", Cuda}, {"interpreter", Interpreter})
CHOICES(Reference, {"interpreter", Interpreter}, {"none", None})
CHOICES(GraphUse, {"off", Off}, {"timed", Timed}, {"always", Always})
CHOICES(CompareChoice, {"end", End}, {"steps", Steps}, {"both", Both})
CHOICES(FusionMode, {"keep", Keep}, {"redo", Redo}, {"none", None})
CHOICES(F32Dots, {"f32", F32}, {"tf32", Tf32})
CHOICES(Multiplier, {"own", Own}, {"library", Library}, {"auto", Auto})
CHOICES(SoftmaxChoice, {"strict", Strict}, {"online", Online})
CHOICES(IrKind, {"hlo", Hlo}, {"mlir", Mlir}, {"llvm", Llvm}, {"ptx", Ptx})

template <typename Enum> Words namesOf() {
  Words names;
  for (const auto &[name, value] : choicesOf(Enum()))
    names.push_back(name);
  return names;
}

template <typename Enum> std::string nameIn(Enum value) {
  for (const auto &[name, one] : choicesOf(Enum()))
    if (one == value)
      return name;
  return "";
}

Words remarkKinds() {
  return {
#define HLOC_DIAGNOSTIC(name, text, code)
#define HLOC_REMARK(name, text) text,
#include "hloc/support/DiagnosticKinds.def"
  };
}

Words lintRuleNames() {
  Words names;
  for (const lint::RuleRow &rule : lint::rules())
    names.push_back(rule.name.str());
  return names;
}

Words targetSpellings() {
  Words names;
  for (const TargetInfo &target : allTargets()) {
    names.push_back(target.name);
    llvm::append_range(names, productNames(target));
  }
  return names;
}

Words deviceNames() {
  Words names;
  for (const DeviceModel &device : allDevices())
    names.push_back(device.name.str());
  return names;
}

/// `list`, among the rules, asks for their list.
Words fastMathRules() {
  Words names;
  for (const RewriteRow &row : rewriteRows())
    if (row.isFastMath)
      names.push_back(row.name.str());
  names.push_back("list");
  return names;
}

Words regimeNames() {
  Words names;
  for (Regime regime : allRegimes)
    names.push_back(regimeName(regime).str());
  return names;
}

/// The passes of some stages, each once.
Words passNames(std::initializer_list<llvm::StringRef> ofStages) {
  Words names;
  for (const PassRow &pass : passesInOrder(CompileOptions().optimizationLevel))
    if (llvm::is_contained(ofStages, pass.stage) && !llvm::is_contained(names, pass.name))
      names.push_back(pass.name);
  return names;
}

/// What --start-after takes of most IR.
Words startIds() {
  Words ids = {"emit"};
  for (const PassName &pass : kernelPasses())
    ids.push_back(pass.id);
  ids.insert(ids.end(), {"translated", "pack-pairs", "merge-accesses", "widen-brains", "lower-divisions", "optimized"});
  return ids;
}

Words forcedWords() {
  Words words;
  for (const HeroRow &hero : heroRows())
    words.push_back("hero=" + hero.name.str());
  for (unsigned vector = 1; vector <= mostOfForcedVector; vector *= 2)
    words.push_back(fmt::format("vector={}", vector));
  return words;
}

/// Those of a few words with each of these, without what --fast-math=list asks for.
Words whatIfWords() {
  Words words = forcedWords();
  for (llvm::StringRef option : whatIfOptions())
    if (const OptionRow &row = *findOption(compileCommand, ("--" + option).str());
        row.words && row.wordUse != WordUse::Offered)
      for (const std::string &word : row.words())
        if (!row.lone || word != row.lone)
          words.push_back(option.str() + "=" + word);
  return words;
}

//===--- reading ------------------------------------------------------------------------------------------------===//

template <typename Enum> std::enable_if_t<std::is_enum_v<Enum>, std::string> assign(Enum &field, Values values) {
  for (const auto &[name, value] : choicesOf(Enum()))
    if (name == values.back())
      field = value;
  return ""; // the words of the row have been checked
}
std::string assign(std::string &field, Values values) {
  field = values.back();
  return "";
}
std::string assign(Words &field, Values values) {
  field = values;
  return "";
}
std::string assign(bool &field, Values) {
  field = true;
  return "";
}
template <typename Number>
std::enable_if_t<std::is_integral_v<Number> && !std::is_same_v<Number, bool>, std::string> assign(Number &field,
                                                                                                  Values values) {
  const llvm::StringRef text = values.back();
  if (text.empty() || !llvm::all_of(text, llvm::isDigit))
    return fmt::format("does not take `{}`, which is no whole number from 0 up", text.str());
  return text.getAsInteger(10, field) ? fmt::format("does not take `{}`, which is too large", text.str()) : "";
}

template <typename T> std::string assign(std::optional<T> &field, Values values) {
  return assign(field.emplace(), values);
}

std::string readNumberAbove0(double &number, Values values, const char *unit) {
  if (llvm::StringRef(values.back()).getAsDouble(number))
    return fmt::format("does not take `{}`", values.back());
  return number > 0 ? "" : fmt::format("takes a number of {} above 0", unit);
}

std::string readTargets(Command &command, Values values) {
  for (const std::string &spelling : values) {
    std::optional<TargetInfo> target = findTarget(spelling);
    if (!target)
      return fmt::format("does not take `{}`{}; `hloc --list-targets` shows what there is", spelling,
                         suggestion(nearestTarget(spelling)));
    command.compile.targets.push_back(*target);
  }
  return "";
}

std::string readCudaPath(Command &command, Values values) {
  command.compile.toolchain.cudaPath = values.back();
  return llvm::sys::fs::is_directory(values.back())
             ? ""
             : fmt::format("does not take `{}`: there is no folder of this name", values.back());
}

std::string readExpression(std::string &field, Values values) {
  std::string error;
  field = values.back();
  return llvm::Regex(field).isValid(error)
             ? ""
             : fmt::format("does not take `{}`, which is not a regular expression: {}", field, error);
}

std::string readMemory(Command &command, Values values) {
  constexpr double bytesOfGib = 0x1p30, mostGib = 0x1p30;
  double memory = 0;
  std::string error = readNumberAbove0(memory, values, "GiB");
  if (error.empty())
    command.run.memoryBytes = std::max<uint64_t>(1, uint64_t(std::min(memory, mostGib) * bytesOfGib));
  return error;
}

std::string readTimeout(Command &command, Values values) {
  return readNumberAbove0(command.run.timeoutSeconds, values, "seconds");
}

std::string readDisabledPasses(Command &command, Values values) {
  Words known = passNames({"hlo", "mlir", "llvm"});
  for (const RewriteRow &rule : rewriteRows())
    known.push_back(rule.name.str());
  const llvm::SmallVector<llvm::StringRef> names(known.begin(), known.end());
  for (llvm::StringRef value : values) {
    const llvm::StringRef stage = value.contains(':') ? value.split(':').first : "hlo";
    const llvm::StringRef name = (value.contains(':') ? value.split(':').second : value).split('#').first;
    if (!llvm::is_contained({"hlo", "mlir", "llvm"}, stage) || !llvm::is_contained(names, name))
      return fmt::format("does not take `{}`{}; `hloc --list-passes` shows what there is", value.str(),
                         suggestion(nearestName(name, names)));
  }
  return assign(command.compile.disabledPasses, values);
}

std::string readCandidateTimeout(Command &command, Values values) {
  return readNumberAbove0(command.reduce.timeout, values, "seconds");
}

std::string readReducedPtx(Command &command, Values values) {
  command.reduce.isPtx = true;
  return assign(command.reduce.ptx, values);
}

std::string readTimeLimit(Command &command, Values values) {
  return readNumberAbove0(command.reduce.timeLimit, values, "seconds");
}

std::string readHoverLimit(Command &command, Values values) {
  const bool isOff = values.back() == "0";
  if (isOff)
    command.lsp.timeLimit = 0;
  return isOff ? "" : readNumberAbove0(command.lsp.timeLimit, values, "seconds");
}

std::string readForced(Command &command, Values values) {
  for (const std::string &value : values)
    if (std::string refusal = readForcedChoice(command.compile.forced, value); !refusal.empty())
      return refusal;
  return "";
}

/// `json`, or `json:NAME`: a colon is in no name.
std::string readExplain(Command &command, Values values) {
  auto [form, name] = llvm::StringRef(values.back()).split(':');
  command.compile.explainAsJson = form == "json";
  return assign(command.compile.explain,
                {command.compile.explainAsJson ? (name.empty() ? "." : name.str()) : values.back()});
}

/// They are read again when the other options are known.
std::string readWhatIfs(Command &command, Values values) {
  for (const std::string &value : values) {
    CompileOptions tried;
    if (std::string refusal = applyWhatIf(tried, value); !refusal.empty())
      return refusal;
  }
  return assign(command.compile.whatIfs, values);
}

std::string readTile(Command &command, Values values) {
  command.compile.tile = TileSizes::parse(values.back());
  return command.compile.tile ? "" : fmt::format("has four numbers, as 128x256x32/3 has, `{}` has not", values.back());
}

/// It is looked at with the other dump options.
std::string readVerbosity(Command &, Values values) {
  unsigned level = 0;
  return assign(level, values);
}

std::string readDumpChanged(Command &command, Values values) {
  command.compile.dump.asDiff = values.back() == "diff";
  return assign(command.compile.dump.changedOnly, values);
}

std::string readTiming(Command &command, Values values) {
  command.compile.timingFile = values.back() == "-" ? "" : values.back();
  return assign(command.compile.timing, values);
}

std::string readShell(Command &command, Values values) {
  command.answer = [](const Command &command) { return completionFor(command.shell, describeCommands()); };
  return assign(command.shell, values);
}

std::string readApproximations(Command &command, Values values) {
  uint64_t seed;
  const llvm::StringRef text = command.run.approximations = values.back();
  bool isWord = llvm::is_contained({"largest", "smallest", "hopper", "exact"}, text);
  return isWord || !text.getAsInteger(10, seed)
             ? ""
             : "takes a seed, which is a number, or largest, smallest, hopper or exact";
}

std::string readSchedule(Command &command, Values values) {
  command.run.schedule = parseSchedule(values.back());
  return command.run.schedule
             ? ""
             : fmt::format("does not take `{}`; it takes ascending, reversed, shuffled, shuffled:SEED", values.back());
}

std::string readTolerance(Command &command, Values values) {
  command.run.tolerance = values.back();
  return parseTolerance(values.back()) ? ""
                                       : fmt::format("does not take `{}`; it takes abs=, rel=, ulps=, largest= and "
                                                     "int=, one number for abs and rel, or exact",
                                                     values.back());
}

std::string readRegimes(Command &command, Values values) {
  for (const std::string &name : values)
    if (std::optional<Regime> regime = findRegime(name); !llvm::is_contained(command.run.regimes, *regime))
      command.run.regimes.push_back(*regime);
  return "";
}

std::string readShrink(Command &command, Values values) {
  std::string error = assign(command.run.shrink, values);
  return error.empty() && command.run.shrink < 2 ? "makes another module, with dimensions of 2 at least" : error;
}

std::string readOutputs(Command &command, Values values) {
  command.run.outputsFile = values.back();
  return values.back() == "-" ? "names a file; what is printed is about the results" : "";
}

std::string readFastMath(Command &command, Values values) {
  if (llvm::is_contained(values, "list"))
    command.answer = [](const Command &) { return listRewrites(/*fastMathOnly=*/true); };
  return assign(command.compile.fastMath, values);
}

//===--- the table ----------------------------------------------------------------------------------------------===//

constexpr unsigned compileAndRun = compileCommand | runCommand,
                   searches = reduceCommand | bisectCommand | replayCommand,
                   searchesAndComparison = searches | comparisonCommand,
                   allCommands = compileAndRun | searchesAndComparison | optCommand | lspCommand;
constexpr const char *dumps = "--dump-after-each-pass|--v|--xla_dump_to";

#define WORDS(...) .words = [] { return Words{__VA_ARGS__}; }
#define TO(field) .read = [](Command &command, Values values) { return assign(command.field, values); }
#define TO_EXPRESSION(field)                                                                                           \
  .read = [](Command &command, Values values) { return readExpression(command.field, values); }
#define TO_FORM(field)                                                                                                 \
  .read = [](Command &command, Values values) {                                                                        \
    command.field##AsJson = values.back() == "json";                                                                   \
    return assign(command.field, values);                                                                              \
  }
#define ANSWERS(text)                                                                                                  \
  .read = [](Command &command, Values) {                                                                               \
    command.answer = [](const Command &command) { return text; };                                                      \
    return std::string();                                                                                              \
  }

const OptionRow rows[] = {
#include "Options.def"
};

} // namespace

llvm::ArrayRef<OptionRow> optionRows() { return rows; }

std::string nameOf(EmitKind kind) { return nameIn(kind); }
std::string nameOf(Stage stage) { return nameIn(stage); }

std::string OptionRow::longName() const {
  return llvm::StringRef(names).rsplit(',').second.empty() ? names : llvm::StringRef(names).rsplit(',').second.str();
}

std::string wordRefusal(const OptionRow &row, llvm::ArrayRef<std::string> values) {
  if (!row.value)
    return values.back() == "true" ? "" : fmt::format("takes no value, nor `{}`", values.back());
  if (row.lone && values.size() > 1 && llvm::is_contained(values, row.lone))
    return fmt::format("takes `{}` alone", row.lone);
  if (!row.words || row.wordUse == WordUse::Offered)
    return "";
  std::vector<std::string> names = row.words();
  llvm::SmallVector<llvm::StringRef> known(names.begin(), names.end());
  for (const std::string &value : values)
    if (!llvm::is_contained(names, value) && !(row.bare && value == row.bare))
      return fmt::format("does not take `{}`{}; it takes {}", value, suggestion(nearestName(value, known)),
                         llvm::join(names, ", "));
  return "";
}

const OptionRow *findOption(Subcommand command, llvm::StringRef longName) {
  for (const OptionRow &row : rows)
    if ((row.commands & command) && row.longName() == longName)
      return &row;
  return nullptr;
}

std::vector<std::string> GivenOptions::valuesOf(const OptionRow &row) const {
  for (const auto *known : {&given, &settled})
    if (auto found = known->find(&row); found != known->end())
      return found->second;
  return row.byDefault ? std::vector<std::string>{row.byDefault} : std::vector<std::string>();
}

bool GivenOptions::holds(llvm::StringRef condition) const {
  auto [name, value] = condition.split('=');
  if (value.empty())
    return has(name);
  const OptionRow *row = findOption(command, name);
  return row && llvm::is_contained(valuesOf(*row), value);
}

std::vector<const OptionRow *> GivenOptions::rows() const {
  std::vector<const OptionRow *> all;
  for (const auto &[row, values] : given)
    all.push_back(row);
  llvm::sort(all); // they lie in the table
  return all;
}

} // namespace hloc
