// A run: inputs, execution, comparison.

#include "hloc/run/Run.h"

#include "ChosenForms.h"
#include "Comparison.h"
#include "Execute.h"
#include "Gpu.h"
#include "MachineCode.h"
#include "NumpyFiles.h"
#include "RunProgram.h"
#include "Schedules.h"
#include "UndefinedReads.h"

#include "hloc/hlo/SolverCall.h"
#include "hloc/interp/Inputs.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/transforms/ShrinkModule.h"
#include "hloc/transforms/Transforms.h"
#include "hloc/transforms/VerifyPasses.h"

#include "fmt/format.h"

namespace hloc {

namespace {

bool hasExpandedCalls(const HloModule &module) {
  return llvm::any_of(module.computations(), [](const auto &computation) {
    return llvm::any_of(computation->instructions(), [](const HloInstruction *instr) {
      return SolverCall::of(*instr).has_value() || isProductCall(*instr);
    });
  });
}

bool hasPromises(const HloModule &module) {
  return llvm::any_of(module.computations(), [](const auto &computation) {
    return llvm::any_of(computation->instructions(), [](const HloInstruction *instr) { return makesPromises(*instr); });
  });
}

class ModuleRun {
public:
  ModuleRun(const RunOptions &options, const Toolchain &toolchain, CompileObserver &timing, RunObserver &observer,
            DiagnosticEngine &diagnostics)
      : options(options), toolchain(toolchain), timing(timing), observer(observer), diagnostics(diagnostics),
        compiler(options.compiler, toolchain, timing, diagnostics), memory(options),
        comparison(options, memory, timing, observer, diagnostics) {}

  RunReport run(std::shared_ptr<const SourceFile> file) {
    const bool isDone = runStages(std::move(file));
    report.compared = comparison.totals();
    report.chain = comparison.takeChain();
    if (!isDone) {
      report.verdict = diagnostics.exitCode() == ExitCode::Mismatch ? RunVerdict::Wrong : RunVerdict::NotRun;
    } else if (!compares()) {
      report.verdict = RunVerdict::Executed;
    } else if (!comparison.conclude()) {
      report.verdict = RunVerdict::Undecided;
    } else {
      report.verdict = RunVerdict::Agrees;
      report.agreement = comparison.agreement(whatWasWatched());
    }
    return std::move(report);
  }

private:
  /// False, after a diagnostic, unless all runs have ended and nothing differs.
  bool runStages(std::shared_ptr<const SourceFile> file) {
    observer.beginStage("parse");
    std::unique_ptr<HloModule> module = compiler.parse(std::move(file));
    if (module && options.shrink)
      module = shrunk(*module);
    if (module && !choice().isAsWritten())
      module = withChoices(std::move(module));
    if (module)
      module = withoutCalls(std::move(module));
    if (module && isPart())
      module = partOf(*module);
    if (!module)
      return false;
    if (!options.ptxFile.empty())
      comparison.explainDifferences([&] { return otherForms(asWritten ? *asWritten : *module, choice()); });
    const std::vector<ArgumentSet> sets = setsFor(*module);
    if (options.verifyEachPass && !verifyPasses(*module, sets))
      return false;
    for (const ArgumentSet &set : sets) {
      if (sets.size() > 1)
        observer.setCircumstances(
            fmt::format("regime {} ({} of {})", regimeName(set.regime).str(), numRuns + 1, sets.size()));
      if (!runOnce(*module, set))
        return false;
      ++numRuns;
    }
    return true;
  }

  bool isPart() const { return !options.only.empty(); }

  /// What --only names, already fused.
  std::unique_ptr<HloModule> partOf(const HloModule &module) {
    std::unique_ptr<HloModule> fused = compiler.fuse(module, target);
    return fused ? compiler.only(*fused, options.only, target) : nullptr;
  }

  std::unique_ptr<HloModule> shrunk(const HloModule &module) {
    ShrunkModule small = shrinkModule(module, options.shrink, diagnostics);
    if (small.module) {
      report.shrunkSizes = std::move(small.sizes);
      observer.shrunk(report.shrunkSizes);
    }
    return std::move(small.module);
  }

  FormChoice choice() const { return {options.compiler.fusion, options.compiler.f32Dots, options.compiler.softmax}; }

  /// What is wanted of dots of f32, or of a softmax, is wanted of kernels and reference.
  std::unique_ptr<HloModule> withChoices(std::unique_ptr<HloModule> module) {
    TimedScope scope(timing, "choose forms");
    std::unique_ptr<HloModule> chosen = inChosenForms(*module, choice(), diagnostics);
    asWritten = std::move(module);
    return chosen;
  }

  /// Calls of LAPACK, and of cuDNN's attention, mean what is made of them: kernels and reference both run that
  /// (decisions/0011).
  std::unique_ptr<HloModule> withoutCalls(std::unique_ptr<HloModule> module) {
    if (!hasExpandedCalls(*module))
      return module;
    TimedScope scope(timing, "expand calls");
    std::unique_ptr<HloModule> expanded = cloneModule(*module);
    HloPassContext context(diagnostics);
    for (auto expand : {expandProductCalls, expandSolverCalls})
      if (expand(*expanded, context) == PassResult::Failed)
        return nullptr;
    if (!asWritten)
      asWritten = std::move(module);
    return expanded;
  }

  bool compares() const { return options.compares(); }

  /// One set where the arguments or their results are given, and where nothing is compared.
  std::vector<ArgumentSet> setsFor(const HloModule &module) const {
    if (!options.inputsFile.empty())
      return {ArgumentSet()};
    if (!options.expectedFile.empty())
      return {argumentSets(module, options.regimes).front()};
    if (!compares() && options.regimes.empty())
      return argumentSets(module, {Regime::Ordinary});
    // Kernels written by hand for a scatter are seldom made for indices outside: asked for, they are tried.
    bool scatterInside = !options.launchFile.empty() && options.regimes.empty();
    return argumentSets(module, options.regimes, scatterInside);
  }

  /// Makes the arguments, executes and compares. What is compiled and translated for the first run serves all.
  bool runOnce(const HloModule &module, const ArgumentSet &set) {
    regime = set.regime;
    // What is refused is refused before gigabytes of arguments are made for it.
    if (!numRuns && !(comparison.open(module) && prepare(module) && fits(module)))
      return false;
    std::optional<std::vector<Literal>> arguments = argumentsOf(module, set);
    if (!arguments)
      return false;
    ProgramRun made;
    if (options.inputsFile.empty())
      made.regime = regime;
    llvm::FailureOr<Literal> result = execute(module, *arguments, made);
    if (failed(result))
      return false;
    if (!compares() && options.outputsFile.empty())
      made.result = *result;
    observer.executed(made);
    report.runs.push_back(std::move(made));
    bool isFirst = numRuns == 0;
    if (isFirst && !options.outputsFile.empty() && !writeResult(options.outputsFile, *result, diagnostics))
      return false;
    if (compares())
      return !comparesEnd() || (comparison.compare(module, *arguments, *result, regime, "", settling()) &&
                                compareSchedules(module, *arguments));
    return true;
  }

  bool fits(const HloModule &module) {
    const bool isOnHost = options.platform == Platform::Emulator && program;
    return memory.admit(module, isOnHost ? &program->program : nullptr, compares(), diagnostics);
  }

  /// Nothing after a diagnostic.
  std::optional<std::vector<Literal>> argumentsOf(const HloModule &module, const ArgumentSet &set) {
    std::optional<std::vector<Literal>> arguments = makeOrReadArguments(module, set);
    if (arguments && !options.inputsFile.empty() && !keepPromises(module, *arguments))
      return std::nullopt;
    return arguments;
  }

  std::optional<std::vector<Literal>> makeOrReadArguments(const HloModule &module, const ArgumentSet &set) {
    TimedScope scope(timing, "make arguments");
    observer.beginStage("make arguments");
    return options.inputsFile.empty() ? makeArguments(module, diagnostics, options.seed, set, memory.forArguments())
                                      : readArguments(options.inputsFile, module, diagnostics);
  }

  /// Of arguments that break what the module promises of them no kernel can make anything right. Generated ones keep
  /// the promises; of those that are given the interpreter knows which indices they lead to.
  bool keepPromises(const HloModule &module, llvm::ArrayRef<Literal> arguments) {
    // On a GPU there are large models, and where nothing is compared nobody waits for the interpreter.
    if (!hasPromises(module) || (options.platform == Platform::Cuda && !compares()))
      return true;
    TimedScope scope(timing, "check promises");
    observer.beginStage("check promises");
    InterpreterOptions checking;
    checking.checksPromises = true;
    checking.progress = observer.work();
    checking.maxBytes = memory.forReference();
    DiagnosticEngine found;
    found.setFile(diagnostics.file());
    if (succeeded(interpret(*module.entry(), arguments, found, checking)) ||
        found.diagnostics().front().kind != DiagnosticKind::BrokenPromise)
      return true; // what cannot be interpreted is for the comparison to say
    diagnostics.append(found);
    return false;
  }

  /// Whether steps are compared while they are carried out.
  bool comparesSteps() const {
    if (!compares() || !program || !program->fused || options.graph == GraphUse::Always)
      return false;
    const bool byDefault = program->hasSeveralSteps() && options.tolerance.empty();
    return options.compare == CompareChoice::Default ? byDefault : options.compare != CompareChoice::End;
  }
  bool comparesEnd() const { return options.compare != CompareChoice::Steps; }
  /// The module whose steps, all of them right, tell what the reference does not know of the results. Null where the
  /// results have to be known by themselves.
  const HloModule *settling() const {
    return options.compare == CompareChoice::Default && comparesSteps() ? program->fused.get() : nullptr;
  }

  bool verifyPasses(const HloModule &module, llvm::ArrayRef<ArgumentSet> sets);
  bool prepare(const HloModule &module);
  bool prepareEmulator(const HloModule &module);
  bool prepareGpu(const HloModule &module);
  llvm::FailureOr<Literal> execute(const HloModule &module, llvm::ArrayRef<Literal> arguments, ProgramRun &made);
  bool compareSchedules(const HloModule &module, llvm::ArrayRef<Literal> arguments);
  llvm::FailureOr<Literal> runOnGpu(llvm::ArrayRef<Literal> arguments, ProgramRun &made);
  llvm::FailureOr<Literal> emulate(llvm::ArrayRef<Literal> arguments, ProgramRun &made);
  void countInto(ProgramRun &made);
  llvm::FailureOr<Literal> carryOut(Device &device, llvm::ArrayRef<Literal> arguments);
  void showLaunch(const std::string &kernel, size_t number, const std::string &schedule);
  bool findProgram(const HloModule &module);

  /// For messages: "the regime `special`" of generated arguments; empty for given ones.
  std::string circumstances() const {
    return options.inputsFile.empty() ? fmt::format("the regime `{}`", regimeName(regime).str()) : "";
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

  const RunOptions &options;
  const Toolchain &toolchain;
  CompileObserver &timing;
  RunObserver &observer;
  DiagnosticEngine &diagnostics;
  Compiler compiler;
  MemoryBudget memory;
  Comparison comparison;
  RunReport report;

  TargetInfo target = options.target; ///< of what is compiled
  std::optional<RunProgram> program;
  std::optional<emulator::EmulatorOptions> machineOptions;
  std::unique_ptr<HloModule> asWritten; ///< where calls have been replaced
  std::unique_ptr<HloModule> laidOut;   ///< device memory has the layouts of the entry computation
  std::optional<Executor> executor;
  std::unique_ptr<EmulatorDevice> machine;
  std::function<void(EmulatorDevice &)> makeReady;
  CountedLaunches launches;                    ///< of the first run, for --estimate
  std::optional<ScheduleRuns> schedules;       ///< of a program whose results may depend on the order of its threads
  std::vector<ScheduledResult> otherSchedules; ///< of the run in progress: results that are not those of the first
  Gpu gpu;
  StepComparison::Shared steps;

  // Runs so far, all of which agree.
  Regime regime = Regime::Ordinary; ///< of the run in progress
  unsigned numRuns = 0;
};

bool ModuleRun::compareSchedules(const HloModule &module, llvm::ArrayRef<Literal> arguments) {
  return llvm::all_of(otherSchedules, [&](const ScheduledResult &other) {
    return comparison.compare(module, arguments, other.value, regime, other.schedule, settling());
  });
}

/// Compiles the module, or reads --ptx and its description.
bool ModuleRun::findProgram(const HloModule &module) {
  RunProgramFinder finder(options, compiler, toolchain, timing, diagnostics);
  if (options.ptxFile.empty())
    observer.beginStage("compile");
  program = options.ptxFile.empty() ? finder.compile(module, isPart(), target, *executor)
                                    : finder.read(asWritten ? *asWritten : module, *executor);
  if (!program)
    return false;
  if (!program->fused && (options.compare == CompareChoice::Steps || options.compare == CompareChoice::Both)) {
    diagnostics.report(DiagnosticKind::BadLaunch, options.manifestFile +
                                                      ": its steps are not those that this module has here, so they "
                                                      "cannot be compared one by one");
    return false;
  }
  return true;
}

/// `emulate `gelu` (kernel 2 of 7), order reversed`. How many there are is not known of a program with loops.
void ModuleRun::showLaunch(const std::string &kernel, size_t number, const std::string &schedule) {
  size_t count = 0;
  bool isKnown = true;
  forEachStep(program->program.steps, [&](const Step &step) {
    if (const auto *launch = std::get_if<LaunchStep>(&step.action))
      count += program->program.kernels[launch->kernel].grid.count() != 0;
    isKnown &= !std::holds_alternative<WhileStep>(step.action);
  });
  std::string text = fmt::format("emulate `{}`", kernel);
  if (!isKnown)
    text += fmt::format(" (launch {})", number);
  else if (count > 1)
    text += fmt::format(" (kernel {} of {})", number, count);
  if (schedule != emulator::Schedule().name())
    text += ", order " + schedule;
  observer.beginStage(std::move(text));
}

bool ModuleRun::prepareEmulator(const HloModule &module) {
  machineOptions = emulatorOptions(options);
  if (!findProgram(module))
    return false;
  machineOptions->progress = observer.work();
  if (!options.launchFile.empty())
    separateSlices(program->program);
  machine = std::make_unique<EmulatorDevice>(*machineOptions, program->imageName, diagnostics);
  makeReady = [this, &module](EmulatorDevice &device) {
    device.setLaunchListener([this, &device](const std::string &kernel, size_t number, const std::string &schedule) {
      if (observer.work())
        showLaunch(kernel, number, schedule);
      if (options.estimates && &device == machine.get() && numRuns == 0)
        launches.begin(kernel, device.counters());
    });
    if (options.ptxFile.empty())
      device.setSource(module, diagnostics.file());
    else if (!options.launchFile.empty()) // with a manifest it is hloc's kernel, which reads nothing of the kind
      device.withholdHarmless();
  };
  makeReady(*machine);
  observer.beginStage("translate");
  if (options.countsEvents)
    report.ptx = program->image;
  return executor->load(*machine, program->image, program->program);
}

/// The program's result; a failure where steps are compared and one is wrong.
llvm::FailureOr<Literal> ModuleRun::carryOut(Device &device, llvm::ArrayRef<Literal> arguments) {
  if (!comparesSteps())
    return executor->execute(device, program->program, arguments);
  StepComparison listener(*program->fused, program->values, program->program, device, arguments, comparison, regime,
                          steps, diagnostics);
  llvm::FailureOr<Literal> result = executor->execute(device, program->program, arguments, &listener);
  if (failed(result) || !listener.finish(*result))
    return llvm::failure();
  return result;
}

void ModuleRun::countInto(ProgramRun &made) {
  made.counters = machine->counters();
  made.lineCounters = machine->lineCounters().vec();
}

llvm::FailureOr<Literal> ModuleRun::emulate(llvm::ArrayRef<Literal> arguments, ProgramRun &made) {
  if (std::string where = circumstances(); !where.empty())
    machine->setCircumstances("with arguments of " + where);
  llvm::FailureOr<Literal> result = carryOut(*machine, arguments);
  if (machine->hasWithheld()) {
    auto replay = [&](const emulator::EmulatorOptions &other) {
      EmulatorDevice device(other, program->imageName, diagnostics);
      device.setTwin(*machine);
      return executor->run(device, program->image, program->program, arguments);
    };
    uint64_t bytes = 0;
    for (const DeviceBuffer &buffer : program->program.buffers)
      bytes += buffer.bytes;
    const bool ofUpdates = machine->withholdsUpdatesAlone(), isOther = failed(result) && ofUpdates;
    if (!isOther && (failed(result) || dependsOnUndefined(*machineOptions, *result, bytes, ofUpdates, replay))) {
      machine->reportWithheld();
      return llvm::failure();
    }
    for (std::string &note : machine->noteWithheld()) {
      observer.noted(note);
      report.notes.push_back(std::move(note));
    }
  }
  otherSchedules.clear();
  const bool quick = llvm::is_contained(options.checks, "none") || options.schedule;
  if (succeeded(result) && machine->dependsOnSchedule() && !quick) {
    if (!schedules)
      schedules.emplace(*machineOptions, program->imageName, [&](EmulatorDevice &other) {
        makeReady(other);
        other.setTwin(*machine);
      });
    auto again = [&](EmulatorDevice &device) { return carryOut(device, arguments); };
    auto others = schedules->run(*executor, program->image, program->program, again, *result, diagnostics);
    if (failed(others))
      return llvm::failure();
    otherSchedules = std::move(*others);
  }
  const bool isFirst = succeeded(result) && numRuns == 0;
  if (isFirst && options.estimates) {
    made.estimate = launches.finish(machine->counters(), program->program, program->image, diagnostics);
    const std::optional<Cubin> code = machineCodeOf(program->image, toolchain);
    if (made.estimate && code)
      made.estimate->takeRegisters(code->resources);
  }
  if (isFirst && options.countsEvents)
    countInto(made);
  return result;
}

/// What a device knows that no other does, if code made for it uses that.
static TargetInfo ofDeviceAlone(const TargetInfo &target) {
  const std::optional<TargetInfo> own = findTarget(target.name + "a");
  return own && own->hasWarpgroups() ? *own : target;
}

bool ModuleRun::prepareGpu(const HloModule &module) {
  {
    TimedScope scope(timing, "open GPU");
    gpu.device = openGpu(options.cuda, diagnostics);
  }
  if (!gpu.device)
    return false;
  if (!options.targetGiven)
    if (std::optional<TargetInfo> found = findTarget(gpu.device->target()))
      target = ofDeviceAlone(*found);
  return findProgram(module) && openLibraries(*gpu.device, program->program, diagnostics) &&
         executor->load(*gpu.device, program->image, program->program);
}

llvm::FailureOr<Literal> ModuleRun::runOnGpu(llvm::ArrayRef<Literal> arguments, ProgramRun &made) {
  observer.beginStage("run on the GPU");
  auto asGraph = [&](std::string &error) { return gpu.launchGraph(program->program, error); };
  llvm::FailureOr<Literal> result = options.graph == GraphUse::Always
                                        ? executor->execute(*gpu.device, program->program, arguments, nullptr, asGraph)
                                        : carryOut(*gpu.device, arguments);
  if (succeeded(result) && options.repeat && numRuns == 0 &&
      !(made.measured = gpu.measureRun(program->program, options, diagnostics)))
    return llvm::failure();
  return result;
}

/// All that does not depend on the arguments.
bool ModuleRun::verifyPasses(const HloModule &module, llvm::ArrayRef<ArgumentSet> sets) {
  TimedScope scope(timing, "verify each pass");
  observer.beginStage("verify each pass");
  std::vector<PassInput> inputs;
  for (const ArgumentSet &set : sets) {
    std::optional<std::vector<Literal>> arguments = argumentsOf(module, set);
    if (!arguments)
      return false;
    inputs.push_back({options.inputsFile.empty() ? regimeName(set.regime).str() : "", std::move(*arguments)});
  }
  HloPassContext context(diagnostics);
  context.target = target;
  context.options.fastMath = options.compiler.fastMath;
  context.options.disabled = options.compiler.disabled;
  context.options.fusion = options.compiler.fusion;
  context.options.f32Dots = options.compiler.f32Dots;
  context.options.softmax = options.compiler.softmax;
  context.options.dots = options.compiler.dots;
  context.options.convolutions = options.compiler.convolutions;
  if (!verifyEachPass(module, hloPipeline(), inputs, context))
    return false;
  report.numVerifiedSets = inputs.size();
  observer.passesVerified(report.numVerifiedSets);
  return true;
}

bool ModuleRun::prepare(const HloModule &module) {
  if (options.platform == Platform::Interpreter)
    return true;
  {
    TimedScope scope(timing, "entry layout");
    laidOut = cloneModule(module);
    HloPassContext context(diagnostics);
    if (applyEntryLayout(*laidOut, context) == PassResult::Failed)
      return false;
  }
  executor.emplace(*laidOut, timing, diagnostics);
  return options.platform == Platform::Emulator ? prepareEmulator(module) : prepareGpu(module);
}

llvm::FailureOr<Literal> ModuleRun::execute(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                            ProgramRun &made) {
  if (options.platform == Platform::Interpreter) {
    TimedScope scope(timing, "interpret");
    observer.beginStage("interpret");
    InterpreterOptions interpreterOptions;
    interpreterOptions.progress = observer.work();
    interpreterOptions.maxBytes = memory.forReference();
    return interpret(module, arguments, diagnostics, interpreterOptions);
  }
  bool onEmulator = options.platform == Platform::Emulator;
  Device &device = onEmulator ? static_cast<Device &>(*machine) : *gpu.device;
  llvm::FailureOr<Literal> result = onEmulator ? emulate(arguments, made) : runOnGpu(arguments, made);
  // The reference and the comparison need room for themselves.
  if (std::string error; succeeded(result) && !device.reset(error)) {
    diagnostics.report(DiagnosticKind::BadLaunch, error);
    return llvm::failure();
  }
  return result;
}

} // namespace

RunReport runModule(std::shared_ptr<const SourceFile> file, const RunOptions &options, const Toolchain &toolchain,
                    CompileObserver &compileObserver, RunObserver &observer, DiagnosticEngine &diagnostics) {
  return ModuleRun(options, toolchain, compileObserver, observer, diagnostics).run(std::move(file));
}

} // namespace hloc
