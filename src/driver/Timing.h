#pragma once
// `--timing`: how long every stage and pass took, as a table or a Chrome trace.
//
// Of up to sixteen kernels the table has the stages and passes of each. Of more it has sums:
//
//        sum   elapsed  stage of 165 kernels
//     430.121   228.812  emit
//    6042.402  3021.207  mlir passes
//     837.110              lower-to-llvm
//     slowest kernels
//     181.722  reduce_9727: emit 5.012, mlir passes 115.700, llvm 61.010

#include "hloc/compiler/Observer.h"

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace hloc {

class DiagnosticEngine;
class Toolchain;
struct ToolchainOptions;

/// What TimedScope reports, kept. Thread safe.
class Timing : public CompileObserver {
public:
  explicit Timing(bool on) : on(on), start(Clock::now()) {}
  bool enabled() const { return on; }

  /// `track` is empty for the module, or a kernel's name; `depth` 0 for stages, 1 for passes inside one.
  void timed(llvm::StringRef name, llvm::StringRef track, Clock::time_point begin, Clock::time_point end,
             int depth) override;
  /// Counts of one name are added up.
  void counted(llvm::StringRef what, size_t count) override;
  /// `track` is that of a kernel.
  void beginKernel(const std::string &track);

  /// Milliseconds by stage and pass: stages in order of their start, passes below theirs. The total is since
  /// construction; before it the counts and what of the total no stage accounts for. Of more than sixteen kernels: the
  /// sum of each stage and pass over all of them, how long it took until all had been through the stage, the slowest
  /// ten, the counts, and the processor time and memory of the process.
  std::string table() const;
  /// JSON for chrome://tracing and Perfetto.
  std::string chromeTrace() const;

private:
  struct Span {
    std::string name, track;
    Clock::time_point begin, end;
    int depth;
  };
  std::vector<Span> sorted() const;
  bool hasManyKernels() const;
  /// The rows of spans as sorted() has them, of some tracks.
  static std::string rows(const std::vector<Span> &spans);
  static std::string sumsOverKernels(const std::vector<Span> &spans, size_t numKernels);
  static std::string slowestKernels(const std::vector<Span> &spans);
  std::string counts() const;
  static std::string resources();
  /// The time since construction that is in no stage of any track.
  Clock::duration outsideStages(Clock::time_point end) const;
  bool on;
  Clock::time_point start;
  mutable std::mutex mutex;
  std::vector<Span> spans;
  std::set<std::string> kernels;
  std::vector<std::pair<std::string, size_t>> countList;
};

/// What `--timing` asks for, if it was given: the table to stderr, or the trace to `file`.
void writeTiming(const Timing &timing, const std::string &file, DiagnosticEngine &diagnostics);

/// Toolchain::discover as a stage.
Toolchain discoverTools(const ToolchainOptions &options, Timing &timing);

} // namespace hloc
