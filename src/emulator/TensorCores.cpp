// Rounding. The ISA leaves the order and the precision of the sum open. Integer sums wrap, or saturate once at the end
// with .satfinite. Products of floats are exact, and the sum of a row is formed in f64 starting from c and rounded
// once; with a seed it is what tensor cores make of it (Summation).
#include "TensorCores.h"

#include "hloc/emulator/Emulator.h"
#include "hloc/support/WideHosts.h"

#include <algorithm>
#include <cmath>

namespace hloc::emulator {
namespace {

constexpr unsigned keptOfBytes = 13; ///< bits of sums of f8

/// What an H100 does: of mma bit for bit (decisions/0014). It has no mma of f8: ptxas widens f8 to f16. wgmma has one
/// of its own, which sums all of k at once and keeps 14 bits.
Summation summationOfHopper(const Decoded &at) {
  constexpr unsigned kept = 25, deepestBlock = 16, all = 52;
  Summation made{.block = std::min<unsigned>(at.shape[2], deepestBlock), .kept = kept, .byFactors = true};
  if (at.from.bits == 8 && at.opcode == Opcode::Wgmma) {
    made.block = at.shape[2];
    made.kept = keptOfBytes;
    made.ofSums = at.type.bits == 16 ? all : keptOfBytes;
  } else if (at.from.bits == 8) {
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

} // namespace

Summation summationOf(const Decoded &at, std::optional<uint64_t> seed) {
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
  if (bytes && (at.opcode == Opcode::Wgmma || (bits >> 17 & 1)))
    made.kept = made.ofSums = keptOfBytes;
  made.block = std::min<unsigned>(made.block, at.shape[2]);
  return made;
}

namespace {

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

constexpr unsigned deepest = 32; ///< factors of one sum

/// A row of d. T holds all products and what the block's exponents may be.
template <typename T>
[[gnu::always_inline]] inline void cutRow(const T *a, const Row<T> *b, const Row<float> &c, unsigned depth,
                                          const Summation &how, Row<double> &value) {
  using Word = typename FloatBits<T>::Word;
  constexpr unsigned mantissa = FloatBits<T>::mantissa, width = sizeof(T) * 8;
  constexpr Word exponents = ((Word(1) << (width - 1 - mantissa)) - 1) << mantissa, twoOnes = exponents >> mantissa;
  value = __builtin_convertvector(c, Row<double>);
  for (unsigned n = 0; n * how.block < depth; ++n) {
    Row<T> terms[deepest], addend = __builtin_convertvector(value, Row<T>), largest = addend;
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
HLOC_FOR_WIDE_HOSTS void addExactly(const Floats &m, Row<double> *d) {
  Row<double> b[deepest];
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
  Row<double> b[deepest];
  for (unsigned k = 0; k < m.depth; ++k)
    b[k] = __builtin_convertvector(m.b[k], Row<double>);
  for (unsigned row = 0; row < m.rows; ++row) {
    double a[deepest];
    for (unsigned k = 0; k < m.depth; ++k)
      a[k] = m.a[row * m.depth + k];
    cutRow<double>(a, b, m.c[row], m.depth, how, d[row]);
  }
}

} // namespace

void multiply(const Floats &given, const Summation &how, Row<double> *d) {
  constexpr unsigned infinity = 255;
  if (!how.block)
    return addExactly(given, d);
  const bool finite = areBetween<0, 0, infinity>(given);
  if (finite && !how.addsLast)
    return cut(given, how, d);
  Floats m = given;
  if (how.addsLast)
    std::fill_n(m.c, m.rows, Row<float>(0));
  if (finite) {
    cut(m, how, d);
  } else { // infinities and NaN decide where they are
    Row<double> decided[mostRows];
    addExactly(m, decided);
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
      d[row] = __builtin_convertvector(__builtin_convertvector(d[row], Row<float>) + given.c[row], Row<double>);
}

namespace {

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

HLOC_FOR_WIDE_HOSTS void addIntegers(const Integers &m, Mode mode, bool saturates, Row<uint32_t> *d) {
  if (!saturates)
    return addProducts(m, mode, d);
  Row<int64_t> sums[mostRows];
  addProducts(m, mode, sums);
  for (unsigned row = 0; row < m.rows; ++row)
    for (unsigned n = 0; n < columns; ++n)
      d[row][n] = uint32_t(std::clamp<int64_t>(sums[row][n], INT32_MIN, INT32_MAX));
}

constexpr uint32_t nanOfSingle = 0x7fffffff;

} // namespace

void multiply(const Integers &m, Mode mode, bool saturates, Row<uint32_t> *d) { addIntegers(m, mode, saturates, d); }

void gatherSums(const uint32_t *words, bool halves, Floats &m) {
  if (halves)
    forEachSum<2>(m.rows, [&](unsigned word, unsigned i, unsigned row, unsigned column) {
      m.c[row][column] = fromHalf(words[word] >> (16 * i) & 0xffff);
    });
  else
    forEachSum<1>(m.rows, [&](unsigned word, unsigned, unsigned row, unsigned column) {
      m.c[row][column] = std::bit_cast<float>(words[word]);
    });
}

void scatterSums(const Row<double> *d, unsigned rows, bool halves, uint32_t *words) {
  if (halves)
    forEachSum<2>(rows, [&](unsigned word, unsigned i, unsigned row, unsigned column) {
      const uint32_t bits = encode(d[row][column], half, Rounding::Nearest);
      words[word] = i ? (words[word] & 0xffff) | bits << 16 : bits;
    });
  else
    forEachSum<1>(rows, [&](unsigned word, unsigned, unsigned row, unsigned column) {
      const auto sum = float(d[row][column]);
      words[word] = sum == sum ? std::bit_cast<uint32_t>(sum) : nanOfSingle;
    });
}

} // namespace hloc::emulator
