#pragma once
// --progress: one line on the terminal that says what a long run is doing. It is rewritten in place, and erased before
// anything else is written.
//
//   hloc: emulate `gelu` (kernel 2 of 7), regime special (3 of 4): 43 %, 12 s left

#include "hloc/run/RunObserver.h"

#include "llvm/ADT/StringRef.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace hloc {

/// How long a piece of work takes from now on, if it goes on as in the last ten seconds. Times are seconds of any
/// clock.
class RemainingTime {
public:
  static constexpr double window = 10;     ///< seconds that are looked at
  static constexpr double shortest = 0.25; ///< less of them says nothing

  void begin(double now) { samples = {{now, 0}}; }
  /// `fraction` of the work is done. Nothing as long as too little is known, or while it does not get on.
  std::optional<double> update(double now, double fraction);

private:
  struct Sample {
    double time, fraction;
  };
  std::deque<Sample> samples; ///< in order; the first is the last one that is older than the window
};

/// "8 s", "3 min 20 s", "2 h 5 min"; never more than is known.
std::string durationText(double seconds);

/// What the line says, as data; it knows no terminal and no clock.
class ProgressLine {
public:
  void beginStage(std::string name, double now);
  /// What holds for the stages to come: "regime special (3 of 4)".
  void setCircumstances(std::string text) { circumstances = std::move(text); }
  /// At most `columns` characters. `fraction`: between 0 and 1 of the stage's work; 0 if it is not known.
  std::string text(double now, double fraction, size_t columns);

private:
  std::string stage, circumstances;
  double begin = 0;
  RemainingTime remaining;
};

enum class ProgressChoice { Auto, Always, Never };

/// The same, but for what is written to standard error meanwhile, which by default stays as it is.
inline ProgressChoice progressBeside(ProgressChoice choice, bool isBusy) {
  return isBusy && choice == ProgressChoice::Auto ? ProgressChoice::Never : choice;
}

class Progress : public RunProgress {
public:
  /// Auto: on standard error if that is a terminal, once the run has taken half a second. Always: from the start, also
  /// if it is none.
  explicit Progress(ProgressChoice choice);
  ~Progress() override;
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void beginStage(std::string name) override;
  void setCircumstances(std::string text) override;
  /// Null if nothing is shown.
  WorkProgress *work() override { return isOn ? &counted : nullptr; }
  /// Erases the line, for good.
  void stop();

  /// Erases the line, for what is written as long as this lives.
  class Hidden {
  public:
    explicit Hidden(Progress &progress) : lock(progress.mutex) { progress.erase(); }

  private:
    std::unique_lock<std::mutex> lock;
  };

private:
  void show();
  void draw();
  void erase();

  bool isOn, isEager;
  WorkProgress counted;
  std::mutex mutex; ///< of what follows, and of the terminal
  std::condition_variable changed;
  ProgressLine line;
  std::string shown;
  bool done = false;
  std::thread thread;
};

} // namespace hloc
