#include "Scheduler.h"

#include "Cluster.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

namespace hloc::emulator {

namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// A permutation of [0, count) without a table: four Feistel rounds on the next even number of bits, again while the
/// result is outside.
uint64_t permute(uint64_t seed, uint64_t n, uint64_t count) {
  unsigned half = std::max(1u, (unsigned(llvm::bit_width(count - 1)) + 1) / 2);
  uint64_t ones = (uint64_t(1) << half) - 1;
  do {
    uint64_t left = n >> half, right = n & ones;
    for (uint64_t round = 0; round < 4; ++round) {
      uint64_t next = left ^ (mix(seed + (right << 3) + round) & ones);
      left = right;
      right = next;
    }
    n = left << half | right;
  } while (n >= count);
  return n;
}

} // namespace

uint64_t randomBits(const Schedule &schedule, uint64_t salt) { return mix(mix(schedule.seed + 1) + mix(salt)); }

uint64_t inOrder(const Schedule &schedule, uint64_t salt, uint64_t n, uint64_t count) {
  switch (schedule.order) {
  case Schedule::Order::Ascending:
    return n;
  case Schedule::Order::Reversed:
    return count - 1 - n;
  case Schedule::Order::Shuffled:
    return count < 2 ? n : permute(mix(schedule.seed + 1) + mix(salt), n, count);
  }
  return n;
}

uint64_t residentBlocks(const Launch &launch) {
  // Of each multiprocessor (sm_80 and sm_90; sm_86 and sm_89 have fewer threads): threads, blocks, shared memory, of
  // which each block takes 1 KiB for the system.
  constexpr uint64_t threads = 2048, blocks = 32, sharedBytes = 228 << 10, systemBytes = 1 << 10;
  uint64_t ofBlock = (launch.request.block.count() + warpLanes - 1) / warpLanes * warpLanes;
  uint64_t each = std::min({blocks, threads / ofBlock, sharedBytes / (launch.sharedBytes + systemBytes)});
  constexpr uint64_t hostBytes = uint64_t(1) << 30;
  uint64_t bytes = launch.sharedBytes + launch.localStride * ofBlock + 1;
  return std::min(launch.options.multiprocessors * std::max<uint64_t>(each, 1),
                  std::max<uint64_t>(hostBytes / bytes, 1));
}

uint64_t residentClusters(const Launch &launch) {
  return std::max<uint64_t>(residentBlocks(launch) / launch.cluster.count(), 1);
}

namespace {

class Together {
public:
  Together(Launch &launch, llvm::function_ref<void(Core &)> collect)
      : launch(launch), collect(collect), clusters(numClusters(launch)), fits(residentClusters(launch)) {}

  bool run() {
    const bool shuffled = launch.options.schedule.order == Schedule::Order::Shuffled;
    start(shuffled && launch.preempts ? 4 : 1);
    while (enough && !active.empty() && !launch.stop) {
      const uint64_t before = launch.progress, gaveWay = launch.gaveWay;
      runRound();
      if (active.empty())
        start(shuffled && launch.preempts ? 4 : 1);
      else if (launch.progress == before && launch.gaveWay == gaveWay)
        stall();
      else if (launch.progress != before)
        launch.idleRounds = 0;
    }
    for (const std::unique_ptr<Cluster> &cluster : all)
      for (const std::unique_ptr<Core> &core : cluster->blocks)
        collect(*core);
    return enough;
  }

private:
  void runRound() {
    ++rounds;
    for (size_t i = 0; i < active.size() && !launch.stop; ++i) {
      Cluster &cluster = *active[inOrder(launch.options.schedule, rounds, i, active.size())];
      if (!cluster.step()) {
        cluster.finished = true;
        ++launch.progress;
        if (launch.options.progress)
          launch.options.progress->advance(launch.cluster.count());
      }
      cluster.blocks[0]->keepTime();
    }
    for (Cluster *cluster : active)
      if (cluster->finished)
        idle.push_back(cluster);
    llvm::erase_if(active, [](Cluster *cluster) { return cluster->finished; });
  }

  void start(uint64_t count) {
    for (; count && next < clusters && active.size() < fits; --count, ++next) {
      if (idle.empty()) {
        all.push_back(std::make_unique<Cluster>(launch));
        if (!all.back()->valid()) {
          enough = false;
          return;
        }
        idle.push_back(all.back().get());
      }
      active.push_back(idle.back());
      idle.pop_back();
      active.back()->finished = false;
      active.back()->begin(inOrder(launch.options.schedule, 0, next, clusters));
      ++launch.progress;
    }
  }

  /// Nobody got on: more clusters come if the device has room; then lanes of the warps that spin take turns; then it is
  /// for ever.
  void stall() {
    if (next < clusters && active.size() < fits)
      return start(active.size());
    uint64_t spinning = 0;
    bool certain = true;
    forEachSpinning([&](Warp &warp) {
      ++spinning;
      certain &= launch.polling.certain.contains(warp.spinsAt);
    });
    constexpr uint64_t certainRounds = 16, patience = uint64_t(1) << 24;
    uint64_t limit = certain ? certainRounds : std::max<uint64_t>(patience / budgetOfPolling / (spinning + 1), 400);
    if (++launch.idleRounds < limit)
      return;
    const uint64_t each = launch.cluster.count();
    forEachSpinning([&](Warp &warp) {
      const unsigned lane = unsigned(llvm::countr_zero(warp.live)) % warpLanes;
      reportFinding(warp, *warp.spinsAt, lane, FindingKind::NoProgress, [&] {
        std::string room =
            next < clusters ? fmt::format(", and there is no room for the other {}", (clusters - next) * each) : "";
        return fmt::format("spins while nothing changes any more; {} of {} blocks are on the device{}",
                           active.size() * each, clusters * each, room);
      });
    });
    for (Cluster *cluster : active)
      for (const std::unique_ptr<Core> &block : cluster->blocks)
        for (Warp &warp : block->warps)
          if (warp.state == WarpState::Held)
            reportHold(warp);
    launch.stop = true;
  }

  void forEachSpinning(llvm::function_ref<void(Warp &)> visit) {
    for (Cluster *cluster : active)
      for (const std::unique_ptr<Core> &core : cluster->blocks)
        for (Warp &warp : core->warps)
          if (warp.state == WarpState::Ready && warp.spinsAt)
            visit(warp);
  }

  Launch &launch;
  llvm::function_ref<void(Core &)> collect;
  uint64_t clusters, fits, next = 0, rounds = 0;
  bool enough = true; ///< memory
  std::vector<std::unique_ptr<Cluster>> all;
  std::vector<Cluster *> active, idle;
};

} // namespace

bool runTogether(Launch &launch, llvm::function_ref<void(Core &)> collect) { return Together(launch, collect).run(); }

} // namespace hloc::emulator
