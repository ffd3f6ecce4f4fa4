// wgmma of all types, shapes, orders and swizzles against sums written down plainly. Matrices are laid out in shared
// memory as bulk copies lay out tiles: by rows whose 16-byte chunks change places by the number of the row.
#include "Harness.h"

#include "emulator/Floats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

struct Input {
  std::string name;
  unsigned bits;
  double (*decode)(uint64_t);
};
const Input bf16{"bf16", 16, [](uint64_t bits) { return decode(uint32_t(bits), bfloat); }};
const Input f16{"f16", 16, [](uint64_t bits) { return decode(uint32_t(bits), half); }};
const Input tf32{"tf32", 32, [](uint64_t bits) { return double(std::bit_cast<float>(uint32_t(bits) & 0xffffe000)); }};
const Input e4m3{"e4m3", 8, [](uint64_t bits) { return decodeE4m3(uint8_t(bits)); }};
const Input e5m2{"e5m2", 8, [](uint64_t bits) { return decode(uint32_t(bits) << 8, half); }};
const Input s8{"s8", 8, [](uint64_t bits) { return double(int8_t(bits)); }};
const Input u8{"u8", 8, [](uint64_t bits) { return double(bits); }};
const Input b1{"b1", 1, [](uint64_t bits) { return double(bits); }};

/// How a tile lies: bytes of the swizzle's rows (0: none), and along which of its sides.
struct Layout {
  unsigned span = 128;
  bool alongRows = false;
};

struct Case {
  Input a, b;
  std::string sum = "f32"; ///< f32, f16, s32
  unsigned n = 64;
  Layout layoutA = {}, layoutB = {};
  bool listed = false; ///< a comes from registers
  bool accumulates = true;
  int scaleA = 1, scaleB = 1;
  bool saturates = false;
  unsigned spread = 1; ///< distances between atoms, of the least

  unsigned depth() const { return 256 / a.bits; }
  bool isInteger() const { return sum == "s32"; }
  unsigned sumBits() const { return sum == "f16" ? 16 : 32; }
  unsigned registers() const { return n * sumBits() / 64; }
};

using Matrix = std::vector<std::vector<uint64_t>>; ///< elements' bits, [row or column][k]

void put(std::vector<uint8_t> &image, size_t bit, unsigned bits, uint64_t value) {
  for (unsigned i = 0; i < bits; ++i, ++bit)
    image[bit / 8] = uint8_t((image[bit / 8] & ~(1u << bit % 8)) | (value >> i & 1) << bit % 8);
}

uint64_t descriptorOf(size_t start, size_t leading, size_t stride, unsigned span) {
  const uint64_t mode = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
  return start >> 4 | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | mode << 62;
}

/// Puts the matrix into the image, as the second step of k of a longer one where the layout has room for two. Returns
/// its descriptor.
uint64_t place(std::vector<uint8_t> &image, size_t base, const Matrix &m, unsigned bits, Layout layout,
               unsigned spread) {
  const size_t rows = m.size(), depth = m[0].size(), span = layout.span, atom = 8 * (span ? span : 16) * spread;
  auto at = [&](const std::function<size_t(size_t row, size_t k)> &bitOf) {
    for (size_t row = 0; row < rows; ++row)
      for (size_t k = 0; k < depth; ++k)
        put(image, bitOf(row, k), bits, m[row][k]);
  };
  auto rotated = [&](size_t chunk, size_t line) { // lines of `span` bytes, one after the other
    return chunk ^ (line * span / 128 % (span / 16));
  };
  if (!layout.alongRows && span) {
    const size_t step = span > 32 ? 1 : 0;
    at([&](size_t row, size_t k) {
      const size_t byte = step * 32 + k * bits / 8, chunk = rotated(byte / 16, row % 8);
      return (base + row / 8 * atom + row % 8 * span + chunk * 16 + byte % 16) * 8 + k * bits % 8;
    });
    return descriptorOf(base + step * 32, 16, atom, unsigned(span));
  }
  if (!layout.alongRows) { // bricks of eight rows, column by column
    const size_t leading = rows / 8 * atom;
    at([&](size_t row, size_t k) {
      const size_t byte = k * bits / 8;
      return (base + (2 + byte / 16) * leading + row / 8 * atom + row % 8 * 16 + byte % 16) * 8 + k * bits % 8;
    });
    return descriptorOf(base + 2 * leading, leading, atom, 0);
  }
  const size_t blocks = 4; // of eight k; the matrix is the last two
  if (span) {
    at([&](size_t row, size_t k) {
      const size_t byte = row * 2 % span, line = k % 8;
      return (base + row * 2 / span * blocks * atom + (2 + k / 8) * atom + line * span + rotated(byte / 16, line) * 16 +
              byte % 16) *
             8;
    });
    return descriptorOf(base + 2 * atom, blocks * atom, atom, unsigned(span));
  }
  at([&](size_t row, size_t k) {
    return (base + row / 8 * blocks * atom + (2 + k / 8) * atom + k % 8 * 16 + row % 8 * 2) * 8;
  });
  return descriptorOf(base + 2 * atom, atom, blocks * atom, 0);
}

std::string list(const std::string &prefix, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "{") + prefix + std::to_string(i);
  return text + "}";
}

std::string opcodeOf(const Case &c) {
  return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(c.n) + "k" + std::to_string(c.depth()) +
         (c.saturates ? ".satfinite." : ".") + c.sum + "." + c.a.name + "." + c.b.name +
         (c.a.bits == 1 ? ".and.popc" : "");
}

/// The instruction; descriptors are in %d20 and %d21, a's registers in %a.
std::string instructionOf(const Case &c) {
  std::string text = opcodeOf(c) + " " + list("%w", c.registers()) + ", " + (c.listed ? list("%a", 4) : "%d20") +
                     ", %d21, " + (c.accumulates ? "%p7" : "0");
  if (!c.isInteger())
    text += ", " + std::to_string(c.scaleA) + ", " + std::to_string(c.scaleB);
  if (c.a.bits == 16 && !c.listed)
    text += c.layoutA.alongRows ? ", 1" : ", 0";
  if (c.a.bits == 16)
    text += c.layoutB.alongRows ? ", 1" : ", 0";
  return text + ";\n";
}

constexpr unsigned threads = 128;
constexpr size_t imageBytes = 128 << 10, offsetOfB = 32 << 10;

std::string kernelOf(const std::string &body, unsigned parameters) {
  std::string text = Harness::kernel(body, parameters, ".extern .shared .align 1024 .b8 image[];");
  return text.replace(text.find("sm_100a"), 7, "sm_90a");
}

/// Fills shared memory from p0, a's registers from p1, and the accumulators from p2.
std::string prologueOf(const Case &c, uint64_t a, uint64_t b) {
  const std::string registers = std::to_string(c.registers());
  std::string body = ".reg .b32 %w<" + registers + ">, %a<4>;\n" +
                     "shl.b32 %r10, %r1, 4;\nLOOP: setp.ge.u32 %p1, %r10, " + std::to_string(imageBytes) +
                     ";\n@%p1 bra COPIED;\ncvt.u64.u32 %d22, %r10;\nadd.s64 %d22, %d22, %d1;\n"
                     "ld.global.v4.b32 {%r11, %r12, %r13, %r14}, [%d22];\nmov.u32 %r15, image;\n"
                     "add.s32 %r15, %r15, %r10;\nst.shared.v4.b32 [%r15], {%r11, %r12, %r13, %r14};\n"
                     "add.s32 %r10, %r10, 2048;\nbra LOOP;\nCOPIED: fence.proxy.async;\nbar.sync 0;\n"
                     "mul.wide.u32 %d22, %r1, 16;\nadd.s64 %d22, %d22, %d2;\n"
                     "ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%d22];\nmul.wide.u32 %d22, %r1, " +
                     std::to_string(4 * c.registers()) + ";\nadd.s64 %d23, %d22, %d3;\nadd.s64 %d24, %d22, %d4;\n";
  for (unsigned i = 0; i < c.registers(); ++i)
    body += "ld.global.b32 %w" + std::to_string(i) + ", [%d23+" + std::to_string(4 * i) + "];\n";
  return body + "setp.eq.u32 %p7, 0, 0;\nmov.b64 %d20, " + std::to_string(a) + ";\nmov.b64 %d21, " + std::to_string(b) +
         ";\n";
}

std::string epilogueOf(const Case &c) {
  std::string body;
  for (unsigned i = 0; i < c.registers(); ++i)
    body += "st.global.b32 [%d24+" + std::to_string(4 * i) + "], %w" + std::to_string(i) + ";\n";
  return body;
}

struct Operands {
  Matrix a, b, before; ///< before: [row][column]
};

/// Row and column of element `i` of a thread's part of the sums.
std::pair<unsigned, unsigned> placeOfSum(unsigned thread, unsigned i) {
  return {thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2 % 2), i / 4 * 8 + thread % 4 * 2 + i % 2};
}

std::vector<uint32_t> registersOfA(const Case &c, const Matrix &a) {
  std::vector<uint32_t> words(threads * 4);
  const unsigned per = 32 / c.a.bits;
  for (unsigned thread = 0; thread < threads; ++thread)
    for (unsigned r = 0; r < 4; ++r)
      for (unsigned i = 0; i < per; ++i) {
        const unsigned row = thread / 32 * 16 + thread % 32 / 4 + 8 * (r % 2);
        words[thread * 4 + r] |= uint32_t(a[row][thread % 4 * per + i + r / 2 * 4 * per]) << i * c.a.bits % 32;
      }
  return words;
}

struct Prepared {
  std::vector<uint8_t> image;
  std::vector<uint32_t> a, before;
  uint64_t descriptorA, descriptorB;
};

Prepared prepare(const Case &c, const Operands &operands) {
  Prepared made;
  made.image.resize(imageBytes);
  std::mt19937 random(1);
  std::ranges::generate(made.image, [&] { return uint8_t(random()); });
  made.descriptorA = place(made.image, 1024, operands.a, c.a.bits, c.layoutA, c.spread);
  made.descriptorB = place(made.image, offsetOfB, operands.b, c.b.bits, c.layoutB, c.spread);
  made.a = registersOfA(c, operands.a);
  made.before.resize(threads * c.registers());
  const unsigned per = 32 / c.sumBits();
  for (unsigned thread = 0; thread < threads; ++thread)
    for (unsigned i = 0; i < c.registers() * per; ++i) {
      const auto [row, column] = placeOfSum(thread, i);
      made.before[thread * c.registers() + i / per] |= uint32_t(operands.before[row][column]) << i % per * 16;
    }
  return made;
}

void launch(Harness &h, const Case &c, const Prepared &prepared, const std::string &body) {
  h.block = {threads, 1, 1};
  h.dynamicShared = imageBytes;
  h.load(kernelOf(body, 4));
  h.input("image", prepared.image);
  h.input("a", prepared.a);
  h.input("before", prepared.before);
  h.output("d", threads * c.registers() * 4);
  h.launch();
}

const std::string fence = "wgmma.fence.sync.aligned;\n", commit = "wgmma.commit_group.sync.aligned;\n",
                  wait = "wgmma.wait_group.sync.aligned 0;\n";

Matrix multiply(const Case &c, const Operands &operands, std::optional<uint64_t> seed = {}) {
  Harness h;
  h.options.approximationSeed = seed;
  const Prepared prepared = prepare(c, operands);
  launch(h, c, prepared,
         prologueOf(c, prepared.descriptorA, prepared.descriptorB) + fence + instructionOf(c) + commit + wait +
             epilogueOf(c));
  INFO(h.messages());
  REQUIRE(h.silent());
  const auto words = h.read<uint32_t>(3);
  Matrix d(64, std::vector<uint64_t>(c.n));
  const unsigned per = 32 / c.sumBits();
  for (unsigned thread = 0; thread < threads; ++thread)
    for (unsigned i = 0; i < c.registers() * per; ++i) {
      const auto [row, column] = placeOfSum(thread, i);
      d[row][column] = words[thread * c.registers() + i / per] >> i % per * 16 & (per == 2 ? 0xffff : 0xffffffff);
    }
  return d;
}

Matrix randomMatrix(std::mt19937_64 &random, const Input &type, size_t rows, size_t columns, bool isFloat) {
  Matrix m(rows, std::vector<uint64_t>(columns));
  for (auto &row : m)
    for (uint64_t &x : row)
      do
        x = random() & (~uint64_t(0) >> (64 - type.bits));
      while (isFloat && !(std::fabs(type.decode(x)) >= 0x1p-6 && std::fabs(type.decode(x)) < 0x1p4));
  return m;
}

const Input single32{"f32", 32, [](uint64_t bits) { return double(std::bit_cast<float>(uint32_t(bits))); }};
const Input signed32{"s32", 32, [](uint64_t bits) { return double(int32_t(bits)); }};

Input sumOf(const Case &c) { return c.sum == "f16" ? f16 : c.isInteger() ? signed32 : single32; }

Operands operandsFor(std::mt19937_64 &random, const Case &c) {
  return {randomMatrix(random, c.a, 64, c.depth(), !c.isInteger()),
          randomMatrix(random, c.b, c.n, c.depth(), !c.isInteger()),
          randomMatrix(random, sumOf(c), 64, c.n, !c.isInteger())};
}

/// Factors of one sum and what it begins with, in order of k.
using Sum = std::function<double(double before, const std::vector<double> &a, const std::vector<double> &b)>;

double exactSum(double before, const std::vector<double> &a, const std::vector<double> &b) {
  for (size_t k = 0; k < a.size(); ++k)
    before += a[k] * b[k];
  return before;
}

Matrix expected(const Case &c, const Operands &operands, const Sum &sum = exactSum) {
  Matrix d(64, std::vector<uint64_t>(c.n));
  for (unsigned row = 0; row < 64; ++row)
    for (unsigned column = 0; column < c.n; ++column) {
      std::vector<double> a, b;
      for (unsigned k = 0; k < c.depth(); ++k) {
        a.push_back(c.scaleA * c.a.decode(operands.a[row][k]));
        b.push_back(c.scaleB * c.b.decode(operands.b[column][k]));
      }
      const double value = sum(c.accumulates ? sumOf(c).decode(operands.before[row][column]) : 0, a, b);
      if (!c.isInteger())
        d[row][column] = encode(value, c.sum == "f16" ? half : single, Rounding::Nearest);
      else
        d[row][column] =
            uint32_t(c.saturates ? int64_t(std::clamp<double>(value, INT32_MIN, INT32_MAX)) : int64_t(value));
    }
  return d;
}

unsigned differing(const Matrix &a, const Matrix &b) {
  unsigned count = 0;
  for (size_t row = 0; row < a.size(); ++row)
    for (size_t column = 0; column < a[row].size(); ++column)
      count += a[row][column] != b[row][column];
  return count;
}

void check(const Case &c, uint64_t seed = 1) {
  INFO(opcodeOf(c) << " a: " << (c.listed ? "registers" : "") << c.layoutA.span << (c.layoutA.alongRows ? "mn" : "k")
                   << " b: " << c.layoutB.span << (c.layoutB.alongRows ? "mn" : "k") << " spread " << c.spread);
  std::mt19937_64 random(seed);
  const Operands operands = operandsFor(random, c);
  CHECK(differing(multiply(c, operands), expected(c, operands)) == 0);
}

} // namespace

TEST_CASE("wgmma: all layouts of both operands") {
  const std::pair<unsigned, unsigned> spans[] = {{0, 128}, {32, 0}, {64, 32}, {128, 64}};
  for (auto [spanA, spanB] : spans)
    for (bool rowsA : {false, true})
      for (bool rowsB : {false, true})
        check(
            {.a = bf16, .b = bf16, .n = spanB == 64 ? 40u : 96u, .layoutA = {spanA, rowsA}, .layoutB = {spanB, rowsB}},
            spanA + rowsA);
}

TEST_CASE("wgmma: atoms with room between them") {
  for (unsigned span : {0u, 32u, 64u, 128u})
    for (bool alongRows : {false, true})
      check({.a = f16,
             .b = f16,
             .n = 80,
             .layoutA = {span, alongRows},
             .layoutB = {span, alongRows},
             .spread = span == 128 ? 1u : 2u});
}

TEST_CASE("wgmma: all types, from shared memory and from registers") {
  for (bool listed : {false, true})
    for (unsigned span : {0u, 32u, 64u, 128u}) {
      const Layout layout{span, false};
      for (const Case &c : {Case{bf16, bf16}, Case{f16, f16}, Case{f16, f16, "f16"}, Case{tf32, tf32}, Case{e4m3, e4m3},
                            Case{e4m3, e5m2}, Case{e5m2, e4m3, "f16"}, Case{e5m2, e5m2}, Case{s8, s8, "s32"},
                            Case{s8, u8, "s32"}, Case{u8, s8, "s32"}, Case{u8, u8, "s32"}, Case{b1, b1, "s32"}}) {
        Case made = c;
        made.n = 16;
        made.layoutA = made.layoutB = layout;
        made.listed = listed;
        check(made, span);
      }
    }
}

TEST_CASE("wgmma: few and many columns") {
  for (unsigned n : {8u, 16u, 24u, 56u, 64u, 136u, 192u, 256u}) {
    check({.a = bf16, .b = bf16, .n = n, .layoutA = {128, false}, .layoutB = {n % 64 ? 0u : 128u, n % 16 == 0}}, n);
    if (n % 16 == 0 || n == 8 || n == 24)
      check({.a = s8, .b = u8, .sum = "s32", .n = n}, n);
  }
}

TEST_CASE("wgmma: without what was there, negated, saturated") {
  check({.a = bf16, .b = bf16, .accumulates = false});
  check({.a = f16, .b = f16, .sum = "f16", .accumulates = false});
  check({.a = s8, .b = s8, .sum = "s32", .accumulates = false});
  for (auto [a, b] : {std::pair(1, -1), {-1, 1}, {-1, -1}})
    for (bool listed : {false, true}) {
      check({.a = bf16, .b = bf16, .listed = listed, .scaleA = a, .scaleB = b});
      check({.a = tf32, .b = tf32, .listed = listed, .scaleA = a, .scaleB = b});
    }
  for (bool saturates : {false, true}) {
    const Case c{.a = u8, .b = s8, .sum = "s32", .n = 32, .saturates = saturates};
    std::mt19937_64 random(3);
    Operands operands = operandsFor(random, c);
    for (auto &row : operands.before)
      for (uint64_t &x : row)
        x = random() % 2 ? 0x7fffff00 : 0x80000100;
    CHECK(differing(multiply(c, operands), expected(c, operands)) == 0);
  }
}

namespace {

double powerIn(double x) { return x == 0 ? 0 : std::ldexp(1, std::ilogb(x)); }

/// All at once: what is so many bits below the largest is cut off, then so many of the sum are left.
Sum cutTo(int kept, int ofSum) {
  return [=](double before, const std::vector<double> &a, const std::vector<double> &b) {
    double largest = powerIn(before);
    for (size_t k = 0; k < a.size(); ++k)
      largest = std::max(largest, powerIn(std::fabs(a[k])) * powerIn(std::fabs(b[k])));
    largest = std::max(largest, powerIn(std::fabs(before)));
    auto cut = [](double x, double unit) { return std::trunc(x / unit) * unit; };
    double sum = cut(before, largest * std::ldexp(1, -kept));
    for (size_t k = 0; k < a.size(); ++k)
      sum += cut(a[k] * b[k], largest * std::ldexp(1, -kept));
    return sum == 0 ? 0 : cut(sum, powerIn(std::fabs(sum)) * std::ldexp(1, -ofSum));
  };
}

} // namespace

TEST_CASE("wgmma: sums are cut as by an H100") {
  struct Cut {
    Case form;
    int kept, ofSum;
  };
  for (const auto &[form, kept, ofSum] :
       {Cut{{bf16, bf16}, 25, 23}, Cut{{f16, f16}, 25, 23}, Cut{{tf32, tf32}, 25, 23}, Cut{{f16, f16, "f16"}, 25, 52},
        Cut{{e4m3, e5m2}, 13, 13}, Cut{{e4m3, e4m3}, 13, 13}, Cut{{e5m2, e5m2, "f16"}, 13, 52}}) {
    INFO(opcodeOf(form));
    std::mt19937_64 random(9);
    const Operands operands = operandsFor(random, form);
    const Matrix cut = multiply(form, operands, EmulatorOptions::hopperApproximations);
    CHECK(differing(cut, expected(form, operands, cutTo(kept, ofSum))) == 0);
    const bool shows = form.sum != "f16" || form.a.bits == 8; // in a sum of f16
    CHECK((differing(cut, expected(form, operands)) != 0) == shows);
  }
}
