// Warps, blocks and barriers of one launch.
#include "Machine.h"

#include "Cluster.h"
#include "Collective.h"
#include "Fiber.h"
#include "Scheduler.h"
#include "Undefined.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <chrono>
#include <cstring>
#include <sys/mman.h>

namespace hloc::emulator {

namespace {

Dim3 threadOf(const Warp &warp, unsigned lane) {
  return {warp.thread[0][lane], warp.thread[1][lane], warp.thread[2][lane]};
}

/// The sanitizer of function types reads a word before the function; translated code may begin its page.
[[clang::no_sanitize("function")]] void runWarp(Warp &warp) { warp.core->launch.code(&warp); }

} // namespace

void expectDenseUse(void *memory, uint64_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t page = uintptr_t(2) << 20;
  uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + page - 1) / page * page;
  uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

/// ", longer than 5 s", if it is known of the launch alone.
static std::string limitOf(const Launch &launch) {
  double seconds = launch.options.timeLimitSeconds;
  return seconds > 0 ? fmt::format(", longer than {} s", seconds) : "";
}

/// Short blocks never ask for the time themselves.
void Core::keepTime() {
  if (!launch.deadline || secondsNow() < launch.deadline || launch.stop.exchange(true))
    return;
  launch.findings.add(FindingKind::TimeLimit, 0, false, blockIndex, 0, [&] {
    Finding finding;
    finding.kind = FindingKind::TimeLimit;
    finding.kernel = launch.kernel.name;
    finding.block = {warps[0].block[0], warps[0].block[1], warps[0].block[2]};
    finding.message = fmt::format("kernel `{}` took too long{}; it got to block {} of {}", launch.kernel.name,
                                  limitOf(launch), blockIndex, launch.request.grid.count());
    return finding;
  });
}

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void reportFinding(Warp &warp, const Decoded &at, unsigned lane, FindingKind kind,
                   llvm::function_ref<std::string()> message, bool harmlessIfUnused, bool ofUpdate) {
  Launch &launch = warp.core->launch;
  if (harmlessIfUnused && launch.options.undefinedByte)
    return;
  launch.findings.add(kind, at.line, harmlessIfUnused, warp.core->blockIndex, warp.warp * warpLanes + lane, [&] {
    Finding finding;
    finding.kind = kind;
    finding.kernel = launch.kernel.name;
    finding.block = {warp.block[0], warp.block[1], warp.block[2]};
    finding.thread = threadOf(warp, lane);
    finding.line = at.line;
    finding.message = message();
    finding.hloName = launch.program.location(at);
    finding.harmlessIfUnused = harmlessIfUnused;
    finding.ofUpdate = ofUpdate;
    return finding;
  });
}

void reportFinding(Warp &warp, const Decoded &at, unsigned lane, FindingKind kind, std::string message) {
  reportFinding(warp, at, lane, kind, [&] { return message; });
}

/// What is the same for all blocks of the launch.
void Core::placeWarps() {
  const Dim3 &block = launch.request.block, clusters = clustersOf(launch);
  uint32_t threads = uint32_t(block.count());
  for (uint32_t w = 0; w < warps.size(); ++w) {
    Warp &warp = warps[w];
    warp.core = this;
    warp.warp = w;
    warp.numWarps = uint32_t(warps.size());
    warp.parameters = launch.parameters.data();
    warp.dynamicShared = launch.request.dynamicSharedBytes;
    warp.totalShared = uint32_t(launch.sharedBytes - (launch.kernel.reservedShared ? reservedSharedBytes : 0));
    warp.instructionCounts = launch.options.countEvents ? instructionCounts.data() : nullptr;
    const uint32_t sizes[] = {block.x, block.y, block.z};
    const uint32_t grid[] = {launch.request.grid.x, launch.request.grid.y, launch.request.grid.z};
    const uint32_t size[] = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
    const uint32_t gridClusters[] = {clusters.x, clusters.y, clusters.z};
    const uint32_t inCluster[] = {rank % size[0], rank / size[0] % size[1], rank / size[0] / size[1]};
    for (unsigned i = 0; i < 3; ++i) {
      warp.blockSize[i] = sizes[i];
      warp.gridSize[i] = grid[i];
      warp.clusterSize[i] = size[i];
      warp.gridClusters[i] = gridClusters[i];
      warp.blockOfCluster[i] = inCluster[i];
    }
    warp.rank = rank;
    warp.clusterBlocks = uint32_t(launch.cluster.count());
    warp.explicitCluster = launch.hasClusters;
    for (unsigned lane = 0; lane < warpLanes; ++lane) {
      uint32_t thread = w * warpLanes + lane;
      if (thread >= threads)
        break;
      warp.existing |= 1u << lane;
      warp.thread[0][lane] = thread % block.x;
      warp.thread[1][lane] = thread / block.x % block.y;
      warp.thread[2][lane] = thread / block.x / block.y;
    }
  }
}

Core::Core(Cluster &cluster, Launch &launch, uint32_t rank) : cluster(cluster), launch(launch), rank(rank) {
  warps.resize((launch.request.block.count() + warpLanes - 1) / warpLanes);
  counters.buffers.resize(launch.regions.size());
  if (launch.options.countEvents) {
    instructionCounts.assign(2 * launch.kernel.code.size(), 0);
    requestCounts.resize(launch.kernel.code.size());
  }
  placeWarps();
  shared.resize(launch.sharedBytes);
  uint64_t granules = (launch.sharedBytes >> launch.sharedShift) + 1;
  if (launch.causal) {
    sharedCells.resize(granules);
    remoteAccesses.resize(launch.cluster.count() * warps.size());
    if (launch.asynchronous)
      async.resize(launch.sharedBytes);
  } else if (launch.options.checkRaces) {
    sharedWriters.resize(granules);
    sharedReaders.resize(granules);
  }
  const bool copies = llvm::any_of(launch.kernel.code, [](const Decoded &d) { return d.opcode == Opcode::Cp; });
  if (copies && launch.options.checkRaces)
    sharedOpen.resize(granules);
  uint64_t localBytes = launch.localStride * warps.size() * warpLanes;
  local.resize(localBytes);
  if (launch.options.checkUninit) {
    sharedWritten.resize(granules);
    localWritten.resize(localBytes);
  }
  if (launch.fibers)
    for (Warp &warp : warps) {
      fibers.push_back(std::make_unique<Fiber>(launch.fiberBytes));
      warp.fiber = fibers.back().get();
    }
}

Core::~Core() = default;

bool Core::valid() const {
  return llvm::all_of(fibers, [](const std::unique_ptr<Fiber> &fiber) { return fiber->valid(); });
}

void Core::nextEpoch() {
  if (++epoch <= Owner<true>::lastScope)
    return;
  epoch = 1;
  std::fill(sharedWriters.begin(), sharedWriters.end(), 0);
  std::fill(sharedReaders.begin(), sharedReaders.end(), 0);
}

void Core::nextSerial() {
  if (++blockSerial)
    return;
  blockSerial = 1;
  std::fill(sharedWritten.begin(), sharedWritten.end(), 0);
}

void Core::run() {
  for (uint32_t w : order) {
    runWarp(warps[w]);
    warps[w].state = WarpState::Done;
    cluster.endWarp(warps[w]);
  }
}

void Core::clearReserved(uint64_t at) {
  std::memset(shared.data() + at, 0, reservedSharedBytes);
  if (launch.options.checkUninit)
    std::fill_n(sharedWritten.begin() + ptrdiff_t(at >> launch.sharedShift), reservedSharedBytes >> launch.sharedShift,
                blockSerial);
}

void Core::begin(const Dim3 &clusterAt, llvm::ArrayRef<uint64_t> ofCluster) {
  const Dim3 &grid = launch.request.grid;
  const uint64_t linear = ofCluster[rank];
  blockIndex = linear;
  ended = false;
  gridWaits.clear();
  firstGridWait.reset();
  blockEpoch = 0;
  nextSerial();
  nextEpoch();
  order.resize(warps.size());
  for (size_t w = 0; w < order.size(); ++w)
    order[w] = uint32_t(inOrder(launch.options.schedule, linear + 1, w, order.size()));
  barriers.fill({});
  if (launch.asynchronous) {
    transfers.begin(warps.size());
    mbarriers.clear();
    async.clear();
  }
  freeRegisters.fill(0);
  if (launch.hasWarpgroups)
    warpgroups.assign((warps.size() + warpsOfGroup - 1) / warpsOfGroup, Warpgroup());
  if (launch.causal) {
    causality.begin(linear, unsigned(warps.size()), ofCluster);
    std::fill(remoteAccesses.begin(), remoteAccesses.end(), std::array<RemoteAccess, warpLanes>());
    knownAtEnd = nullptr;
    std::fill(sharedCells.begin(), sharedCells.end(), Cell());
    sharedTraces.clear();
    sharedMessages.clear();
  }
  std::fill(localWritten.begin(), localWritten.end(), 0);
  if (launch.options.undefinedByte) {
    fillUndefined(launch.options, sharedWindow, shared.data(), shared.size(), 0);
    fillUndefined(launch.options, localWindow, local.data(), local.size(), 0);
  }
  if (launch.kernel.reservedShared)
    clearReserved(*launch.kernel.reservedShared);
  uint32_t at[] = {uint32_t(linear % grid.x), uint32_t(linear / grid.x % grid.y), uint32_t(linear / grid.x / grid.y)};
  const uint32_t ofGrid[] = {clusterAt.x, clusterAt.y, clusterAt.z};
  for (Warp &warp : warps) {
    std::copy(std::begin(at), std::end(at), warp.block);
    std::copy(std::begin(ofGrid), std::end(ofGrid), warp.cluster);
    warp.arrivedAtCluster = warp.mayLeaveCluster = warp.waitedForGrids = 0;
    warp.live = warp.existing;
    warp.budget = launch.together ? budgetOfPolling : budgetOfTick;
    warp.copies.clear();
    if (launch.hasWarpgroups)
      warp.multiplies = WarpMultiplies();
    warp.registers = launch.registersPerThread;
    warp.numSettings = 0;
    warp.state = WarpState::Ready;
  }
  ++counters.blocks;
  counters.warps += warps.size();
  for (Warp &warp : warps) {
    warp.spinsAt = nullptr;
    warp.lastWait = {};
    if (launch.fibers)
      warp.fiber->start(
          [](void *argument) {
            Warp &self = *static_cast<Warp *>(argument);
            runWarp(self);
            self.state = WarpState::Done;
            self.core->cluster.endWarp(self);
            if (self.core->launch.together)
              ++self.core->launch.progress;
          },
          &warp);
  }
}

bool Core::step() {
  bool ran = false;
  for (uint32_t w : order)
    if (warps[w].state == WarpState::Ready) {
      warps[w].fiber->resume();
      ran = true;
      if (launch.stop)
        return false;
    }
  return ran || releaseBarriers();
}

void Core::completeBarrier(uint32_t id) {
  const BarrierState state = barriers[id];
  barriers[id] = {};
  bool all = llvm::all_of(
      warps, [&](const Warp &w) { return !w.live || w.state == WarpState::Done || (state.waiting >> w.warp & 1); });
  if (all) {
    ++blockEpoch;
    nextEpoch();
  }
  if (launch.causal)
    causality.complete(id, state.waiting, all);
  ++counters.barriers;
  if (launch.together)
    ++launch.progress;
  for (Warp &warp : warps)
    if (warp.state == WarpState::Waiting && warp.barrier == id) {
      Mode mode = warp.barrierAt->mode;
      warp.barrierResult = mode == Mode::And  ? state.predicates == state.asked
                           : mode == Mode::Or ? state.predicates != 0
                                              : state.predicates;
      warp.state = WarpState::Ready;
    }
}

void Core::wake(uint64_t mbarrier) {
  if (launch.together)
    ++launch.progress;
  for (Warp &warp : warps)
    if (warp.state == WarpState::Blocked && warp.waitsFor == mbarrier)
      warp.state = WarpState::Ready;
}

uint32_t Core::waitingThreads() const {
  uint32_t threads = 0;
  for (const Warp &warp : warps)
    if (warp.state != WarpState::Ready && warp.state != WarpState::Done)
      threads += uint32_t(llvm::popcount(warp.live));
  return threads;
}

/// Every warp waits or is done. Lets those go that wait for all that live; false if there are none.
bool Core::releaseBarriers() {
  const uint32_t live = waitingThreads();
  bool released = false;
  for (uint32_t id = 0; id < numBarriers; ++id)
    if (barriers[id].arrived && !barriers[id].expected && barriers[id].arrived >= live) {
      completeBarrier(id);
      released = true;
    }
  return released;
}

void Core::reportDeadlocks() {
  const uint32_t live = waitingThreads();
  for (Warp &warp : warps)
    if (warp.state == WarpState::Blocked) {
      reportFinding(warp, *warp.waitsAt, unsigned(llvm::countr_zero(warp.live)) % warpLanes, FindingKind::Deadlock,
                    [&] { return "waits for ever " + describeWait(*this, warp.waitsFor); });
      launch.stop = true;
    } else if (warp.state == WarpState::Held) {
      reportHold(warp);
    } else if (warp.state == WarpState::Waiting && warp.barrier < numBarriers) {
      const BarrierState &state = barriers[warp.barrier];
      reportFinding(warp, *warp.barrierAt, llvm::countr_zero(warp.barrierMask), FindingKind::Deadlock, [&] {
        return fmt::format("waits at barrier {} for threads that never come: {} of {} are here", warp.barrier,
                           state.arrived, state.expected ? state.expected : live);
      });
    }
}

uint32_t machineBarrier(WarpContext *context, const Decoded *at, uint32_t mask, uint32_t id, uint32_t count,
                        uint32_t predicate) {
  Warp &warp = warpOf(context);
  Core &core = *warp.core;
  if (!mask)
    return 0;
  unsigned lane = llvm::countr_zero(mask);
  if (core.launch.options.checkDivergence && mask != warp.live)
    reportFinding(warp, *at, lane, FindingKind::DivergentBarrier, [&] {
      return fmt::format("reaches barrier {} with lanes {:#010x} of {:#010x} of its warp", id, mask, warp.live);
    });
  uint32_t threads = uint32_t(core.launch.request.block.count());
  bool arrives = at->mode == Mode::Arrive;
  if (id >= numBarriers || count % warpLanes || count > (threads + warpLanes - 1) / warpLanes * warpLanes ||
      (arrives && !count)) {
    reportFinding(warp, *at, lane, FindingKind::DivergentBarrier, [&] {
      return fmt::format("names barrier {} for {} threads of {}: there are 16 barriers, and whole warps arrive", id,
                         count, threads);
    });
    return 0;
  }
  landCopies(warp);
  if (core.launch.asynchronous)
    stepTransfers(core);
  BarrierState &barrier = core.barriers[id];
  if (core.launch.options.checkDivergence && barrier.arrived && barrier.expected != count)
    reportFinding(warp, *at, lane, FindingKind::DivergentBarrier, [&] {
      return fmt::format("expects {} threads at barrier {}, where others expect {} (0: all)", count, id,
                         barrier.expected);
    });
  // A barrier for a number of threads counts whole warps, one for all counts the threads that live.
  barrier.arrived += count ? warpLanes : llvm::popcount(warp.live);
  barrier.expected = count;
  barrier.asked += llvm::popcount(mask);
  barrier.predicates += llvm::popcount(predicate);
  barrier.came |= 1u << warp.warp;
  if (!arrives)
    barrier.waiting |= 1u << warp.warp;
  if (core.launch.causal)
    core.causality.arrive(id, warp.warp, mask);
  warp.barrier = id;
  warp.barrierMask = mask;
  warp.barrierAt = at;
  if (!arrives)
    warp.state = WarpState::Waiting;
  if (count && barrier.arrived >= count)
    core.completeBarrier(id);
  if (!arrives)
    warp.fiber->suspend();
  return warp.barrierResult;
}

void holdUntil(Warp &warp, Hold hold, llvm::function_ref<bool()> isOver) {
  if (isOver())
    return;
  warp.hold = std::move(hold);
  do {
    warp.state = WarpState::Held;
    warp.fiber->suspend();
  } while (!isOver());
}

void reportHold(Warp &warp) { reportFinding(warp, *warp.hold.at, 0, warp.hold.kind, warp.hold.what); }

void release(Core &core) {
  for (Warp &warp : core.warps)
    if (warp.state == WarpState::Held)
      warp.state = WarpState::Ready;
}

void machineWarpSync(WarpContext *context, const Decoded *at, uint32_t mask, const uint32_t *members) {
  checkMembers(warpOf(context), *at, mask, members);
  followWarpSync(warpOf(context), mask, members);
}

void checkMembers(Warp &warp, const Decoded &at, uint32_t mask, const uint32_t *members) {
  if (!warp.core->launch.options.checkDivergence)
    return;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = llvm::countr_zero(rest);
    uint32_t missing = members[lane] & ~mask & warp.existing;
    if (!(members[lane] >> lane & 1))
      reportFinding(warp, at, lane, FindingKind::InactiveShuffle,
                    fmt::format("member mask {:#010x} does not name lane {} itself", members[lane], lane));
    else if (missing)
      reportFinding(
          warp, at, lane, FindingKind::InactiveShuffle,
          fmt::format("waits for lanes {:#010x} of its warp, of which {:#010x} are not here", members[lane], missing));
  }
}

void machineCollective(WarpContext *context, const Decoded *at, uint32_t mask, const void *const *operands,
                       void *const *results) {
  runCollective(warpOf(context), *at, mask, operands, results);
}

void machineBranch(WarpContext *context, const Decoded *at, uint32_t active, uint32_t taken) {
  Core &core = *warpOf(context).core;
  const bool isDivergent = taken && taken != active;
  ++core.counters.branches;
  core.counters.divergentBranches += isDivergent;
  core.requestCounts[size_t(at - core.launch.kernel.code.data())].divergent += isDivergent;
}

Tick machineTick(WarpContext *context, const Decoded *at) {
  Warp &warp = warpOf(context);
  Launch &launch = warp.core->launch;
  const bool polls = launch.polling.branches.contains(at);
  warp.budget = polls ? budgetOfPolling : budgetOfTick;
  if (launch.deadline && secondsNow() > launch.deadline && !launch.stop.exchange(true))
    reportFinding(warp, *at, 0, FindingKind::TimeLimit,
                  fmt::format("runs here, and the launch took too long{}", limitOf(launch)));
  const bool empty = at->guard.kind == Source::Kind::None && &launch.kernel.code[at->target] == at;
  if (empty && !launch.stop.exchange(true))
    reportFinding(warp, *at, 0, FindingKind::NoProgress, "jumps to itself for ever");
  if (launch.together && !polls)
    ++launch.progress;
  warp.spinsAt = polls ? at : nullptr;
  if (launch.fibers && !launch.stop)
    warp.fiber->suspend(); // what it waits for may be another warp's to do
  constexpr uint64_t patience = 2;
  return launch.stop ? Tick::Stop : polls && launch.idleRounds >= patience ? Tick::Rotate : Tick::GoOn;
}

bool oneInFour(Launch &launch) {
  launch.random = launch.random * 6364136223846793005ull + 1442695040888963407ull;
  return launch.random >> 62 == 0;
}

void giveWay(Warp &warp) {
  Launch &launch = warp.core->launch;
  if (!launch.preempts)
    return;
  if (launch.lastProgress != launch.progress) {
    launch.lastProgress = launch.progress;
    launch.gaveWay = 0;
  }
  constexpr uint64_t enough = 1000; // when nothing changes it is for the scheduler to see why
  if (launch.gaveWay > enough)
    return;
  if (oneInFour(launch)) {
    ++launch.gaveWay;
    warp.fiber->suspend();
  }
}

void machineTrap(WarpContext *context, const Decoded *at, uint32_t mask) {
  if (mask)
    reportFinding(warpOf(context), *at, llvm::countr_zero(mask), FindingKind::Trap, "trap");
}

} // namespace hloc::emulator
