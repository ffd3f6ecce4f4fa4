#pragma once
// `--timing`: how long every stage and pass took, as a table or a Chrome trace.

#include "hloc/compiler/Observer.h"

#include <mutex>
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

  /// Milliseconds by stage and pass: stages in order of their start, passes below theirs. The total is since
  /// construction; the row before it is what of that no stage accounts for.
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
  /// The time since construction that is in no stage of any track.
  Clock::duration outsideStages(Clock::time_point end) const;
  bool on;
  Clock::time_point start;
  mutable std::mutex mutex;
  std::vector<Span> spans;
};

/// What `--timing` asks for, if it was given: the table to stderr, or the trace to `file`.
void writeTiming(const Timing &timing, const std::string &file, DiagnosticEngine &diagnostics);

/// Toolchain::discover as a stage.
Toolchain discoverTools(const ToolchainOptions &options, Timing &timing);

} // namespace hloc
