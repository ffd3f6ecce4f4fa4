#pragma once
// How far a long piece of work is: counted by who does it, read by another thread that shows it.

#include <atomic>
#include <cstdint>

namespace hloc {

struct WorkProgress {
  std::atomic<uint64_t> done = 0, all = 0; ///< in any unit; all is 0 where it is not known

  void begin(uint64_t total) {
    done.store(0, std::memory_order_relaxed);
    all.store(total, std::memory_order_relaxed);
  }
  void advance(uint64_t amount = 1) { done.fetch_add(amount, std::memory_order_relaxed); }
  /// Between 0 and 1; 0 where it is not known.
  double fraction() const {
    double total = double(all.load(std::memory_order_relaxed)), part = double(done.load(std::memory_order_relaxed));
    return total <= 0 ? 0 : part >= total ? 1 : part / total;
  }
};

} // namespace hloc
