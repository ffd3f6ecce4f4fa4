#pragma once
// The asynchronous proxy of a block: copies and products that run beside the threads that issued them. What they read
// and write is checked when they are issued, and from then on every other access is, until its thread has observed
// that they are complete: by a phase of an mbarrier, or by waiting for a group.
//
//   thread 0:  expect_tx; copy to [0, 4096)   the write has the date {mbarrier, phase 0}; nobody knows it yet
//   warp 4:    ld [16]                         a race: warp 4 does not know the date
//   warp 4:    try_wait phase 0; ld [16]       fine: phase 0 told it
//   warp 4:    arrive on `empty`               and whoever waits for that may have the copy's place written again
//
// When a copy's bytes land is the schedule's: as late as somebody waits for them, at once (reversed), or anywhere
// between. Nothing depends on it but what broken kernels compute.

#include "Traces.h"

#include "llvm/ADT/SmallVector.h"

#include <array>
#include <vector>

namespace hloc::emulator {

struct Core;
struct Launch;
struct Place;
struct TensorMap;
struct Warp;

/// Who was at 128 bytes of shared memory by the asynchronous proxy, in pieces of 4 bytes.
class AsyncShadow {
public:
  static constexpr unsigned lineShift = 7, pieceShift = 2;
  struct Record {
    Trace who;
    const Decoded *at = nullptr;
    uint32_t thread = 0; ///< that issued it
    uint32_t pieces = 0;
    bool writes = false;
  };
  void resize(uint64_t bytes) { lines.resize((bytes >> lineShift) + 1); }
  void clear() {
    if (used)
      for (Line &line : lines)
        line = Line();
    used = false;
  }
  bool inUse() const { return used; }

  /// Puts an asynchronous access of some pieces of a line on record; returns one that it is not in order with.
  const Record *enter(const BlockCausality &causality, Traces::Access::Issuer issuer, uint64_t line, const Record &now);
  /// An access by a thread: a record that it is not in order with.
  const Record *meet(const BlockCausality &causality, uint32_t warp, uint32_t lanes, uint64_t offset, uint64_t bytes,
                     bool writes) const;
  void markGeneric(uint64_t offset, uint64_t bytes) {
    for (uint64_t line = offset >> lineShift; line <= (offset + bytes - 1) >> lineShift; ++line)
      lines[line].generic = true;
  }
  bool isGeneric(uint64_t line) const { return lines[line].generic; }

private:
  struct Line {
    llvm::SmallVector<Record, 2> records;
    bool generic = false; ///< threads themselves have been here
  };
  std::vector<Line> lines;
  bool used = false;
};

/// An asynchronous access of one kind by one instruction of a thread.
class AsyncAccess {
public:
  /// `others`: what those know that issue it together with this thread.
  AsyncAccess(Warp &issuer, unsigned lane, const Decoded &at, const Trace &date, bool writes,
              const Handover *others = nullptr)
      : warp(issuer), lane(lane), at(at), date(date), writes(writes), others(others) {}
  /// Bytes of the shared memory of a block, which exist; finds what they are not in order with.
  void shared(Core &owner, uint64_t offset, uint64_t bytes);
  /// Bytes of global memory, which exist. `atomic`: a reduction, which may meet others.
  void global(const Place &place, uint64_t bytes, bool atomic = false);

private:
  Warp &warp;
  const unsigned lane;
  const Decoded &at;
  const Trace date;
  const bool writes;
  const Handover *const others;
};

/// Bytes of the own shared memory are written until `date`, by a copy whose issue has been checked.
void recordWrite(Warp &warp, unsigned lane, const Decoded &at, uint64_t offset, uint64_t bytes, const Trace &date);

/// A copy that a thread has issued.
struct Transfer {
  enum class Direction : uint8_t { Load, Store, ToCluster };
  /// `from`: an address of global memory or an offset in the issuer's shared memory; `to`: likewise.
  struct Run {
    uint64_t from, to;
    uint32_t bytes;
  };
  static constexpr uint64_t nowhere = ~uint64_t(0);       ///< `from`: outside the tensor
  static constexpr uint64_t registers = ~uint64_t(0) - 1; ///< `from`: `data`

  Direction direction = Direction::Load;
  const Decoded *at = nullptr;
  Warp *issuer = nullptr;
  unsigned lane = 0;
  std::vector<Run> runs;
  /// Offsets and bytes of what the runs touch of shared memory, where several lie side by side or in one piece of a
  /// line; empty: each run by itself.
  llvm::SmallVector<std::pair<uint64_t, uint64_t>, 1> shared;
  std::array<uint8_t, 16> data = {};
  uint64_t bytes = 0;             ///< that the mbarrier counts
  const TensorMap *map = nullptr; ///< of the block's: what it makes of elements, those outside included
  Mode reduction = Mode::None;    ///< of what is there and what comes, elements of `type`
  Type type = {};
  bool flushes = false;   ///< subnormal f32 of sums: bulk reductions keep them, unlike red
  Core *target = nullptr; ///< whose shared memory it writes, and whose mbarrier counts it; null: stores
  uint64_t mbarrier = 0;  ///< its offset
  uint32_t phase = 0;     ///< by Trace::clock
  uint32_t group = 0;     ///< of a store
  uint32_t steps = 0;     ///< of its core, after which it lands; 0: as late as possible
  bool landed = false;
};

/// Copies in flight that threads of one block have issued, and the bulk groups of its threads.
struct Transfers {
  std::vector<Transfer> pending;                   ///< in order of issue; stores stay until their thread has waited
  std::vector<std::array<uint32_t, 32>> committed; ///< by warp: groups of each lane
  std::vector<std::array<uint32_t, 32>> readsOver; ///< and how many of them have been waited for, if only for reading
  uint64_t issued = 0;
  void begin(size_t warps) {
    pending.clear();
    committed.assign(warps, {});
    readsOver.assign(warps, {});
    issued = 0;
  }
};

/// "copy", ...: what the instruction does beside its thread, for messages.
const char *kindOf(const Decoded &at);

/// Checks what the copy reads and writes, and lets it go. `bytes`, `issuer`, `at`, `lane` and all that says when it is
/// over are filled in here; the place of the mbarrier has been checked.
void issueTransfer(Warp &warp, const Decoded &at, unsigned lane, Transfer transfer);
/// What is due lands.
void stepTransfers(Core &core);
/// All that is to complete on the mbarrier at this offset of `core` lands, as far as it is needed for its phase.
bool landFor(Core &core, uint64_t mbarrier);
/// The oldest one lands; false: there is none.
bool landOldest(Core &core);
/// The block ends: nobody may have left a copy behind.
void abandonTransfers(Core &core);

/// What a thread that waits for bulk groups, or a warp that waits for products, knows to be over from now on.
void observe(Warp &warp, uint32_t lanes, const Trace &date);

} // namespace hloc::emulator
