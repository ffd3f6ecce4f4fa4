#include "hloc/support/Parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace hloc {

unsigned numWorkers(unsigned asked) { return asked ? asked : std::max(1u, std::thread::hardware_concurrency()); }

void runInParallel(size_t count, unsigned workers, llvm::function_ref<void(size_t)> work) {
  std::atomic<size_t> next = 0;
  auto worker = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < workers && i < count; ++i)
    threads.emplace_back(worker);
  worker();
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace hloc
