#include "Cluster.h"

#include "Fiber.h"
#include "Lanes.h"
#include "Scheduler.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

namespace hloc::emulator {

namespace {

constexpr uint64_t offsetMask = (uint64_t(1) << rankShift) - 1;

} // namespace

Dim3 clustersOf(const Launch &launch) {
  const Dim3 &grid = launch.request.grid, &cluster = launch.cluster;
  return {grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z};
}

uint64_t numClusters(const Launch &launch) { return clustersOf(launch).count(); }

Cluster::Cluster(Launch &launch) : launch(launch) {
  for (uint32_t rank = 0; rank < launch.cluster.count(); ++rank)
    blocks.push_back(std::make_unique<Core>(*this, launch, rank));
}

bool Cluster::valid() const {
  return llvm::all_of(blocks, [](const std::unique_ptr<Core> &block) { return block->valid(); });
}

void Cluster::begin(uint64_t linear) {
  const Dim3 &grid = launch.request.grid, &size = launch.cluster, clusters = clustersOf(launch);
  index = linear;
  arrived = passed = Handover();
  const Dim3 at{uint32_t(linear % clusters.x), uint32_t(linear / clusters.x % clusters.y),
                uint32_t(linear / clusters.x / clusters.y)};
  std::vector<uint64_t> numbers;
  for (uint64_t rank = 0; rank < size.count(); ++rank) {
    const uint64_t x = uint64_t(at.x) * size.x + rank % size.x, y = uint64_t(at.y) * size.y + rank / size.x % size.y,
                   z = uint64_t(at.z) * size.z + rank / size.x / size.y;
    numbers.push_back(x + grid.x * (y + grid.y * z));
  }
  for (const std::unique_ptr<Core> &block : blocks)
    block->begin(at, numbers);
}

void Cluster::run(uint64_t linear) {
  begin(linear);
  if (!launch.fibers)
    return blocks[0]->run();
  while (step())
    ;
}

bool Cluster::step() {
  bool ran = false;
  ++steps;
  for (size_t i = 0; i < blocks.size(); ++i) {
    ran |= blocks[inOrder(launch.options.schedule, index + steps, i, blocks.size())]->step();
    if (launch.stop)
      return false;
  }
  if (ran)
    return true;
  for (const std::unique_ptr<Core> &block : blocks)
    if (launch.asynchronous && landOldest(*block))
      return true;
  for (const std::unique_ptr<Core> &block : blocks) {
    block->reportDeadlocks();
    for (const Warp &warp : block->warps)
      if (warp.state == WarpState::Waiting && warp.barrier == clusterBarrier)
        reportDeadlock(warp);
  }
  return false;
}

void Cluster::reportDeadlock(const Warp &waiting) {
  uint64_t here = 0, live = 0;
  const Warp *missing = nullptr;
  for (const std::unique_ptr<Core> &block : blocks)
    for (const Warp &warp : block->warps) {
      if (warp.state == WarpState::Done)
        continue;
      live += uint64_t(llvm::popcount(warp.live));
      here += uint64_t(llvm::popcount(warp.arrivedAtCluster & warp.live));
      if (!missing && (warp.live & ~warp.arrivedAtCluster))
        missing = &warp;
    }
  launch.stop = true;
  reportFinding(const_cast<Warp &>(waiting), *waiting.barrierAt, unsigned(llvm::countr_zero(waiting.barrierMask)),
                FindingKind::Deadlock, [&] {
                  std::string who;
                  if (missing)
                    who = fmt::format("; thread {} of block {} is not",
                                      missing->warp * warpLanes +
                                          unsigned(llvm::countr_zero(missing->live & ~missing->arrivedAtCluster)),
                                      missing->core->blockIndex);
                  return fmt::format("waits at the barrier of its cluster for threads that never come: {} of {} are "
                                     "here{}",
                                     here, live, who);
                });
}

void Cluster::arrive(Warp &warp, const Decoded &at, uint32_t lanes) {
  if (const uint32_t again = lanes & (warp.arrivedAtCluster | warp.mayLeaveCluster)) {
    if (launch.options.checkDivergence)
      reportFinding(warp, at, unsigned(llvm::countr_zero(again)), FindingKind::DivergentBarrier,
                    "arrives at the barrier of its cluster again, without having waited since it arrived last");
    lanes &= ~again;
  }
  if (!lanes)
    return;
  if (launch.causal)
    arrived.join(warp.core->causality.arriveAtCluster(warp.warp, lanes, at.releases));
  warp.arrivedAtCluster |= lanes;
  completeBarrier();
}

void Cluster::completeBarrier() {
  uint32_t anybody = 0;
  for (const std::unique_ptr<Core> &block : blocks)
    for (const Warp &warp : block->warps) {
      anybody |= warp.arrivedAtCluster;
      if (warp.state != WarpState::Done && (warp.live & ~warp.arrivedAtCluster))
        return;
    }
  if (!anybody)
    return;
  passed = std::move(arrived);
  arrived = Handover();
  ++blocks[0]->counters.barriers;
  if (launch.together)
    ++launch.progress;
  for (const std::unique_ptr<Core> &block : blocks)
    for (Warp &warp : block->warps) {
      warp.mayLeaveCluster |= warp.arrivedAtCluster;
      warp.arrivedAtCluster = 0;
      if (warp.state == WarpState::Waiting && warp.barrier == clusterBarrier)
        warp.state = WarpState::Ready;
    }
}

void Cluster::wait(Warp &warp, const Decoded &at, uint32_t lanes) {
  if (const uint32_t strangers = lanes & ~(warp.arrivedAtCluster | warp.mayLeaveCluster)) {
    if (launch.options.checkDivergence)
      reportFinding(warp, at, unsigned(llvm::countr_zero(strangers)), FindingKind::DivergentBarrier,
                    "waits at the barrier of its cluster without having arrived there");
    lanes &= ~strangers;
  }
  if (!lanes)
    return;
  if (lanes & warp.arrivedAtCluster) {
    warp.barrier = clusterBarrier;
    warp.barrierMask = lanes;
    warp.barrierAt = &at;
    warp.state = WarpState::Waiting;
    warp.fiber->suspend();
  }
  warp.mayLeaveCluster &= ~lanes;
  if (launch.causal)
    warp.core->causality.acquire(warp.warp, lanes, lanes == warp.live, passed);
}

void Cluster::endWarp(Warp &warp) {
  Core &block = *warp.core;
  if (!warp.copies.pending.empty())
    abandonCopies(warp);
  if (launch.hasWarpgroups) {
    abandonMultiplies(warp);
    checkSettings(warp);
  }
  if (blocks.size() == 1 && !launch.asynchronous)
    return;
  const bool last = llvm::all_of(block.warps, [](const Warp &w) { return w.state == WarpState::Done; });
  if (last && launch.asynchronous && !launch.stop)
    abandonTransfers(block);
  if (blocks.size() == 1)
    return;
  if (launch.causal)
    block.knownAtEnd = View::join(block.knownAtEnd, block.causality.knownBy(warp.warp, warp.existing));
  completeBarrier();
  if (last)
    endBlock(block);
}

/// The block's shared memory is gone once all its threads have ended: until then one of them has to wait for whoever
/// uses it.
void Cluster::endBlock(Core &block) {
  block.ended = true;
  if (launch.stop)
    return;
  for (const auto &[i, lanes] : llvm::enumerate(block.remoteAccesses))
    for (const auto &[lane, access] : llvm::enumerate(lanes)) {
      if (!access.trace.lanes || (block.knownAtEnd && block.knownAtEnd->has(access.trace)))
        continue;
      Core &other = *blocks[i / block.warps.size()];
      const Place place{nullptr, Space::Shared, 0, access.offset, block.rank + 1, &block};
      reportFinding(other.warps[i % block.warps.size()], *access.at, unsigned(lane), FindingKind::AbsentBlock, [&] {
        return fmt::format("{} {}, which may have ended by then: none of its threads waits for this one",
                           access.access == Access::Read ? "reads" : "writes",
                           describe(other.warps[i % block.warps.size()], place));
      });
    }
}

// Addresses.

Place locateShared(const Core &core, uint32_t address) {
  Place place;
  locate(Space::SharedCluster, address, place);
  const uint32_t rank = place.block ? place.block - 1 : core.rank;
  if (rank < core.cluster.blocks.size())
    place.owner = core.cluster.blocks[rank].get();
  return place;
}

void runClusterBarrier(Warp &warp, const Decoded &at, uint32_t mask) {
  Cluster &cluster = warp.core->cluster;
  if (at.aligned && mask != warp.live && warp.core->launch.options.checkDivergence)
    reportFinding(warp, at, unsigned(llvm::countr_zero(mask)), FindingKind::DivergentBarrier, [&] {
      return fmt::format(
          "reaches the barrier of its cluster with lanes {:#010x} of {:#010x} of its warp, which .aligned "
          "does not allow",
          mask, warp.live);
    });
  if (at.mode == Mode::Wait)
    return cluster.wait(warp, at, mask);
  landCopies(warp);
  cluster.arrive(warp, at, mask);
}

namespace {

/// The address in shared::cluster of one that may be generic; reports one of other memory.
std::optional<uint64_t> windowOffset(Warp &warp, const Decoded &at, unsigned lane, uint64_t address) {
  if (at.space == Space::SharedCluster)
    return address;
  if (address >> regionShift == sharedWindow >> regionShift)
    return address - sharedWindow;
  reportFinding(warp, at, lane, FindingKind::OutOfBounds, [&] {
    return fmt::format("asks for a block by address {:#x}, which is none of shared memory", address);
  });
  return std::nullopt;
}

} // namespace

uint64_t mapToBlock(Warp &warp, const Decoded &at, unsigned lane, uint64_t address, uint64_t rank) {
  const std::optional<uint64_t> offset = windowOffset(warp, at, lane, address);
  if (!offset)
    return 0;
  constexpr uint64_t nobody = 0xff; // more than any cluster has
  const uint64_t mapped = std::min(rank + 1, nobody) << rankShift | (*offset & offsetMask);
  return at.space == Space::Generic ? sharedWindow + mapped : mapped;
}

uint64_t rankOf(Warp &warp, const Decoded &at, unsigned lane, uint64_t address) {
  const std::optional<uint64_t> offset = windowOffset(warp, at, lane, address);
  const uint64_t block = offset.value_or(0) >> rankShift;
  return block ? block - 1 : warp.rank;
}

void checkBegun(Warp &warp, const Decoded &at, unsigned lane, const Place &place, Access access) {
  const Core &owner = *place.owner, &core = *warp.core;
  if (!core.causality.knowsBegun(warp.warp, lane, owner.blockIndex))
    reportFinding(warp, at, lane, FindingKind::AbsentBlock, [&] {
      return fmt::format("{} {}, which may not have begun: the thread has not waited for any of its threads",
                         access == Access::Read ? "reads" : "writes", describe(warp, place));
    });
}

void checkPresence(Warp &warp, const Decoded &at, unsigned lane, const Place &place, Access access) {
  Core &owner = *place.owner, &core = *warp.core;
  checkBegun(warp, at, lane, place, access);
  owner.remoteAccesses[core.rank * core.warps.size() + warp.warp][lane] = {core.causality.date(warp.warp, 1u << lane),
                                                                           &at, access, place.offset};
}

} // namespace hloc::emulator
