#pragma once
// Collects findings from all host threads: one entry per kind and PTX line, that of the first block and thread, with a
// count. Which host thread was faster does not show.

#include "hloc/emulator/Emulator.h"

#include "llvm/ADT/STLExtras.h"

#include <mutex>
#include <optional>
#include <tuple>

namespace hloc::emulator {

class FindingList {
public:
  explicit FindingList(std::optional<std::pair<uint64_t, uint32_t>> only) : only(only) {}

  /// `make` is called for those that are kept.
  template <typename Make>
  void add(FindingKind kind, uint32_t line, bool harmlessIfUnused, uint64_t block, uint32_t thread, Make make) {
    if (only && *only != std::pair(block, thread))
      return;
    std::lock_guard<std::mutex> lock(mutex);
    ++total;
    auto entry = llvm::find_if(list, [&](const Entry &e) {
      return e.finding.kind == kind && e.finding.line == line && e.finding.harmlessIfUnused == harmlessIfUnused;
    });
    if (entry == list.end()) {
      list.push_back({block, thread, make()});
      return;
    }
    uint64_t count = entry->finding.count + 1;
    if (std::tie(block, thread) < std::tie(entry->block, entry->thread))
      *entry = {block, thread, make()};
    entry->finding.count = count;
  }

  /// By block, thread and line, `limit` at most.
  std::vector<Finding> sorted(uint64_t limit) {
    llvm::sort(list, [](const Entry &a, const Entry &b) {
      return std::tie(a.block, a.thread, a.finding.line, a.finding.kind) <
             std::tie(b.block, b.thread, b.finding.line, b.finding.kind);
    });
    std::vector<Finding> findings;
    for (const Entry &entry : llvm::ArrayRef(list).take_front(limit))
      findings.push_back(entry.finding);
    return findings;
  }

  uint64_t count() const { return total; }

private:
  struct Entry {
    uint64_t block;
    uint32_t thread;
    Finding finding;
  };
  const std::optional<std::pair<uint64_t, uint32_t>> only; ///< block and thread
  std::mutex mutex;
  uint64_t total = 0;
  std::vector<Entry> list;
};

} // namespace hloc::emulator
