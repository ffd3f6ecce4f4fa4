// `hloc run`: options, and what is printed of a run.

#include "RunCommand.h"

#include "Compile.h"
#include "DiagnosticForm.h"
#include "Estimates.h"
#include "Ignored.h"
#include "ReportFile.h"
#include "SystemEnvironment.h"
#include "Timeout.h"
#include "VerdictFile.h"

#include "hloc/hlo/Printer.h"
#include "hloc/run/Run.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

int64_t countElements(const Literal &value) {
  if (!value.isTuple())
    return value.numElements();
  int64_t count = 0;
  for (const Literal &element : value.elements())
    count += countElements(element);
  return count;
}

void printSmall(const Literal &result, llvm::raw_ostream &os) {
  constexpr int64_t limit = 1000;
  os << result.shape().toString();
  if (countElements(result) <= limit) {
    os << " ";
    printLiteral(result, os);
  } else {
    os << " (" << countElements(result) << " elements; --outputs=FILE.npz writes them)";
  }
  os << "\n";
}

/// Shows how far the run is, and prints what it finds as it comes.
class RunPrinter : public RunObserver {
public:
  RunPrinter(const RunCommandOptions &options, Progress &progress) : options(options), progress(progress) {}

  void beginStage(std::string name) override { progress.beginStage(std::move(name)); }
  void setCircumstances(std::string text) override { progress.setCircumstances(std::move(text)); }
  WorkProgress *work() override { return progress.work(); }

  void shrunk(const std::map<int64_t, int64_t> &sizes) override {
    std::string text;
    for (auto [from, to] : sizes)
      text += fmt::format("{}{} -> {}", text.empty() ? "" : ", ", from, to);
    Progress::Hidden hidden(progress);
    listings() << "sizes: " << (text.empty() ? "as they are" : text) << "\n";
  }
  void passesVerified(size_t numSets) override {
    Progress::Hidden hidden(progress);
    listings() << fmt::format("every HLO pass keeps the results; sets of arguments: {}\n", numSets);
  }
  void noted(const std::string &note) override {
    Progress::Hidden hidden(progress);
    llvm::errs() << note << "\n";
  }
  void executed(const ProgramRun &run) override {
    std::optional<Progress::Hidden> hidden;
    const bool printsCounters = run.counters && !options.counters.empty();
    if (run.estimate || printsCounters || run.measured || run.result)
      hidden.emplace(progress);
    if (run.estimate)
      llvm::outs() << printEstimates(*run.estimate, deviceFor(options.compile, options.target),
                                     options.compile.estimateAsJson);
    if (printsCounters && options.counters == "json")
      printJson(*run.counters, llvm::outs());
    else if (printsCounters)
      printTable(*run.counters, llvm::outs());
    if (run.measured)
      listings() << run.measured->device << " (" << run.measured->target << "): " << report(run.measured->measurement);
    if (run.result)
      printSmall(*run.result, listings());
  }

  /// JSON has standard output for itself.
  llvm::raw_ostream &listings() const {
    const bool isJson = options.counters == "json" || options.compile.estimateAsJson || options.verdictFile == "-";
    return isJson ? llvm::errs() : llvm::outs();
  }

private:
  const RunCommandOptions &options;
  Progress &progress;
};

class RunCommand {
public:
  explicit RunCommand(const RunCommandOptions &options)
      : options(options), timing(options.compile.timing), toolchain(discoverTools(options.compile.toolchain, timing)),
        progress(progressChoice(options)), observer(timing, options.compile.dump, "", progress.work()) {}

  int run() {
    Timeout timeout(options.timeoutSeconds, [this] { progress.stop(); });
    RunPrinter printer(options, progress);
    std::string agreement;
    warnOfIdleFilters(options.compile.dump, options.compile.optimizationLevel, diagnostics);
    removeEarlierDumps(options.compile.dump, diagnostics);
    progress.beginStage("parse");
    if (std::shared_ptr<const SourceFile> file = readSource(options.compile.inputs.front(), observer, diagnostics)) {
      const RunReport report = runModule(file, options, toolchain, observer, printer, diagnostics);
      agreement = report.agreement;
      if (!options.verdictFile.empty())
        writeVerdict(report, options, diagnostics);
      if (!options.compile.reportFile.empty())
        writeReport({.options = options.compile, .file = file, .run = &report}, toolchain, diagnostics);
    }
    progress.stop();
    printer.listings() << agreement;
    observer.endTrack("", diagnostics);
    writeTiming(timing, options.compile.timingFile, diagnostics);
    printDiagnostics(diagnostics, useColour(options.compile.colour));
    return static_cast<int>(diagnostics.exitCode());
  }

private:
  /// Dumps to standard error stay as they are.
  static ProgressChoice progressChoice(const RunCommandOptions &options) {
    const DumpOptions &dump = options.compile.dump;
    return progressBeside(options.compile.progress, dump.enabled && dump.folder.empty());
  }

  const RunCommandOptions &options;
  DiagnosticEngine diagnostics;
  Timing timing;
  Toolchain toolchain;
  Progress progress;
  DriverObserver observer;
};

} // namespace

RunCommandOptions settledRun(const RunCommandOptions &options) {
  RunCommandOptions all = options;
  all.compiler = compilerOptions(options.compile);
  all.target = options.compile.targets.front();
  all.targetGiven = options.compile.targetGiven;
  all.cuda.driver = systemEnvironment("HLOC_CUDA_DRIVER").value_or("");
  all.cuda.cublasLt = systemEnvironment("HLOC_CUBLASLT").value_or("");
  all.cuda.cudnn = systemEnvironment("HLOC_CUDNN").value_or("");
  if (all.platform == Platform::Cuda)
    all.cuda.libraryFolders = Toolchain::libraryFolders(options.compile.toolchain);
  all.only = options.compile.only;
  all.countsEvents =
      !options.counters.empty() || (!options.compile.reportFile.empty() && options.platform == Platform::Emulator);
  all.tracesFailures = !options.compile.reportFile.empty();
  all.estimates = options.compile.estimate;
  if (options.timeoutSeconds > 0)
    all.deadline = steadySeconds() + options.timeoutSeconds;
  return all;
}

int runRun(const RunCommandOptions &options) {
  const RunCommandOptions all = settledRun(options);
  return RunCommand(all).run();
}

} // namespace hloc
