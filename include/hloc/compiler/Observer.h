#pragma once
// Who wants to know what the compiler does while it does it: dumps, timing, progress. An observer changes nothing,
// unless it has all cancelled.
//
// Events belong to a track: the module (empty name) or one kernel. Tracks of kernels run in parallel, each in one
// thread; they are ended in the order of the kernels.

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <chrono>
#include <string>

namespace hloc {

class DiagnosticEngine;
struct ExecutionPlan;

enum class IrKind { Hlo, Mlir, Llvm, Ptx };

/// The IR as a pass has left it.
struct IrEvent {
  IrKind kind;
  llvm::StringRef pass, track;
  double milliseconds; ///< that the pass took
  bool milestone;      ///< the first or last of its kind
  llvm::function_ref<std::string()> text;
  std::string stageLine = {}; ///< what a file of the text begins with (StageLine.h); empty: nothing
};

class CompileObserver {
public:
  using Clock = std::chrono::steady_clock;
  virtual ~CompileObserver() = default;

  /// Whether single passes of MLIR and LLVM are to be told of; they are run one by one then.
  virtual bool wantsPasses() const { return false; }
  /// Whether texts are asked for: values of LLVM IR have names only then.
  virtual bool wantsTexts() const { return false; }
  /// A stage (depth 0) or a pass inside one (1) has run. May be called from several threads at once.
  virtual void timed(llvm::StringRef name, llvm::StringRef track, Clock::time_point begin, Clock::time_point end,
                     int depth) {}
  virtual void produced(const IrEvent &event) {}
  /// The module has been planned, and its kernels are compiled next.
  virtual void planned(const ExecutionPlan &plan) {}
  /// `alone`: no other kernel's track at the same time. Called before any event of the track, by one thread.
  virtual void beginTrack(llvm::StringRef track, bool alone) {}
  /// All events of the track have come. What goes wrong is reported.
  virtual void endTrack(llvm::StringRef track, DiagnosticEngine &diagnostics) {}
  /// How many there are of something that has no time of its own: "kernels compiled", 41.
  virtual void counted(llvm::StringRef what, size_t count) {}
  /// Whether to stop: stages return nothing then, and report nothing. Asked between stages and between kernels, by
  /// several threads at once.
  virtual bool isCancelled() const { return false; }
  /// `done` of `all` kernels have been compiled. May be called from several threads at once.
  virtual void progress(size_t done, size_t all) {}
};

/// Reports the time from construction to destruction.
class TimedScope {
public:
  TimedScope(CompileObserver &observer, llvm::StringRef name, llvm::StringRef track = "", int depth = 0)
      : observer(observer), name(name), track(track), depth(depth), begin(CompileObserver::Clock::now()) {}
  ~TimedScope() { observer.timed(name, track, begin, CompileObserver::Clock::now(), depth); }
  TimedScope(const TimedScope &) = delete;
  TimedScope &operator=(const TimedScope &) = delete;

private:
  CompileObserver &observer;
  std::string name, track;
  int depth;
  CompileObserver::Clock::time_point begin;
};

inline double millisecondsSince(CompileObserver::Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(CompileObserver::Clock::now() - begin).count();
}

} // namespace hloc
