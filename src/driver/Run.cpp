// `hloc run`: inputs, execution, comparison.

#include "Run.h"

#include "Compile.h"
#include "Execute.h"
#include "Gpu.h"
#include "Schedules.h"
#include "Timeout.h"
#include "UndefinedReads.h"

#include "hloc/compare/Compare.h"
#include "hloc/compare/NumpyLiteral.h"
#include "hloc/hlo/Printer.h"
#include "hloc/interp/Inputs.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/npz/Npz.h"
#include "hloc/support/Files.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

class RunCommand {
public:
  explicit RunCommand(const RunOptions &options)
      : options(options), timing(options.compile.timing), toolchain(Toolchain::discover(options.compile.toolchain)),
        compiler(options.compile, toolchain, timing, diagnostics) {}

  int run() {
    Timeout timeout(options.timeoutSeconds);
    runStages();
    compiler.finishDumps();
    diagnostics.print(llvm::errs(), llvm::errs().has_colors());
    if (options.compile.timing)
      llvm::errs() << timing.table();
    llvm::outs().flush();
    return static_cast<int>(diagnostics.exitCode());
  }

private:
  void runStages() {
    std::unique_ptr<HloModule> module = compiler.load();
    if (!module)
      return;
    for (const ArgumentSet &set : setsFor(*module)) {
      if (!runOnce(*module, set))
        return;
      ++numRuns;
    }
    if (compares())
      printAgreement();
  }

  bool compares() const {
    return options.reference == Reference::Interpreter && options.platform != Platform::Interpreter;
  }

  /// One set where the arguments are given, and where nothing is compared.
  std::vector<ArgumentSet> setsFor(const HloModule &module) const {
    if (!options.inputsFile.empty())
      return {ArgumentSet()};
    if (!compares() && options.regimes.empty())
      return argumentSets(module, {Regime::Ordinary});
    // Kernels written by hand for a scatter are seldom made for indices outside: asked for, they are tried.
    bool scatterInside = !options.launchFile.empty() && options.regimes.empty();
    return argumentSets(module, options.regimes, scatterInside);
  }

  /// Makes the arguments, executes and compares. What is compiled and translated for the first run serves all.
  bool runOnce(const HloModule &module, const ArgumentSet &set) {
    regime = set.regime;
    std::optional<std::vector<Literal>> arguments = readArguments(module, set);
    if (!arguments || (!numRuns && !prepare(module)))
      return false;
    llvm::FailureOr<Literal> result = execute(module, *arguments);
    if (failed(result))
      return false;
    bool isFirst = numRuns == 0;
    if (isFirst && !options.outputsFile.empty())
      writeOutputs(*result);
    if (compares())
      return compare(module, *arguments, *result) && compareSchedules(module, *arguments);
    if (options.outputsFile.empty())
      printSmall(*result);
    return true;
  }

  std::optional<std::vector<Literal>> readArguments(const HloModule &module, const ArgumentSet &set) {
    Timing::Scope scope(timing, "make arguments");
    if (options.inputsFile.empty())
      return makeArguments(module, diagnostics, options.seed, set);
    std::string error;
    std::optional<std::string> bytes = readFile(options.inputsFile, error);
    std::optional<std::vector<NpzArray>> arrays = bytes ? readNpz(*bytes, error) : std::nullopt;
    if (!arrays) {
      diagnostics.report(DiagnosticKind::UnreadableFile, "cannot read `" + options.inputsFile + "`: " + error);
      return std::nullopt;
    }
    std::vector<Literal> arguments;
    size_t next = 0;
    for (const HloInstruction *parameter : module.entry()->parameters()) {
      std::optional<Literal> argument = takeLeaves(parameter->shape(), *arrays, next);
      if (!argument)
        return std::nullopt;
      arguments.push_back(std::move(*argument));
    }
    return arguments;
  }

  /// Array leaves take the arrays named "0", "1", ... in order.
  std::optional<Literal> takeLeaves(const Shape &shape, llvm::ArrayRef<NpzArray> arrays, size_t &next) {
    if (shape.isTuple()) {
      std::vector<Literal> elements;
      for (const Shape &element : shape.elements()) {
        std::optional<Literal> value = takeLeaves(element, arrays, next);
        if (!value)
          return std::nullopt;
        elements.push_back(std::move(*value));
      }
      return Literal::tuple(std::move(elements));
    }
    std::string name = std::to_string(next++);
    const NpzArray *found = llvm::find_if(arrays, [&](const NpzArray &array) { return array.name == name; });
    std::string error = "there is no array `" + name + "`";
    std::optional<Literal> value;
    if (found != arrays.end())
      value = literalFromNumpy(found->descr, found->shape, found->bytes, shape, error);
    if (!value)
      diagnostics.report(DiagnosticKind::ShapeMismatch,
                         "`" + options.inputsFile + "` does not fit the program: " + error);
    return value;
  }

  bool prepare(const HloModule &module);
  bool prepareEmulator(const HloModule &module);
  bool prepareGpu(const HloModule &module);
  llvm::FailureOr<Literal> execute(const HloModule &module, llvm::ArrayRef<Literal> arguments);
  bool compareSchedules(const HloModule &module, llvm::ArrayRef<Literal> arguments);
  llvm::FailureOr<Literal> runOnGpu(llvm::ArrayRef<Literal> arguments);
  llvm::FailureOr<Literal> emulate(llvm::ArrayRef<Literal> arguments);
  bool findProgram(const HloModule &module);
  bool readProgram();

  /// For messages: "the regime `special`" of generated arguments; empty for given ones.
  std::string circumstances() const {
    return options.inputsFile.empty() ? fmt::format("the regime `{}`", regimeName(regime).str()) : "";
  }

  void writeOutputs(const Literal &result) {
    std::vector<NpzArray> arrays;
    collect(result, arrays);
    std::string error;
    if (!writeFile(options.outputsFile, writeNpz(arrays), error))
      diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write `" + options.outputsFile + "`: " + error);
  }

  static void collect(const Literal &value, std::vector<NpzArray> &arrays) {
    if (value.isTuple()) {
      for (const Literal &element : value.elements())
        collect(element, arrays);
      return;
    }
    NpzArray array;
    array.name = std::to_string(arrays.size());
    array.descr = numpyDescr(value.shape().elementType());
    array.shape.assign(value.shape().dims().begin(), value.shape().dims().end());
    array.bytes.assign(value.bytes().begin(), value.bytes().end());
    arrays.push_back(std::move(array));
  }

  /// False, with a diagnostic, if they differ or cannot be compared. `schedule`: the one that gave `actual` if there
  /// was another before, with which all was well.
  bool compare(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &actual,
               const std::string &schedule = "") {
    llvm::FailureOr<Literal> expected = llvm::failure();
    {
      Timing::Scope scope(timing, "interpret");
      expected = interpret(module, arguments, diagnostics);
    }
    if (failed(expected))
      return false;
    Timing::Scope scope(timing, "compare");
    std::optional<Tolerance> given = parseTolerance(options.tolerance.empty() ? "exact" : options.tolerance);
    if (!given) {
      diagnostics.report(DiagnosticKind::BadUsage, "`" + options.tolerance + "` is not a tolerance");
      return false;
    }
    Backend backend = options.launchFile.empty() ? Backend::Hloc : Backend::Other;
    llvm::FailureOr<CompareResult> compared =
        options.tolerance.empty() ? compareRun(module, arguments, *expected, actual, backend, diagnostics)
                                  : compareLiterals(*expected, actual, *given);
    if (failed(compared))
      return false;
    const CompareResult &result = *compared;
    if (!result.equal()) {
      std::string where = circumstances();
      if (!schedule.empty())
        diagnostics.report(DiagnosticKind::ResultMismatch,
                           fmt::format("with blocks and warps in the order `{}` results are others than in the order "
                                       "`ascending`, which agree; --schedule={} runs it alone",
                                       schedule, schedule));
      diagnostics.report(DiagnosticKind::ResultMismatch,
                         fmt::format("{} of {} elements differ from the interpreter's{}\n{}", result.numMismatches,
                                     result.numElements, where.empty() ? "" : " in " + where, result.report));
      return false;
    }
    if (options.inputsFile.empty() && !llvm::is_contained(regimesRun, regime))
      regimesRun.push_back(regime);
    // Where special values meet, or whole numbers go into an exponential, much is open; on ordinary arguments and given
    // ones a reference that knows little is no reference.
    bool mayBeOpen = options.inputsFile.empty() && regime != Regime::Ordinary;
    int64_t limit = std::max<int64_t>(8, result.numElements / 20);
    if (!mayBeOpen && result.numUndecided > limit) {
      std::string where = circumstances();
      diagnostics.report(DiagnosticKind::UndecidedResult,
                         fmt::format("the reference does not know {} of {} elements{}, more than the {} it may: {}",
                                     result.numUndecided, result.numElements, where.empty() ? "" : " in " + where,
                                     limit, describeAgreement(result)));
      return false;
    }
    agreement.absorb(result);
    return true;
  }

  /// Checks of the emulator and the orders in which threads ran, for the agreement.
  std::string whatWasWatched() const {
    if (options.platform != Platform::Emulator || !machineOptions)
      return "";
    std::string checks;
    for (auto [on, name] : {std::pair(machineOptions->checkBounds, "bounds"),
                            {machineOptions->checkRaces, "races"},
                            {machineOptions->checkUninit, "uninit"},
                            {machineOptions->checkDivergence, "divergence"}})
      if (on)
        checks += (checks.empty() ? "" : ", ") + std::string(name);
    return fmt::format("; checks: {}; order of threads: {}", checks.empty() ? "none" : checks,
                       schedules ? "ascending, reversed, shuffled" : machineOptions->schedule.name());
  }

  void printAgreement() const {
    std::string regimes;
    for (Regime run : regimesRun)
      regimes += (regimes.empty() ? "" : ", ") + regimeName(run).str();
    if (!regimes.empty())
      regimes = fmt::format(" in {} regime{} ({})", regimesRun.size(), regimesRun.size() == 1 ? "" : "s", regimes);
    // JSON counters have standard output for themselves.
    (options.counters == "json" ? llvm::errs() : llvm::outs())
        << fmt::format("{} elements agree with the interpreter{}: {}{}\n", agreement.numElements, regimes,
                       describeAgreement(agreement), whatWasWatched());
  }

  static int64_t countElements(const Literal &value) {
    if (!value.isTuple())
      return value.numElements();
    int64_t count = 0;
    for (const Literal &element : value.elements())
      count += countElements(element);
    return count;
  }

  static void printSmall(const Literal &result) {
    constexpr int64_t limit = 1000;
    llvm::outs() << result.shape().toString();
    if (countElements(result) <= limit) {
      llvm::outs() << " ";
      printLiteral(result, llvm::outs());
    } else {
      llvm::outs() << " (" << countElements(result) << " elements; --outputs=FILE.npz writes them)";
    }
    llvm::outs() << "\n";
  }

  const RunOptions &options;
  DiagnosticEngine diagnostics;
  Timing timing;
  Toolchain toolchain;
  Compiler compiler;

  // What is executed: compiled from the input, or given by --ptx.
  TargetInfo target = options.compile.targets.front(); ///< of what is compiled
  std::string image, imageName;
  std::optional<DeviceProgram> program;
  std::optional<emulator::EmulatorOptions> machineOptions;
  std::unique_ptr<HloModule> laidOut; ///< device memory has the layouts of the entry computation
  std::optional<Executor> executor;
  std::unique_ptr<EmulatorDevice> machine;
  std::function<void(EmulatorDevice &)> makeReady;
  std::optional<ScheduleRuns> schedules;       ///< of a program whose results may depend on the order of its threads
  std::vector<ScheduledResult> otherSchedules; ///< of the run in progress: results that are not those of the first
  std::unique_ptr<CudaDevice> gpu;

  // Runs so far, all of which agree.
  Regime regime = Regime::Ordinary; ///< of the run in progress
  std::vector<Regime> regimesRun;
  unsigned numRuns = 0;
  CompareResult agreement; ///< of all runs
};

bool RunCommand::compareSchedules(const HloModule &module, llvm::ArrayRef<Literal> arguments) {
  return llvm::all_of(otherSchedules, [&](const ScheduledResult &other) {
    return compare(module, arguments, other.value, other.schedule);
  });
}

/// Compiles the module, or reads --ptx and its description.
bool RunCommand::findProgram(const HloModule &module) {
  if (!options.ptxFile.empty())
    return readProgram();
  std::unique_ptr<HloModule> fused = compiler.fuse(module);
  if (!fused)
    return false;
  std::optional<CompiledModule> compiled = compiler.compile(*fused, target, Stage::Ptx);
  if (!compiled)
    return false;
  image = std::move(compiled->ptx);
  imageName = module.name().str() + ".ptx";
  program = executor->programOf(compiled->manifest);
  return program.has_value();
}

bool RunCommand::readProgram() {
  std::string error;
  auto read = [&](const std::string &name) {
    std::optional<std::string> text = readFile(name, error);
    if (!text)
      diagnostics.report(DiagnosticKind::UnreadableFile, "cannot read `" + name + "`: " + error);
    return text;
  };
  std::optional<std::string> ptx = read(options.ptxFile);
  std::optional<std::string> text = read(options.launchFile.empty() ? options.manifestFile : options.launchFile);
  if (!ptx || !text)
    return false;
  image = std::move(*ptx);
  imageName = options.ptxFile;
  if (options.launchFile.empty()) {
    Manifest manifest;
    if (!parseManifest(*text, manifest, error)) {
      diagnostics.report(DiagnosticKind::BadLaunch, options.manifestFile + ": " + error);
      return false;
    }
    program = executor->programOf(manifest);
    return program.has_value();
  }
  DiagnosticEngine ofLaunch;
  ofLaunch.setFile(std::make_shared<SourceFile>(options.launchFile, std::move(*text)));
  std::optional<LaunchDescription> description = parseLaunchDescription(ofLaunch);
  diagnostics.append(ofLaunch);
  if (description)
    program = executor->programOf(*description);
  return program.has_value();
}

bool RunCommand::prepareEmulator(const HloModule &module) {
  machineOptions = emulatorOptions(options, diagnostics);
  if (!machineOptions || !findProgram(module))
    return false;
  if (!options.launchFile.empty())
    separateSlices(*program);
  machine = std::make_unique<EmulatorDevice>(*machineOptions, imageName, diagnostics);
  makeReady = [this, &module](EmulatorDevice &device) {
    if (options.ptxFile.empty())
      device.setSource(module, diagnostics.file());
    else if (!options.launchFile.empty()) // with a manifest it is hloc's kernel, which reads nothing of the kind
      device.withholdHarmless();
  };
  makeReady(*machine);
  return executor->load(*machine, image, *program);
}

llvm::FailureOr<Literal> RunCommand::emulate(llvm::ArrayRef<Literal> arguments) {
  if (std::string where = circumstances(); !where.empty())
    machine->setCircumstances("with arguments of " + where);
  llvm::FailureOr<Literal> result = executor->execute(*machine, *program, arguments);
  if (machine->hasWithheld()) {
    auto replay = [&](const emulator::EmulatorOptions &other) {
      EmulatorDevice device(other, imageName, diagnostics);
      return executor->run(device, image, *program, arguments);
    };
    if (failed(result) || dependsOnUndefined(*machineOptions, *result, replay)) {
      machine->reportWithheld();
      return llvm::failure();
    }
    machine->noteWithheld();
  }
  otherSchedules.clear();
  const bool quick = llvm::is_contained(options.checks, "none") || options.schedule;
  if (succeeded(result) && machine->dependsOnSchedule() && !quick) {
    if (!schedules)
      schedules.emplace(*machineOptions, imageName, [&](EmulatorDevice &other) { makeReady(other); });
    auto others = schedules->run(*executor, image, *program, arguments, *result, diagnostics);
    if (failed(others))
      return llvm::failure();
    otherSchedules = std::move(*others);
  }
  bool counts = succeeded(result) && numRuns == 0;
  if (counts && options.counters == "json")
    printJson(machine->counters(), llvm::outs());
  else if (counts && !options.counters.empty())
    printTable(machine->counters(), llvm::outs());
  return result;
}

bool RunCommand::prepareGpu(const HloModule &module) {
  gpu = openGpu(diagnostics);
  if (!gpu)
    return false;
  if (!options.compile.targetGiven)
    if (std::optional<TargetInfo> found = findTarget(gpu->target()))
      target = *found;
  return findProgram(module) && executor->load(*gpu, image, *program);
}

llvm::FailureOr<Literal> RunCommand::runOnGpu(llvm::ArrayRef<Literal> arguments) {
  llvm::FailureOr<Literal> result = executor->execute(*gpu, *program, arguments);
  if (succeeded(result) && options.repeat && numRuns == 0 &&
      !printMeasurement(*gpu, *program, options.repeat, diagnostics))
    return llvm::failure();
  return result;
}

/// All that does not depend on the arguments.
bool RunCommand::prepare(const HloModule &module) {
  if (options.platform == Platform::Interpreter)
    return true;
  laidOut = applyEntryLayout(module, diagnostics);
  if (!laidOut)
    return false;
  executor.emplace(*laidOut, timing, diagnostics);
  return options.platform == Platform::Emulator ? prepareEmulator(module) : prepareGpu(module);
}

llvm::FailureOr<Literal> RunCommand::execute(const HloModule &module, llvm::ArrayRef<Literal> arguments) {
  if (options.platform == Platform::Interpreter) {
    Timing::Scope scope(timing, "interpret");
    return interpret(module, arguments, diagnostics);
  }
  bool onEmulator = options.platform == Platform::Emulator;
  Device &device = onEmulator ? static_cast<Device &>(*machine) : *gpu;
  if (std::string error; numRuns && !device.reset(error)) {
    diagnostics.report(DiagnosticKind::BadLaunch, error);
    return llvm::failure();
  }
  return onEmulator ? emulate(arguments) : runOnGpu(arguments);
}

} // namespace

int runRun(const RunOptions &options) {
  RunOptions started = options;
  started.startSeconds = steadySeconds();
  return RunCommand(started).run();
}

} // namespace hloc
