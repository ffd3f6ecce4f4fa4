#include "Compile.h"

#include "SystemEnvironment.h"

#include "hloc/codegen/CubinCache.h"
#include "hloc/support/Parallel.h"

namespace hloc {

CompilerOptions compilerOptions(const CompileOptions &options) {
  CompilerOptions result;
  result.jobs = options.jobs;
  result.optimizationLevel = options.optimizationLevel;
  result.lineInfo = options.lineInfo;
  result.locations = options.dumpLocations;
  result.remarks = options.remarks;
  result.prove = options.prove;
  result.keepGoing = options.keepGoing;
  result.allowExternal = options.allowExternal;
  result.fastMath = options.fastMath;
  result.disabled.names = options.disabledPasses;
  result.fusion = options.fusion;
  if (llvm::any_of(options.targets, [](const TargetInfo &target) { return target.hasTf32(); }))
    result.f32Dots = options.f32Dots; // else f32 is what kernels have to be right in
  result.softmax = options.softmax;
  result.dots = options.dots;
  result.convolutions = options.convolutions;
  result.tile = options.tile;
  result.forced = options.forced;
  result.cache = options.cache;
  return result;
}

AssembleOptions assembleOptions(const CompileOptions &options) {
  AssembleOptions result;
  const bool isNamed = options.assembler == AssemblerChoice::Auto && !options.toolchain.ptxas.empty();
  result.assembler = isNamed ? AssemblerChoice::Ptxas : options.assembler;
  result.cache = options.cache;
  result.jobs = numWorkers(options.jobs);
  return result;
}

/// The module's track has a name for people, which no kernel has.
static std::string shownName(llvm::StringRef track) { return track.empty() ? "module" : track.str(); }

void DriverObserver::timed(llvm::StringRef name, llvm::StringRef track, Clock::time_point begin, Clock::time_point end,
                           int depth) {
  timing.timed(name, trackOf(track), begin, end, depth);
}

std::string DriverObserver::trackOf(llvm::StringRef track) const {
  return input + (input.empty() || track.empty() ? "" : "/") + track.str();
}

void DriverObserver::beginTrack(llvm::StringRef track, bool alone) {
  if (!track.empty())
    timing.beginKernel(trackOf(track));
  if (!dump.enabled)
    return;
  std::lock_guard lock(mutex);
  tracks[track.str()] = std::make_unique<DumpTrack>(dump, shownName(track), alone);
}

void DriverObserver::produced(const IrEvent &event) {
  if (!dump.enabled)
    return;
  DumpTrack *track = nullptr;
  {
    std::lock_guard lock(mutex);
    track = tracks.find(event.track)->second.get();
  }
  constexpr DumpStage stages[] = {DumpStage::Hlo, DumpStage::Mlir, DumpStage::Llvm, DumpStage::Ptx};
  track->after(stages[unsigned(event.kind)], event.pass, event.milliseconds, event.text, event.milestone,
               event.stageLine);
}

void DriverObserver::endTrack(llvm::StringRef name, DiagnosticEngine &diagnostics) {
  std::lock_guard lock(mutex);
  auto track = tracks.find(name);
  if (track == tracks.end())
    return;
  track->second->finish(diagnostics);
  tracks.erase(track);
}

void DriverObserver::progress(size_t, size_t all) {
  if (!work)
    return;
  work->all = all; // calls overtake each other, so that what they say is done is not to be trusted
  work->advance();
}

std::optional<TemporaryFolder> temporaryFolder(llvm::StringRef prefix, DiagnosticEngine &diagnostics) {
  std::string error;
  std::optional<TemporaryFolder> folder = TemporaryFolder::create(prefix, error);
  if (!folder)
    diagnostics.report(DiagnosticKind::UnwritableFile, "no temporary folder: " + error);
  return folder;
}

std::shared_ptr<const SourceFile> readSource(const std::string &path, CompileObserver &observer,
                                             DiagnosticEngine &diagnostics) {
  TimedScope scope(observer, "read");
  std::string error;
  std::optional<std::string> text = path == "-" ? readStandardInput(error) : readFile(path, error);
  if (text)
    return std::make_shared<const SourceFile>(path == "-" ? "<stdin>" : path, std::move(*text));
  diagnostics.report(DiagnosticKind::UnreadableFile, "cannot read `" + path + "`: " + error);
  return nullptr;
}

std::unique_ptr<HloModule> loadModule(Compiler &compiler, const std::string &path, CompileObserver &observer,
                                      DiagnosticEngine &diagnostics, bool verify) {
  std::shared_ptr<const SourceFile> file = readSource(path, observer, diagnostics);
  return file ? compiler.parse(std::move(file), verify) : nullptr;
}

} // namespace hloc
