// ldmatrix and stmatrix.
#include "CollectiveParts.h"

#include <cstring>

namespace hloc::emulator {
namespace {

/// Row addresses come from lanes 8m .. 8m+7 for matrix m; a thread has elements 2i and 2i+1 of row lane / 4.
using Tile = uint16_t[8][8];

uint16_t &elementOf(Tile &tile, bool transposed, unsigned lane, unsigned i) {
  const unsigned row = lane / 4, column = lane % 4 * 2 + i;
  return transposed ? tile[column][row] : tile[row][column];
}

/// A row of 16 bytes a lane, eight lanes a matrix.
void countRows(const CollectiveCall &call, bool isStore) {
  if (!call.warp.core->launch.options.countEvents)
    return;
  const unsigned rows = call.at.count * 8u;
  uint64_t addresses[warpLanes];
  for (unsigned lane = 0; lane < rows; ++lane)
    addresses[lane] = call.value(0, lane);
  countRequest(call.warp, Space::Shared, uint32_t((uint64_t(1) << rows) - 1), addresses, 16, isStore);
}

} // namespace

void runLoadMatrix(const CollectiveCall &call) {
  countRows(call, false);
  for (unsigned m = 0; m < call.at.count; ++m) {
    Tile tile = {};
    for (unsigned r = 0; r < 8; ++r) {
      Place place =
          accessLane(call.warp, call.at, Space::Shared, m * 8 + r, call.value(0, m * 8 + r), 16, Access::Read);
      if (place.data)
        std::memcpy(tile[r], place.data, 16);
    }
    call.forEachLane([&](unsigned lane) {
      const bool t = call.at.transposed;
      call.resultWords()[m * warpLanes + lane] = elementOf(tile, t, lane, 0) | uint32_t(elementOf(tile, t, lane, 1))
                                                                                   << 16;
    });
  }
}

void runStoreMatrix(const CollectiveCall &call) {
  countRows(call, true);
  for (unsigned m = 0; m < call.at.count; ++m) {
    Tile tile = {};
    call.forEachLane([&](unsigned lane) {
      const uint32_t word = call.words(1)[m * warpLanes + lane];
      elementOf(tile, call.at.transposed, lane, 0) = uint16_t(word);
      elementOf(tile, call.at.transposed, lane, 1) = uint16_t(word >> 16);
    });
    uint16_t stored[8][warpLanes]; // as a store of eight elements by each lane
    for (unsigned r = 0; r < 8; ++r)
      for (unsigned e = 0; e < 8; ++e)
        stored[e][m * 8 + r] = tile[r][e];
    for (unsigned r = 0; r < 8; ++r) {
      Place place = accessLane(call.warp, call.at, Space::Shared, m * 8 + r, call.value(0, m * 8 + r), 16,
                               Access::Write, std::nullopt, reinterpret_cast<const uint8_t *>(stored));
      if (place.data)
        std::memcpy(place.data, tile[r], 16);
    }
  }
}

} // namespace hloc::emulator
