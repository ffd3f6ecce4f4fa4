#pragma once
// --timeout: what ends a run that takes too long. Kernels end themselves (EmulatorOptions::deadline), with a finding
// that says where they were; this ends everything else.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace hloc {

/// Seconds of the steady clock.
double steadySeconds();

class Timeout {
public:
  /// Ends the process with exit code 4 unless destroyed `seconds` from now, and a little; 0: never. `before` is called
  /// before it says so, by another thread.
  explicit Timeout(double seconds, std::function<void()> before = {});
  ~Timeout();
  Timeout(const Timeout &) = delete;
  Timeout &operator=(const Timeout &) = delete;

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread thread;
};

} // namespace hloc
