// mma. One scheme of fragments covers all shapes (PTX ISA, "Matrix Fragments for mma"). With group = lane / 4,
// inGroup = lane % 4 and p elements of a or b in a register:
//
//   a (rows x k):     register r, element i: row group + 8 * (r odd), column inGroup * p + i + (r / 2) * 4p
//                     of 8 rows: row group, column inGroup * p + i + r * 4p
//   b (k x 8):        register r, element i: row inGroup * p + i + r * 4p, column group
//   c, d (rows x 8):  element i: row group + 8 * (i / 2), column inGroup * 2 + i % 2
//
// Fragments of the whole warp become matrices, whose rows of 8 columns are vectors of the host.
//
// Rounding. The ISA leaves the order and the precision of the sum open. Integer sums wrap, or saturate once at the end
// with .satfinite; f64 is a chain of fma in order of k. Of the others products are exact, and the sum of a row is
// formed in f64 starting from c and rounded once; with a seed it is what tensor cores make of it (Summation).
#include "CollectiveParts.h"
#include "Floats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#if defined(__x86_64__) && !__has_feature(address_sanitizer)
#define HLOC_FOR_WIDE_HOSTS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HLOC_FOR_WIDE_HOSTS
#endif

namespace hloc::emulator {
namespace {

constexpr unsigned columns = 8, mostRows = 16;
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

/// Elements of c or d: index of the word in the lane vectors, element in it, row, column.
template <unsigned perWord, typename Visit> void forEachSum(unsigned rows, Visit visit) {
  for (unsigned i = 0; i < rows * columns / warpLanes; ++i)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      visit(i / perWord * warpLanes + lane, i % perWord, lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
}

float fromHalf(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fff, sign = (bits & 0x8000) << 16;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = 0x7f800000 | magnitude << 13;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00 ? special : std::bit_cast<uint32_t>(scaled)));
}

float fromE4m3(uint32_t bits) {
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

/// What an H100 does, bit for bit (decisions/0014). It has no mma of f8: ptxas widens f8 to f16.
Summation summationOfHopper(const Decoded &at) {
  constexpr unsigned kept = 25, deepest = 16, all = 52;
  Summation made{.block = std::min<unsigned>(at.shape[2], deepest), .kept = kept, .byFactors = true};
  if (at.from.bits == 8) {
    made.block = at.shape[2] / 2;
    made.inPairs = made.addsLast = true;
  } else if (at.type.bits == 16) {
    made.ofSums = all;
  }
  return made;
}

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

Summation summationOf(const Decoded &at, std::optional<uint64_t> seed) {
  constexpr unsigned keptOfBytes = 13;
  if (!seed || *seed == EmulatorOptions::largestApproximations)
    return {};
  const bool bytes = at.from.bits == 8;
  if (*seed == EmulatorOptions::smallestApproximations)
    return {.block = 4, .kept = bytes ? keptOfBytes : 23, .ofSums = bytes ? keptOfBytes : 23};
  const uint64_t bits = mix(*seed + mix(uint64_t(at.from.kind) << 16 | at.from.bits));
  constexpr unsigned hopperIn = 3; // seeds
  if (*seed == EmulatorOptions::hopperApproximations || (bits >> 24) % hopperIn == 0)
    return summationOfHopper(at);
  Summation made{.block = 4u << bits % 3, .kept = 23 + unsigned(bits >> 8) % 3, .descending = (bits >> 16 & 1) != 0};
  if (bytes && (bits >> 17 & 1))
    made.kept = made.ofSums = keptOfBytes;
  made.block = std::min<unsigned>(made.block, at.shape[2]);
  return made;
}

template <typename T> struct FloatBits;
template <> struct FloatBits<float> {
  using Word = uint32_t;
  static constexpr unsigned mantissa = 23;
};
template <> struct FloatBits<double> {
  using Word = uint64_t;
  static constexpr unsigned mantissa = 52;
};

// Vectors are handed on by reference, and cast: their ABI differs from host to host.

template <typename T> [[gnu::always_inline]] inline void dropSigns(Row<T> &x) {
  using Word = typename FloatBits<T>::Word;
  x = reinterpret_cast<Row<T>>(reinterpret_cast<Row<Word>>(x) & (~Word(0) >> 1));
}

/// The power of two in each, or zero.
template <typename T> [[gnu::always_inline]] inline void dropMantissas(Row<T> &x) {
  using Word = typename FloatBits<T>::Word;
  constexpr Word mantissa = (Word(1) << FloatBits<T>::mantissa) - 1;
  x = reinterpret_cast<Row<T>>(reinterpret_cast<Row<Word>>(x) & ~mantissa);
}

/// Where the i-th of the n-th block of k is.
[[gnu::always_inline]] inline unsigned indexOf(const Summation &how, unsigned depth, unsigned n, unsigned i) {
  if (how.inPairs)
    return i / 2 * 4 + n * 2 + i % 2;
  return (how.descending ? depth - (n + 1) * how.block : n * how.block) + i;
}

/// A row of d. T holds all products and what the block's exponents may be.
template <typename T>
[[gnu::always_inline]] inline void cutRow(const T *a, const Row<T> *b, const Row<float> &c, unsigned depth,
                                          const Summation &how, Row<double> &value) {
  using Word = typename FloatBits<T>::Word;
  constexpr unsigned mantissa = FloatBits<T>::mantissa, width = sizeof(T) * 8;
  constexpr Word exponents = ((Word(1) << (width - 1 - mantissa)) - 1) << mantissa, twoOnes = exponents >> mantissa;
  value = __builtin_convertvector(c, Row<double>);
  for (unsigned n = 0; n * how.block < depth; ++n) {
    Row<T> terms[16], addend = __builtin_convertvector(value, Row<T>), largest = addend;
    dropSigns<T>(largest);
    for (unsigned i = 0; i < how.block; ++i) {
      const unsigned k = indexOf(how, depth, n, i);
      Row<T> magnitude = terms[i] = a[k] * b[k];
      if (how.byFactors) {
        Row<T> left = a[k], right = b[k];
        dropMantissas<T>(left);
        dropMantissas<T>(right);
        magnitude = left * right;
      }
      dropSigns<T>(magnitude);
      largest = magnitude > largest ? magnitude : largest;
    }
    // Zeros count as very small.
    const Row<Word> least = Word(how.kept + 4) << mantissa, found = reinterpret_cast<Row<Word>>(largest) & exponents;
    const Row<Word> exponent = found > least ? found : least;
    const auto quantum = reinterpret_cast<Row<T>>(exponent - (Word(how.kept) << mantissa));
    const auto inverse = reinterpret_cast<Row<T>>(((twoOnes - 1 + how.kept) << mantissa) - exponent);
    // Terms have up to 27 bits: so many fit.
    constexpr unsigned part = 8;
    Row<double> sum = 0;
    Row<int32_t> whole = __builtin_convertvector(addend * inverse, Row<int32_t>);
    for (unsigned i = 0; i < how.block; ++i) {
      whole += __builtin_convertvector(terms[i] * inverse, Row<int32_t>);
      if (i % part == part - 1 || i == how.block - 1) {
        sum += __builtin_convertvector(whole, Row<double>);
        whole = 0;
      }
    }
    value = sum * __builtin_convertvector(quantum, Row<double>);
    const uint64_t kept = ~uint64_t(0) << (52 - how.ofSums);
    value = reinterpret_cast<Row<double>>(reinterpret_cast<Row<uint64_t>>(value) & kept);
  }
}

/// Whether all are zero or of a magnitude between two powers of two.
template <unsigned least, unsigned limit>
[[gnu::always_inline]] inline bool areBetween(const Row<float> *x, unsigned count) {
  Row<uint32_t> outside = 0;
  for (unsigned i = 0; i < count; ++i) {
    const Row<uint32_t> magnitude = reinterpret_cast<const Row<uint32_t> &>(x[i]) & 0x7fffffffu;
    outside |=
        reinterpret_cast<Row<uint32_t>>((magnitude - (least << 23) >= ((limit - least) << 23)) & (magnitude != 0));
  }
  return !__builtin_reduce_or(outside);
}

template <unsigned least, unsigned ofSums, unsigned limit>
[[gnu::always_inline]] inline bool areBetween(const Floats &m) {
  return areBetween<least, limit>(reinterpret_cast<const Row<float> *>(m.a), m.rows * m.depth / columns) &&
         areBetween<least, limit>(m.b, m.depth) && areBetween<ofSums, limit>(m.c, m.rows);
}

/// Exact sums.
HLOC_FOR_WIDE_HOSTS void multiply(const Floats &m, Row<double> *d) {
  Row<double> b[32];
  for (unsigned k = 0; k < m.depth; ++k)
    b[k] = __builtin_convertvector(m.b[k], Row<double>);
  for (unsigned row = 0; row < m.rows; ++row) {
    Row<double> sum = __builtin_convertvector(m.c[row], Row<double>);
    for (unsigned k = 0; k < m.depth; ++k)
      sum += double(m.a[row * m.depth + k]) * b[k];
    d[row] = sum;
  }
}

/// Of finite numbers.
HLOC_FOR_WIDE_HOSTS void cut(const Floats &m, const Summation &how, Row<double> *d) {
  // 2^-45 to 2^46, and sums from 2^-97 on: products and their quotients are numbers of f32.
  constexpr unsigned least = 82, leastOfSums = 30, limit = 173;
  if (areBetween<least, leastOfSums, limit>(m)) {
    for (unsigned row = 0; row < m.rows; ++row)
      cutRow<float>(m.a + row * m.depth, m.b, m.c[row], m.depth, how, d[row]);
    return;
  }
  Row<double> b[32];
  for (unsigned k = 0; k < m.depth; ++k)
    b[k] = __builtin_convertvector(m.b[k], Row<double>);
  for (unsigned row = 0; row < m.rows; ++row) {
    double a[32];
    for (unsigned k = 0; k < m.depth; ++k)
      a[k] = m.a[row * m.depth + k];
    cutRow<double>(a, b, m.c[row], m.depth, how, d[row]);
  }
}

void multiply(Floats m, const Summation &how, Row<double> *d) {
  Row<float> c[mostRows];
  if (how.addsLast) {
    std::copy_n(m.c, m.rows, c);
    std::fill_n(m.c, m.rows, Row<float>(0));
  }
  constexpr unsigned infinity = 255;
  if (!how.block) {
    multiply(m, d);
  } else if (areBetween<0, 0, infinity>(m)) {
    cut(m, how, d);
  } else { // infinities and NaN decide where they are
    Row<double> decided[mostRows];
    multiply(m, decided);
    auto drop = [](float &x) { x = std::isfinite(x) ? x : 0; };
    std::for_each_n(m.a, m.rows * m.depth, drop);
    for (auto [rows, count] : {std::pair(m.b, m.depth), {m.c, m.rows}})
      std::for_each_n(reinterpret_cast<float *>(rows), count * columns, drop);
    cut(m, how, d);
    for (unsigned row = 0; row < m.rows; ++row)
      for (unsigned n = 0; n < columns; ++n)
        d[row][n] = std::isfinite(decided[row][n]) ? d[row][n] : decided[row][n];
  }
  if (how.addsLast)
    for (unsigned row = 0; row < m.rows; ++row)
      d[row] = __builtin_convertvector(__builtin_convertvector(d[row], Row<float>) + c[row], Row<double>);
}

HLOC_FOR_WIDE_HOSTS void multiply(const Doubles &m, Row<double> *d) {
  for (unsigned row = 0; row < m.rows; ++row) {
    Row<double> sum = m.c[row];
    for (unsigned k = 0; k < m.depth; ++k)
      sum = __builtin_elementwise_fma(Row<double>(m.a[row * m.depth + k]), m.b[k], sum);
    d[row] = sum;
  }
}

template <typename Sum> [[gnu::always_inline]] inline void addProducts(const Integers &m, Mode mode, Row<Sum> *d) {
  for (unsigned row = 0; row < m.rows; ++row) {
    Row<Sum> sum = __builtin_convertvector(m.c[row], Row<Sum>);
    for (unsigned k = 0; k < m.depth; ++k) {
      const Row<int32_t> x = m.a[row * m.depth + k], y = m.b[k];
      const Row<int32_t> product = mode == Mode::Xor ? x ^ y : mode == Mode::And ? x & y : x * y;
      sum += __builtin_convertvector(product, Row<Sum>);
    }
    d[row] = sum;
  }
}

HLOC_FOR_WIDE_HOSTS void multiply(const Integers &m, Mode mode, bool saturates, Row<uint32_t> *d) {
  if (!saturates)
    return addProducts(m, mode, d);
  Row<int64_t> sums[mostRows];
  addProducts(m, mode, sums);
  for (unsigned row = 0; row < m.rows; ++row)
    for (unsigned n = 0; n < columns; ++n)
      d[row][n] = uint32_t(std::clamp<int64_t>(sums[row][n], INT32_MIN, INT32_MAX));
}

constexpr uint32_t nanOfSingle = 0x7fffffff;

/// f32 and f16 sums.
void multiplyFloats(const CollectiveCall &call) {
  const Decoded &at = call.at;
  Floats m;
  m.rows = at.shape[0];
  m.depth = at.shape[2];
  withFloats(at.from, [&](auto bits, auto decode) { gatherA<uint32_t, bits>(call.operands[0], m, decode); });
  withFloats(at.typeB, [&](auto bits, auto decode) { gatherB<uint32_t, bits>(call.operands[1], m, decode); });
  const bool halves = at.type.bits == 16;
  const uint32_t *c = call.words(2);
  uint32_t *results = call.resultWords();
  if (halves)
    forEachSum<2>(m.rows, [&](unsigned word, unsigned i, unsigned row, unsigned column) {
      m.c[row][column] = fromHalf(c[word] >> (16 * i) & 0xffff);
    });
  else
    forEachSum<1>(m.rows, [&](unsigned word, unsigned, unsigned row, unsigned column) {
      m.c[row][column] = std::bit_cast<float>(c[word]);
    });
  Row<double> d[mostRows];
  multiply(m, summationOf(at, call.warp.core->launch.options.approximationSeed), d);
  if (halves)
    forEachSum<2>(m.rows, [&](unsigned word, unsigned i, unsigned row, unsigned column) {
      const uint32_t bits = encode(d[row][column], half, Rounding::Nearest);
      results[word] = i ? (results[word] & 0xffff) | bits << 16 : bits;
    });
  else
    forEachSum<1>(m.rows, [&](unsigned word, unsigned, unsigned row, unsigned column) {
      const auto sum = float(d[row][column]);
      results[word] = sum == sum ? std::bit_cast<uint32_t>(sum) : nanOfSingle;
    });
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
