#pragma once
// What tensor cores compute: products of two small matrices, and how their sums are cut off. Shared by mma, whose
// operands all come from registers, and wgmma, which reads shared memory.
//
// Rows of 8 columns are vectors of the host. One scheme of fragments covers all shapes (PTX ISA, "Matrix Fragments for
// mma"). With group = lane / 4, inGroup = lane % 4 and p elements of a in a register:
//
//   a (rows x k):     register r, element i: row group + 8 * (r odd), column inGroup * p + i + (r / 2) * 4p
//                     of 8 rows: row group, column inGroup * p + i + r * 4p
//   c, d (rows x 8):  element i: row group + 8 * (i / 2), column inGroup * 2 + i % 2

#include "Floats.h"
#include "Program.h"
#include "WarpAbi.h"

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

namespace hloc::emulator {

inline constexpr unsigned columns = 8, mostRows = 16;
template <typename T> using Row = T __attribute__((ext_vector_type(8)));

/// Factors and addend of one mma, exactly.
template <typename T, typename Sum, unsigned mostDepth> struct Matrices {
  unsigned rows, depth;
  alignas(64) T a[mostRows * mostDepth]; ///< `depth` a row
  Row<T> b[mostDepth];
  Row<Sum> c[mostRows];
};
using Floats = Matrices<float, float, 32>;
using Doubles = Matrices<double, double, 16>;
using Integers = Matrices<int32_t, int32_t, 256>;

template <typename Word> Word wordAt(const void *vectors, unsigned index) {
  Word word;
  std::memcpy(&word, static_cast<const uint8_t *>(vectors) + index * sizeof(Word), sizeof(Word));
  return word;
}

template <typename Word, unsigned bits, typename Visit> void forEachElement(Word word, Visit visit) {
  constexpr unsigned per = sizeof(Word) * 8 / bits;
  for (unsigned i = 0; i < per; ++i)
    visit(i, per == 1 ? word : Word(word >> (i * bits % (sizeof(Word) * 8)) & ((Word(1) << (bits % 64)) - 1)));
}

template <typename Word, unsigned bits, typename M, typename Decode>
void gatherA(const void *vectors, M &m, Decode decode) {
  constexpr unsigned per = sizeof(Word) * 8 / bits;
  for (unsigned r = 0; r < m.rows * m.depth / warpLanes / per; ++r) {
    const unsigned below = m.rows == 16 && r % 2 ? 8 : 0, behind = (m.rows == 16 ? r / 2 : r) * 4 * per;
    for (unsigned lane = 0; lane < warpLanes; ++lane) {
      auto *to = m.a + (lane / 4 + below) * m.depth + lane % 4 * per + behind;
      forEachElement<Word, bits>(wordAt<Word>(vectors, r * warpLanes + lane),
                                 [&](unsigned i, Word element) { to[i] = decode(element); });
    }
  }
}

/// Elements of c or d: index of the word in the lane vectors, element in it, row, column.
template <unsigned perWord, typename Visit> void forEachSum(unsigned rows, Visit visit) {
  for (unsigned i = 0; i < rows * columns / warpLanes; ++i)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      visit(i / perWord * warpLanes + lane, i % perWord, lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
}

inline float fromHalf(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fff, sign = (bits & 0x8000) << 16;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = 0x7f800000 | magnitude << 13;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00 ? special : std::bit_cast<uint32_t>(scaled)));
}

inline float fromE4m3(uint32_t bits) {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> made;
    for (unsigned i = 0; i < made.size(); ++i)
      made[i] = float(decodeE4m3(uint8_t(i)));
    return made;
  }();
  return values[bits];
}

/// Calls `use` with the width of a factor and the function that makes a float of it.
template <typename Use> void withFloats(Type type, Use use) {
  switch (type.kind) {
  case TypeClass::Bfloat:
    return use(std::integral_constant<unsigned, 16>(), [](uint32_t bits) { return std::bit_cast<float>(bits << 16); });
  case TypeClass::Tf32: // hardware ignores the low mantissa bits
    return use(std::integral_constant<unsigned, 32>(),
               [](uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000); });
  case TypeClass::E4m3:
    return use(std::integral_constant<unsigned, 8>(), fromE4m3);
  case TypeClass::E5m2:
    return use(std::integral_constant<unsigned, 8>(), [](uint32_t bits) { return fromHalf(bits << 8); });
  default:
    return use(std::integral_constant<unsigned, 16>(), fromHalf);
  }
}

/// How tensor cores sum up: c and the products of a block of k are aligned to the largest of them, of which so many
/// bits below the leading one are kept, all below are cut off; their sum is cut to the bits of the result. Then comes
/// the next block. (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021: blocks of 4 to
/// 16, and up to two bits more than an f32 has; f8 of sm_89 keeps 13 bits.)
struct Summation {
  unsigned block = 0; ///< 0: exact, rounded once
  unsigned kept = 23;
  bool descending = false; ///< the last block first
  unsigned ofSums = 23;    ///< so many bits behind the leading one of a sum are kept
  bool byFactors = false;  ///< a product counts as large as the powers of two in its factors make it
  bool inPairs = false;    ///< of two blocks: the first has the first two of each four of k
  bool addsLast = false;   ///< c is added to the sum of the products, and that rounded
};

/// By the opcode, the types and the depth of a multiplication. Without a seed sums are exact.
Summation summationOf(const Decoded &at, std::optional<uint64_t> seed);

/// d = c + a b, row by row; of infinities and NaN, too.
void multiply(const Floats &m, const Summation &how, Row<double> *d);
/// `mode`: And and Xor combine bits instead of multiplying.
void multiply(const Integers &m, Mode mode, bool saturates, Row<uint32_t> *d);

/// Sums from and to the registers of a warp: f32, or pairs of f16.
void gatherSums(const uint32_t *words, bool halves, Floats &m);
void scatterSums(const Row<double> *d, unsigned rows, bool halves, uint32_t *words);

} // namespace hloc::emulator
