#pragma once
// How many registers the code needs that runs with what a setmaxnreg leaves. What is the same in all threads of a warp
// does not count: it may be in uniform registers, or be made anew.

#include "Program.h"

#include "llvm/ADT/DenseMap.h"

namespace hloc::emulator {

struct RegisterPressure {
  unsigned registers = 0; ///< of 32 bits, live at once
  uint32_t line = 0;      ///< where
};

/// By setmaxnreg: the most of all places that it alone can lead to.
using RegisterPressures = llvm::DenseMap<const Decoded *, RegisterPressure>;
RegisterPressures findRegisterPressure(const Kernel &kernel);

} // namespace hloc::emulator
