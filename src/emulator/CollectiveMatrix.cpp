// Matrix fragments. One scheme covers all shapes of mma (PTX ISA, "Matrix Fragments for mma"). With group = lane / 4,
// inGroup = lane % 4 and p elements of a or b in a register:
//
//   a (rows x k):     register r, element i: row group + 8 * (r odd), column inGroup * p + i + (r / 2) * 4p
//                     of 8 rows: row group, column inGroup * p + i + r * 4p
//   b (k x 8):        register r, element i: row inGroup * p + i + r * 4p, column group
//   c, d (rows x 8):  element i: row group + 8 * (i / 2), column inGroup * 2 + i % 2
//
// Rounding. The ISA leaves the order and the precision of the sum open. Here products are exact, the sum of a row is
// formed in f64 starting from c, and is rounded once to the result type. f64 is a chain of fma in order of k. Integer
// sums wrap, or saturate once at the end with .satfinite.
#include "CollectiveParts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace hloc::emulator {
namespace {

constexpr unsigned columns = 8;

/// Exact value of a float input of mma.
double decodeFloat(uint64_t bits, Type type) {
  switch (type.kind) {
  case TypeClass::Bfloat:
    return decode(uint32_t(bits), bfloat);
  case TypeClass::Tf32: // hardware ignores the low mantissa bits
    return std::bit_cast<float>(uint32_t(bits) & 0xffffe000);
  case TypeClass::E4m3:
    return decodeE4m3(uint8_t(bits));
  case TypeClass::E5m2:
    return decode(uint32_t(bits) << 8, half);
  default:
    return type.bits == 64   ? std::bit_cast<double>(bits)
           : type.bits == 32 ? double(std::bit_cast<float>(uint32_t(bits)))
                             : decode(uint32_t(bits), half);
  }
}

int64_t decodeInteger(uint64_t bits, Type type) {
  const uint64_t value = bits & ((1ull << type.bits) - 1);
  return type.isSigned() && (value >> (type.bits - 1) & 1) ? int64_t(value) - (1ll << type.bits) : int64_t(value);
}

/// Bits of the elements of a fragment in the registers of one lane.
class Fragment {
public:
  Fragment(const void *vectors, Type type) : data(static_cast<const uint8_t *>(vectors)), type(type) {}
  unsigned registerBits() const { return type.bits == 64 ? 64 : 32; }
  unsigned perRegister() const { return registerBits() / type.bits; }
  uint64_t bits(unsigned lane, unsigned index) const {
    const unsigned bytes = registerBits() / 8, r = index / perRegister(), i = index % perRegister();
    const uint64_t word = CollectiveCall::valueIn(data + r * warpLanes * bytes, registerBits(), lane);
    return type.bits == 64 ? word : word >> (i * type.bits) & ((1ull << type.bits) - 1);
  }

private:
  const uint8_t *data;
  Type type;
};

struct Position {
  unsigned row, column;
};

Position positionA(unsigned lane, unsigned index, unsigned rows, unsigned per) {
  const unsigned r = index / per, block = rows == 16 ? r / 2 : r;
  return {lane / 4 + (rows == 16 && r % 2 ? 8 : 0), lane % 4 * per + index % per + block * 4 * per};
}

Position positionB(unsigned lane, unsigned index, unsigned per) {
  return {lane % 4 * per + index % per + index / per * 4 * per, lane / 4};
}

Position positionC(unsigned lane, unsigned index) { return {lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2}; }

template <typename T> struct Matrices {
  std::vector<T> a, b;
  unsigned depth;
  const T &left(unsigned row, unsigned k) const { return a[row * depth + k]; }
  const T &right(unsigned k, unsigned column) const { return b[k * columns + column]; }
};

template <typename T, typename Decode> Matrices<T> gather(const CollectiveCall &call, Decode decodeElement) {
  const Decoded &at = call.at;
  const unsigned rows = at.shape[0], depth = at.shape[2];
  Matrices<T> m{std::vector<T>(rows * depth), std::vector<T>(depth * columns), depth};
  const Fragment a(call.operands[0], at.from), b(call.operands[1], at.typeB);
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    for (unsigned i = 0; i < rows * depth / warpLanes; ++i) {
      auto [row, column] = positionA(lane, i, rows, a.perRegister());
      m.a[row * depth + column] = decodeElement(a.bits(lane, i), at.from);
    }
    for (unsigned i = 0; i < depth * columns / warpLanes; ++i) {
      auto [row, column] = positionB(lane, i, b.perRegister());
      m.b[row * columns + column] = decodeElement(b.bits(lane, i), at.typeB);
    }
  }
  return m;
}

/// Element i of c of a lane, and its place in d.
void setElement(const CollectiveCall &call, unsigned lane, unsigned index, uint64_t bits) {
  const Type type = call.at.type;
  const unsigned registerBits = type.bits == 64 ? 64 : 32, per = registerBits / type.bits;
  uint8_t *vector = static_cast<uint8_t *>(call.results[0]) + index / per * warpLanes * registerBits / 8;
  uint64_t word = bits;
  if (per == 2) {
    const uint64_t old = CollectiveCall::valueIn(vector, 32, lane);
    word = index % 2 ? (old & 0xffff) | bits << 16 : (old & 0xffff0000) | bits;
  }
  CollectiveCall::setIn(vector, registerBits, lane, word);
}

uint64_t encodeFloat(double value, Type type) {
  if (type.bits == 64)
    return std::isnan(value) ? 0x7fffffffffffffff : std::bit_cast<uint64_t>(value);
  return encode(value, type.bits == 32 ? single : half, Rounding::Nearest);
}

template <typename Element> void forEachElement(const CollectiveCall &call, Element element) {
  const unsigned count = call.at.shape[0] * columns / warpLanes;
  call.forEachLane([&](unsigned lane) {
    for (unsigned i = 0; i < count; ++i)
      setElement(call, lane, i, element(lane, i, positionC(lane, i)));
  });
}

void multiplyFloats(const CollectiveCall &call) {
  const Matrices<double> m = gather<double>(call, decodeFloat);
  const Fragment c(call.operands[2], call.at.typeC);
  const bool wide = call.at.type.bits == 64;
  forEachElement(call, [&](unsigned lane, unsigned i, Position p) {
    double sum = decodeFloat(c.bits(lane, i), call.at.typeC);
    for (unsigned k = 0; k < m.depth; ++k)
      sum =
          wide ? std::fma(m.left(p.row, k), m.right(k, p.column), sum) : sum + m.left(p.row, k) * m.right(k, p.column);
    return encodeFloat(sum, call.at.type);
  });
}

void multiplyIntegers(const CollectiveCall &call) {
  const Matrices<int64_t> m = gather<int64_t>(call, decodeInteger);
  const Fragment c(call.operands[2], call.at.typeC);
  forEachElement(call, [&](unsigned lane, unsigned i, Position p) {
    int64_t sum = int32_t(c.bits(lane, i));
    for (unsigned k = 0; k < m.depth; ++k) {
      const int64_t x = m.left(p.row, k), y = m.right(k, p.column);
      sum += call.at.mode == Mode::Xor ? x ^ y : call.at.mode == Mode::And ? x & y : x * y;
    }
    if (call.at.satfinite)
      sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
    return uint64_t(uint32_t(sum));
  });
}

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

void runMultiply(const CollectiveCall &call) {
  if (call.at.type.isFloat())
    multiplyFloats(call);
  else
    multiplyIntegers(call);
}

} // namespace hloc::emulator
