#include "hloc/support/Parallel.h"

#include "hloc/support/Recovery.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace hloc {

namespace {

/// Threads that calls of runInParallel have started and that have not ended.
std::atomic<unsigned> numHelping = 0;

bool mayStartAnother(unsigned workers) {
  unsigned helping = numHelping;
  while (helping + 1 < workers)
    if (numHelping.compare_exchange_weak(helping, helping + 1))
      return true;
  return false;
}

} // namespace

unsigned numWorkers(unsigned asked) { return asked ? asked : std::max(1u, std::thread::hardware_concurrency()); }

void runInParallel(size_t count, unsigned workers, llvm::function_ref<void(size_t)> work) {
  std::atomic<size_t> next = 0;
  // Whoever can recover waits for the other threads first: they use what is on its stack.
  const bool recovers = isRecoverable();
  std::mutex mutex;
  std::optional<GivenUp> givenUp;
  auto goThrough = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
  auto worker = [&] {
    if (!recovers)
      return goThrough();
    if (std::optional<GivenUp> why = runRecoverably(goThrough)) {
      next = count;
      std::lock_guard lock(mutex);
      givenUp = std::move(why);
    }
  };
  { // whose threads are gone before anything is given up
    std::vector<std::thread> threads;
    while (threads.size() + 1 < count && mayStartAnother(workers))
      threads.emplace_back([&] {
        worker();
        --numHelping;
      });
    worker();
    for (std::thread &thread : threads)
      thread.join();
  }
  if (givenUp)
    giveUp(std::move(*givenUp));
}

} // namespace hloc
