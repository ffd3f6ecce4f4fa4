#pragma once
// Random numbers for generated arguments.

#include "RandomBits.h"

#include <algorithm>

namespace hloc::interp {

/// A stream for each leaf and purpose, so that adding a parameter changes no other's values.
class ValueStream {
public:
  ValueStream(uint64_t seed, uint32_t leaf, uint32_t purpose)
      : seed(seed), leaf(leaf + (purpose << 24)) {} // 2^24 leaves: more than any text has
  uint32_t bits() { return threefry({leaf, next++}, {uint32_t(seed), uint32_t(seed >> 32)})[0]; }
  uint64_t wideBits() {
    uint64_t high = bits();
    return high << 32 | bits();
  }
  double unit() { return bits() * 0x1p-32; } ///< [0, 1)
  int64_t below(int64_t limit) { return int64_t(wideBits() % uint64_t(std::max<int64_t>(limit, 1))); }
  bool oneIn(int64_t n) { return below(n) == 0; }

private:
  uint64_t seed;
  uint32_t leaf, next = 0;
};

} // namespace hloc::interp
