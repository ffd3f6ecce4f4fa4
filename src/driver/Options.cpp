#include "Options.h"

#include "CommandHelp.h"
#include "Completions.h"
#include "InputFormats.h"
#include "PassList.h"
#include "SystemEnvironment.h"

#include "hloc/codegen/Pipeline.h"
#include "hloc/compare/Compare.h"
#include "hloc/kernel/Estimate.h"
#include "hloc/lint/Lint.h"
#include "hloc/support/Suggestion.h"
#include "hloc/transforms/Transforms.h"

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <map>

namespace hloc {

namespace {

/// The values of an option by name, in the order in which they are listed.
template <typename Enum> using Choices = std::vector<std::pair<std::string, Enum>>;

const Choices<EmitKind> emitKinds = {{"hlo", EmitKind::Hlo},       {"hlo-fused", EmitKind::HloFused},
                                     {"dot", EmitKind::Dot},       {"plan-dot", EmitKind::PlanDot},
                                     {"mlir", EmitKind::Mlir},     {"llvm", EmitKind::Llvm},
                                     {"ptx", EmitKind::Ptx},       {"cubin", EmitKind::Cubin},
                                     {"fatbin", EmitKind::Fatbin}, {"manifest", EmitKind::Manifest}};

const Choices<Stage> stages = {{"parse", Stage::Parse}, {"verify", Stage::Verify}, {"fuse", Stage::Fuse},
                               {"plan", Stage::Plan},   {"emit", Stage::Emit},     {"mlir", Stage::Mlir},
                               {"llvm", Stage::Llvm},   {"ptx", Stage::Ptx}};

const Choices<AssemblerChoice> assemblers = {
    {"auto", AssemblerChoice::Auto}, {"nvjitlink", AssemblerChoice::NvJitLink}, {"ptxas", AssemblerChoice::Ptxas}};

const Choices<ColourChoice> colours = {
    {"auto", ColourChoice::Auto}, {"always", ColourChoice::Always}, {"never", ColourChoice::Never}};

const Choices<ProgressChoice> progressChoices = {
    {"auto", ProgressChoice::Auto}, {"always", ProgressChoice::Always}, {"never", ProgressChoice::Never}};

const Choices<Platform> platforms = {
    {"emulator", Platform::Emulator}, {"cuda", Platform::Cuda}, {"interpreter", Platform::Interpreter}};

const Choices<Reference> references = {{"interpreter", Reference::Interpreter}, {"none", Reference::None}};

const Choices<CompareChoice> compareChoices = {
    {"end", CompareChoice::End}, {"steps", CompareChoice::Steps}, {"both", CompareChoice::Both}};

template <typename Enum> std::vector<std::string> namesOf(const Choices<Enum> &choices) {
  std::vector<std::string> names;
  for (const auto &[name, value] : choices)
    names.push_back(name);
  return names;
}

const Choices<FusionMode> fusionModes = {
    {"keep", FusionMode::Keep}, {"redo", FusionMode::Redo}, {"none", FusionMode::None}};
const Choices<IrKind> inputFormats = {
    {"hlo", IrKind::Hlo}, {"mlir", IrKind::Mlir}, {"llvm", IrKind::Llvm}, {"ptx", IrKind::Ptx}};

/// The spellings that differ between the option and what it becomes.
struct RawOptions {
  std::vector<std::string> targets;
  std::string inputFormat, dumpFolder, dumpChanged, remarks, explain, emit, stopAfter, timing, xlaDumpTo, platform,
      reference, compare, counters, tolerance, schedule, fusion, assembler, colour, progress, lint, estimate;
  std::vector<std::string> regimes;
  double memory = 0; ///< GiB
  int verbosity = 0;
  bool xlaAsText = true;
  OptionValueTable values;

  /// Says which values an option takes, for its help and the completions of shells.
  void offer(CLI::Option *option, std::function<std::vector<std::string>()> names, bool closed = true) {
    values[option] = {std::move(names), closed};
  }
  template <typename Enum> void offer(CLI::Option *option, const Choices<Enum> &choices) {
    offer(option, [&choices] { return namesOf(choices); });
  }
  void offer(CLI::Option *option, std::vector<std::string> names, bool closed = true) {
    offer(option, [names = std::move(names)] { return names; }, closed);
  }
};

std::vector<std::string> remarkKinds() {
  return {
#define HLOC_DIAGNOSTIC(name, text, code)
#define HLOC_REMARK(name, text) text,
#include "hloc/support/DiagnosticKinds.def"
  };
}

std::vector<std::string> lintRuleNames() {
  std::vector<std::string> names;
  for (const lint::RuleRow &rule : lint::rules())
    names.push_back(rule.name.str());
  return names;
}

std::vector<std::string> targetSpellings() {
  std::vector<std::string> names;
  for (const TargetInfo &target : allTargets()) {
    names.push_back(target.name);
    llvm::append_range(names, productNames(target));
  }
  return names;
}

/// An option that takes a list of words, `a,b`: a word after that is the input.
CLI::Option *addList(CLI::App &app, const char *name, std::vector<std::string> &words, const char *what) {
  return app.add_option(name, words, what)->delimiter(',')->allow_extra_args(false);
}

/// The passes of some stages, each once.
std::vector<std::string> passNames(std::initializer_list<llvm::StringRef> ofStages) {
  std::vector<std::string> names;
  for (const PassRow &pass : passesInOrder(CompileOptions().optimizationLevel))
    if (llvm::is_contained(ofStages, pass.stage) && !llvm::is_contained(names, pass.name))
      names.push_back(pass.name);
  return names;
}

/// What --start-after takes of most IR.
std::vector<std::string> startIds() {
  std::vector<std::string> ids = {"emit"};
  for (const PassName &pass : kernelPasses())
    ids.push_back(pass.id);
  ids.insert(ids.end(), {"translated", "pack-pairs", "merge-accesses", "lower-divisions", "optimized"});
  return ids;
}

/// CLI11 takes -1 for the largest number there is.
const CLI::Validator wholeNumber(
    [](std::string &text) {
      bool digits = !text.empty() && llvm::all_of(text, llvm::isDigit);
      return digits ? std::string() : "`" + text + "` is no whole number from 0 up";
    },
    "");

void addOnlyOption(CLI::App &app, CompileOptions &options) {
  addList(app, "--only", options.only,
          "one kernel, or several, of a module: by the instruction, the kernel's name, or the computation that "
          "is called; what it reads become parameters")
      ->type_name("NAME[,NAME...]");
}

void addLintOptions(CLI::App &app, CompileOptions &options, RawOptions &raw) {
  app.option_defaults()->group("Lint");
  raw.offer(app.add_flag("--lint{text}", raw.lint,
                         "what in the PTX makes kernels slow, by named rules; =json for JSON on standard output")
                ->type_name("FORM"),
            {"json"}, /*closed=*/false);
  auto addRules = [&](const char *name, std::vector<std::string> &rules, const char *what) {
    raw.offer(addList(app, name, rules, what)->type_name("RULE[,RULE...]"), lintRuleNames);
  };
  addRules("--lint-only", options.lintRules, "the rules to check, by default all; --list-rules explains them");
  addRules("--lint-disable", options.lintDisabled, "rules not to check");
  app.add_option("--launch", options.launchFile, "with --lint: how the PTX of another compiler is launched")
      ->type_name("FILE.json");
}

void addEstimateOptions(CLI::App &app, CompileOptions &options, RawOptions &raw, const char *what) {
  raw.offer(app.add_flag("--estimate{table}", raw.estimate, what)->type_name("FORM"), {"json"}, /*closed=*/false);
  raw.offer(app.add_option("--device", options.device, "that --estimate is about, by default that of the target")
                ->type_name("NAME"),
            [] {
              std::vector<std::string> names;
              for (const DeviceModel &device : allDevices())
                names.push_back(device.name.str());
              return names;
            });
}

/// `list`, among the rules, asks for their list.
void addFastMathOption(CLI::App &app, CompileOptions &options, RawOptions &raw) {
  raw.offer(addList(app, "--fast-math", options.fastMath,
                    "rules that may change the results of floats, by name; list explains them")
                ->type_name("RULE[,RULE...]"),
            [] {
              std::vector<std::string> names;
              for (const RewriteRow &row : rewriteRows())
                if (row.isFastMath)
                  names.push_back(row.name.str());
              names.push_back("list");
              return names;
            });
}

void addTargetOptions(CLI::App &app, CompileOptions &options, RawOptions &raw) {
  app.option_defaults()->group("Targets and tools");
  CLI::Option *target =
      addList(app, "--target", raw.targets, "sm_70 ... sm_121, sm_90a, 9.0, product names (h200); default sm_90")
          ->type_name("SM[,SM...]");
  raw.offer(target, targetSpellings, /*closed=*/false);
  app.add_option("--cuda-path", options.toolchain.cudaPath, "CUDA toolkit to use")->type_name("DIR");
  app.add_option("--ptxas", options.toolchain.ptxas, "ptxas to use")->type_name("FILE");
  raw.offer(app.add_option("--assembler", raw.assembler, "what makes machine code; nvjitlink does it in this process")
                ->type_name("NAME"),
            assemblers);
  app.add_option("--libdevice", options.toolchain.libdevice, "libdevice.10.bc to use")->type_name("FILE");
  app.add_option("-j,--jobs", options.jobs, "inputs and kernels compiled in parallel; the output does not depend on it")
      ->check(wholeNumber)
      ->type_name("N");
  raw.offer(app.add_option("-O,--optimization-level", options.optimizationLevel, "as LLVM's")->type_name("LEVEL"),
            {"0", "1", "2", "3"});
  addFastMathOption(app, options, raw);
  raw.offer(app.add_option("--fusion", raw.fusion,
                           "what becomes of the module's fusions; redo makes them anew, none makes every op a kernel")
                ->type_name("MODE"),
            fusionModes);
}

void addXlaDumpOptions(CLI::App &app, CompileOptions &options, RawOptions &raw) {
  app.option_defaults()->group("XLA's spellings");
  app.add_option("--v", raw.verbosity, "5 and above: same as --dump-after-each-pass")->type_name("N");
  app.add_option("--xla_dump_to", raw.xlaDumpTo, "dump to DIR")->type_name("DIR");
  raw.offer(
      app.add_option("--xla_dump_hlo_pass_re", options.dump.hloFilter, "HLO passes to dump")->type_name("REGEX"),
      [] { return passNames({"hlo"}); }, /*closed=*/false);
  raw.offer(
      app.add_option("--xla_dump_emitter_re", options.dump.emitterFilter, "emitter and MLIR passes to dump")
          ->type_name("REGEX"),
      [] { return passNames({"mlir", "llvm", "ptx"}); }, /*closed=*/false);
  app.add_flag("--xla_dump_hlo_as_text", raw.xlaAsText, "dumps are text anyway");
}

void addDumpOptions(CLI::App &app, CompileOptions &options, RawOptions &raw) {
  app.option_defaults()->group("Dumps, remarks, timing");
  app.add_flag("--dump-after-each-pass{-}", raw.dumpFolder,
               "IR after each pass of every stage: to stderr, or with =DIR one file a pass")
      ->type_name("DIR");
  raw.offer(
      app.add_option("--dump-filter", options.dump.filter, "only passes whose name matches")->type_name("REGEX"),
      [] { return passNames({"hlo", "mlir", "llvm", "ptx"}); }, /*closed=*/false);
  raw.offer(app.add_flag("--dump-changed{whole}", raw.dumpChanged,
                         "only passes that changed the IR; =diff shows what they changed")
                ->type_name("FORM"),
            {"diff"}, /*closed=*/false);
  app.add_flag("--dump-locations", options.dumpLocations,
               "in MLIR, of each operation, the HLO instruction and line it stems from");
  raw.offer(app.add_flag("--remarks{.}", raw.remarks,
                         "what makes kernels slow: values computed again and again, long loops of one thread; or with "
                         "=REGEX those of a kind")
                ->type_name("REGEX"),
            remarkKinds, /*closed=*/false);
  app.add_flag("--explain{.}", raw.explain,
               "why instructions were fused or not, and what that saves; =NAME for one of them")
      ->type_name("NAME");
  app.add_flag("--timing{-}", raw.timing, "time of every stage and pass to stderr, or with =FILE a Chrome trace")
      ->type_name("FILE");
  raw.offer(
      app.add_option("--color", raw.colour, "by default on a terminal, unless NO_COLOR is set")->type_name("WHEN"),
      colours);
  raw.offer(app.add_option("--progress", raw.progress,
                           "a line that says how far what takes long is; by default on a terminal")
                ->type_name("WHEN"),
            progressChoices);
  addXlaDumpOptions(app, options, raw);
}

void addCompileOptions(CLI::App &app, CompileOptions &options, RawOptions &raw) {
  app.add_option("input", options.inputs,
                 "HLO text, or .mlir, .ll, .ptx of an earlier run to go on from; - is stdin; several need `-o DIR/`")
      ->type_name("INPUT.hlo");
  raw.offer(app.add_option("--input-format", raw.inputFormat, "what the inputs are; by default what their suffixes say")
                ->type_name("KIND"),
            inputFormats);
  raw.offer(
      app.add_option("--start-after", options.startAfter,
                     "of MLIR and LLVM IR: the pass that has left it, emit for none; by default as its first line "
                     "says")
          ->type_name("PASS"),
      startIds, /*closed=*/false);
  app.option_defaults()->group("Output");
  app.add_option("-o,--output", options.output, "file, folder for several targets, or - (stdout, the default)")
      ->type_name("FILE");
  raw.offer(app.add_option("--emit", raw.emit, "what is written; by default what the suffix of -o says, else PTX")
                ->type_name("KIND"),
            emitKinds);
  raw.offer(app.add_option("--stop-after", raw.stopAfter, "the last stage")->type_name("STAGE"), stages);
  app.add_option("--manifest", options.manifestFile, "write the kernels' description as JSON; - is stdout")
      ->type_name("FILE");
  app.add_option("--golden", options.goldenFolder, "compare with the golden file in DIR (exit 4 if it differs)")
      ->type_name("DIR");
  app.add_flag("--list-kernels", options.listKernels, "which instruction became which kernel, to standard output");
  addOnlyOption(app, options);
  app.add_flag("--keep-going", options.keepGoing,
               "compile what can be compiled; the rest is summed up by reason, and marked in the manifest");
  app.add_flag(
      "--allow-external", options.allowExternal,
      "what no kernel does (collectives, host transfers, unknown custom calls) becomes a step of the manifest");
  app.add_flag("--update-golden", options.updateGolden, "rewrite the golden file instead");
  app.add_flag("--line-info", options.lineInfo, ".loc directives that point into the HLO text");
  addLintOptions(app, options, raw);
  app.option_defaults()->group("Estimates");
  addEstimateOptions(
      app, options, raw,
      "how long each kernel takes, in microseconds, by a cost model over its plan and PTX; =json for JSON");
  addTargetOptions(app, options, raw);
  addDumpOptions(app, options, raw);
}

/// Options that print something instead of compiling.
void addQuestions(CLI::App &app, std::map<Command::Kind, bool> &asked, Command &command, RawOptions &raw) {
  app.option_defaults()->group("Information");
  app.add_flag("--list-ops", asked[Command::Kind::ListOps], "every opcode and what is done with it");
  app.add_flag("--list-heroes", asked[Command::Kind::ListHeroes], "the emitters, what each takes, and how it does it");
  app.add_flag("--list-passes", asked[Command::Kind::ListPasses], "the passes of every stage, in order");
  app.add_flag("--list-targets", asked[Command::Kind::ListTargets], "GPU architectures and product names");
  app.add_flag("--list-rules", asked[Command::Kind::ListRules], "the rules of --lint");
  app.add_flag("--list-rewrites", asked[Command::Kind::ListRewrites], "the rules by which HLO is simplified");
  app.add_flag("--doctor", asked[Command::Kind::Doctor], "which tools were found, and where");
  app.add_flag("--version", asked[Command::Kind::Version], "versions of hloc and LLVM");
  app.add_flag("--man", asked[Command::Kind::Man], "the manual page: `hloc --man | man -l -`");
  raw.offer(app.add_option("--completion", command.shell, "the completions of a shell, which reads them when it starts")
                ->type_name("SHELL"),
            completionShells());
}

void addRunInputs(CLI::App &app, RunCommandOptions &options, RawOptions &raw) {
  app.option_defaults()->group("Inputs and results");
  app.add_option("--inputs", options.inputsFile,
                 "inputs, one array for each parameter: 0, 1, ..., arr_0, arr_1, ... or the parameters' names")
      ->type_name("FILE.npz");
  app.add_option("--expected", options.expectedFile,
                 "your own results, which have to be right as well; with --tolerance they are the reference")
      ->type_name("FILE.npz");
  app.add_option("--outputs", options.outputsFile, "write the results here, of the first regime")
      ->type_name("FILE.npz");
  app.add_option("--seed", options.seed, "seed of generated inputs")->check(wholeNumber)->type_name("N");
  raw.offer(addList(app, "--regimes", raw.regimes, "kinds of generated inputs; by default all that apply")
                ->type_name("NAME[,NAME...]"),
            {"ordinary", "exact", "special", "index", "ties"});
  app.add_option("--ptx", options.ptxFile, "execute this PTX instead of compiling")->type_name("FILE.ptx");
  app.add_option("--manifest", options.manifestFile, "the manifest of --ptx")->type_name("FILE.json");
  app.add_option("--launch", options.launchFile, "launch description of another compiler's --ptx")
      ->type_name("FILE.json");
}

void addRunOptions(CLI::App &app, RunCommandOptions &options, RawOptions &raw) {
  app.add_option("input", options.compile.input, "HLO text; - is stdin")->type_name("INPUT.hlo");
  app.option_defaults()->group("Execution");
  raw.offer(app.add_option("--platform", raw.platform, "what executes, by default the emulator")->type_name("NAME"),
            platforms);
  raw.offer(app.add_option("--reference", raw.reference, "what it is compared with, by default the interpreter")
                ->type_name("NAME"),
            references);
  raw.offer(addList(app, "--check", options.checks, "what the emulator looks for, by default all")
                ->type_name("NAME[,NAME...]"),
            {"bounds", "races", "uninit", "divergence", "all", "none"});
  raw.offer(app.add_option("--approximations", options.approximations,
                           "seed for the errors that PTX allows ex2.approx, div.full, ... (default: that of --seed), "
                           "or largest, smallest, exact")
                ->type_name("SEED|KIND"),
            {"largest", "smallest", "exact"}, /*closed=*/false);
  raw.offer(app.add_option("--schedule", raw.schedule,
                           "order of blocks and warps: ascending, reversed, shuffled[:SEED]; by default all that may "
                           "matter")
                ->type_name("ORDER"),
            {"ascending", "reversed", "shuffled"}, /*closed=*/false);
  app.add_option("--memory", raw.memory,
                 "how much memory the run may take, by default what the machine has; what needs more ends with exit "
                 "code 3")
      ->type_name("GIB");
  app.add_option("--timeout", options.timeoutSeconds, "end after so many seconds, with exit code 4")
      ->type_name("SECONDS");
  raw.offer(app.add_flag("--counters{table}", raw.counters, "instructions, sectors, bank conflicts; =json for JSON")
                ->type_name("FORM"),
            {"json"}, /*closed=*/false);
  addEstimateOptions(
      app, options.compile, raw,
      "how long each launch takes, in microseconds, by a cost model over what was counted; =json for JSON");
  app.add_option("--repeat", options.repeat, "with cuda: time N launches")->check(wholeNumber)->type_name("N");
  app.add_option("--tolerance", raw.tolerance, "instead of the policy, e.g. `ulps=2,rel=1e-3`, `1e-4`, `exact`")
      ->type_name("BOUNDS");
  app.add_flag("--verify-each-pass", options.verifyEachPass,
               "first interpret the module after each HLO pass, and name the first that changes a result");
  app.add_flag("--shrink{16}", options.shrink,
               "run a smaller module of the same form, with dimensions of at most 16 (or =N) where that is possible")
      ->type_name("N");
  raw.offer(app.add_option("--compare", raw.compare,
                           "what of several steps is compared: steps (each on what those before it have computed), end "
                           "(the results), both; by default steps, and the results as far as they are known")
                ->type_name("WHAT"),
            compareChoices);
  app.add_flag("--compare-steps{steps}", raw.compare, "the same as --compare=steps")->excludes("--compare");
  addOnlyOption(app, options.compile);
  app.add_flag("--keep-going", options.compile.keepGoing, "for `hloc compile`; refused")->group("");
  app.add_flag("--allow-external", options.compile.allowExternal, "for `hloc compile`; refused")->group("");
  addRunInputs(app, options, raw);
  addTargetOptions(app, options.compile, raw);
  addDumpOptions(app, options.compile, raw);
}

/// Whether options with a closed set of values were given one of it; else says what they take.
bool checkClosedValues(const CLI::App &app, const OptionValueTable &values) {
  for (const CLI::Option *option : app.get_options()) {
    auto found = values.find(option);
    if (found == values.end() || !found->second.closed || option->empty())
      continue;
    std::vector<std::string> names = found->second.names();
    for (const std::string &value : option->results()) {
      if (llvm::is_contained(names, value))
        continue;
      llvm::SmallVector<llvm::StringRef> known(names.begin(), names.end());
      llvm::errs() << fmt::format("hloc: error: {} does not take `{}`{}; it takes {} [bad-usage]\n", option->get_name(),
                                  value, suggestion(nearestName(value, known)), llvm::join(names, ", "));
      return false;
    }
  }
  return true;
}

/// Sets what one of the names stands for; checkClosedValues has seen to it that it is one, or none.
template <typename Enum> void choose(const Choices<Enum> &choices, const std::string &text, Enum &value) {
  for (const auto &[name, meaning] : choices)
    if (name == text)
      value = meaning;
}

/// XLA_FLAGS holds many flags of another program: the dump flags are read, the rest is named once.
void readXlaFlags(CompileOptions &options, RawOptions &raw) {
  const char *flags = std::getenv("XLA_FLAGS");
  if (!flags)
    return;
  std::string ignored;
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef(flags).split(words, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef word : words) {
    auto [name, value] = word.split('=');
    name.consume_front("--");
    if (name == "xla_dump_to" && raw.xlaDumpTo.empty())
      raw.xlaDumpTo = value.str();
    else if (name == "xla_dump_hlo_pass_re" && options.dump.hloFilter.empty())
      options.dump.hloFilter = value.str();
    else if (name == "xla_dump_emitter_re" && options.dump.emitterFilter.empty())
      options.dump.emitterFilter = value.str();
    else if (name != "xla_dump_hlo_as_text" || value == "false")
      ignored += (ignored.empty() ? "" : ", ") + name.str();
  }
  bool filters = !options.dump.hloFilter.empty() || !options.dump.emitterFilter.empty();
  if (filters && raw.xlaDumpTo.empty() && llvm::StringRef(flags).contains("xla_dump_"))
    ignored += (ignored.empty() ? "" : ", ") + std::string("dump filters without xla_dump_to");
  if (!ignored.empty())
    llvm::errs() << "hloc: warning: XLA_FLAGS is read for dump flags only; ignored: " << ignored
                 << " [ignored-input]\n";
}

/// Why options about dumps have nothing to be about; null if they have.
const char *dumpContradiction(const CompileOptions &options, const RawOptions &raw, const CLI::App &app) {
  const DumpOptions &dump = options.dump;
  bool writesMlir = options.emit == EmitKind::Mlir || llvm::StringRef(options.output).ends_with(".mlir");
  if (options.dumpLocations && !dump.enabled && !writesMlir)
    return "--dump-locations is about dumps or --emit=mlir, which are missing";
  if (!dump.enabled && (app.count("--dump-filter") || app.count("--dump-changed")))
    return "--dump-filter and --dump-changed select from --dump-after-each-pass, which is missing";
  bool hasXlaOption =
      app.count("--xla_dump_hlo_pass_re") || app.count("--xla_dump_emitter_re") || app.count("--xla_dump_hlo_as_text");
  if (hasXlaOption && !dump.xlaStyle)
    return raw.xlaDumpTo.empty() ? "XLA's dump options are about --xla_dump_to=DIR, which is missing"
                                 : "XLA's dump options and --dump-after-each-pass exclude each other";
  if (!raw.xlaAsText)
    return "--xla_dump_hlo_as_text=false: dumps are text, there is no other form";
  return nullptr;
}

/// Why options about --lint make no sense; null if they do.
const char *lintContradiction(const CompileOptions &options, const RawOptions &raw) {
  if (raw.lint.empty() && (!options.lintRules.empty() || !options.lintDisabled.empty() || !options.launchFile.empty()))
    return "--lint-only, --lint-disable and --launch are about --lint, which is missing";
  if (!raw.lint.empty() && raw.lint != "text" && raw.lint != "json")
    return "--lint prints text, --lint=json JSON; there is no other form; --lint-only=RULE chooses rules";
  if (!options.lintRules.empty() && !options.lintDisabled.empty())
    return "--lint-only and --lint-disable exclude each other";
  if (!options.launchFile.empty() && options.inputs.size() != 1)
    return "--launch describes one input";
  return nullptr;
}

/// Why options about --estimate make no sense; null if they do.
const char *estimateContradiction(const CompileOptions &options, const RawOptions &raw) {
  if (raw.estimate.empty() && !options.device.empty())
    return "--device is about --estimate, which is missing";
  if (!raw.estimate.empty() && raw.estimate != "table" && raw.estimate != "json")
    return "--estimate prints a table, --estimate=json JSON; there is no other form";
  return nullptr;
}

/// False after an error was printed.
bool finishOptions(const CLI::App &app, CompileOptions &options, RawOptions &raw) {
  if (!checkClosedValues(app, raw.values))
    return false;
  EmitKind emit = EmitKind::Ptx;
  choose(emitKinds, raw.emit, emit);
  IrKind inputFormat = IrKind::Hlo;
  choose(inputFormats, raw.inputFormat, inputFormat);
  if (!raw.inputFormat.empty())
    options.inputFormat = inputFormat;
  choose(stages, raw.stopAfter, options.stopAfter);
  choose(assemblers, raw.assembler, options.assembler);
  choose(fusionModes, raw.fusion, options.fusion);
  if (app.count("--explain"))
    options.explain = raw.explain;
  choose(colours, raw.colour, options.colour);
  choose(progressChoices, raw.progress, options.progress);
  if (!raw.emit.empty())
    options.emit = emit;
  options.targetGiven = !raw.targets.empty();
  for (const std::string &spelling : raw.targets.empty() ? std::vector<std::string>{"sm_90"} : raw.targets) {
    std::optional<TargetInfo> target = findTarget(spelling);
    if (!target) {
      llvm::errs() << fmt::format("hloc: error: unknown target `{}`{} [bad-usage]\n"
                                  "hloc: note: `hloc --list-targets` shows what there is\n",
                                  spelling, suggestion(nearestTarget(spelling)));
      return false;
    }
    options.targets.push_back(*target);
  }
  if (!options.toolchain.cudaPath.empty() && !llvm::sys::fs::is_directory(options.toolchain.cudaPath)) {
    llvm::errs() << fmt::format("hloc: error: --cuda-path: there is no folder `{}` [bad-usage]\n",
                                options.toolchain.cudaPath);
    return false;
  }
  if (std::string error; app.count("--remarks") && !llvm::Regex(raw.remarks).isValid(error)) {
    llvm::errs() << fmt::format("hloc: error: --remarks: `{}` is not a regular expression: {} [bad-usage]\n",
                                raw.remarks, error);
    return false;
  }
  if (app.count("--remarks")) {
    options.remarks = raw.remarks;
    std::vector<std::string> kinds = remarkKinds();
    if (llvm::none_of(kinds, [&](const std::string &kind) { return llvm::Regex(raw.remarks).match(kind); }))
      llvm::errs() << fmt::format("hloc: warning: no kind of remark has a name that --remarks={} matches; there are {} "
                                  "[ignored-input]\n",
                                  raw.remarks, llvm::join(kinds, ", "));
  }
  if (app.count("--dump-changed") && raw.dumpChanged != "whole" && raw.dumpChanged != "diff") {
    llvm::errs() << fmt::format("hloc: error: --dump-changed does not take `{}`; it takes diff [bad-usage]\n",
                                raw.dumpChanged);
    return false;
  }
  readXlaFlags(options, raw);
  options.dump.enabled = app.count("--dump-after-each-pass") || raw.verbosity >= 5 || !raw.xlaDumpTo.empty();
  options.dump.changedOnly = app.count("--dump-changed");
  options.dump.asDiff = raw.dumpChanged == "diff";
  options.dump.folder = raw.dumpFolder.empty() ? raw.xlaDumpTo : raw.dumpFolder == "-" ? "" : raw.dumpFolder;
  options.dump.xlaStyle = !raw.xlaDumpTo.empty() && !app.count("--dump-after-each-pass");
  if (const char *reason = dumpContradiction(options, raw, app)) {
    llvm::errs() << "hloc: error: " << reason << " [bad-usage]\n";
    return false;
  }
  if (const char *reason = lintContradiction(options, raw)) {
    llvm::errs() << "hloc: error: " << reason << " [bad-usage]\n";
    return false;
  }
  if (const char *reason = estimateContradiction(options, raw)) {
    llvm::errs() << "hloc: error: " << reason << " [bad-usage]\n";
    return false;
  }
  options.estimate = !raw.estimate.empty();
  options.estimateAsJson = raw.estimate == "json";
  options.lint = !raw.lint.empty();
  options.lintAsJson = raw.lint == "json";
  options.timing = app.count("--timing");
  options.timingFile = raw.timing == "-" ? "" : raw.timing;
  return true;
}

/// Whether a file that a run writes is one that it reads.
bool overwritesInput(const RunCommandOptions &options) {
  for (const std::string *written : {&options.outputsFile, &options.compile.timingFile})
    for (const std::string *read :
         {&options.compile.input, &options.inputsFile, &options.ptxFile, &options.manifestFile, &options.launchFile})
      if (!written->empty() && !read->empty() && llvm::sys::fs::is_regular_file(*written) &&
          llvm::sys::fs::equivalent(*written, *read))
        return true;
  return false;
}

/// Why options that are fine by themselves make no sense together; null if they do.
const char *contradiction(const RunCommandOptions &options, const CLI::App &app) {
  bool emulator = options.platform == Platform::Emulator, cuda = options.platform == Platform::Cuda;
  if (options.compile.targets.size() > 1)
    return "--target names several GPUs, a run is for one";
  if (options.outputsFile == "-")
    return "--outputs names a file; what is printed is about the results";
  if (options.compile.keepGoing)
    return "a run needs the whole module; `hloc run --only=NAME` runs one kernel of what --keep-going compiles";
  if (options.compile.allowExternal)
    return "a run carries out every step, and there is nobody to supply external ones; `hloc run --only=NAME` runs one "
           "kernel";
  if (formatOf(options.compile, options.compile.input) != IrKind::Hlo)
    return "a run compares kernels with what HLO means, and the input is none; --ptx=FILE executes PTX for it";
  if (overwritesInput(options))
    return "--outputs or --timing would write over a file that the run reads";
  if (app.count("--check") && !emulator)
    return "--check needs --platform=emulator, which does the checking";
  if (app.count("--approximations") && !emulator)
    return "--approximations needs --platform=emulator, which makes them";
  if (uint64_t seed; !options.approximations.empty() &&
                     !llvm::is_contained({"largest", "smallest", "exact"}, options.approximations) &&
                     llvm::StringRef(options.approximations).getAsInteger(10, seed))
    return "--approximations takes a seed, which is a number, or largest, smallest or exact";
  if (app.count("--counters") && !emulator)
    return "--counters needs --platform=emulator, which does the counting";
  if (options.compile.estimate && !emulator)
    return "--estimate needs --platform=emulator, which does the counting";
  if (options.compile.estimate &&
      (options.counters == "json" || (options.compile.estimateAsJson && !options.counters.empty())))
    return "JSON has standard output for itself: --counters and --estimate both print there";
  if (app.count("--schedule") && !emulator)
    return "--schedule needs --platform=emulator, which can choose";
  if (app.count("--timeout") && !(options.timeoutSeconds > 0))
    return "--timeout takes a number of seconds above 0";
  if (app.count("--memory") && !options.memoryBytes)
    return "--memory takes a number of GiB above 0";
  if (app.count("--repeat") && !cuda)
    return "--repeat times kernels, which needs --platform=cuda";
  if (!options.ptxFile.empty() && options.platform == Platform::Interpreter)
    return "--platform=interpreter executes HLO, not the PTX of --ptx";
  if (app.count("--seed") && !options.inputsFile.empty())
    return "--seed generates inputs, --inputs brings them";
  if (app.count("--regimes") && !options.inputsFile.empty())
    return "--regimes generates inputs, --inputs brings them";
  if (!options.expectedFile.empty() && options.reference == Reference::None)
    return "--expected brings a reference, --reference=none has none";
  if (!options.expectedFile.empty() && options.regimes.size() > 1)
    return "--expected brings results of one run, --regimes names several";
  if (options.compare != CompareChoice::Default && (!options.compares() || options.reference == Reference::None))
    return "--compare is about the comparison with the interpreter: there is none with --reference=none, nor of "
           "--platform=interpreter with itself";
  const bool bySteps = options.compare == CompareChoice::Steps || options.compare == CompareChoice::Both;
  if (bySteps && options.platform == Platform::Interpreter)
    return "--compare=steps is about the steps of a program, and --platform=interpreter has none";
  if (bySteps && !options.launchFile.empty())
    return "--compare=steps needs to know what each step computes, which --launch does not say";
  if (options.compare == CompareChoice::Steps && !options.expectedFile.empty())
    return "--expected brings results to compare, --compare=steps compares none; --compare=both does";
  if (app.count("--tolerance") && options.reference == Reference::None)
    return "--tolerance compares with a reference, --reference=none has none";
  if (app.count("--tolerance") && !options.compares())
    return "--platform=interpreter is the reference: there is nothing to compare with --tolerance but --expected";
  if (app.count("--check") && llvm::is_contained(options.checks, "none") && options.checks.size() > 1)
    return "--check=none excludes all other checks";
  if (!options.counters.empty() && options.counters != "table" && options.counters != "json")
    return "--counters prints a table, --counters=json JSON; there is no other form";
  return nullptr;
}

bool finishRunOptions(RunCommandOptions &options, const RawOptions &raw, const CLI::App &app) {
  choose(platforms, raw.platform, options.platform);
  choose(references, raw.reference, options.reference);
  choose(compareChoices, raw.compare, options.compare);
  for (const std::string &name : raw.regimes)
    if (std::optional<Regime> regime = findRegime(name); !llvm::is_contained(options.regimes, *regime))
      options.regimes.push_back(*regime);
  if (!raw.schedule.empty() && !(options.schedule = parseSchedule(raw.schedule))) {
    llvm::errs() << fmt::format("hloc: error: --schedule does not take `{}`; it takes ascending, reversed, shuffled, "
                                "shuffled:SEED [bad-usage]\n",
                                raw.schedule);
    return false;
  }
  constexpr double bytesOfGib = 0x1p30, mostGib = 0x1p30;
  if (raw.memory > 0)
    options.memoryBytes = std::max<uint64_t>(1, uint64_t(std::min(raw.memory, mostGib) * bytesOfGib));
  options.counters = raw.counters;
  options.tolerance = raw.tolerance;
  options.compile.lineInfo = true; // findings name HLO instructions; the code is the same
  if (app.count("--tolerance") && !parseTolerance(options.tolerance)) {
    llvm::errs() << fmt::format("hloc: error: --tolerance does not take `{}`; it takes abs=, rel=, ulps=, largest= and "
                                "int=, one number for abs and rel, or exact [bad-usage]\n",
                                options.tolerance);
    return false;
  }
  if (const char *reason = contradiction(options, app)) {
    llvm::errs() << "hloc: error: " << reason << " [bad-usage]\n";
    return false;
  }
  bool launch = !options.launchFile.empty(), manifest = !options.manifestFile.empty();
  if ((launch || manifest) && options.ptxFile.empty()) {
    llvm::errs() << "hloc: error: --launch and --manifest describe a --ptx file, which is missing [bad-usage]\n";
    return false;
  }
  if (app.count("--shrink") && (options.shrink < 2 || !options.compile.only.empty())) {
    llvm::errs() << "hloc: error: --shrink makes another module, with dimensions of 2 at least, all of which runs: it "
                    "does not take --only [bad-usage]\n";
    return false;
  }
  if (!options.ptxFile.empty() && launch == manifest) {
    llvm::errs() << "hloc: error: --ptx needs exactly one of --manifest and --launch [bad-usage]\n";
    return false;
  }
  return true;
}

/// A command line that can be parsed and described.
struct CommandLine {
  std::string name;
  CLI::App app;
  Command command;
  RawOptions raw;
  std::map<Command::Kind, bool> asked;

  /// Compile or Run.
  explicit CommandLine(Command::Kind kind) : name(kind == Command::Kind::Run ? "run" : "compile"), app("", "hloc") {
    if (kind == Command::Kind::Run) {
      app.description("Executes kernels, on an emulator or a GPU, and compares with a reference.");
      addRunOptions(app, command.run, raw);
    } else {
      app.description("Compiles HLO text to PTX and cubin, and checks the emitted kernels without a GPU.");
      addCompileOptions(app, command.compile, raw);
      addQuestions(app, asked, command, raw);
    }
    app.set_help_flag("-h,--help", "this text")->group("Information"); // at the end
  }
  CommandHelp describe() const { return describeCommand(name, app, raw.values); }
};

} // namespace

std::vector<CommandHelp> describeCommands() {
  CommandLine compile(Command::Kind::Compile), run(Command::Kind::Run);
  return {compile.describe(), run.describe(), describeOpt()};
}

Command parseCommandLine(int argc, char **argv) {
  bool run = argc > 1 && llvm::StringRef(argv[1]) == "run";
  bool explicitCompile = argc > 1 && llvm::StringRef(argv[1]) == "compile";
  CommandLine line(run ? Command::Kind::Run : Command::Kind::Compile);
  auto &[name, app, command, raw, asked] = line;
  try {
    int skip = run || explicitCompile ? 1 : 0;
    app.parse(argc - skip, argv + skip);
  } catch (const CLI::CallForHelp &) {
    llvm::outs() << helpText(line.describe());
    return command;
  } catch (const CLI::ParseError &error) {
    llvm::errs() << "hloc: error: " << usageError(app, error)
                 << fmt::format(" [bad-usage]\nhloc: note: `hloc {}--help` lists the options\n", run ? "run " : "");
    command.exitCode = 2;
    return command;
  }
  for (auto [kind, on] : asked)
    if (on)
      command.kind = kind;
  if (!command.shell.empty())
    command.kind = Command::Kind::Completion;
  CompileOptions &options = run ? command.run.compile : command.compile;
  options.toolchain.environment = systemEnvironment;
  if (!finishOptions(app, options, raw) || (run && !finishRunOptions(command.run, raw, app))) {
    command.exitCode = 2;
    command.kind = Command::Kind::Done;
    return command;
  }
  if (llvm::is_contained(options.fastMath, "list"))
    command.kind = Command::Kind::ListFastMath;
  if (command.kind != Command::Kind::Done) {
    if (!options.inputs.empty())
      llvm::errs() << "hloc: warning: nothing is compiled: `" << options.inputs.front()
                   << "` is not read [ignored-input]\n";
    return command;
  }
  if (run && !options.input.empty())
    options.inputs = {options.input};
  if (options.inputs.empty()) {
    llvm::errs() << fmt::format("hloc: error: no input file; `hloc {}--help` shows how hloc is used [bad-usage]\n",
                                run ? "run " : "");
    command.exitCode = 2;
    return command;
  }
  command.kind = run ? Command::Kind::Run : Command::Kind::Compile;
  return command;
}

} // namespace hloc
