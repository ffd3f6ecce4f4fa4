#pragma once
// cp.async of one warp. A copy reads global memory when it is issued but writes shared memory only when its thread
// waits for it, as late as the ISA allows: a kernel that forgets the wait reads memory nobody wrote, and is found out.

#include <cstdint>
#include <vector>

namespace hloc::emulator {

struct Decoded;

struct AsyncCopies {
  struct Copy {
    const Decoded *at;
    uint64_t to; ///< in shared memory
    uint32_t group;
    uint8_t lane, bytes;
    uint8_t data[16];
  };
  std::vector<Copy> pending;   ///< in order of issue
  uint32_t committed[32] = {}; ///< groups of each lane so far; a pending copy of that number is in none yet
  void clear() { *this = {}; }
};

} // namespace hloc::emulator
