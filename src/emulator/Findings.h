#pragma once
// Collects findings from all host threads: one entry per kind and PTX line, with a count.

#include "hloc/emulator/Emulator.h"

#include <mutex>

namespace hloc::emulator {

class FindingList {
public:
  explicit FindingList(uint64_t limit) : limit(limit) {}
  /// Keeps the first of its kind and line; `make` is called for that one only.
  template <typename Make> void add(FindingKind kind, uint32_t line, Make make) {
    std::lock_guard<std::mutex> lock(mutex);
    ++total;
    for (Finding &finding : list)
      if (finding.kind == kind && finding.line == line) {
        ++finding.count;
        return;
      }
    if (list.size() < limit)
      list.push_back(make());
  }
  llvm::ArrayRef<Finding> all() const { return list; }
  uint64_t count() const { return total; }

private:
  const uint64_t limit;
  std::mutex mutex;
  uint64_t total = 0;
  std::vector<Finding> list;
};

} // namespace hloc::emulator
