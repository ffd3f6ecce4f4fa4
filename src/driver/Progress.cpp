#include "Progress.h"

#include "Timeout.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace hloc {

std::optional<double> RemainingTime::update(double now, double fraction) {
  if (samples.empty())
    begin(now);
  samples.push_back({now, fraction});
  while (samples.size() > 2 && samples[1].time <= now - window)
    samples.pop_front();
  const Sample &first = samples.front();
  double gained = fraction - first.fraction, took = now - first.time;
  if (took < shortest || gained <= 0)
    return std::nullopt;
  return (1 - fraction) * took / gained;
}

std::string durationText(double seconds) {
  constexpr double most = 99 * 3600;
  if (!(seconds < most))
    return "more than 99 h";
  auto whole = int64_t(std::ceil(std::max(seconds, 0.0)));
  if (whole < 60)
    return fmt::format("{} s", whole);
  if (whole < 3600)
    return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

void ProgressLine::beginStage(std::string name, double now) {
  stage = std::move(name);
  begin = now;
  remaining.begin(now);
}

std::string ProgressLine::text(double now, double fraction, size_t columns) {
  std::string text = "hloc: " + stage;
  if (!circumstances.empty())
    text += ", " + circumstances;
  std::optional<double> left = remaining.update(now, fraction);
  if (fraction > 0)
    text += fmt::format(": {} %", int(fraction * 100));
  if (left)
    text += ", " + durationText(*left) + " left";
  else if (fraction <= 0 && now - begin >= 1)
    text += ": " + durationText(std::floor(now - begin)) + " so far";
  if (text.size() > columns)
    text.resize(columns);
  return text;
}

namespace {

/// Seconds. What takes less than the delay is over before one has read the line.
constexpr double delay = 0.5, interval = 0.1;

bool isTerminal() {
  const char *kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) && kind && llvm::StringRef(kind) != "dumb";
}

/// Without the last column, in which some terminals begin a new line.
size_t columnsOfTerminal() {
  winsize size = {};
  constexpr size_t usual = 80;
  bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (known ? size.ws_col : usual) - 1;
}

} // namespace

Progress::Progress(ProgressChoice choice)
    : isOn(choice == ProgressChoice::Always || (choice == ProgressChoice::Auto && isTerminal())),
      isEager(choice == ProgressChoice::Always) {
  if (isOn)
    thread = std::thread([this] { show(); });
}

Progress::~Progress() {
  stop();
  if (thread.joinable())
    thread.join();
}

void Progress::show() {
  std::unique_lock<std::mutex> lock(mutex);
  double wait = isEager ? interval : delay;
  while (!changed.wait_for(lock, std::chrono::duration<double>(wait), [this] { return done; })) {
    draw();
    wait = interval;
  }
}

void Progress::draw() {
  std::string text = line.text(steadySeconds(), counted.fraction(), columnsOfTerminal());
  if (text == shown)
    return;
  llvm::errs() << "\r" + text + "\x1b[K";
  shown = std::move(text);
}

void Progress::erase() {
  if (!shown.empty())
    llvm::errs() << "\r\x1b[K";
  shown.clear();
}

void Progress::beginStage(std::string name) {
  if (!isOn)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  counted.begin(0);
  line.beginStage(std::move(name), steadySeconds());
  if (isEager && !done)
    draw();
}

void Progress::setCircumstances(std::string text) {
  std::lock_guard<std::mutex> lock(mutex);
  line.setCircumstances(std::move(text));
}

void Progress::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    erase();
  }
  changed.notify_one();
}

} // namespace hloc
