#pragma once
// In which order blocks and warps run, and which blocks are on the device together.

#include "Machine.h"

namespace hloc::emulator {

/// The `n`-th of `count` blocks or warps in the order of a schedule; `salt` tells shuffles of one seed apart.
uint64_t inOrder(const Schedule &schedule, uint64_t salt, uint64_t n, uint64_t count);

/// Of a shuffled schedule; `salt` tells its uses apart.
uint64_t randomBits(const Schedule &schedule, uint64_t salt);

/// How many blocks of the launch are on the device at once.
uint64_t residentBlocks(const Launch &launch);

/// How many clusters are; one that is too large for the device counts as one.
uint64_t residentClusters(const Launch &launch);

/// Runs the grid on one host thread, several clusters at a time where their blocks wait for each other: a cluster is
/// started when none is left, or when none that runs gets on. `collect` takes the counters of each core. False if there
/// was no memory.
bool runTogether(Launch &launch, llvm::function_ref<void(Core &)> collect);

} // namespace hloc::emulator
