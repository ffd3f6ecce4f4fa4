#pragma once
// cp.async of one warp. A copy is a write of shared memory at any time from its issue to the wait of its thread that
// covers it. Memory is global at the issue; the schedule decides when the bytes land: at the issue, at the wait, or in
// between. That nobody else touches the place meanwhile is checked by what is in flight, whenever they land
// (Core::sharedOpen).

#include "Causality.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace hloc::emulator {

struct Decoded;

struct AsyncCopies {
  /// One instruction.
  struct Request {
    const Decoded *at;
    uint32_t open = 0;    ///< lanes that have not waited for it
    uint32_t landing = 0; ///< of them, those whose bytes are not in memory yet
    uint32_t steps = 0;   ///< of the warp, after which they land; 0: when their thread waits
    uint32_t bytes = 0;   ///< a lane
    uint32_t group[32];   ///< by lane; that of the number of groups committed is in none yet
    uint64_t to[32];      ///< in shared memory
    uint64_t from[32];    ///< in global memory
    uint8_t data[32][16];
  };
  std::vector<Request> pending; ///< in order of issue
  uint32_t committed[32] = {};  ///< groups of each lane so far
  uint64_t issued = 0;
  std::vector<std::pair<Trace, uint32_t>> handedOver; ///< to mbarriers, with the lanes: over for them when they wait
  void clear() { *this = {}; }
};

} // namespace hloc::emulator
