#include "Timeout.h"

#include "DiagnosticForm.h"

#include "fmt/format.h"
#include "hloc/support/ExitCode.h"

#include <chrono>
#include <cstdlib>

namespace hloc {

double steadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Timeout::Timeout(double seconds, std::function<void()> before) {
  if (seconds <= 0)
    return;
  thread = std::thread([this, seconds, before = std::move(before)] {
    constexpr double grace = 1; // for a kernel to say where it was
    std::unique_lock<std::mutex> lock(mutex);
    if (changed.wait_for(lock, std::chrono::duration<double>(seconds + grace), [this] { return done; }))
      return;
    if (before)
      before();
    printError(DiagnosticKind::KernelFinding, fmt::format("time-limit: the run took longer than {} s", seconds));
    std::_Exit(static_cast<int>(ExitCode::Mismatch));
  });
}

Timeout::~Timeout() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
  }
  changed.notify_one();
  thread.join();
}

} // namespace hloc
