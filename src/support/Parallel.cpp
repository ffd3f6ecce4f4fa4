#include "hloc/support/Parallel.h"

#include <algorithm>
#include <atomic>
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
  auto worker = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
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

} // namespace hloc
