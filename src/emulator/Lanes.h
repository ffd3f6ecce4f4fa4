#pragma once
// Lanes of a warp as bits of a word.

#include "llvm/ADT/bit.h"

#include <cstdint>

namespace hloc::emulator {

/// Lowest first.
template <typename Visit> void forEachLane(uint32_t lanes, Visit visit) {
  for (; lanes; lanes &= lanes - 1)
    visit(unsigned(llvm::countr_zero(lanes)));
}

} // namespace hloc::emulator
