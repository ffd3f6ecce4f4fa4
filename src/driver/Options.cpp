#include "Options.h"

#include "Schedules.h"

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <map>

namespace hloc {

namespace {

const std::map<std::string, EmitKind> emitKinds = {
    {"hlo", EmitKind::Hlo},     {"hlo-fused", EmitKind::HloFused}, {"dot", EmitKind::Dot},
    {"mlir", EmitKind::Mlir},   {"llvm", EmitKind::Llvm},          {"ptx", EmitKind::Ptx},
    {"cubin", EmitKind::Cubin}, {"fatbin", EmitKind::Fatbin},      {"manifest", EmitKind::Manifest}};

const std::map<std::string, Stage> stages = {{"parse", Stage::Parse}, {"verify", Stage::Verify}, {"fuse", Stage::Fuse},
                                             {"plan", Stage::Plan},   {"emit", Stage::Emit},     {"mlir", Stage::Mlir},
                                             {"llvm", Stage::Llvm},   {"ptx", Stage::Ptx}};

/// The spellings that differ between the option and what it becomes.
struct RawOptions {
  std::vector<std::string> targets;
  std::string dumpFolder, emit, stopAfter, timing, xlaDumpTo, platform, reference, counters, tolerance, schedule;
  std::vector<std::string> regimes;
  int verbosity = 0;
};

void addInputOptions(CLI::App &app, CompileOptions &options) {
  app.add_option("input", options.input, "HLO text; - is stdin")->type_name("INPUT.hlo");
}

void addTargetOptions(CLI::App &app, CompileOptions &options, RawOptions &raw) {
  app.add_option("--target", raw.targets, "sm_70 ... sm_121, sm_90a, 9.0, product names (h200); default sm_90")
      ->delimiter(',')
      ->type_name("SM[,SM...]");
  app.add_option("--cuda-path", options.toolchain.cudaPath, "CUDA toolkit to use")->type_name("DIR");
  app.add_option("--ptxas", options.toolchain.ptxas, "ptxas to use")->type_name("FILE");
  app.add_option("--libdevice", options.toolchain.libdevice, "libdevice.10.bc to use")->type_name("FILE");
  app.add_option("-j,--jobs", options.jobs, "kernels compiled in parallel; the output does not depend on it");
  app.add_option("-O,--optimization-level", options.optimizationLevel, "0 to 3, as LLVM's")->check(CLI::Range(0, 3));
}

void addDumpOptions(CLI::App &app, CompileOptions &options, RawOptions &raw) {
  app.add_flag("--dump-after-each-pass{-}", raw.dumpFolder,
               "IR after each pass of every stage: to stderr, or with =DIR one file a pass");
  app.add_option("--dump-filter", options.dump.filter, "only passes whose name matches")->type_name("REGEX");
  app.add_flag("--dump-changed", options.dump.changedOnly, "only passes that changed the IR");
  app.add_option("--v", raw.verbosity, "5 and above: same as --dump-after-each-pass")->group("XLA's spellings");
  app.add_option("--xla_dump_to", raw.xlaDumpTo, "dump to DIR")->type_name("DIR")->group("XLA's spellings");
  app.add_option("--xla_dump_hlo_pass_re", options.dump.hloFilter, "HLO passes to dump")
      ->type_name("REGEX")
      ->group("XLA's spellings");
  app.add_option("--xla_dump_emitter_re", options.dump.emitterFilter, "emitter and MLIR passes to dump")
      ->type_name("REGEX")
      ->group("XLA's spellings");
  app.add_flag("--timing{-}", raw.timing, "time of every stage and pass to stderr, or with =FILE a Chrome trace");
}

void addCompileOptions(CLI::App &app, CompileOptions &options, RawOptions &raw) {
  addInputOptions(app, options);
  app.add_option("-o,--output", options.output, "file, folder for several targets, or - (stdout, the default)");
  app.add_option("--emit", raw.emit, "hlo, hlo-fused, dot, mlir, llvm, ptx, cubin, fatbin, manifest; else by suffix");
  app.add_option("--stop-after", raw.stopAfter, "parse, verify, fuse, plan, emit, mlir, llvm, ptx");
  app.add_option("--manifest", options.manifestFile, "write the kernels' description as JSON")->type_name("FILE");
  app.add_option("--golden", options.goldenFolder, "compare with the golden file in DIR (exit 4 if it differs)")
      ->type_name("DIR");
  app.add_flag("--update-golden", options.updateGolden, "rewrite the golden file instead");
  app.add_flag("--line-info", options.lineInfo, ".loc directives that point into the HLO text");
  addTargetOptions(app, options, raw);
  addDumpOptions(app, options, raw);
}

void addRunOptions(CLI::App &app, RunOptions &options, RawOptions &raw) {
  addInputOptions(app, options.compile);
  app.add_option("--platform", raw.platform, "emulator (default), cuda, interpreter: what executes");
  app.add_option("--reference", raw.reference, "interpreter (default) or none: what it is compared with");
  app.add_option("--inputs", options.inputsFile, "inputs, keys in parameter order")->type_name("FILE.npz");
  app.add_option("--outputs", options.outputsFile, "write the results here, of the first regime")
      ->type_name("FILE.npz");
  app.add_option("--seed", options.seed, "seed of generated inputs");
  app.add_option("--regimes", raw.regimes,
                 "of generated inputs: ordinary, exact, special, index; by default all that apply")
      ->delimiter(',');
  app.add_option("--ptx", options.ptxFile, "execute this PTX instead of compiling")->type_name("FILE");
  app.add_option("--manifest", options.manifestFile, "the manifest of --ptx")->type_name("FILE");
  app.add_option("--launch", options.launchFile, "launch description of another compiler's --ptx")->type_name("FILE");
  app.add_option("--check", options.checks, "bounds, races, uninit, divergence (all by default), or none")
      ->delimiter(',');
  app.add_option("--approximations", options.approximations,
                 "seed for the errors that PTX allows ex2.approx, div.full, ... (default: that of --seed), or largest, "
                 "smallest, exact")
      ->type_name("SEED|KIND");
  app.add_option("--schedule", raw.schedule,
                 "order of blocks and warps: ascending, reversed, shuffled[:SEED]; by default all that may matter");
  app.add_option("--timeout", options.timeoutSeconds, "end after so many seconds, with exit code 4")
      ->type_name("SECONDS");
  app.add_flag("--counters{table}", raw.counters, "instructions, sectors, bank conflicts; =json for JSON");
  app.add_option("--repeat", options.repeat, "with cuda: time N launches");
  app.add_option("--tolerance", raw.tolerance, "instead of the policy, e.g. `ulps=2,relative=1e-3`");
  addTargetOptions(app, options.compile, raw);
  addDumpOptions(app, options.compile, raw);
}

template <typename Enum>
bool choose(const std::map<std::string, Enum> &choices, const std::string &text, const char *option, Enum &value) {
  if (text.empty())
    return true;
  auto found = choices.find(text);
  if (found != choices.end()) {
    value = found->second;
    return true;
  }
  std::string all;
  for (const auto &[name, ignored] : choices)
    all += (all.empty() ? "" : ", ") + name;
  llvm::errs() << fmt::format("hloc: error: {} does not take `{}`; it takes {} [bad-usage]\n", option, text, all);
  return false;
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
    else if (!name.starts_with("xla_dump_"))
      ignored += (ignored.empty() ? "" : ", ") + name.str();
  }
  if (!ignored.empty())
    llvm::errs() << "hloc: warning: XLA_FLAGS is read for dump flags only; ignored: " << ignored
                 << " [ignored-input]\n";
}

/// False after an error was printed.
bool finishOptions(const CLI::App &app, CompileOptions &options, RawOptions &raw) {
  EmitKind emit = EmitKind::Ptx;
  if (!choose(emitKinds, raw.emit, "--emit", emit) || !choose(stages, raw.stopAfter, "--stop-after", options.stopAfter))
    return false;
  if (!raw.emit.empty())
    options.emit = emit;
  options.targetGiven = !raw.targets.empty();
  for (const std::string &spelling : raw.targets.empty() ? std::vector<std::string>{"sm_90"} : raw.targets) {
    std::optional<TargetInfo> target = findTarget(spelling);
    if (!target) {
      llvm::errs() << fmt::format("hloc: error: unknown target `{}`; --list-targets shows what there is [bad-usage]\n",
                                  spelling);
      return false;
    }
    options.targets.push_back(*target);
  }
  if (!options.toolchain.cudaPath.empty() && !llvm::sys::fs::is_directory(options.toolchain.cudaPath)) {
    llvm::errs() << fmt::format("hloc: error: --cuda-path: there is no folder `{}` [bad-usage]\n",
                                options.toolchain.cudaPath);
    return false;
  }
  readXlaFlags(options, raw);
  options.dump.enabled = app.count("--dump-after-each-pass") || raw.verbosity >= 5 || !raw.xlaDumpTo.empty();
  options.dump.folder = raw.dumpFolder.empty() ? raw.xlaDumpTo : raw.dumpFolder == "-" ? "" : raw.dumpFolder;
  options.dump.xlaStyle = !raw.xlaDumpTo.empty() && !app.count("--dump-after-each-pass");
  options.timing = app.count("--timing");
  options.timingFile = raw.timing == "-" ? "" : raw.timing;
  return true;
}

/// Why options that are fine by themselves make no sense together; null if they do.
const char *contradiction(const RunOptions &options, const CLI::App &app) {
  bool emulator = options.platform == Platform::Emulator, cuda = options.platform == Platform::Cuda;
  if (options.compile.targets.size() > 1)
    return "--target names several GPUs, a run is for one";
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
  if (app.count("--schedule") && !emulator)
    return "--schedule needs --platform=emulator, which can choose";
  if (app.count("--timeout") && !(options.timeoutSeconds > 0))
    return "--timeout takes a number of seconds above 0";
  if (app.count("--repeat") && !cuda)
    return "--repeat times kernels, which needs --platform=cuda";
  if (!options.ptxFile.empty() && options.platform == Platform::Interpreter)
    return "--platform=interpreter executes HLO, not the PTX of --ptx";
  if (app.count("--seed") && !options.inputsFile.empty())
    return "--seed generates inputs, --inputs brings them";
  if (app.count("--regimes") && !options.inputsFile.empty())
    return "--regimes generates inputs, --inputs brings them";
  if (app.count("--tolerance") && options.reference == Reference::None)
    return "--tolerance compares with a reference, --reference=none has none";
  if (app.count("--check") && llvm::is_contained(options.checks, "none") && options.checks.size() > 1)
    return "--check=none excludes all other checks";
  if (!options.counters.empty() && options.counters != "table" && options.counters != "json")
    return "--counters prints a table, --counters=json JSON; there is no other form";
  return nullptr;
}

bool finishRunOptions(RunOptions &options, const RawOptions &raw, const CLI::App &app) {
  if (!choose<Platform>(
          {{"emulator", Platform::Emulator}, {"cuda", Platform::Cuda}, {"interpreter", Platform::Interpreter}},
          raw.platform, "--platform", options.platform) ||
      !choose<Reference>({{"interpreter", Reference::Interpreter}, {"none", Reference::None}}, raw.reference,
                         "--reference", options.reference))
    return false;
  for (const std::string &name : raw.regimes) {
    std::optional<Regime> regime = findRegime(name);
    if (!regime) {
      llvm::errs() << fmt::format(
          "hloc: error: --regimes knows ordinary, exact, special and index, not `{}` [bad-usage]\n", name);
      return false;
    }
    if (!llvm::is_contained(options.regimes, *regime))
      options.regimes.push_back(*regime);
  }
  if (!raw.schedule.empty() && !(options.schedule = parseSchedule(raw.schedule))) {
    llvm::errs() << fmt::format("hloc: error: --schedule does not take `{}`; it takes ascending, reversed, shuffled, "
                                "shuffled:SEED [bad-usage]\n",
                                raw.schedule);
    return false;
  }
  options.counters = raw.counters;
  options.tolerance = raw.tolerance;
  options.compile.lineInfo = true; // findings name HLO instructions; the code is the same
  if (const char *reason = contradiction(options, app)) {
    llvm::errs() << "hloc: error: " << reason << " [bad-usage]\n";
    return false;
  }
  bool launch = !options.launchFile.empty(), manifest = !options.manifestFile.empty();
  if ((launch || manifest) && options.ptxFile.empty()) {
    llvm::errs() << "hloc: error: --launch and --manifest describe a --ptx file, which is missing [bad-usage]\n";
    return false;
  }
  if (!options.ptxFile.empty() && launch == manifest) {
    llvm::errs() << "hloc: error: --ptx needs exactly one of --manifest and --launch [bad-usage]\n";
    return false;
  }
  return true;
}

} // namespace

Command parseCommandLine(int argc, char **argv) {
  Command command;
  RawOptions raw, rawRun;
  CLI::App app{"hloc compiles HLO text to PTX and cubin, and checks the emitted kernels without a GPU.", "hloc"};
  app.footer("Subcommands: hloc compile (the default), hloc run, hloc opt.\n"
             "Exit codes: 0 fine, 1 wrong input, 2 wrong command line, 3 unsupported, 4 results or goldens differ "
             "or a kernel failed a check, "
             "70 a bug in hloc.");
  bool run = argc > 1 && llvm::StringRef(argv[1]) == "run";
  bool explicitCompile = argc > 1 && llvm::StringRef(argv[1]) == "compile";
  std::map<Command::Kind, bool> asked;
  if (run) {
    addRunOptions(app, command.run, rawRun);
    app.description("hloc run: compile, execute, compare with a reference");
  } else {
    addCompileOptions(app, command.compile, raw);
    app.add_flag("--list-ops", asked[Command::Kind::ListOps], "every opcode and what is done with it");
    app.add_flag("--list-passes", asked[Command::Kind::ListPasses], "the passes of every stage, in order");
    app.add_flag("--list-targets", asked[Command::Kind::ListTargets], "GPU architectures and product names");
    app.add_flag("--doctor", asked[Command::Kind::Doctor], "which tools were found, and where");
    app.add_flag("--version", asked[Command::Kind::Version], "versions of hloc and LLVM");
  }
  try {
    int skip = run || explicitCompile ? 1 : 0;
    app.parse(argc - skip, argv + skip);
  } catch (const CLI::CallForHelp &help) {
    app.exit(help);
    return command;
  } catch (const CLI::ParseError &error) {
    llvm::errs() << "hloc: error: " << error.what() << " [bad-usage]\nhloc: note: `hloc --help` lists the options\n";
    command.exitCode = 2;
    return command;
  }
  for (auto [kind, on] : asked)
    if (on)
      command.kind = kind;
  CompileOptions &options = run ? command.run.compile : command.compile;
  if (!finishOptions(app, options, run ? rawRun : raw) || (run && !finishRunOptions(command.run, rawRun, app))) {
    command.exitCode = 2;
    command.kind = Command::Kind::Done;
    return command;
  }
  if (command.kind != Command::Kind::Done)
    return command;
  if (options.input.empty()) {
    llvm::errs() << "hloc: error: no input file; `hloc --help` shows how hloc is used [bad-usage]\n";
    command.exitCode = 2;
    return command;
  }
  command.kind = run ? Command::Kind::Run : Command::Kind::Compile;
  return command;
}

} // namespace hloc
