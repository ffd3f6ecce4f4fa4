#include "hloc/support/Parallel.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace hloc;

TEST_CASE("work is done once each, whatever the number of workers", "[parallel]") {
  for (unsigned workers : {1u, 2u, 7u})
    for (size_t count : {0u, 1u, 2u, 100u}) {
      std::vector<std::atomic<int>> done(count);
      runInParallel(count, workers, [&](size_t i) { ++done[i]; });
      CHECK(std::all_of(done.begin(), done.end(), [](const std::atomic<int> &times) { return times == 1; }));
    }
}

TEST_CASE("calls inside calls share the threads", "[parallel]") {
  std::atomic<int> running = 0, most = 0;
  auto leaf = [&](size_t) {
    int now = ++running, before = most;
    while (before < now && !most.compare_exchange_weak(before, now))
      ;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --running;
  };
  runInParallel(4, 3, [&](size_t) { runInParallel(8, 3, leaf); });
  CHECK(most <= 3);
  // What the first call took was given back: three threads meet.
  std::atomic<int> arrived = 0;
  std::atomic<bool> met = true;
  runInParallel(3, 3, [&](size_t) {
    ++arrived;
    for (int waited = 0; arrived < 3 && waited < 5000; ++waited)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (arrived < 3)
      met = false;
  });
  CHECK(met);
}
