#pragma once
// wgmma.mma_async in flight. The hardware executes one when all four warps of a warpgroup have issued it; here each
// warp makes its part of the result when it issues. The n-th one of each warp must be the same as that of the others.
//
//   warp 0   wgmma   wgmma   commit   wait 0: its registers are there, and, since warps 1 to 3 have issued both, too,
//   warp 1   wgmma   wgmma   commit            nobody reads their operands any more

#include "Causality.h"
#include "RegisterHazards.h"

#include <array>
#include <cstdint>
#include <deque>

namespace hloc::emulator {

inline constexpr unsigned warpsOfGroup = 4;

/// Of one warp.
struct WarpMultiplies {
  uint64_t issued = 0;         ///< so many
  uint64_t committed = 0;      ///< of them, those in groups
  uint64_t complete = 0;       ///< of them, those that were waited for
  std::deque<uint64_t> groups; ///< in flight: `issued` when each was committed
  RegisterUse registers;
  const Decoded *last = nullptr;
};

/// Of the four warps: those that some have issued and others have not.
struct Warpgroup {
  struct Multiply {
    const Decoded *at = nullptr;
    uint64_t a = 0, b = 0; ///< descriptors; of a that comes from registers nothing
    bool accumulates = false;
    bool operator==(const Multiply &) const = default;
  };
  uint64_t first = 0; ///< number of the first of `issued`
  std::deque<Multiply> issued;
  Handover told; ///< what the warps knew and had done when they came to a wgmma.fence, in causal launches
  std::vector<const Decoded *> settings; ///< setmaxnreg, one after the other
};

} // namespace hloc::emulator
