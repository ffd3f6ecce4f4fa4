// `hloc` and `hloc compile`: stages in order, outputs as asked for.

#include "Compile.h"
#include "DiagnosticForm.h"
#include "Dot.h"
#include "Estimates.h"
#include "Explanations.h"
#include "Golden.h"
#include "Ignored.h"
#include "InputFormats.h"
#include "LintKernels.h"
#include "Lists.h"
#include "Outputs.h"
#include "Progress.h"
#include "ProofTable.h"
#include "ReportFile.h"
#include "SystemEnvironment.h"
#include "WhatIf.h"

#include "hloc/codegen/Assemble.h"
#include "hloc/codegen/LlvmText.h"
#include "hloc/compiler/Continuation.h"
#include "hloc/compiler/StageLine.h"
#include "hloc/hlo/Printer.h"
#include "hloc/run/Advice.h"
#include "hloc/support/Parallel.h"

#include "fmt/format.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <future>
#include <map>
#include <mutex>

namespace hloc {

namespace {

/// The compilation of one input.
class CompileCommand {
public:
  CompileCommand(const CompileOptions &options, const Toolchain &toolchain, Timing &timing, Outputs &outputs,
                 Progress &progress)
      : options(options), timing(timing), toolchain(toolchain), outputs(outputs), progress(progress),
        observer(timing, options.dump, isOneOfSeveral() ? stemOf(options.input) : "",
                 isOneOfSeveral() ? nullptr : progress.work()),
        compiler(ownOptions(), toolchain, observer, diagnostics), kind(options.emit) {}

  void run() {
    runStages();
    observer.endTrack("", diagnostics);
    if (!options.reportFile.empty() && source)
      writeReport({.options = options, .file = source}, toolchain, diagnostics);
  }

  /// After `run`: what it has to say, and how it ended.
  ExitCode report() {
    llvm::outs() << listing;
    llvm::errs() << notes;
    printDiagnostics(diagnostics, useColour(options.colour));
    return diagnostics.exitCode();
  }

private:
  CompilerOptions ownOptions() {
    CompilerOptions result = compilerOptions(options);
    result.explanation = options.explain ? &explanation : nullptr;
    return result;
  }

  /// Then who started them says how far they are.
  bool isOneOfSeveral() const { return options.inputs.size() > 1; }

  void beginStage(const char *name) {
    if (!isOneOfSeveral())
      progress.beginStage(name);
  }

  void runStages() {
    beginStage("parse");
    if (IrKind format = formatOf(options, options.input); format != IrKind::Hlo)
      return goOnFrom(format);
    bool stopped = options.stopAfter != Stage::All;
    bool wantsHlo = kind == EmitKind::Hlo || kind == EmitKind::Dot;
    source = readSource(options.input, observer, diagnostics);
    parsed = source ? compiler.parse(source, /*verify=*/options.stopAfter != Stage::Parse) : nullptr;
    const HloModule *module = parsed.get();
    if (!module)
      return;
    if (wantsHlo && options.only.empty())
      return writeHlo(*module);
    if (options.stopAfter == Stage::Parse || options.stopAfter == Stage::Verify)
      return;
    beginStage("fuse");
    std::unique_ptr<HloModule> fused = compiler.fuse(*module, options.targets.front());
    if (fused && options.explain)
      explain(*fused);
    if (fused && !options.only.empty())
      fused = compiler.only(*fused, options.only, options.targets.front());
    if (!fused)
      return;
    if (wantsHlo)
      return writeHlo(*fused);
    if (kind == EmitKind::HloFused)
      return write(options.targets.front(), hloText(*fused));
    if (options.stopAfter == Stage::Fuse)
      return;
    if (options.stopAfter == Stage::Plan) {
      for (const TargetInfo &target : options.targets)
        (void)compiler.plan(*fused, target);
      return;
    }
    if (outputs.needsAssembler() && !stopped && canAssemble(toolchain, ownAssembling().assembler))
      observer.whenPlanned = [this](const ExecutionPlan &plan) { beginPreparing(plan); };
    std::vector<FatbinImage> images;
    for (const TargetInfo &target : options.targets)
      if (!compileFor(*fused, target, stopped, images))
        return;
    if (kind == EmitKind::Fatbin && !stopped)
      writeFatbin(images);
  }

  void explain(const HloModule &fused) {
    const TargetInfo &target = options.targets.front();
    if (options.explainAsJson)
      listing += printExplanationAsJson(explanation, *options.explain, fused, target, advise(target));
    else
      listing += printExplanation(explanation, *options.explain, printTiles(fused, *options.explain, target)) +
                 printAdvice(advise(target));
  }

  /// Beside the compilation of the kernels. What is linked needs the library, and so does a kernel that it may take;
  /// one with shared memory it does not.
  void beginPreparing(const ExecutionPlan &plan) {
    if (assemblerPrepared.valid())
      return;
    bool mayNeedLibrary = plan.kernels.size() != 1 || plan.kernels.front().plan().launch.sharedBytes == 0;
    assemblerPrepared = std::async(
        std::launch::async, [this, mayNeedLibrary] { prepareAssembling(toolchain, ownAssembling(), mayNeedLibrary); });
  }

  void writeHlo(const HloModule &module) {
    write(options.targets.front(), kind == EmitKind::Dot ? dotGraph(module) : hloText(module));
  }

  /// From IR of an earlier run instead of HLO.
  void goOnFrom(IrKind format) {
    given = readSource(options.input, observer, diagnostics);
    if (!given)
      return;
    diagnostics.setFile(given);
    CompilerOptions continued = compilerOptions(options);
    Continuation continuation(continued, toolchain, observer, diagnostics);
    WrittenIr ir{format, given, options.startAfter};
    std::vector<TargetInfo> targets = options.targets;
    if (!options.targetGiven) {
      std::optional<TargetInfo> target = continuation.targetOf(ir, targets.front());
      if (!target)
        return;
      targets = {*target};
    }
    bool stopped = options.stopAfter != Stage::All;
    std::vector<FatbinImage> images;
    for (const TargetInfo &target : targets) {
      std::optional<CompiledModule> compiled = continuation.compile(
          ir, target, outputs.neededStage(), kind == EmitKind::Llvm, targets.size() > 1 ? "." + target.name : "");
      if (!compiled || !finish(*compiled, target, stopped, &target == &targets.back(), images))
        return;
    }
    if (kind == EmitKind::Fatbin && !stopped)
      writeFatbin(images);
  }

  bool wantsCode() const { return kind == EmitKind::Cubin || kind == EmitKind::Fatbin; }

  bool compileFor(const HloModule &fused, const TargetInfo &target, bool stopped, std::vector<FatbinImage> &images) {
    bool keepTexts = kind == EmitKind::Mlir || kind == EmitKind::Llvm;
    beginStage("compile kernels");
    std::optional<CompiledModule> compiled = compiler.compile(fused, target, outputs.neededStage(), keepTexts,
                                                              options.targets.size() > 1 ? "." + target.name : "");
    return compiled && finish(*compiled, target, stopped, &target == &options.targets.back(), images, &fused);
  }

  /// `external steps: 3 (2 x all-gather, 1 x mine)`, where there are some; the same of calls of libraries.
  static std::string callSummary(const Manifest &manifest, CallStep::Kind kind) {
    std::map<std::string, size_t> functions;
    size_t count = 0;
    forEachStep(manifest.steps, [&](const Step &step) {
      if (const auto *call = std::get_if<CallStep>(&step.action); call && call->kind == kind) {
        ++functions[call->function];
        ++count;
      }
    });
    std::string all;
    for (const auto &[function, times] : functions)
      all += fmt::format("{}{} x {}", all.empty() ? "" : ", ", times, function);
    const char *what = kind == CallStep::Kind::External ? "external steps" : "calls of libraries";
    return count ? fmt::format("{}: {} ({})\n", what, count, all) : "";
  }

  /// Writes what was asked for of the kernels for one target, the last of them or not. `fused` is the program that they
  /// were made of, if it is known.
  bool finish(CompiledModule &compiled, const TargetInfo &target, bool stopped, bool isLast,
              std::vector<FatbinImage> &images, const HloModule *fused = nullptr) {
    if (stopped && !options.outputAsked && !options.needsKernels && !options.prove)
      return true;
    if (kind == EmitKind::Ptx &&
        (!stopped || options.outputAsked)) // before ptxas runs, so that there is something to look at if it refuses
      write(target, compiled.ptx);
    if (isLast) // the same for all targets
      notes += callSummary(compiled.manifest, CallStep::Kind::External) +
               callSummary(compiled.manifest, CallStep::Kind::Library);
    std::string cubin;
    bool assembles = assemblesKernels() && !compiled.kernels.empty();
    bool assembled = !assembles || assembleInto(compiled, target, cubin);
    if (options.prove)
      listing += printProofs(compiled.manifest, diagnostics);
    if (options.remarks && fused && isLast)
      reportAdvice(target);
    if (options.estimate && !estimateTimes(compiled, target, fused))
      return false;
    if (options.lint && !lint(compiled, target, fused))
      return false;
    if (!assembled)
      return false;
    if (kind == EmitKind::Cubin)
      write(target, cubin);
    if (kind == EmitKind::Fatbin)
      images.push_back({target, cubin, isLast ? compiled.ptx : std::string()});
    writeTexts(compiled, target);
    return options.keepGoing || !diagnostics.hasErrors();
  }

  /// What is worth trying next, for --remarks and --explain.
  std::vector<Advice> advise(const TargetInfo &target) {
    TimedScope scope(timing, "advise");
    AdviceOptions wanted;
    wanted.isWanted = [this](DiagnosticKind kind) {
      return isAdvice(kind) && (!options.remarks || llvm::Regex(*options.remarks).match(text(kind)));
    };
    wanted.about = llvm::StringRef(options.explain.value_or(".")).ltrim("%").str();
    std::optional<AssembleOptions> assembling;
    if (canAssemble(toolchain, ownAssembling().assembler))
      assembling = ownAssembling();
    return adviseOn(*parsed, {compilerOptions(options), target, &deviceFor(options, target), options.only, assembling},
                    wanted, toolchain);
  }

  void reportAdvice(const TargetInfo &target) {
    for (const Advice &one : advise(target))
      diagnostics.report(one.kind, one.range, one.message);
  }

  bool assemblesKernels() const {
    return outputs.needsAssembler() && (wantsCode() || canAssemble(toolchain, ownAssembling().assembler));
  }

  AssembleOptions ownAssembling() const {
    AssembleOptions result = assembleOptions(options);
    result.work = isOneOfSeveral() ? nullptr : progress.work();
    if (formatOf(options, options.input) != IrKind::Ptx)
      return result;
    result.given = given;
    // PTX of somebody else's may be anything: a process of its own survives that.
    if (result.assembler == AssemblerChoice::Auto && toolchain.has(Tool::Ptxas))
      result.assembler = AssemblerChoice::Ptxas;
    return result;
  }

  bool assembleInto(CompiledModule &compiled, const TargetInfo &target, std::string &cubin) {
    if (assemblerPrepared.valid())
      assemblerPrepared.wait();
    beginStage("assemble");
    llvm::FailureOr<std::string> assembled = compiler.assemble(compiled, target, ownAssembling());
    if (failed(assembled))
      return false;
    cubin = std::move(*assembled);
    return true;
  }

  std::optional<EstimatedModule> estimated(const CompiledModule &compiled, const DeviceModel &device) {
    if (options.launchFile.empty())
      return estimateModule(compiled.manifest, compiled.ptx, device, diagnostics);
    std::optional<LaunchDescription> launches = readLaunches(options.launchFile, diagnostics);
    if (!launches)
      return std::nullopt;
    return estimateLaunches(*launches, compiled.manifest.kernels, compiled.ptx, device, diagnostics);
  }

  bool estimateTimes(const CompiledModule &compiled, const TargetInfo &target, const HloModule *fused) {
    TimedScope scope(timing, "estimate");
    const DeviceModel &device = deviceFor(options, target);
    std::optional<EstimatedModule> module = estimated(compiled, device);
    if (!module)
      return false;
    std::vector<WhatIf> whatIfs;
    if (!options.whatIfs.empty())
      whatIfs = estimateWhatIfs(*parsed, options, target, toolchain,
                                assemblesKernels() ? std::optional(ownAssembling()) : std::nullopt);
    listing += printEstimates(*module, device, options.estimateAsJson, whatIfs, fused);
    return true;
  }

  /// False if the PTX is none.
  bool lint(const CompiledModule &compiled, const TargetInfo &target, const HloModule *fused) {
    TimedScope scope(timing, "lint");
    bool isGiven = formatOf(options, options.input) == IrKind::Ptx;
    bool isWritten = kind == EmitKind::Ptx && options.outputAsked && options.output != "-";
    auto ptx = isGiven ? given
                       : std::make_shared<const SourceFile>(isWritten ? options.output : stemOf(options.input) + ".ptx",
                                                            compiled.ptx);
    return lintKernels({ptx, compiled.manifest, target, fused}, options, listing, diagnostics);
  }

  void writeTexts(const CompiledModule &compiled, const TargetInfo &target) {
    if (kind == EmitKind::Mlir)
      writeMlir(compiled, target);
    if (kind == EmitKind::Llvm)
      writeLlvm(compiled, target);
    if (kind == EmitKind::PlanDot)
      write(target, planGraph(compiled.manifest));
    if (kind == EmitKind::Manifest)
      write(target, printManifest(compiled.manifest));
    Progress::Hidden hidden(progress);
    if (!options.manifestFile.empty())
      outputs.writeManifest(options.input, target, printManifest(compiled.manifest), diagnostics);
    if (options.listKernels)
      listing += listKernels(compiled.manifest);
    if (!options.goldenFolder.empty()) {
      TimedScope scope(timing, "golden");
      std::string text =
          goldenText(inputSeenFrom(options.goldenFolder, options.input), compiled.manifest, compiled.ptx);
      GoldenUse use = options.updateGolden   ? GoldenUse::Update
                      : options.only.empty() ? GoldenUse::Compare
                                             : GoldenUse::ComparePart;
      checkGolden(goldenPath(options.goldenFolder, options.input, target.name), text, use, diagnostics);
    }
  }

  /// `hloc opt --split-input-file` takes several modules apart at these lines.
  void writeMlir(const CompiledModule &compiled, const TargetInfo &target) {
    std::string all;
    for (const CompiledKernel &kernel : compiled.kernels)
      all += (all.empty() ? "" : "// -----\n") + kernel.mlir;
    write(target, all);
  }

  void writeLlvm(const CompiledModule &compiled, const TargetInfo &target) {
    std::vector<std::string> texts;
    for (const CompiledKernel &kernel : compiled.kernels)
      texts.push_back(kernel.llvm);
    if (llvm::FailureOr<std::string> merged = mergeLlvm(texts, diagnostics); succeeded(merged))
      write(target, printStageLine({"optimized", target.name}, ";") + *merged);
  }

  void writeFatbin(llvm::ArrayRef<FatbinImage> images) {
    TimedScope scope(timing, "fatbinary");
    llvm::FailureOr<std::string> bytes = makeFatbin(images, toolchain, diagnostics);
    if (succeeded(bytes))
      write(options.targets.front(), *bytes);
  }

  void write(const TargetInfo &target, llvm::StringRef bytes) {
    Progress::Hidden hidden(progress);
    if (options.outputWanted)
      outputs.write(options.input, target, bytes, diagnostics);
  }

  const CompileOptions &options;
  DiagnosticEngine diagnostics;
  Timing &timing;
  const Toolchain &toolchain;
  Outputs &outputs;
  Progress &progress;
  DriverObserver observer;
  FusionExplanation explanation; ///< for --explain
  Compiler compiler;
  EmitKind kind;
  std::string listing;
  std::string notes;                        ///< for people, on standard error
  std::shared_ptr<const SourceFile> source; ///< HLO text, if that is the input
  std::unique_ptr<HloModule> parsed;        ///< of it
  std::shared_ptr<const SourceFile> given;  ///< IR of a later stage than HLO, if that is the input
  /// Loading nvJitLink and asking a new ptxas for its version take some milliseconds, while there is something else to
  /// do.
  std::future<void> assemblerPrepared;
};

/// The options for one of several inputs: its dumps have a folder of their own.
CompileOptions optionsFor(const CompileOptions &options, const std::string &input) {
  CompileOptions one = options;
  one.input = input;
  if (options.inputs.size() > 1 && !options.dump.folder.empty())
    one.dump.folder += "/" + stemOf(input);
  return one;
}

/// Inputs are compiled in parallel and reported in their order, each as soon as those before it are.
ExitCode compileInputs(const CompileOptions &options, const Toolchain &toolchain, Timing &timing, Outputs &outputs,
                       Progress &progress, DiagnosticEngine &diagnostics) {
  std::vector<CompileOptions> each;
  for (const std::string &input : options.inputs)
    removeEarlierDumps(each.emplace_back(optionsFor(options, input)).dump, diagnostics);
  std::vector<std::unique_ptr<CompileCommand>> finished(each.size());
  std::mutex mutex; // of what is below and of `finished`
  size_t numReported = 0;
  ExitCode code = ExitCode::Success;
  auto report = [&](size_t i, std::unique_ptr<CompileCommand> command) {
    std::lock_guard lock(mutex);
    Progress::Hidden hidden(progress);
    finished[i] = std::move(command);
    for (; numReported < finished.size() && finished[numReported]; ++numReported) {
      ExitCode own = finished[numReported]->report();
      finished[numReported].reset();
      if (code == ExitCode::Success || own == ExitCode::InternalError)
        code = own;
    }
  };
  const bool several = each.size() > 1;
  if (several)
    progress.beginStage(fmt::format("compile {} inputs", each.size()));
  if (several && progress.work())
    progress.work()->begin(each.size());
  bool dumpsInOrder = options.dump.enabled && options.dump.folder.empty();
  runInParallel(each.size(), dumpsInOrder ? 1 : numWorkers(options.jobs), [&](size_t i) {
    auto command = std::make_unique<CompileCommand>(each[i], toolchain, timing, outputs, progress);
    command->run();
    if (several && progress.work())
      progress.work()->advance();
    report(i, std::move(command));
  });
  return code;
}

void checkForStaleGoldens(const CompileOptions &options, DiagnosticEngine &diagnostics) {
  std::set<std::string> checked;
  for (const std::string &input : options.inputs)
    for (const TargetInfo &target : options.targets)
      checked.insert(goldenPath(options.goldenFolder, input, target.name));
  reportStaleGoldens(llvm::StringRef(options.goldenFolder).rtrim('/').str(), checked, diagnostics);
}

} // namespace

int runCompile(const CompileOptions &options) {
  DiagnosticEngine diagnostics;
  Timing timing(options.timing);
  Outputs outputs(options, timing);
  warnOfIdleFilters(options.dump, options.optimizationLevel, diagnostics);
  Toolchain toolchain = discoverTools(options.toolchain, timing);
  Progress progress(progressBeside(options.progress, options.dump.enabled && options.dump.folder.empty()));
  ExitCode code = ExitCode::Success;
  if (options.reportBefore.empty())
    code = compileInputs(options, toolchain, timing, outputs, progress, diagnostics);
  else
    writeReportDifference(options, toolchain, diagnostics);
  progress.stop();
  if (!options.goldenFolder.empty())
    checkForStaleGoldens(options, diagnostics);
  writeTiming(timing, options.timingFile, diagnostics);
  printDiagnostics(diagnostics, useColour(options.colour));
  return static_cast<int>(code == ExitCode::Success ? diagnostics.exitCode() : code);
}

} // namespace hloc
