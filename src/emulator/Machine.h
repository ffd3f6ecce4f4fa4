#pragma once
// The machine behind translated code: memory with its shadows, warps, blocks, barriers, counters. One Launch runs one
// grid; each host thread has a Cluster (Cluster.h), whose Cores run the blocks of one cluster at a time.
//
// Shadows, for the checks. Who wrote and who read: an Owner (Shadow.h) a granule, which is the narrowest access of the
// kernel to a space, so that two accesses share a granule only if they overlap; in global memory one for 32 granules
// where that is enough. What was written at all: a byte a byte for global and local memory, the serial number of the
// block a granule for shared memory.

#include "AsyncCopies.h"
#include "AsyncProxy.h"
#include "Findings.h"
#include "Mbarrier.h"
#include "Polling.h"
#include "RegisterPressure.h"
#include "Shadow.h"
#include "TensorMap.h"
#include "Traces.h"
#include "WarpAbi.h"
#include "Warpgroups.h"

#include "hloc/emulator/Emulator.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>

namespace hloc::emulator {

struct Launch;
struct Core;
struct Cluster;

/// Branches back between two looks at the time, and in kernels that poll, between two turns of a warp.
inline constexpr int64_t budgetOfTick = 1 << 16, budgetOfPolling = 32;

struct FreeMemory {
  void operator()(void *memory) const { std::free(memory); }
};
/// Memory from calloc, which costs nothing until it is touched.
template <typename T> using Zeroed = std::unique_ptr<T[], FreeMemory>;
enum class Use : uint8_t { Dense, Sparse };
/// Asks for large pages, which spares most page faults.
void expectDenseUse(void *memory, uint64_t bytes);
template <typename T> Zeroed<T> allocateZeroed(uint64_t count, Use use) {
  Zeroed<T> memory(static_cast<T *>(std::calloc(count, sizeof(T))));
  if (memory && use == Use::Dense)
    expectDenseUse(memory.get(), count * sizeof(T));
  return memory;
}

enum class Access : uint8_t { Read, Write, Atomic };

/// By region (0 for shared memory) and offset.
using Messages = llvm::DenseMap<std::pair<uint32_t, uint64_t>, Message>;

/// Memory of one buffer, or the module's variables.
struct Region {
  std::string name;
  Zeroed<uint8_t> storage; ///< null: lent
  uint8_t *data = nullptr; ///< 256-byte aligned, if not lent; null: there was no memory, and `bytes` is 0
  uint64_t bytes = 0;
  bool complete = false;   ///< every byte has been written; `written` is empty
  Zeroed<uint8_t> written; ///< one byte a byte: 1 if somebody wrote it
};

/// What ld.global.nc has read of a window. PTX wants that memory to be read-only for as long as the kernel runs.
struct NonCoherentReads {
  std::atomic<bool> any = false;
  Zeroed<uint8_t> granules; ///< 1: read
};

/// What kernels that were launched before, and need not be complete when this launch begins, do with a region.
struct EarlierSlice {
  uint64_t begin = 0, end = 0;
  bool written = false;
  std::string kernel;
};

/// What one launch may do with a region.
struct Window {
  struct Slice {
    uint64_t begin = 0, end = 0;
    bool writable = false;
  };
  std::vector<Slice> slices; ///< empty: not an argument
  std::vector<EarlierSlice> earlier;
  uint8_t *data = nullptr; ///< of the region
  uint64_t bytes = 0;
  bool tracked = false;                          ///< some slice is writable, so races are possible, and looked for
  bool watched = false;                          ///< tracked, or some of its bytes may be nobody's
  Zeroed<Owners<false>> lines, granules;         ///< of the shadow, if it is tracked for races
  Zeroed<Cell> cells;                            ///< instead, in causal launches
  std::unique_ptr<NonCoherentReads> nonCoherent; ///< if it is tracked, and the kernel has such loads
  Lines shadow(bool concurrent) const { return {lines.get(), granules.get(), concurrent}; }
};

/// Waiting: at a barrier of the block. Blocked: for a phase of an mbarrier. Held: for something else that other warps
/// of its block do, who then make it ready.
enum class WarpState : uint8_t { Ready, Waiting, Blocked, Held, Done };

/// What a warp that is held waits for, in case that it never comes.
struct Hold {
  const Decoded *at = nullptr;
  FindingKind kind = FindingKind::Deadlock;
  std::string what;
};

class Fiber;

struct Warp : WarpContext {
  Core *core = nullptr;
  uint32_t existing = 0; ///< lanes that exist in the block
  WarpState state = WarpState::Ready;
  uint32_t barrier = 0, barrierMask = 0, barrierResult = 0; ///< while waiting, and what it brought
  const Decoded *barrierAt = nullptr;
  Fiber *fiber = nullptr;
  const Decoded *spinsAt = nullptr; ///< the branch back of the loop in which it last waited for others
  uint32_t arrivedAtCluster = 0;    ///< lanes that have come to the barrier of the cluster, which is not complete
  uint32_t mayLeaveCluster = 0;     ///< lanes that have come to one that is complete, and have not waited yet
  uint32_t waitedForGrids = 0;      ///< lanes that have waited for the grids before, or come after some that have
  AsyncCopies copies;
  uint64_t waitsFor = 0; ///< while blocked: offset of the mbarrier, and
  const Decoded *waitsAt = nullptr;
  LastWait lastWait;
  Hold hold;
  uint32_t registers = 0;   ///< of each of its threads, if setmaxnreg has an effect
  uint64_t numSettings = 0; ///< setmaxnreg executed
  WarpMultiplies multiplies;
};

/// One of the 16 barriers of a block: who came since it was complete last.
struct BarrierState {
  uint32_t arrived = 0;    ///< threads
  uint32_t expected = 0;   ///< threads; 0: all that live
  uint32_t came = 0;       ///< warps, bit by bit
  uint32_t waiting = 0;    ///< of them, those that did not only arrive
  uint32_t asked = 0;      ///< threads with a predicate
  uint32_t predicates = 0; ///< of them, those for which it was true
};

inline constexpr unsigned numBarriers = 16;

/// What the bytes of a tensor map were when threads fenced for it.
struct AcquiredMap {
  uint32_t region = 0;
  uint64_t offset = 0;
  TensorMapBytes bytes = {};
  Trace date;
};

/// What a thread of another block of the cluster did last in shared memory of this one.
struct RemoteAccess {
  Trace trace; ///< of one lane; of none: nothing
  const Decoded *at = nullptr;
  Access access = {};
  uint64_t offset = 0;
};

/// A block of a cluster, one after the other.
struct Core {
  Core(Cluster &cluster, Launch &launch, uint32_t rank);
  ~Core();
  bool valid() const; ///< there was memory for all stacks
  /// Runs a block whose warps wait for nobody.
  void run();
  /// Makes everything ready for a block of the grid; `clusterAt`: which cluster it is in, `ofCluster`: all blocks of
  /// that, by rank.
  void begin(const Dim3 &clusterAt, llvm::ArrayRef<uint64_t> ofCluster);
  /// Lets each warp run until it waits or spins, or if there is none, those that wait for all that live at a barrier of
  /// the block; false if there are none of these either.
  bool step();
  /// Nobody will ever let those go that wait at barriers of the block.
  void reportDeadlocks();
  /// Ends the launch if it took too long.
  void keepTime();

  Cluster &cluster;
  Launch &launch;
  const uint32_t rank; ///< in its cluster
  uint64_t blockIndex = 0;
  uint8_t blockSerial = 0; ///< of this core, never 0; a new one for each block
  uint32_t blockEpoch = 0; ///< barriers of this block so far
  uint64_t epoch = 0;      ///< scope of shared memory, never 0; a new one after each barrier and for each block
  std::vector<Warp> warps;
  std::vector<uint32_t> order; ///< of the warps
  std::array<BarrierState, numBarriers> barriers;
  std::vector<Warpgroup> warpgroups; ///< by warp / 4, if the launch has them
  /// That setmaxnreg.dec gave back. Warps w, w + 4, ... share a part of the multiprocessor and its registers.
  std::array<uint64_t, 4> freeRegisters = {};
  bool ended = false; ///< all its warps have
  std::vector<uint8_t> shared, local;
  BlockCausality causality; ///< in causal launches, with the next three
  std::vector<Cell> sharedCells;
  Traces sharedTraces;
  Messages sharedMessages;
  AsyncShadow async;
  Transfers transfers;
  Mbarriers mbarriers;
  std::vector<std::array<RemoteAccess, warpLanes>> remoteAccesses; ///< by rank and warp; in causal launches
  ViewRef knownAtEnd;                                              ///< by those of its warps that have ended
  std::vector<Trace> gridWaits;          ///< griddepcontrol.wait of its threads, a lane each; in causal launches
  std::optional<uint32_t> firstGridWait; ///< blockEpoch of the first one
  std::vector<uint32_t> sharedWriters, sharedReaders; ///< Owner by granule
  std::vector<uint8_t> sharedWritten;                 ///< blockSerial: written in this block
  std::vector<uint16_t> sharedOpen;                   ///< copies in flight to each granule; empty: it is not looked at
  uint64_t numOpen = 0;                               ///< of all warps, lane by lane
  std::vector<std::pair<TensorMapBytes, std::unique_ptr<TensorMap>>> tensorMaps; ///< that it has used, by their bytes
  std::vector<uint8_t> localWritten;
  std::vector<std::unique_ptr<Fiber>> fibers;
  Counters counters;
  std::vector<uint64_t> instructionCounts; ///< two per instruction of the kernel
  std::vector<LineCounters> requestCounts; ///< by instruction, what each asks of memory

  /// A phase of the mbarrier at this offset is over.
  void wake(uint64_t mbarrier);
  /// RegisterHazards.h, remembered.
  bool conflicts(const Decoded &earlier, const Decoded &later);
  /// Lets the warps that wait at the barrier go, and empties it.
  void completeBarrier(uint32_t id);

private:
  llvm::DenseMap<std::pair<const Decoded *, const Decoded *>, bool> knownConflicts;
  void placeWarps();
  void nextEpoch();
  void nextSerial();
  void clearReserved(uint64_t at); ///< Kernel::reservedShared
  bool releaseBarriers();
  uint32_t waitingThreads() const;
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
  uint64_t localStride = 0;               ///< between the local memories of neighbouring threads
  uint32_t registersPerThread = 0;        ///< at its begin; 0: setmaxnreg has no effect
  uint64_t fiberBytes = 0;                ///< stack of a warp that runs on its own one
  bool fibers = false;                    ///< warps run on stacks of their own
  bool together = false;                  ///< blocks run side by side on one host thread
  bool preempts = false;                  ///< warps give way before strong accesses now and then
  uint64_t random = 1;                    ///< state, for `preempts`
  uint64_t progress = 0;                  ///< rises when memory changes, a warp ends, a barrier is complete (together)
  uint64_t idleRounds = 0;                ///< of the scheduler, in which it did not
  uint64_t lastProgress = 0, gaveWay = 0; ///< how often a warp gave way since `progress` was that
  PollingLoops polling = {};
  bool concurrent = false;    ///< several host threads run its blocks
  Dim3 cluster = {};          ///< blocks of each
  bool hasClusters = false;   ///< it was asked for them
  bool hasWarpgroups = false; ///< the kernel has wgmma or setmaxnreg
  bool asynchronous = false;  ///< the kernel has mbarriers, and what completes on them
  bool causal = false;        ///< races are judged by what threads know of each other, not by barriers alone
  Traces traces = {};         ///< of global memory, in causal launches
  Messages messages = Messages();
  std::vector<AcquiredMap> acquiredMaps = {}; ///< in causal launches
  std::atomic<uint64_t> nextCluster = 0;
  /// A thread has waited for the grids before; one that had not has let those after begin.
  std::atomic<bool> waitsForGrids = false, letsDependentsGo = false;
  RegisterPressures pressure = RegisterPressures();  ///< if setmaxnreg has an effect
  llvm::DenseSet<const Decoded *> telling = {};      ///< findTellingCollectives, in causal launches
  llvm::DenseSet<const Decoded *> firstGuesses = {}; ///< loads whose value a cas of the same address is to replace
  /// Loads that tell whether a min or max of the same address would change anything. A value that has become old since
  /// leads to an update too many, never to one that is missing.
  llvm::DenseSet<const Decoded *> updateTests = {};
  std::atomic<bool> stop = false;
  double deadline = 0; ///< seconds of the steady clock; 0: none
};

double secondsNow(); ///< of the steady clock

/// Where a lane's bytes lie, or nothing.
struct Place {
  uint8_t *data = nullptr;
  Space space = Space::Global;
  uint32_t region = 0;
  uint64_t offset = 0;
  uint32_t block = 0;    ///< of shared memory: its rank in the cluster plus 1, or 0 for that of the thread
  Core *owner = nullptr; ///< the same, once it has been admitted
};

/// Where a request of a warp is checked against the shadows, lane by lane or as a whole.
class Checker {
public:
  /// `stored`: what each lane is about to write, elements x lanes; nothing if it is not known.
  Checker(Warp &warp, const Decoded &at, Access access, const uint8_t *stored = nullptr);
  void lane(const Place &place, unsigned lane, uint64_t bytes);
  /// All lanes of `mask`; `base` is the place of the address `lowest`. No atomics.
  void lanes(const Place &base, uint64_t lowest, uint32_t mask, const uint64_t *addresses, uint64_t bytes);
  /// All lanes, one after the other from `place` on. No atomics.
  void run(const Place &place, uint64_t bytes);
  /// All lanes of `mask` read the same bytes.
  void broadcast(const Place &place, uint32_t mask, uint64_t bytes);
  /// Lanes that load, of which several have one address: as many broadcasts as there are addresses.
  /// A lane reads a row of a matrix in shared memory. False, with nothing noted, where a closer look is needed: lane().
  bool readRow(uint64_t offset, unsigned lane);
  static constexpr uint64_t rowBytes = 16;
  /// Of asynchronous accesses, whose order is checked elsewhere.
  void requireWritten(const Place &place, unsigned lane, uint64_t bytes) {
    if (readsMatter)
      checkWritten(place, lane, bytes);
  }
  void markWritten(const Place &place, unsigned lane, uint64_t bytes);
  /// A copy is issued: a write at some time from now on.
  void issueCopy(const Place &place, unsigned lane, uint64_t bytes, const uint8_t *data);
  /// Its thread has waited for it, and sees what it wrote.
  void completeCopy(const Place &place, unsigned lane, uint64_t bytes);
  /// Who was there last, and that this lane is now.
  void touch(const Place &place, unsigned lane, uint64_t bytes);
  void broadcasts(const Place &base, uint64_t lowest, uint32_t mask, const uint64_t *addresses, uint64_t bytes);
  /// Two lanes of one store that write different values to one place: which one stays is open. Returns the lanes that
  /// write where a lower lane does.
  uint32_t clashes(uint32_t mask, const uint64_t *addresses, const uint8_t *in, unsigned width);

private:
  template <bool shared> typename Owner<shared>::Word owner(unsigned lane) const;
  /// The block whose shared memory it is.
  Core &home(const Place &place) const { return place.owner ? *place.owner : *warp.core; }
  void checkWritten(const Place &place, unsigned lane, uint64_t bytes);
  bool tracks(const Place &place) const;
  void track(const Place &place, uint64_t bytes, unsigned lane, bool many);
  void trackShared(const Place &place, uint64_t bytes, uint32_t now);
  void trackGlobal(const Place &place, uint64_t bytes, uint64_t now);
  void trackSharedRun(const Place &place, uint64_t bytes);
  void trackGlobalRun(const Place &place, uint64_t bytes);
  /// Nobody may touch what a copy in flight writes.
  void avoidCopies(const Place &place, unsigned lane, uint64_t bytes, const uint8_t *copied = nullptr);
  bool rewrites(const Place &place, uint64_t bytes, unsigned lane) const;
  template <class Track, class Check> void record(const Place &place, Track track, Check check);
  bool mayBeIncoherent(const Place &place) const;
  /// Whether a kernel that was launched before may still be at that region.
  bool isEarly(const Place &place) const {
    return place.space == Space::Global && !warp.core->launch.windows[place.region].earlier.empty();
  }
  void checkCoherence(const Place &place, unsigned lane, uint64_t bytes);
  bool meetProxy(Core &owner, const Place &place, uint64_t bytes, uint32_t lanes);
  /// The access of `lanes` to the same bytes, in causal launches.
  void follow(const Place &place, uint64_t bytes, uint32_t lanes);
  template <bool shared>
  typename Owners<shared>::Verdict enter(Owners<shared> &owners, const Place &place, uint64_t bytes,
                                         typename Owner<shared>::Word now) const;
  template <bool shared>
  void reportRace(const Place &place, typename Owner<shared>::Word now, const Owners<shared> &others, bool otherWrote);
  /// `otherBlock`: nothing for a thread of the same one.
  void reportRace(const Place &place, unsigned lane, unsigned otherThread, std::optional<uint64_t> otherBlock,
                  bool otherWrote);

  Warp &warp;
  const Decoded &at;
  Access access;
  const uint8_t *stored;
  bool uninit, races, synchronizes;
  bool ofUpdate;    ///< reads what others store beside what it stores
  bool readsMatter; ///< must have been written
};

// In causal launches: what threads learn and tell by strong accesses, fences, waiting for lanes, and values of lanes.
void followStrong(Warp &warp, const Decoded &at, unsigned lane, const Place &place, bool reads, bool writes);
void followStrong(Warp &warp, const Decoded &at, uint32_t mask, const uint64_t *addresses, bool reads, bool writes);
void followFence(Warp &warp, const Decoded &at, uint32_t mask);
void followWarpSync(Warp &warp, uint32_t mask, const uint32_t *members);
void followCollective(Warp &warp, const Decoded &at, const LaneSources &sources);

/// griddepcontrol.
void runGridDependency(Warp &warp, const Decoded &at, uint32_t mask);
/// Reports an access to what a kernel that need not be complete yet writes, or a write to what it reads.
void avoidEarlierGrids(Warp &warp, const Decoded &at, unsigned lane, const Place &place, uint64_t bytes, Access access);

/// The launches before the next one that need not be complete when it begins, if it is programmatic.
class EarlierGrids {
public:
  /// The launch is the next one.
  void enter(Launch &launch);
  /// It is over.
  void add(const Launch &launch);
  /// Something else was done that waits for all of them.
  void clear() { slices.clear(); }

private:
  std::vector<std::pair<uint32_t, EarlierSlice>> slices; ///< by region
};

/// "byte 12 of `p0`", for messages.
std::string describe(const Warp &warp, const Place &place);
/// The state space and offset behind an address; the region may not exist.
void locate(Space space, uint64_t address, Place &place);

inline Warp &warpOf(WarpContext *context) { return *static_cast<Warp *>(context); }

/// Finds the memory of a place if the bytes may be accessed. Local memory: that of lane 0.
bool admit(const Warp &warp, Place &place, uint64_t bytes, Access access);

/// Before a strong access: another warp may come first.
void giveWay(Warp &warp);
/// True for about one call in four, by the launch's own random numbers.
bool oneInFour(Launch &launch);

/// to := to combined with from, one element as atom and red do it.
void combineInPlace(const Type &type, Mode mode, uint8_t *to, const uint8_t *from, bool flushes);

/// The part of an access that a check is about.
struct ByteRange {
  uint64_t begin = 0, bytes = 0;
};

/// Finds `bytes` bytes at a lane's address; reports why there is no memory to use.
Place placeLane(Warp &warp, const Decoded &at, Space space, unsigned lane, uint64_t address, uint64_t bytes,
                Access access);

/// The same wherever it begins and however long it is.
Place placeRun(Warp &warp, const Decoded &at, Space space, unsigned lane, uint64_t address, uint64_t bytes,
               Access access);

/// Finds, checks and marks `bytes` bytes at a lane's address. Reports what is wrong; nothing if there is no memory to
/// use.
Place accessLane(Warp &warp, const Decoded &at, unsigned lane, uint64_t address, uint64_t bytes, Access access);
Place accessLane(Warp &warp, const Decoded &at, Space space, unsigned lane, uint64_t address, uint64_t bytes,
                 Access access, std::optional<ByteRange> changed = std::nullopt, const uint8_t *stored = nullptr);

void machineLoad(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, void *out);
void machineStore(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, const void *in);
void machineAtomic(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, const void *b,
                   const void *c, void *out);
uint32_t machineBarrier(WarpContext *context, const Decoded *at, uint32_t mask, uint32_t id, uint32_t count,
                        uint32_t predicate);
/// Whether all members of warp-wide instructions are there.
void checkMembers(Warp &warp, const Decoded &at, uint32_t mask, const uint32_t *members);
void machineWarpSync(WarpContext *context, const Decoded *at, uint32_t mask, const uint32_t *members);
void machineCollective(WarpContext *context, const Decoded *at, uint32_t mask, const void *const *operands,
                       void *const *results);
void machineTouch(WarpContext *context, const Decoded *at, uint32_t mask);
void machineBranch(WarpContext *context, const Decoded *at, uint32_t active, uint32_t taken);
Tick machineTick(WarpContext *context, const Decoded *at);
void machineTrap(WarpContext *context, const Decoded *at, uint32_t mask);

/// A step of the warp: bytes of its copies that land now do so.
void landCopies(Warp &warp);
/// The warp has ended: copies that nobody waited for are findings.
void abandonCopies(Warp &warp);
/// The warp has ended: wgmmas that it did not wait for are findings.
void abandonMultiplies(Warp &warp);
/// Whether the registers of a wgmma are its own when it is issued.
void checkRegisters(Warp &warp, const Decoded &at);
/// Registers of each thread when a kernel with setmaxnreg begins; 0 where ptxas could not know, and ignores it.
uint32_t registersPerThread(const Kernel &kernel);
/// The warp has ended: whether it has executed the setmaxnreg that others of its warpgroup have.
void checkSettings(Warp &warp);
/// Suspends the warp until `isOver` says so; whoever may have brought that about calls release().
void holdUntil(Warp &warp, Hold hold, llvm::function_ref<bool()> isOver);
/// That it never ends.
void reportHold(Warp &warp);
/// Warps of the block that are held look again.
void release(Core &core);
/// A copy in flight of the block to some of the bytes, but for those of the same bytes to the same place.
struct OpenCopy {
  const Decoded *at = nullptr;
  uint32_t thread = 0;
};
OpenCopy findOpenCopy(const Core &core, uint64_t offset, uint64_t bytes, const uint8_t *unless);

/// Reports at the thread of `lane`. `message` is called for the first of its kind and line only.
void reportFinding(Warp &warp, const Decoded &at, unsigned lane, FindingKind kind,
                   llvm::function_ref<std::string()> message, bool harmlessIfUnused = false, bool ofUpdate = false);
void reportFinding(Warp &warp, const Decoded &at, unsigned lane, FindingKind kind, std::string message);
/// What the lanes of a cp.async copy: `bytes` to shared memory, of which the first `read` come from global memory.
struct CopiedLanes {
  uint64_t to[warpLanes], from[warpLanes];
  unsigned read[warpLanes];
  unsigned bytes;
};
/// As a load and a store: the sectors that are read, and the passes of the writes.
void countCopies(Warp &warp, const Decoded &at, uint32_t mask, const CopiedLanes &copies);
/// What a warp's part of a wgmma reads of shared memory, a descriptor's `a` included.
void countMultiply(Warp &warp, const Decoded &at, bool readsA);
/// A request: the sectors that its pieces inside the tensor touch, and 128 bytes of shared memory a pass.
void countBox(Warp &warp, const Decoded &at, llvm::ArrayRef<TensorPiece> pieces, bool isStore);
/// Counts sectors or bank conflicts of one warp-wide request.
void countRequest(Warp &warp, const Decoded &at, Space space, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                  bool isStore);

} // namespace hloc::emulator
