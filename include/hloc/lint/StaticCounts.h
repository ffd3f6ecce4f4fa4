#pragma once
// What a warp does on its way through a kernel, read off the text: the counts that time is estimated from where nothing
// has been executed.
//
//   ld.global, fma in a loop of 10 rounds, st.global behind it   once {21 instructions, 44 bytes, 10 round trips, ...}
//   the same in a loop whose end a parameter says   once    {3 instructions, 8 bytes, 1 round trip, ...}
//                                                   inLoops {2 instructions, 4 bytes, 1 round trip, ...}
//   1024 bytes a thread                             after (1024 - 8) / 4 more rounds: roundsForBytes(1024) = 254

#include "hloc/kernel/Estimate.h"

#include <optional>

namespace hloc::ptx {
struct Module;
}

namespace hloc::lint {

/// Of one warp; bytes of one thread.
struct PathCounts {
  double instructions = 0, specialFunctions = 0, doubles = 0, sharedPasses = 0, atomics = 0;
  double products = 0, doubleProducts = 0, groupProducts = 0; ///< of tensor cores (KernelCounts)
  double globalBytes = 0;
  double sectors = 0; ///< 32 bytes each, of global memory, by one warp in the middle of the grid
  double memoryRoundTrips = 0, sharedRoundTrips = 0, chainInstructions = 0;
};

/// On the way with the most instructions. Loops whose rounds the text does not tell are all taken to run equally often.
struct StaticCounts {
  PathCounts once;    ///< with one round of each such loop, and all rounds of the others
  PathCounts inLoops; ///< the part of it that further rounds repeat
  uint64_t sharedBytes = 0;
  bool inTurns = false;    ///< (KernelCounts)
  double tilesOfBlock = 1; ///< (KernelCounts)

  /// More rounds of the loops than one such that a thread moves so many bytes; 0 if its loops move none.
  double roundsForBytes(double bytes) const;
  /// ... such that a warp executes so many instructions.
  double roundsForInstructions(double instructions) const;
  PathCounts after(double rounds) const;
};

/// Nothing if there is no such kernel.
std::optional<StaticCounts> countStatically(const ptx::Module &module, llvm::StringRef kernel, Dim3 grid, Dim3 block);

/// A launch of a kernel of which the text, the grid and the least bytes it moves are known.
KernelCounts countsOf(const StaticCounts &counts, const KernelSpec &kernel);

} // namespace hloc::lint
