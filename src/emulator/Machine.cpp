// Warps, blocks and barriers of one launch.
#include "Machine.h"

#include "Collective.h"
#include "Fiber.h"

#include "fmt/format.h"
#include "llvm/ADT/bit.h"

#include <chrono>

namespace hloc::emulator {

namespace {

constexpr int64_t budgetOfTick = 1 << 16;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Dim3 threadOf(const Warp &warp, unsigned lane) {
  return {warp.thread[0][lane], warp.thread[1][lane], warp.thread[2][lane]};
}

} // namespace

void reportFinding(Warp &warp, const Decoded &at, unsigned lane, FindingKind kind, std::string message) {
  Launch &launch = warp.core->launch;
  launch.findings.add(kind, at.line, [&] {
    Finding finding;
    finding.kind = kind;
    finding.kernel = launch.kernel.name;
    finding.block = {warp.block[0], warp.block[1], warp.block[2]};
    finding.thread = threadOf(warp, lane);
    finding.line = at.line;
    finding.message = std::move(message);
    finding.hloName = launch.program.location(at);
    return finding;
  });
}

Core::Core(Launch &launch) : launch(launch) {
  const Dim3 &block = launch.request.block;
  uint32_t threads = uint32_t(block.count());
  warps.resize((threads + warpLanes - 1) / warpLanes);
  counters.warpInstructions.assign(instructionClassNames().size(), 0);
  counters.threadInstructions = counters.warpInstructions;
  instructionCounts.assign(2 * instructionClassNames().size(), 0);
  for (uint32_t w = 0; w < warps.size(); ++w) {
    Warp &warp = warps[w];
    warp.core = this;
    warp.warp = w;
    warp.numWarps = uint32_t(warps.size());
    warp.parameters = launch.parameters.data();
    warp.dynamicShared = launch.request.dynamicSharedBytes;
    warp.totalShared = uint32_t(launch.sharedBytes);
    warp.instructionCounts = launch.options.countEvents ? instructionCounts.data() : nullptr;
    const uint32_t sizes[] = {block.x, block.y, block.z};
    const uint32_t grid[] = {launch.request.grid.x, launch.request.grid.y, launch.request.grid.z};
    for (unsigned i = 0; i < 3; ++i) {
      warp.blockSize[i] = sizes[i];
      warp.gridSize[i] = grid[i];
    }
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
  // A little more than asked for: accesses are checked, but whole vectors may be copied.
  shared.resize(launch.sharedBytes + 16);
  if (launch.options.checkRaces)
    sharedShadow.resize((launch.sharedBytes >> launch.sharedShift) + 1);
  if (launch.options.checkUninit)
    sharedWritten.resize((launch.sharedBytes >> launch.sharedShift) + 1);
  uint64_t localBytes = launch.kernel.localBytes * warps.size() * warpLanes;
  local.resize(localBytes);
  if (launch.options.checkUninit)
    localWritten.resize(localBytes);
  if (launch.fibers)
    for (Warp &warp : warps) {
      fibers.push_back(std::make_unique<Fiber>());
      warp.fiber = fibers.back().get();
    }
}

Core::~Core() = default;

void Core::runBlock(uint64_t linear) {
  const Dim3 &grid = launch.request.grid;
  blockIndex = linear;
  blockEpoch = 0;
  blockStart = ++epoch;
  stopped = false;
  if (!localWritten.empty())
    std::fill(localWritten.begin(), localWritten.end(), 0);
  uint32_t at[] = {uint32_t(linear % grid.x), uint32_t(linear / grid.x % grid.y), uint32_t(linear / grid.x / grid.y)};
  for (Warp &warp : warps) {
    std::copy(std::begin(at), std::end(at), warp.block);
    warp.live = warp.existing;
    warp.budget = budgetOfTick;
    warp.epoch = 0;
    warp.state = WarpState::Ready;
  }
  ++counters.blocks;
  counters.warps += warps.size();
  if (launch.fibers)
    runWithFibers();
  else
    for (Warp &warp : warps)
      launch.code(&warp);
}

void Core::runWithFibers() {
  for (Warp &warp : warps)
    warp.fiber->start(
        [](void *argument) {
          Warp &self = *static_cast<Warp *>(argument);
          self.core->launch.code(&self);
          self.state = WarpState::Done;
        },
        &warp);
  for (;;) {
    bool ran = false;
    for (Warp &warp : warps)
      if (warp.state == WarpState::Ready) {
        warp.fiber->resume();
        ran = true;
        if (stopped || launch.stop)
          return;
      }
    if (!ran && !releaseBarriers())
      return;
  }
}

/// Every warp waits or is done. Lets those go whose barrier is complete; false if there are none.
bool Core::releaseBarriers() {
  bool released = false, waiting = false;
  for (uint32_t id = 0; id < 16; ++id) {
    uint32_t arrived = 0, expected = 0, live = 0, predicates = 0;
    Warp *first = nullptr;
    for (Warp &warp : warps) {
      if (warp.state == WarpState::Done)
        continue;
      live += llvm::popcount(warp.live);
      if (warp.barrier != id)
        continue;
      first = first ? first : &warp;
      arrived += llvm::popcount(warp.barrierMask);
      expected = warp.barrierThreads;
      predicates += llvm::popcount(warp.barrierPredicate);
    }
    if (!first)
      continue;
    waiting = true;
    bool complete = expected ? arrived >= expected : arrived >= live;
    if (!complete)
      continue;
    released = true;
    ++blockEpoch;
    ++epoch;
    ++counters.barriers;
    for (Warp &warp : warps)
      if (warp.state == WarpState::Waiting && warp.barrier == id) {
        Mode mode = warp.barrierAt->mode;
        warp.barrierResult = mode == Mode::And  ? predicates == arrived
                             : mode == Mode::Or ? predicates != 0
                                                : predicates;
        warp.state = WarpState::Ready;
      }
  }
  if (released || !waiting)
    return released;
  for (Warp &warp : warps)
    if (warp.state == WarpState::Waiting) {
      reportFinding(warp, *warp.barrierAt, llvm::countr_zero(warp.barrierMask), FindingKind::Deadlock,
                    fmt::format("waits at barrier {} for threads that never come", warp.barrier));
      launch.stop = true;
    }
  return false;
}

uint32_t machineBarrier(WarpContext *context, const Decoded *at, uint32_t mask, uint32_t id, uint32_t count,
                        uint32_t predicate) {
  Warp &warp = warpOf(context);
  if (!mask)
    return 0;
  unsigned lane = llvm::countr_zero(mask);
  if (warp.core->launch.options.checkDivergence && mask != warp.live)
    reportFinding(warp, *at, lane, FindingKind::DivergentBarrier,
                  fmt::format("barrier {} reached by lanes {:#010x} of {:#010x} of its warp", id, mask, warp.live));
  if (id >= 16 || count % warpLanes) {
    reportFinding(warp, *at, lane, FindingKind::DivergentBarrier,
                  fmt::format("barrier {} of {} threads: there are 16 barriers, and whole warps arrive", id, count));
    return 0;
  }
  warp.barrier = id;
  warp.barrierThreads = count;
  warp.barrierMask = warp.live; // the hardware counts warps
  warp.barrierPredicate = predicate;
  warp.barrierAt = at;
  warp.state = WarpState::Waiting;
  warp.fiber->suspend();
  return warp.barrierResult;
}

void machineWarpSync(WarpContext *context, const Decoded *at, uint32_t mask, const uint32_t *members) {
  Warp &warp = warpOf(context);
  ++warp.epoch;
  if (!warp.core->launch.options.checkDivergence)
    return;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = llvm::countr_zero(rest);
    uint32_t missing = members[lane] & ~mask & warp.existing;
    if (!(members[lane] >> lane & 1))
      reportFinding(warp, *at, lane, FindingKind::InactiveShuffle,
                    fmt::format("member mask {:#010x} does not name lane {} itself", members[lane], lane));
    else if (missing)
      reportFinding(
          warp, *at, lane, FindingKind::InactiveShuffle,
          fmt::format("waits for lanes {:#010x} of its warp, of which {:#010x} are not here", members[lane], missing));
  }
}

void machineCollective(WarpContext *context, const Decoded *at, uint32_t mask, const void *const *operands,
                       void *const *results) {
  runCollective(warpOf(context), *at, mask, operands, results);
}

void machineBranch(WarpContext *context, const Decoded *, uint32_t active, uint32_t taken) {
  Counters &counters = warpOf(context).core->counters;
  ++counters.branches;
  counters.divergentBranches += taken && taken != active;
}

bool machineTick(WarpContext *context, const Decoded *at) {
  Warp &warp = warpOf(context);
  Launch &launch = warp.core->launch;
  warp.budget = budgetOfTick;
  if (launch.deadline && now() > launch.deadline && !launch.stop.exchange(true))
    reportFinding(warp, *at, 0, FindingKind::TimeLimit,
                  fmt::format("the launch took longer than {} s", launch.options.timeLimitSeconds));
  return !launch.stop;
}

void machineTrap(WarpContext *context, const Decoded *at, uint32_t mask) {
  if (mask)
    reportFinding(warpOf(context), *at, llvm::countr_zero(mask), FindingKind::Trap, "trap");
}

} // namespace hloc::emulator
