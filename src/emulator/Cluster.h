#pragma once
// The blocks of one cluster. They are on the device together: one host thread runs them in step, and they meet at a
// barrier of their own. A grid that is launched without clusters has clusters of one block.
//
//   block 0:  st.shared::cluster [of 1], x;  barrier.cluster.arrive;  y = ...;          barrier.cluster.wait;
//   block 1:                                 barrier.cluster.arrive;  barrier.cluster.wait;  ld.shared x   (not y)

#include "Machine.h"

#include <memory>
#include <vector>

namespace hloc::emulator {

/// Warp::barrier of those that wait for their cluster.
inline constexpr uint32_t clusterBarrier = numBarriers;

struct Cluster {
  explicit Cluster(Launch &launch);
  Cluster(const Cluster &) = delete;
  Cluster &operator=(const Cluster &) = delete;
  bool valid() const; ///< there was memory for all stacks

  /// Runs all blocks of a cluster to their end. `linear`: its number in the grid, x first.
  void run(uint64_t linear);
  /// Makes all blocks ready.
  void begin(uint64_t linear);
  /// Lets each warp of each block run until it waits or spins; false: there is none left, or none that ever will.
  bool step();

  /// barrier.cluster.arrive by these lanes.
  void arrive(Warp &warp, const Decoded &at, uint32_t lanes);
  /// barrier.cluster.wait. Returns when all threads of the cluster that live have arrived.
  void wait(Warp &warp, const Decoded &at, uint32_t lanes);
  /// Lets those go that wait, if nobody else has to come: some thread has arrived, or has ended.
  void completeBarrier();
  /// A warp of this block has ended.
  void endWarp(Warp &warp);

  Launch &launch;
  std::vector<std::unique_ptr<Core>> blocks; ///< by rank
  bool finished = false;                     ///< for the scheduler

private:
  bool releaseBarriers();
  void reportDeadlock(const Warp &waiting);
  void endBlock(Core &block);

  uint64_t index = 0, steps = 0;
  Handover arrived; ///< what those know that have arrived, in causal launches
  Handover passed;  ///< what all knew that came to the last barrier
};

/// Blocks of a cluster of the launch, and clusters of its grid along each dimension.
Dim3 clustersOf(const Launch &launch);
uint64_t numClusters(const Launch &launch);

/// The block's part of the shared::cluster window behind an address: Place::owner and Place::offset; no owner where the
/// cluster has no such block. Offsets are not checked.
Place locateShared(const Core &core, uint32_t address);

/// barrier.cluster, mapa and getctarank.
void runClusterBarrier(Warp &warp, const Decoded &at, uint32_t mask);
uint64_t mapToBlock(Warp &warp, const Decoded &at, unsigned lane, uint64_t address, uint64_t rank);
uint64_t rankOf(Warp &warp, const Decoded &at, unsigned lane, uint64_t address);

/// A thread touches shared memory of another block of its cluster: that block has to be there. Reports the thread's
/// access if it may not have begun yet.
void checkBegun(Warp &warp, const Decoded &at, unsigned lane, const Place &place, Access access);
/// And, when it ends, if it may have ended by then.
void checkPresence(Warp &warp, const Decoded &at, unsigned lane, const Place &place, Access access);

} // namespace hloc::emulator
