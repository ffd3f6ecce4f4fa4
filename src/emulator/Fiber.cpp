#include "Fiber.h"

#include <cstdint>

namespace hloc::emulator {

void Fiber::trampoline(unsigned high, unsigned low) {
  auto *fiber = reinterpret_cast<Fiber *>(uintptr_t(high) << 32 | low);
  fiber->entry(fiber->argument);
  fiber->suspend();
}

void Fiber::start(void (*run)(void *), void *with) {
  entry = run;
  argument = with;
  if (!stack)
    stack = std::make_unique_for_overwrite<std::byte[]>(stackBytes);
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack.get();
  inside.uc_stack.ss_size = stackBytes;
  inside.uc_link = nullptr;
  auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inside, reinterpret_cast<void (*)()>(&trampoline), 2, unsigned(uint64_t(self) >> 32), unsigned(self));
}

void Fiber::resume() { swapcontext(&outside, &inside); }
void Fiber::suspend() { swapcontext(&inside, &outside); }

} // namespace hloc::emulator
