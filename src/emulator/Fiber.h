#pragma once
// A warp's own stack, for kernels in which warps wait for each other. One host thread switches between its fibers; a
// switch takes a few nanoseconds, and a fiber is a whole warp.
//
//   Fiber fiber(256 << 10);
//   fiber.start(entry, argument);
//   fiber.resume();   // runs entry(argument) until it suspends or returns
//
// A fiber that is never resumed again is just forgotten: what it runs must own nothing.

#include <cstddef>
#include <memory>

namespace hloc::emulator {

class Fiber {
public:
  /// A page below the stack faults, so that running over its end cannot go unnoticed.
  explicit Fiber(size_t stackBytes);
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// False if there was no memory for a stack.
  bool valid() const { return stack != nullptr; }
  void start(void (*entry)(void *), void *argument);
  void resume();  ///< from the host thread: runs until suspend or the end of entry
  void suspend(); ///< from within

  /// Where a new stack begins to run.
  static void run(Fiber *fiber);

private:
  struct Contexts; ///< where fiber and host thread go on while they do not run
  void *stack = nullptr;
  size_t mappedBytes = 0;
  std::unique_ptr<Contexts> contexts;
  void (*entry)(void *) = nullptr;
  void *argument = nullptr;
};

} // namespace hloc::emulator
