#pragma once
// The machine behind translated code: memory with its shadows, warps, blocks, barriers, counters. One Launch runs one
// grid; each host thread has a Core that runs blocks one at a time.
//
// Shadow memory. A granule is the narrowest access of the kernel to a space, so that two accesses share a granule only
// if they overlap. Who touched a granule last is packed into 64 bits:
//
//   bits 0..9 thread in block, 10..41 block, 42..57 epoch in the block, 58 atomic, 63 set
//
// Two accesses of which one writes are in order if they come from one thread, or from one block with a barrier between
// (different epochs). Anything else is a race, unless both are atomic.

#include "Findings.h"
#include "WarpAbi.h"

#include "hloc/emulator/Emulator.h"

#include "llvm/ADT/DenseSet.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace hloc::emulator {

struct Launch;
struct Core;

/// Memory of one buffer, or the module's variables.
struct Region {
  std::string name;
  std::unique_ptr<uint8_t[]> storage;
  uint8_t *data = nullptr; ///< 256-byte aligned
  uint64_t bytes = 0;
  bool complete = false;              ///< every byte has been written; `written` is empty
  std::unique_ptr<uint8_t[]> written; ///< one byte a byte: 1 if somebody wrote it
};

/// What one launch may do with a region.
struct Window {
  struct Slice {
    uint64_t begin = 0, end = 0;
    bool writable = false;
  };
  std::vector<Slice> slices; ///< empty: not an argument
  bool tracked = false;      ///< some slice is writable: races are possible
  std::unique_ptr<uint64_t[], decltype(&std::free)> writers{nullptr, &std::free}, readers{nullptr, &std::free};
};

enum class WarpState : uint8_t { Ready, Waiting, Done };

struct Fiber;

struct Warp : WarpContext {
  Core *core = nullptr;
  uint32_t existing = 0; ///< lanes that exist in the block
  uint32_t epoch = 0;    ///< of warp-wide synchronisation
  WarpState state = WarpState::Ready;
  uint32_t barrier = 0, barrierThreads = 0, barrierMask = 0, barrierPredicate = 0, barrierResult = 0;
  const Decoded *barrierAt = nullptr;
  Fiber *fiber = nullptr;
};

/// Who wrote and read a granule of shared memory last; stale unless the epoch is the current one.
struct SharedShadow {
  uint64_t writeEpoch = 0, readEpoch = 0; ///< core-wide, never repeat
  uint32_t writeWarpEpoch = 0, readWarpEpoch = 0;
  uint16_t writer = 0, reader = 0;
  bool writeAtomic = false, manyReaders = false;
};

/// One host thread's part of a launch: a block at a time.
struct Core {
  explicit Core(Launch &launch);
  ~Core();
  void runBlock(uint64_t linear);

  Launch &launch;
  uint64_t blockIndex = 0;
  uint32_t blockEpoch = 0; ///< barriers of this block so far
  uint64_t epoch = 1;      ///< barriers and blocks of this core so far
  uint64_t blockStart = 1; ///< epoch at which the block began
  std::vector<Warp> warps;
  std::vector<uint8_t> shared, local;
  std::vector<SharedShadow> sharedShadow;
  std::vector<uint64_t> sharedWritten; ///< epoch >= blockStart: written in this block
  std::vector<uint8_t> localWritten;
  std::vector<std::unique_ptr<Fiber>> fibers;
  Counters counters;
  std::vector<uint64_t> instructionCounts;
  bool stopped = false; ///< the block cannot go on

private:
  void runWithFibers();
  bool releaseBarriers();
};

/// One grid.
struct Launch {
  const EmulatorOptions &options;
  const LaunchRequest &request;
  const Program &program;
  const Kernel &kernel;
  WarpFunction code;
  std::vector<std::unique_ptr<Region>> &regions;
  FindingList &findings;
  std::vector<Window> windows = {}; ///< by region
  std::vector<uint8_t> parameters = {};
  unsigned globalShift = 0, sharedShift = 0; ///< log2 of the granules
  uint64_t sharedBytes = 0;
  bool fibers = false;
  std::atomic<uint64_t> nextBlock = 0;
  llvm::DenseSet<const Decoded *> firstGuesses = {}; ///< loads whose value a cas of the same address is to replace
  std::atomic<bool> stop = false;
  double deadline = 0; ///< seconds of the steady clock; 0: none
};

/// Where a lane's bytes lie, or nothing.
struct Place {
  uint8_t *data = nullptr;
  Space space = Space::Global;
  uint32_t region = 0;
  uint64_t offset = 0;
};

enum class Access : uint8_t { Read, Write, Atomic };

inline Warp &warpOf(WarpContext *context) { return *static_cast<Warp *>(context); }

/// Finds, checks and marks `bytes` bytes at a lane's address. Reports what is wrong; nothing if there is no memory to
/// use.
Place accessLane(Warp &warp, const Decoded &at, unsigned lane, uint64_t address, uint64_t bytes, Access access);
Place accessLane(Warp &warp, const Decoded &at, Space space, unsigned lane, uint64_t address, uint64_t bytes,
                 Access access);

void machineLoad(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, void *out);
void machineStore(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, const void *in);
void machineAtomic(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, const void *b,
                   const void *c, void *out);
uint32_t machineBarrier(WarpContext *context, const Decoded *at, uint32_t mask, uint32_t id, uint32_t count,
                        uint32_t predicate);
void machineWarpSync(WarpContext *context, const Decoded *at, uint32_t mask, const uint32_t *members);
void machineCollective(WarpContext *context, const Decoded *at, uint32_t mask, const void *const *operands,
                       void *const *results);
void machineBranch(WarpContext *context, const Decoded *at, uint32_t active, uint32_t taken);
bool machineTick(WarpContext *context, const Decoded *at);
void machineTrap(WarpContext *context, const Decoded *at, uint32_t mask);

/// Reports at the thread of `lane`.
void reportFinding(Warp &warp, const Decoded &at, unsigned lane, FindingKind kind, std::string message);
/// Counts sectors or bank conflicts of one warp-wide request.
void countRequest(Warp &warp, const Decoded &at, Space space, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                  bool isStore);

} // namespace hloc::emulator
