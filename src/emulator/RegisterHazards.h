#pragma once
// Registers of wgmmas: their sums, and factors that do not come from shared memory. From the issue of one until the
// wait for its group nobody may touch them, but for wgmmas of the same shape that go on with the same sums. Between
// another instruction that touches them and a wgmma that uses them there must be a wgmma.fence. A plain
// copy of a sum in flight is another name for it: compilers leave such copies behind, and ptxas makes one register of
// both, or waits.
//
// A data flow over the kernel marks the instructions for which this may not hold on some path; translated code calls
// the machine at these alone, which knows what really is in flight.

#include "Program.h"

#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <deque>

namespace hloc::emulator {

/// Sets Decoded::watched.
void markRegisterHazards(Kernel &kernel);

/// Whether `later` uses registers of `earlier` in another way than to go on with its sums.
bool conflict(const Decoded &earlier, const Decoded &later);

/// What a warp's wgmmas and watched instructions did.
struct RegisterUse {
  /// The last instruction that touched a register, and how many fences there were before.
  struct Touch {
    const Decoded *at = nullptr;
    uint64_t fences = 0;
  };
  /// What a copy stands for.
  struct Name {
    uint32_t slot = 0;
    uint64_t multiply = 0; ///< number of the last wgmma in flight that has this sum; when that is complete it ends
  };
  uint64_t fences = 0;
  std::deque<const Decoded *> inFlight;
  uint64_t numComplete = 0;                ///< before the first of `inFlight`
  llvm::DenseMap<uint32_t, Name> names;    ///< by slot
  llvm::DenseMap<uint32_t, Touch> touched; ///< by slot
};

/// So many of the first ones in flight are complete.
void completeMultiplies(RegisterUse &use, uint64_t count);

} // namespace hloc::emulator
