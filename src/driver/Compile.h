#pragma once
// What the driver's commands have in common around a Compiler: reading the input, dumps and timing as its observer.

#include "Options.h"
#include "Timing.h"

#include "hloc/compiler/Compiler.h"
#include "hloc/support/Files.h"

#include <functional>
#include <map>
#include <mutex>

namespace hloc {

CompilerOptions compilerOptions(const CompileOptions &options);
/// Who names a ptxas wants that one.
AssembleOptions assembleOptions(const CompileOptions &options);

/// Feeds --timing and --dump-after-each-pass. `input` is put before the names that --timing shows, to tell inputs
/// apart.
class DriverObserver : public CompileObserver {
public:
  /// `work`, if not null, counts the kernels.
  DriverObserver(Timing &timing, const DumpOptions &dump, std::string input = {}, WorkProgress *work = nullptr)
      : timing(timing), dump(dump), input(std::move(input)), work(work) {}

  bool wantsPasses() const override { return timing.enabled() || dump.enabled; }
  bool wantsTexts() const override { return dump.enabled; }
  void counted(llvm::StringRef what, size_t count) override { timing.counted(what, count); }
  void timed(llvm::StringRef name, llvm::StringRef track, Clock::time_point begin, Clock::time_point end,
             int depth) override;
  void produced(const IrEvent &event) override;
  void beginTrack(llvm::StringRef track, bool alone) override;
  void endTrack(llvm::StringRef track, DiagnosticEngine &diagnostics) override;
  void progress(size_t done, size_t all) override;
  void planned(const ExecutionPlan &plan) override {
    if (whenPlanned)
      whenPlanned(plan);
  }

  std::function<void(const ExecutionPlan &)> whenPlanned; ///< null: nobody waits for it

private:
  Timing &timing;
  const DumpOptions &dump;
  /// The name of a track among those of all inputs.
  std::string trackOf(llvm::StringRef track) const;
  std::string input;
  WorkProgress *work;
  std::mutex mutex; ///< of the map; a track is used by one thread
  std::map<std::string, std::unique_ptr<DumpTrack>, std::less<>> tracks;
};

/// A folder for as long as a command runs. Nothing, with a diagnostic, if there can be none.
std::optional<TemporaryFolder> temporaryFolder(llvm::StringRef prefix, DiagnosticEngine &diagnostics);

/// Reads `path`, - for standard input; null after an error.
std::shared_ptr<const SourceFile> readSource(const std::string &path, CompileObserver &observer,
                                             DiagnosticEngine &diagnostics);

/// Reads `path`, - for standard input, parses it and, if asked to, verifies it.
std::unique_ptr<HloModule> loadModule(Compiler &compiler, const std::string &path, CompileObserver &observer,
                                      DiagnosticEngine &diagnostics, bool verify = true);

/// `hloc` and `hloc compile`.
int runCompile(const CompileOptions &options);

} // namespace hloc
