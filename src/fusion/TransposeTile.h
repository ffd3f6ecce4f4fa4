#pragma once
// How a transposition is cut into tiles, and how a tile lies in shared memory.

#include "fusion/HeroMatch.h"

namespace hloc {

/// What the accesses of one side of a kernel allow.
struct TransposeStreams {
  unsigned narrowestBits = 64, widestBits = 1;
  unsigned storedBits = 8; ///< of the narrowest output, if that is less than a byte
  bool areScalar = false;  ///< complex: never more than one element at once
  void addLoaded(const Shape &shape);
  void addStored(const Shape &shape);
};

/// Fills in box, widths and layout of the tiles of a plan that has heroes, dimensions and permutation. `maxElements` is
/// what a thread's straight code may compute. A grid of 0 blocks: the tiles do not fit, for the reason returned.
struct TileChoice {
  LaunchGeometry launch;
  const char *rejection = nullptr;
};
TileChoice chooseTile(TransposePlan &plan, const TransposeStreams &input, const TransposeStreams &output,
                      int64_t maxElements, const TargetInfo &target);

} // namespace hloc
