// ldmatrix and stmatrix.
#include "CollectiveParts.h"

#include <cstring>
#include <utility>

namespace hloc::emulator {
namespace {

/// Row addresses come from lanes 8m .. 8m+7 for matrix m; a thread has elements 2i and 2i+1 of row lane / 4.
constexpr unsigned rowsOfMatrix = 8, rowBytes = Checker::rowBytes;
using Matrix = uint16_t[rowsOfMatrix][rowsOfMatrix];

void transpose(Matrix &matrix) {
  for (unsigned r = 0; r < rowsOfMatrix; ++r)
    for (unsigned c = 0; c < r; ++c)
      std::swap(matrix[r][c], matrix[c][r]);
}

/// The row at the address that lane `from` gives; null if there is no memory. Checks and marks that it is read.
const uint8_t *readRow(const CollectiveCall &call, Checker &checker, unsigned from) {
  const uint64_t address = call.value(0, from), bytes = call.warp.core->launch.sharedBytes;
  if (address % rowBytes == 0 && address < bytes && rowBytes <= bytes - address && checker.readRow(address, from))
    return call.warp.core->shared.data() + address;
  return accessLane(call.warp, call.at, Space::Shared, from, address, rowBytes, Access::Read).data;
}

/// A row of 16 bytes a lane, eight lanes a matrix.
void countRows(const CollectiveCall &call, bool isStore) {
  if (!call.warp.core->launch.options.countEvents)
    return;
  const unsigned rows = call.at.count * rowsOfMatrix;
  uint64_t addresses[warpLanes];
  for (unsigned lane = 0; lane < rows; ++lane)
    addresses[lane] = call.value(0, lane);
  countRequest(call.warp, call.at, Space::Shared, uint32_t((uint64_t(1) << rows) - 1), addresses, rowBytes, isStore);
}

} // namespace

void runLoadMatrix(const CollectiveCall &call) {
  countRows(call, false);
  Checker checker(call.warp, call.at, Access::Read);
  for (unsigned m = 0; m < call.at.count; ++m) {
    Matrix matrix = {};
    for (unsigned r = 0; r < rowsOfMatrix; ++r)
      if (const uint8_t *row = readRow(call, checker, m * rowsOfMatrix + r))
        std::memcpy(matrix[r], row, rowBytes);
    if (call.at.transposed)
      transpose(matrix);
    std::memcpy(call.resultWords() + m * warpLanes, matrix, sizeof matrix); // four lanes a row
  }
}

void runStoreMatrix(const CollectiveCall &call) {
  countRows(call, true);
  for (unsigned m = 0; m < call.at.count; ++m) {
    Matrix matrix;
    std::memcpy(matrix, call.words(1) + m * warpLanes, sizeof matrix);
    if (call.at.transposed)
      transpose(matrix);
    uint16_t stored[8][warpLanes]; // as a store of eight elements by each lane
    for (unsigned r = 0; r < rowsOfMatrix; ++r)
      for (unsigned e = 0; e < rowsOfMatrix; ++e)
        stored[e][m * rowsOfMatrix + r] = matrix[r][e];
    for (unsigned r = 0; r < rowsOfMatrix; ++r) {
      const unsigned from = m * rowsOfMatrix + r;
      const Place place = accessLane(call.warp, call.at, Space::Shared, from, call.value(0, from), rowBytes,
                                     Access::Write, std::nullopt, reinterpret_cast<const uint8_t *>(stored));
      if (place.data)
        std::memcpy(place.data, matrix[r], rowBytes);
    }
  }
}

} // namespace hloc::emulator
