#include "../../../src/emulator/Fiber.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

using hloc::emulator::Fiber;

namespace {

struct Counter {
  Fiber *fiber = nullptr;
  unsigned rounds = 0;
  std::vector<unsigned> *trace = nullptr;
  unsigned id = 0;
  double sum = 0;
  bool aligned = true, done = false;
};

void countRounds(void *argument) {
  auto &self = *static_cast<Counter *>(argument);
  double sum = 0; // lives in a register that a switch must keep
  for (unsigned i = 0; i < self.rounds; ++i) {
    alignas(16) volatile char local[16] = {};
    self.aligned = self.aligned && reinterpret_cast<uintptr_t>(local) % 16 == 0;
    self.trace->push_back(self.id);
    sum += self.id + i;
    self.fiber->suspend();
  }
  self.sum = sum;
  self.done = true;
}

} // namespace

TEST_CASE("fibers: take turns, keep their registers, and end") {
  std::vector<unsigned> trace;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Counter> counters(3);
  for (unsigned i = 0; i < 3; ++i) {
    fibers.push_back(std::make_unique<Fiber>(64 << 10));
    REQUIRE(fibers.back()->valid());
    counters[i] = {fibers.back().get(), i + 1, &trace, i};
    fibers.back()->start(countRounds, &counters[i]);
  }
  for (unsigned round = 0; round < 4; ++round)
    for (unsigned i = 0; i < 3; ++i)
      if (!counters[i].done)
        fibers[i]->resume();
  CHECK(trace == std::vector<unsigned>{0, 1, 2, 1, 2, 2});
  for (unsigned i = 0; i < 3; ++i) {
    CHECK(counters[i].done);
    CHECK(counters[i].aligned);
    CHECK(counters[i].sum == double((i + 1) * i + (i + 1) * i / 2));
  }
}

TEST_CASE("fibers: one that was left in the middle starts anew") {
  std::vector<unsigned> trace;
  Fiber fiber(64 << 10);
  Counter counter{&fiber, 5, &trace, 7};
  for (unsigned i = 0; i < 100; ++i) {
    fiber.start(countRounds, &counter);
    fiber.resume();
  }
  CHECK(trace.size() == 100);
  CHECK(!counter.done);
}

TEST_CASE("fibers: a stack has the size asked for") {
  static constexpr size_t size = 4 << 20;
  Fiber fiber(size + (64 << 10));
  size_t touched = 0;
  fiber.start(
      [](void *argument) {
        volatile char big[size];
        for (size_t i = 0; i < size; i += 4096)
          big[i] = 1;
        *static_cast<size_t *>(argument) = size + size_t(big[0]) - 1;
      },
      &touched);
  fiber.resume();
  CHECK(touched == size);
}
