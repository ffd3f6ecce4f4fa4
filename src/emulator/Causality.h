#pragma once
// What each thread of a block knows to have happened: the order that barriers, fences and strong accesses make. Used
// for kernels with more than barriers of the whole block (needsCausality), whose blocks all run on one host thread.
//
// A warp has a clock that ticks whenever one of its lanes lets others know of what it did. What a thread did is dated
// by block, warp, lane, clock, and the number of barriers of the whole block before it (epoch). A View is a set of
// dates: of each block all epochs before one, and of some warps what each lane did up to a time of the clock.
//
//   lane 3 of warp 0 stores x at time 5; bar.warp.sync: all lanes know {block 0: warp 0 up to 5}, the clock is 6.
//   Lane 0 fences at 6, stores to the flag:             the flag carries   {block 0: warp 0 up to 5, lane 0 up to 6}
//   Block 1 polls the flag and fences:                  and so block 1 knows that x was stored.
//
// Views are shared and never change.

#include "Program.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"

#include <array>

namespace hloc::emulator {

/// What some lanes of a warp did at one time, with one kind of access.
struct Trace {
  uint64_t block = 0;
  uint32_t epoch = 0, clock = 0;
  uint32_t lanes = 0;  ///< 0: nobody
  uint32_t serial = 0; ///< of writes of one place; reads: of the last write that they saw
  uint16_t warp = 0;
  bool strong = false;
  Scope scope = Scope::Device; ///< if it is strong
  bool readsToo = false;       ///< a write that saw the one before it
  /// A plain load or store of shared memory, though strong (.volatile, .relaxed), that the lanes of its own warp have
  /// to be in order with: what it reads, or leaves, depends on which of them comes first.
  bool needsLaneOrder = false;
  unsigned thread() const { return warp * 32u + unsigned(llvm::countr_zero(lanes)); }
};

class View;
using ViewRef = llvm::IntrusiveRefCntPtr<const View>;

class View : public llvm::RefCountedBase<View> {
public:
  /// Of each block; so a view that has all epochs before this one of a block only says that it has begun.
  static constexpr uint32_t firstEpoch = 1;
  bool has(const Trace &trace) const;
  bool hasBegun(uint64_t block) const;
  /// Null views are empty.
  static ViewRef join(const ViewRef &a, const ViewRef &b);
  /// `view`, and what `lanes` of a warp did up to `clock`.
  static ViewRef with(const ViewRef &view, uint64_t block, uint32_t warp, uint32_t lanes, uint32_t clock);
  /// `view`, and all that the block did in epochs before `epoch`.
  static ViewRef withEpochs(const ViewRef &view, uint64_t block, uint32_t epoch);
  /// `view`, and that the block has begun.
  static ViewRef begun(const ViewRef &view, uint64_t block);
  /// `view` without what lanes of that warp did since the last barrier of its whole block.
  static ViewRef withoutWarp(const ViewRef &view, uint64_t block, uint32_t warp);

private:
  struct WarpTimes : llvm::RefCountedBase<WarpTimes> {
    struct Row {
      uint32_t warp;
      std::array<uint32_t, 32> clocks;
    };
    llvm::SmallVector<Row, 1> rows; ///< by warp
  };
  struct BlockTimes {
    uint32_t epochs = 0; ///< all before this one
    llvm::IntrusiveRefCntPtr<const WarpTimes> warps;
  };
  static constexpr uint64_t blocksOfChunk = 16;
  struct Chunk : llvm::RefCountedBase<Chunk> {
    std::array<BlockTimes, blocksOfChunk> blocks;
  };
  using ChunkRef = llvm::IntrusiveRefCntPtr<const Chunk>;
  using WarpTimesRef = llvm::IntrusiveRefCntPtr<const WarpTimes>;

  const BlockTimes *find(uint64_t block) const;
  static WarpTimesRef actorsOf(const WarpTimesRef &times);
  static WarpTimesRef join(const WarpTimesRef &a, const WarpTimesRef &b);
  static BlockTimes join(const BlockTimes &a, const BlockTimes &b);
  static ChunkRef join(const ChunkRef &a, const ChunkRef &b);
  static ViewRef withBlock(const ViewRef &view, uint64_t block, const BlockTimes &times);

  llvm::SmallVector<std::pair<uint64_t, ChunkRef>, 1> chunks; ///< by number of the chunk
};

/// What the writes of one place carry for those who read it.
struct Message {
  std::array<ViewRef, numScopes> views; ///< for threads of the writer's block, of its cluster, of the device
  ViewRef fenced;                       ///< of all, what the asynchronous proxy sees
  uint64_t block = ~0ull;
  uint32_t thread = ~0u; ///< that wrote last
};

/// What threads hand to those who observe the completion of a phase of an mbarrier.
struct Handover {
  ViewRef known, fenced; ///< `fenced`: what the asynchronous proxy sees, too
  void join(const Handover &other) {
    known = View::join(known, other.known);
    fenced = View::join(fenced, other.fenced);
  }
};

// Asynchronous accesses are dated by actors of their own, in the place of a warp: nobody knows of them before he has
// observed that they are complete, the thread that issued them neither.
inline constexpr uint16_t firstActor = 32;      ///< warps come before
inline constexpr uint16_t actorsOfReads = 32;   ///< + warp: its threads' bulk groups, by group, what they read
inline constexpr uint16_t actorsOfWrites = 64;  ///< + warp: what they write
inline constexpr uint16_t actorsOfGroups = 96;  ///< + warpgroup: its wgmma, by their number
inline constexpr uint16_t actorsOfPhases = 104; ///< + n: of 32 mbarriers, a lane each, by phase
inline bool isAsynchronous(const Trace &trace) { return trace.warp >= firstActor; }
/// Of what is over at time `clock` of an actor's lane.
Trace asynchronousDate(uint64_t block, uint16_t actor, unsigned lane, uint32_t clock);

/// By lane: the lanes of its warp from which it gets a value.
using LaneSources = std::array<uint32_t, 32>;

/// The threads of one resident block.
class BlockCausality {
public:
  /// `cluster`: all its blocks, this one among them.
  void begin(uint64_t block, unsigned numWarps, llvm::ArrayRef<uint64_t> cluster);
  /// Whether a scope of this block holds threads of the other one.
  bool isWithin(Scope scope, uint64_t otherBlock) const;
  Trace date(uint32_t warp, uint32_t lanes) const;
  bool knows(uint32_t warp, unsigned lane, const Trace &trace) const;
  /// Whether an atomic of this thread has seen what a fence after the trace let go, though no fence of its own follows.
  bool guesses(uint32_t warp, unsigned lane, const Trace &trace) const;

  /// `whole`: the lanes are all of the warp that live.
  void fence(uint32_t warp, uint32_t lanes, bool whole, const Decoded &at);
  /// bar.warp.sync: `lanes` wait for each other.
  void syncLanes(uint32_t warp, uint32_t lanes, bool whole);
  /// Any collective that carries values.
  void endReads(uint32_t warp, const LaneSources &sources);
  /// Whether a lane has got values, directly or not, from all lanes of its own warp that the trace is of since then.
  bool isReadOver(uint32_t warp, unsigned lane, const Trace &trace) const;
  /// A collective that carries what strong reads brought: each lane learns what its sources know of other warps, but
  /// nothing of what lanes of its own warp did.
  void tellLanes(uint32_t warp, const LaneSources &sources);
  void arrive(uint32_t barrier, uint32_t warp, uint32_t lanes);
  /// fence.proxy.async: the asynchronous proxy sees what these threads know.
  void fenceProxies(uint32_t warp, uint32_t lanes, bool whole);
  /// Whether the asynchronous proxy sees a write when this thread has it read or written.
  bool isFenced(uint32_t warp, unsigned lane, const Trace &write) const;
  /// What `lanes` did and know is handed over.
  void release(uint32_t warp, uint32_t lanes, Handover &handover);
  void acquire(uint32_t warp, uint32_t lanes, bool whole, const Handover &handover);
  /// `waiting`: the warps that go on; `all`: that is all of the block.
  void complete(uint32_t barrier, uint32_t waiting, bool all);
  /// barrier.cluster.arrive: what the lanes tell, and that their block has begun. Without `releases`, what their fences
  /// let go.
  Handover arriveAtCluster(uint32_t warp, uint32_t lanes, bool releases);
  /// What these lanes know together, and what they did.
  ViewRef knownBy(uint32_t warp, uint32_t lanes) const;
  bool knowsBegun(uint32_t warp, unsigned lane, uint64_t otherBlock) const;
  /// A strong read; `isAtomic`: by an atomic operation.
  void receive(uint32_t warp, unsigned lane, const Decoded &at, const Message &message, bool isAtomic);
  void send(uint32_t warp, unsigned lane, const Decoded &at, Message &message, bool isAtomic);

private:
  /// What a fence let go: the view, and what the lane itself did up to `clock` (0: nothing).
  struct Released {
    ViewRef view;
    uint32_t clock = 0;
  };
  struct Knowledge {
    ViewRef known;
    ViewRef fenced;                           ///< of it, what the asynchronous proxy sees
    std::array<Released, numScopes> released; ///< by the last fence of this scope or a wider one
    std::array<ViewRef, numScopes> read;      ///< what strong reads have brought, known after such a fence
    ViewRef seen;                             ///< what atomics have brought
    std::array<ViewRef, numScopes> last;      ///< what came last, to the instruction `lastAt`
    const Decoded *lastAt = nullptr;
  };
  struct WarpKnowledge {
    uint32_t clock = 1;
    bool uniform = true; ///< all lanes know what `common` says
    Knowledge common;
    std::unique_ptr<std::array<Knowledge, 32>> lanes;
    using Clocks = std::array<uint32_t, 32>;
    std::unique_ptr<std::array<Clocks, 32>> heard; ///< by lane, of each other lane: what that did up to this time
  };

  const Knowledge &of(uint32_t warp, unsigned lane) const;
  Knowledge &change(uint32_t warp, unsigned lane);
  /// What `lanes` know together.
  Knowledge gather(uint32_t warp, uint32_t lanes) const;
  void merge(Knowledge &into, const Knowledge &from) const;
  ViewRef open(const Released &released, uint32_t warp, uint32_t lanes) const;

  uint64_t block = 0;
  llvm::SmallVector<uint64_t, 1> cluster;
  uint32_t epoch = 0;
  std::vector<WarpKnowledge> warps;
  std::array<Knowledge, 16> barriers;
};

/// Whether the instruction is of the asynchronous machine: mbarriers, copies that complete on them, wgmma.
bool isAsynchronous(const Decoded &instruction);

/// Whether barriers of the whole block do not tell all about the order of its accesses.
bool needsCausality(const Kernel &kernel);

/// Shuffles, votes, matches and reductions of values that are computed from what strong reads brought: whoever gets
/// such a value cannot have gone on before the read was done.
llvm::DenseSet<const Decoded *> findTellingCollectives(const Kernel &kernel);

} // namespace hloc::emulator
