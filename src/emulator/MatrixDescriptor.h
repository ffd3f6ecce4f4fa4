#pragma once
// Where wgmma finds a matrix in shared memory: descriptors of 64 bits (PTX ISA, "Asynchronous warpgroup level matrix
// shared memory layout"). The matrix has `extent` rows along m or n, and 32 bytes along k. It goes by chunks of 16
// bytes, of which `span` bytes stand in a row of a swizzle's atom of eight rows (without one: 16).
//
//   bits     0..13 start   16..29 leading   32..45 stride   49..51 base offset   62..63 swizzle: none, 128, 64, 32
//   bytes
//            addresses and distances in units of 16 bytes
//
//   along k  (a chunk: 16 bytes of one row)         chunk c of row r: (r % 8) span + (r / 8) stride
//                                                                     + c (swizzled: 16, else leading)
//   along m, n  (a chunk: 8 rows at one k, 16 bits each)
//            swizzled, s = span / 16:  chunk j at k:  (j % s) 16 + (j / s) leading + (k % 8) span + (k / 8) stride
//            not swizzled:             chunk j at k:  j stride + (k % 8) 16 + (k / 8) leading
//
// Then the swizzle: bits 4 to 6 (4 to 5, 4) of the address are combined by xor with bits 7 to 9 (7 to 8, 7), less the
// base offset. It is a matter of addresses, so that a start within the atom's first row finds what belongs there.

#include <cstdint>
#include <string>

namespace hloc::emulator {

struct MatrixDescriptor {
  static constexpr unsigned chunkBytes = 16, depthBytes = 32, rowsOfAtom = 8;

  uint32_t start = 0, leading = 0, stride = 0; ///< bytes
  uint32_t base = 0;                           ///< of the pattern, in 128 bytes
  uint32_t span = 0;                           ///< 0: not swizzled
  bool alongRows = false;                      ///< elements of one k are neighbours: "MN-major"
  bool hasUnknownBits = false;

  static MatrixDescriptor decode(uint64_t bits, bool alongRows);
  /// What is wrong with it, for so many rows; empty if nothing is.
  std::string problem(unsigned extent) const;

  uint32_t swizzled(uint32_t address) const {
    const uint32_t phase = ((address >> 7) - base) & (span ? span / chunkBytes - 1 : 0);
    return address ^ phase << 4;
  }
  /// Along k: of row `row` the 16 bytes number `part`.
  uint32_t chunkAlongDepth(unsigned row, unsigned part) const {
    const uint32_t pitch = span ? span : chunkBytes, next = span ? chunkBytes : leading;
    return swizzled(start + row % rowsOfAtom * pitch + row / rowsOfAtom * stride + part * next);
  }
  /// Along m or n: the rows 8 `part` to 8 `part` + 7 at `k`.
  uint32_t chunkAlongRows(unsigned part, unsigned k) const {
    const unsigned rest = k % rowsOfAtom, block = k / rowsOfAtom;
    if (!span)
      return start + part * stride + rest * chunkBytes + block * leading;
    const unsigned ofSpan = span / chunkBytes;
    return swizzled(start + part % ofSpan * chunkBytes + part / ofSpan * leading + rest * span + block * stride);
  }

  /// Calls visit(address, row, part) for all chunks of rows `begin` to `end`, both multiples of 8: `part` is that along
  /// k, or if the matrix lies along its rows, `row` the first of eight and `part` the place along k.
  template <typename Visit> void forEachChunk(unsigned begin, unsigned end, Visit visit) const {
    constexpr unsigned bytesOfElement = 2;
    if (!alongRows)
      for (unsigned row = begin; row < end; ++row)
        for (unsigned part = 0; part < depthBytes / chunkBytes; ++part)
          visit(chunkAlongDepth(row, part), row, part);
    else
      for (unsigned k = 0; k < depthBytes / bytesOfElement; ++k)
        for (unsigned row = begin; row < end; row += rowsOfAtom)
          visit(chunkAlongRows(row / rowsOfAtom, k), row, k);
  }
};

} // namespace hloc::emulator
