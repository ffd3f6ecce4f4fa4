#pragma once
// What threads have for registers where one warpgroup copies for the others: all of a block begin with as many, and
// what the producer gives away, those that multiply take (setmaxnreg).

#include "hloc/fusion/ContractionPlan.h"

namespace hloc {

/// So many as a multiprocessor has for all threads of `blocks` blocks.
inline int64_t registersOfRing(const ContractionTile &tile, int64_t blocks) {
  constexpr int64_t ofMultiprocessor = 1 << 16, granule = 8;
  return std::min<int64_t>(ofMultiprocessor / blocks / tile.threadsOfBlock() / granule * granule,
                           ContractionPlan::mostRegisters / granule * granule);
}

inline int64_t registersOfConsumers(const ContractionTile &tile, int64_t blocks) {
  constexpr int64_t granule = 8, most = 240;
  const int64_t begins = registersOfRing(tile, blocks), threads = tile.threads(),
                all = begins * tile.threadsOfBlock() -
                      ContractionPlan::registersOfProducer * (tile.threadsOfBlock() - threads);
  return std::min(all / threads / granule * granule, most);
}

/// What its barriers take: two of each stage, and one if those that multiply may tell the producer something.
inline uint64_t bytesOfBarriers(const ContractionTile &tile, bool mayTell = false) {
  constexpr uint64_t vector = 16;
  const int64_t number = tile.hasProducer ? 2 * tile.stages + int64_t(mayTell) : 0;
  const auto bytes = uint64_t(number * ContractionPlan::bytesOfBarrier);
  return (bytes + vector - 1) / vector * vector;
}

} // namespace hloc
