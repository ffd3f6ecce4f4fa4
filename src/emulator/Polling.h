#pragma once
// Loops in which a thread waits for another: they look at memory and go round until it has changed.
//
//   L: ld.acquire.gpu.global.u32 %r1, [%rd1];  setp.eq.u32 %p1, %r1, 0;  @%p1 bra L;
//   L: atom.global.cas.b32 %r1, [%rd1], 0, 1;  setp.ne.u32 %p1, %r1, 0;  @%p1 bra L;

#include "Program.h"

#include "llvm/ADT/DenseSet.h"

namespace hloc::emulator {

struct PollingLoops {
  llvm::DenseSet<const Decoded *> branches; ///< the branches back
  /// Of them, those that bring nothing from one round to the next: if memory stays as it is they never end.
  llvm::DenseSet<const Decoded *> certain;
  llvm::DenseSet<const Decoded *> looks; ///< the strong reads of one place in them
};
PollingLoops findPollingLoops(const Kernel &kernel);

/// Whether it has accesses that may meet those of other threads without a race: what they see depends on timing.
bool hasStrongAccesses(const Kernel &kernel);

} // namespace hloc::emulator
