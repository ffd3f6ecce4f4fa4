// mma. Fragments of the whole warp become matrices (TensorCores.h). With group = lane / 4, inGroup = lane % 4 and p
// elements of b in a register:
//
//   b (k x 8):        register r, element i: row inGroup * p + i + r * 4p, column group
//
// f64 is a chain of fma in order of k.
#include "CollectiveParts.h"
#include "TensorCores.h"
#include "hloc/support/WideHosts.h"

#include <bit>
#include <cstring>

namespace hloc::emulator {
namespace {

template <typename Word, unsigned bits, typename M, typename Decode>
void gatherB(const void *vectors, M &m, Decode decode) {
  constexpr unsigned per = sizeof(Word) * 8 / bits;
  for (unsigned r = 0; r < m.depth * columns / warpLanes / per; ++r)
    for (unsigned lane = 0; lane < warpLanes; ++lane) {
      auto *to = m.b + lane % 4 * per + r * 4 * per;
      forEachElement<Word, bits>(wordAt<Word>(vectors, r * warpLanes + lane),
                                 [&](unsigned i, Word element) { to[i][lane / 4] = decode(element); });
    }
}

HLOC_FOR_WIDE_HOSTS void multiply(const Doubles &m, Row<double> *d) {
  for (unsigned row = 0; row < m.rows; ++row) {
    Row<double> sum = m.c[row];
    for (unsigned k = 0; k < m.depth; ++k)
      sum = __builtin_elementwise_fma(Row<double>(m.a[row * m.depth + k]), m.b[k], sum);
    d[row] = sum;
  }
}

/// f32 and f16 sums.
void multiplyFloats(const CollectiveCall &call) {
  const Decoded &at = call.at;
  Floats m;
  m.rows = at.shape[0];
  m.depth = at.shape[2];
  withFloats(at.from, [&](auto bits, auto decode) { gatherA<uint32_t, bits>(call.operands[0], m, decode); });
  withFloats(at.typeB, [&](auto bits, auto decode) { gatherB<uint32_t, bits>(call.operands[1], m, decode); });
  const bool halves = at.type.bits == 16;
  gatherSums(call.words(2), halves, m);
  Row<double> d[mostRows];
  multiply(m, summationOf(at, call.warp.core->launch.options.approximationSeed), d);
  scatterSums(d, m.rows, halves, call.resultWords());
}

void multiplyDoubles(const CollectiveCall &call) {
  constexpr uint64_t nan = 0x7fffffffffffffff;
  Doubles m;
  m.rows = call.at.shape[0];
  m.depth = call.at.shape[2];
  const auto decode = [](uint64_t bits) { return std::bit_cast<double>(bits); };
  gatherA<uint64_t, 64>(call.operands[0], m, decode);
  gatherB<uint64_t, 64>(call.operands[1], m, decode);
  forEachSum<1>(m.rows, [&](unsigned word, unsigned, unsigned row, unsigned column) {
    m.c[row][column] = decode(wordAt<uint64_t>(call.operands[2], word));
  });
  Row<double> d[mostRows];
  multiply(m, d);
  forEachSum<1>(m.rows, [&](unsigned word, unsigned, unsigned row, unsigned column) {
    const double sum = d[row][column];
    const uint64_t bits = sum == sum ? std::bit_cast<uint64_t>(sum) : nan;
    std::memcpy(static_cast<uint8_t *>(call.results[0]) + word * sizeof bits, &bits, sizeof bits);
  });
}

template <unsigned bits> void gatherIntegers(const CollectiveCall &call, Integers &m) {
  auto decoder = [](Type type) {
    const uint32_t sign = type.isSigned() ? 1u << (type.bits - 1) : 0;
    return [sign](uint32_t element) { return int32_t((element ^ sign) - sign); };
  };
  gatherA<uint32_t, bits>(call.operands[0], m, decoder(call.at.from));
  gatherB<uint32_t, bits>(call.operands[1], m, decoder(call.at.typeB));
}

void multiplyIntegers(const CollectiveCall &call) {
  const Decoded &at = call.at;
  Integers m;
  m.rows = at.shape[0];
  m.depth = at.shape[2];
  if (at.from.bits == 8)
    gatherIntegers<8>(call, m);
  else if (at.from.bits == 4)
    gatherIntegers<4>(call, m);
  else
    gatherIntegers<1>(call, m);
  forEachSum<1>(m.rows, [&](unsigned word, unsigned, unsigned row, unsigned column) {
    m.c[row][column] = int32_t(call.words(2)[word]);
  });
  Row<uint32_t> d[mostRows];
  multiply(m, at.mode, at.satfinite, d);
  forEachSum<1>(m.rows, [&](unsigned word, unsigned, unsigned row, unsigned column) {
    call.resultWords()[word] = d[row][column];
  });
}

} // namespace

void runMultiply(const CollectiveCall &call) {
  if (!call.at.type.isFloat())
    multiplyIntegers(call);
  else if (call.at.type.bits == 64)
    multiplyDoubles(call);
  else
    multiplyFloats(call);
}

} // namespace hloc::emulator
