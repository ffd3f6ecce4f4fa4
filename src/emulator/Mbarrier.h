#pragma once
// mbarriers of one block: objects of 8 opaque bytes in shared memory that count who arrives and how many bytes have
// come. A phase is complete when nobody and nothing is missing; then the next one begins.
//
//   init 2;                        phase 0: 2 arrivals are missing
//   arrive.expect_tx 4096;         1 arrival, 4096 bytes
//   arrive; a copy of 4096 bytes:  phase 0 is complete, phase 1 begins: 2 arrivals
//   try_wait.parity 0              true: the phase of parity 0 is over. try_wait.parity 1: waits for phase 1

#include "Causality.h"

#include <map>

namespace hloc::emulator {

struct Core;
struct Warp;

struct Mbarrier {
  const Decoded *initializedAt = nullptr;
  uint32_t expected = 0; ///< arrivals of a phase
  uint32_t pending = 0;  ///< of the running one, those that are missing
  int64_t bytes = 0;     ///< that are missing; below zero: they came before they were expected
  uint64_t phase = 0;    ///< phases that are complete
  uint32_t number = 0;   ///< among those of the block: what dates its phases
  uint32_t dated = 0;    ///< phases of objects that were here before
  uint64_t observed = 0; ///< phases of which somebody knows that they are complete
  /// Of a shuffled schedule: for which phase it was drawn whether first tries fail, one more; and the warps of the
  /// block, a bit each, whose first try is still to come and fails.
  uint64_t drawnFor = 0;
  uint32_t willFail = 0;
  struct Copy {
    const Decoded *at = nullptr;
    Warp *issuer = nullptr; ///< of any block of the cluster
    unsigned lane = 0;
    uint64_t phase = 0; ///< how many phases are complete when it is over
  };
  Copy lastCopy; ///< that completes here
  Handover arrived, complete;

  /// Whether the phase of this parity is the last that is complete.
  bool isOver(uint32_t parity) const { return (phase & 1) != (parity & 1); }
  /// Date of what a copy writes that completes in the running phase.
  Trace date(uint64_t block) const {
    return asynchronousDate(block, uint16_t(actorsOfPhases + number / 32), number % 32, dated + uint32_t(phase) + 1);
  }
};

/// What a warp saw last when it waited, and how often in a row.
struct LastWait {
  const Decoded *at = nullptr;
  uint64_t offset = 0, phase = 0;
  bool over = false;
  uint64_t count = 0;
};

/// By offset in shared memory.
class Mbarriers {
public:
  void clear() {
    objects.clear();
    count = 0;
  }
  bool empty() const { return objects.empty(); }
  Mbarrier *find(uint64_t offset) {
    auto found = objects.find(offset);
    return found == objects.end() || !found->second.initializedAt ? nullptr : &found->second;
  }
  Mbarrier &create(uint64_t offset);
  template <typename Visit> void forEach(Visit visit) const {
    for (const auto &[offset, object] : objects)
      if (object.initializedAt)
        visit(object);
  }
  /// One that has bytes in common with these, or null. `at`: where it is.
  const Mbarrier *overlapping(uint64_t offset, uint64_t bytes, uint64_t &at) const;

private:
  std::map<uint64_t, Mbarrier> objects; ///< those without `initializedAt` have been invalidated
  uint32_t count = 0;
};

/// Bytes have come for the mbarrier at `offset` of the block's shared memory; `warp`: whose instruction brought them.
void completeTransfer(Core &owner, uint64_t offset, uint64_t bytes, Warp &warp, unsigned lane, const Decoded &at);

/// What the warp waits for, for messages: "for phase 3 of the mbarrier at byte 64 of shared memory: 1 of 2 arrivals
/// ..."
std::string describeWait(const Core &core, uint64_t offset);

} // namespace hloc::emulator
