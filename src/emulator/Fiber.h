#pragma once
// A warp's own stack, for kernels in which warps wait for each other. One host thread switches between its fibers; a
// switch is a few nanoseconds a lane, since a fiber is a whole warp.

#include <cstddef>
#include <memory>
#include <ucontext.h>

namespace hloc::emulator {

struct Fiber {
  static constexpr size_t stackBytes = 256 << 10;

  /// `entry(argument)` runs at the first resume and must not return before the last suspend.
  void start(void (*entry)(void *), void *argument);
  void resume();  ///< from the host thread: runs until suspend or the end of entry
  void suspend(); ///< from within

private:
  static void trampoline(unsigned high, unsigned low);
  std::unique_ptr<std::byte[]> stack;
  ucontext_t inside = {}, outside = {};
  void (*entry)(void *) = nullptr;
  void *argument = nullptr;
};

} // namespace hloc::emulator
