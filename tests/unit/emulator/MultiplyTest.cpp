// mma of all types, element by element against sums written down plainly: exact and rounded once, or cut off as tensor
// cores do, in one way for each seed; and against sums that an H100 made.
#include "Harness.h"

#include "emulator/Floats.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <set>
#include <tuple>

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

/// An input type: bits, and what they mean.
struct Input {
  std::string name;
  unsigned bits;
  double (*decode)(uint64_t);
};

double ofTf32(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits) & 0xffffe000); }
double ofSigned(uint64_t bits, unsigned width) { return double(int64_t(bits << (64 - width)) >> (64 - width)); }

const Input bf16{"bf16", 16, [](uint64_t bits) { return decode(uint32_t(bits), bfloat); }};
const Input f16{"f16", 16, [](uint64_t bits) { return decode(uint32_t(bits), half); }};
const Input tf32{"tf32", 32, ofTf32};
const Input e4m3{"e4m3", 8, [](uint64_t bits) { return decodeE4m3(uint8_t(bits)); }};
const Input e5m2{"e5m2", 8, [](uint64_t bits) { return decode(uint32_t(bits) << 8, half); }};
const Input f64{"f64", 64, [](uint64_t bits) { return std::bit_cast<double>(bits); }};
const Input s8{"s8", 8, [](uint64_t bits) { return ofSigned(bits, 8); }};
const Input u8{"u8", 8, [](uint64_t bits) { return double(bits); }};
const Input s4{"s4", 4, [](uint64_t bits) { return ofSigned(bits, 4); }};
const Input u4{"u4", 4, [](uint64_t bits) { return double(bits); }};
const Input b1{"b1", 1, [](uint64_t bits) { return double(bits); }};

struct Form {
  unsigned m, k;
  Input a, b;
  std::string sum; ///< f32, f16, f64, s32
  std::string suffix = "", infix = "";
};

/// Matrices of bits.
struct Operands {
  std::vector<uint64_t> a, b, c;
};

/// Where an element of a fragment is: register and position in it, by lane.
std::vector<uint32_t> fragment(const std::vector<uint64_t> &elements, unsigned bits, unsigned count,
                               const std::function<size_t(unsigned lane, unsigned r, unsigned i)> &index) {
  const unsigned registerBits = std::max(32u, bits), per = registerBits / bits, words = registerBits / 32;
  const unsigned registers = count / 32 / per;
  std::vector<uint32_t> made(32 * registers * words);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned r = 0; r < registers; ++r) {
      uint64_t word = 0;
      for (unsigned i = 0; i < per; ++i)
        word |= elements[index(lane, r, i)] << (i * bits % 64);
      for (unsigned w = 0; w < words; ++w)
        made[(lane * registers + r) * words + w] = uint32_t(word >> (32 * w));
    }
  return made;
}

std::string registersFrom(const std::string &prefix, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "{") + prefix + std::to_string(i);
  return text + "}";
}

/// The bits of d, row by row.
std::vector<uint64_t> multiply(const Form &form, const Operands &operands, std::optional<uint64_t> seed) {
  const unsigned perA = std::max(1u, 32 / form.a.bits), sumBits = form.sum == "f64" ? 64 : form.sum == "f16" ? 16 : 32;
  const unsigned sumRegister = std::max(32u, sumBits), perSum = sumRegister / sumBits;
  auto indexA = [&](unsigned lane, unsigned r, unsigned i) {
    const unsigned row = lane / 4 + (form.m == 16 ? 8 * (r % 2) : 0), part = form.m == 16 ? r / 2 : r;
    return row * form.k + lane % 4 * perA + i + part * 4 * perA;
  };
  auto indexB = [&](unsigned lane, unsigned r, unsigned i) {
    return (lane % 4 * perA + i + r * 4 * perA) * 8 + lane / 4;
  };
  auto indexC = [&](unsigned lane, unsigned r, unsigned i) {
    const unsigned element = r * perSum + i;
    return (lane / 4 + 8 * (element / 2)) * 8 + lane % 4 * 2 + element % 2;
  };
  const auto a = fragment(operands.a, form.a.bits, form.m * form.k, indexA);
  const auto b = fragment(operands.b, form.a.bits, form.k * 8, indexB);
  const auto c = fragment(operands.c, sumBits, form.m * 8, indexC);
  std::string body = ".reg .b32 %w<100>;\n.reg .b64 %x<100>;\n";
  unsigned next = 0;
  auto load = [&](unsigned parameter, size_t words, unsigned bits) {
    const unsigned bytes = std::max(32u, bits) / 8, count = unsigned(words / 32 * 4 / bytes);
    const std::string prefix = bytes == 8 ? "%x" : "%w", at = std::to_string(parameter);
    body += "mul.wide.u32 %d20, %r1, " + std::to_string(count * bytes) + ";\nadd.s64 %d20, %d20, %d" + at + ";\n";
    const unsigned first = next;
    next += 20;
    std::string list;
    for (unsigned i = 0; i < count; ++i) {
      const std::string name = prefix + std::to_string(first + i);
      body += "ld.global.b" + std::to_string(bytes * 8) + " " + name + ", [%d20+" + std::to_string(i * bytes) + "];\n";
      list += (i ? ", " : "{") + name;
    }
    return list + "}";
  };
  const std::string listA = load(1, a.size(), form.a.bits), listB = load(2, b.size(), form.b.bits),
                    listC = load(3, c.size(), sumBits);
  const unsigned resultBytes = sumRegister / 8, results = unsigned(c.size() / 32 * 4 / resultBytes);
  const std::string prefix = resultBytes == 8 ? "%x8" : "%w8";
  body += "mma.sync.aligned.m" + std::to_string(form.m) + "n8k" + std::to_string(form.k) + ".row.col" + form.infix +
          "." + form.sum + "." + form.a.name + "." + form.b.name + "." + form.sum + form.suffix + " " +
          registersFrom(prefix, results) + ", " + listA + ", " + listB + ", " + listC + ";\n";
  body += "mul.wide.u32 %d20, %r1, " + std::to_string(results * resultBytes) + ";\nadd.s64 %d20, %d20, %d4;\n";
  for (unsigned i = 0; i < results; ++i)
    body += "st.global.b" + std::to_string(resultBytes * 8) + " [%d20+" + std::to_string(i * resultBytes) + "], " +
            prefix + std::to_string(i) + ";\n";
  Harness h;
  h.options.approximationSeed = seed;
  h.load(Harness::kernel(body, 4));
  h.input("a", a);
  h.input("b", b);
  h.input("c", c);
  BufferId out = h.output("d", c.size() * 4);
  h.launch();
  INFO(h.messages());
  REQUIRE(h.silent());
  const auto words = h.read<uint32_t>(out);
  std::vector<uint64_t> d(form.m * 8);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned r = 0; r < results; ++r)
      for (unsigned i = 0; i < perSum; ++i) {
        const size_t at = (lane * results + r) * (resultBytes / 4);
        const uint64_t word = resultBytes == 8 ? words[at] | uint64_t(words[at + 1]) << 32 : words[at];
        d[indexC(lane, r, i)] = sumBits == 64 ? word : word >> (i * sumBits) & ((uint64_t(1) << sumBits) - 1);
      }
  return d;
}

/// Elements whose magnitudes lie between two powers of two, some zero.
std::vector<uint64_t> someFloats(std::mt19937_64 &random, const Input &type, size_t count, int least, int greatest) {
  std::vector<uint64_t> bits(count);
  for (uint64_t &x : bits)
    do
      x = random() & (~uint64_t(0) >> (64 - type.bits));
    while (!(type.decode(x) == 0 || (std::fabs(type.decode(x)) >= std::ldexp(1, least) &&
                                     std::fabs(type.decode(x)) < std::ldexp(1, greatest))));
  return bits;
}

double sumOf(const std::string &type, uint64_t bits) {
  return type == "f64"   ? std::bit_cast<double>(bits)
         : type == "f16" ? decode(uint32_t(bits), half)
                         : double(std::bit_cast<float>(uint32_t(bits)));
}
uint64_t bitsOfSum(const std::string &type, double value) {
  return encode(value, type == "f16" ? half : single, Rounding::Nearest);
}

struct Model {
  unsigned block = 0, kept = 0;
  bool descending = false;
  bool isHopper = false;
  auto operator<=>(const Model &) const = default;
};

/// c + the products, the way the model says; block 0: exactly.
double summed(const Model &model, double c, const std::vector<double> &products) {
  if (!model.block) {
    for (double product : products)
      c += product;
    return c;
  }
  const unsigned block = std::min<unsigned>(model.block, unsigned(products.size()));
  for (unsigned n = 0; n < products.size(); n += block) {
    const auto first = products.begin() + (model.descending ? std::ptrdiff_t(products.size()) - block - n : n);
    std::vector<double> terms(first, first + block);
    terms.push_back(c);
    double largest = 0, sum = 0;
    for (double term : terms)
      largest = std::max(largest, std::fabs(term));
    if (largest == 0)
      continue;
    const double unit = std::ldexp(1, std::ilogb(largest) - int(model.kept));
    for (double term : terms)
      sum += std::trunc(term / unit) * unit;
    const double last = sum == 0 ? 1 : std::ldexp(1, std::ilogb(sum) - int(std::min(model.kept, 23u)));
    c = std::trunc(sum / last) * last;
  }
  return c;
}

double powerIn(double x) { return x == 0 ? 0 : std::ldexp(1, std::ilogb(x)); }

/// All at once, 25 bits behind the largest; of f8 in two parts, and c comes last.
double summedByHopper(const Form &form, double c, const std::vector<double> &a, const std::vector<double> &b) {
  const bool bytes = form.a.bits == 8;
  double total = bytes ? 0 : c;
  for (unsigned part = 0; part < (bytes ? 2 : 1); ++part) {
    std::vector<double> terms{total};
    double largest = powerIn(total), sum = 0;
    for (unsigned k = 0; k < a.size(); ++k)
      if (!bytes || k % 4 / 2 == part) {
        terms.push_back(a[k] * b[k]);
        largest = std::max(largest, powerIn(a[k]) * powerIn(b[k]));
      }
    for (double term : terms)
      sum += largest == 0 ? 0 : std::trunc(term / largest * 0x1p25) * largest * 0x1p-25;
    const double last = powerIn(sum) * 0x1p-23;
    total = sum == 0 || (form.sum == "f16" && !bytes) ? sum : std::trunc(sum / last) * last;
  }
  return bytes ? double(float(total + c)) : total;
}

std::vector<uint64_t> expected(const Form &form, const Operands &operands, const Model &model) {
  std::vector<uint64_t> d;
  for (unsigned row = 0; row < form.m; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      std::vector<double> a, b, products;
      for (unsigned k = 0; k < form.k; ++k) {
        a.push_back(form.a.decode(operands.a[row * form.k + k]));
        b.push_back(form.b.decode(operands.b[k * 8 + column]));
        products.push_back(a.back() * b.back());
      }
      const double c = sumOf(form.sum, operands.c[row * 8 + column]);
      d.push_back(bitsOfSum(form.sum, model.isHopper ? summedByHopper(form, c, a, b) : summed(model, c, products)));
    }
  return d;
}

/// So that an element that is zero has one sign.
std::vector<uint64_t> withoutNegativeZeros(std::vector<uint64_t> d, const std::string &type) {
  for (uint64_t &x : d)
    if (sumOf(type, x) == 0)
      x = 0;
  return d;
}

const Form floatForms[] = {
    {16, 16, bf16, bf16, "f32"}, {16, 8, bf16, bf16, "f32"},  {16, 16, f16, f16, "f32"},
    {16, 16, f16, f16, "f16"},   {16, 8, f16, f16, "f16"},    {16, 8, tf32, tf32, "f32"},
    {16, 4, tf32, tf32, "f32"},  {16, 32, e4m3, e5m2, "f32"}, {16, 16, e5m2, e4m3, "f16"},
};

Operands floatsFor(std::mt19937_64 &random, const Form &form, int least, int greatest) {
  const Input sum = form.sum == "f16"
                        ? f16
                        : Input{"f32", 32, [](uint64_t bits) { return double(std::bit_cast<float>(uint32_t(bits))); }};
  return {someFloats(random, form.a, form.m * form.k, least, greatest),
          someFloats(random, form.b, form.k * 8, least, greatest),
          someFloats(random, sum, form.m * 8, std::max(2 * least, -140), 2 * greatest)};
}

} // namespace

TEST_CASE("mma: exact sums, rounded once") {
  std::mt19937_64 random(3);
  for (const Form &form : floatForms)
    for (auto [least, greatest] : {std::pair(-6, 4), std::pair(-10, 15), std::pair(-70, 15)}) {
      INFO(form.a.name << " k" << form.k << " " << form.sum << " from 2^" << least);
      const Operands operands = floatsFor(random, form, least, greatest);
      for (auto seed : {std::optional<uint64_t>(), std::optional(EmulatorOptions::largestApproximations)})
        CHECK(multiply(form, operands, seed) == expected(form, operands, {}));
    }
}

TEST_CASE("mma: infinities and NaN in whatever way sums are cut") {
  const Form form{16, 16, bf16, bf16, "f32"};
  std::mt19937_64 random(4);
  Operands operands = floatsFor(random, form, -6, 4);
  operands.b[5 * 8 + 2] = 0;
  const Operands finite = operands;
  operands.a[3 * 16 + 5] = 0x7f80;
  operands.a[7 * 16 + 1] = 0x7fc0;
  operands.c[12 * 8 + 7] = 0xff800000;
  const auto exact = expected(form, operands, {});
  for (uint64_t seed : {uint64_t(0), uint64_t(1), uint64_t(2), uint64_t(3), EmulatorOptions::hopperApproximations}) {
    auto usual = multiply(form, finite, seed);
    for (size_t i = 0; i < exact.size(); ++i)
      if (!std::isfinite(sumOf(form.sum, exact[i])))
        usual[i] = exact[i];
    CHECK(multiply(form, operands, seed) == usual);
  }
}

TEST_CASE("mma: with a seed, sums are cut as tensor cores do") {
  std::vector<Model> models;
  for (unsigned block : {4u, 8u, 16u})
    for (unsigned kept : {13u, 23u, 24u, 25u})
      for (bool descending : {false, true})
        models.push_back({block, kept, descending});
  models.push_back({.isHopper = true});
  std::mt19937_64 random(5);
  for (const Form &form : floatForms) {
    std::set<Model> seen;
    bool bytesAreShort = false, isHopper = false;
    for (uint64_t seed = 0; seed < 12; ++seed) {
      INFO(form.a.name << " k" << form.k << " " << form.sum << " seed " << seed);
      std::vector<Model> left = models;
      for (auto [least, greatest] : {std::pair(-6, 4), std::pair(-10, 8), std::pair(-60, 8)}) {
        const Operands operands = floatsFor(random, form, least, greatest);
        const auto d = withoutNegativeZeros(multiply(form, operands, seed), form.sum);
        std::erase_if(left, [&](const Model &model) {
          return withoutNegativeZeros(expected(form, operands, model), form.sum) != d;
        });
      }
      REQUIRE(!left.empty());
      const bool isShort = std::all_of(left.begin(), left.end(), [](const Model &m) { return m.kept == 13; });
      CHECK((!isShort || form.a.bits == 8));
      bytesAreShort |= isShort;
      isHopper |= left.back().isHopper;
      if (left.size() == 1)
        seen.insert(left[0]);
    }
    INFO(form.a.name << " k" << form.k << " " << form.sum);
    CHECK(bytesAreShort == (form.a.bits == 8));
    CHECK(isHopper);
    if (form.sum == "f32" && form.k == 16)
      CHECK(seen.size() >= 3);
    const Operands operands = floatsFor(random, form, -6, 4);
    CHECK(withoutNegativeZeros(multiply(form, operands, EmulatorOptions::smallestApproximations), form.sum) ==
          withoutNegativeZeros(expected(form, operands, {4, form.a.bits == 8 ? 13u : 23u, false}), form.sum));
    CHECK(withoutNegativeZeros(multiply(form, operands, EmulatorOptions::hopperApproximations), form.sum) ==
          withoutNegativeZeros(expected(form, operands, {.isHopper = true}), form.sum));
  }
}

namespace {

struct MeasuredSum {
  const char *factors;
  unsigned k;
  const char *sum, *a, *b;
  uint64_t c, d;
};

const MeasuredSum measuredSums[] = {
#define HLOC_MEASURED_SUM(...) {__VA_ARGS__},
#include "MeasuredSums.def"
};

std::vector<uint64_t> elementsOf(llvm::StringRef words, unsigned bits) {
  std::vector<uint64_t> elements;
  for (llvm::StringRef word : llvm::split(words, ' ')) {
    uint32_t value = 0;
    REQUIRE(!word.getAsInteger(16, value));
    for (unsigned at = 0; at < 32; at += bits)
      elements.push_back(value >> at & (~uint64_t(0) >> (64 - bits)));
  }
  return elements;
}

} // namespace

TEST_CASE("mma: sums that an H100 made") {
  const Input inputs[] = {bf16, f16, tf32, e4m3, e5m2};
  for (const MeasuredSum &measured : measuredSums) {
    const Input &input = *std::ranges::find(inputs, measured.factors, &Input::name);
    const Form form{16, measured.k, input, input, measured.sum};
    INFO(measured.factors << " k" << form.k << " " << form.sum << " " << measured.a << " * " << measured.b);
    // In one row and column; what other elements have does not matter, infinities neither.
    constexpr unsigned row = 11, column = 6;
    const uint64_t other = elementsOf(measured.a, input.bits)[0], sumInfinity = form.sum == "f16" ? 0x7c00 : 0x7f800000;
    Operands operands{std::vector<uint64_t>(16 * form.k, other), std::vector<uint64_t>(form.k * 8, other),
                      std::vector<uint64_t>(16 * 8, sumInfinity)};
    std::ranges::copy(elementsOf(measured.a, input.bits), operands.a.begin() + row * form.k);
    for (auto [k, element] : llvm::enumerate(elementsOf(measured.b, input.bits)))
      operands.b[k * 8 + column] = element;
    operands.c[row * 8 + column] = measured.c;
    CHECK(multiply(form, operands, EmulatorOptions::hopperApproximations)[row * 8 + column] == measured.d);
  }
}

TEST_CASE("mma: f64 is a chain of fma, with or without a seed") {
  std::mt19937_64 random(6);
  for (const auto &[m, k] : {std::pair(8u, 4u), std::pair(16u, 4u), std::pair(16u, 8u), std::pair(16u, 16u)}) {
    const Form form{m, k, f64, f64, "f64"};
    const Operands operands{someFloats(random, f64, m * k, -9, 9), someFloats(random, f64, k * 8, -9, 9),
                            someFloats(random, f64, m * 8, -9, 9)};
    for (auto seed : {std::optional<uint64_t>(), std::optional<uint64_t>(1)}) {
      const auto d = multiply(form, operands, seed);
      for (unsigned row = 0; row < m; ++row)
        for (unsigned column = 0; column < 8; ++column) {
          double sum = std::bit_cast<double>(operands.c[row * 8 + column]);
          for (unsigned i = 0; i < k; ++i)
            sum = std::fma(f64.decode(operands.a[row * k + i]), f64.decode(operands.b[i * 8 + column]), sum);
          REQUIRE(d[row * 8 + column] == std::bit_cast<uint64_t>(sum));
        }
    }
  }
}

TEST_CASE("mma: integers wrap, or saturate once, with or without a seed") {
  std::mt19937_64 random(7);
  for (const Form &form : {Form{16, 32, s8, s8, "s32"}, Form{16, 16, u8, s8, "s32"}, Form{8, 16, s8, u8, "s32"},
                           Form{16, 64, s4, u4, "s32"}, Form{8, 32, u4, u4, "s32"},
                           Form{16, 32, u8, u8, "s32", "", ".satfinite"}, Form{16, 256, b1, b1, "s32", ".xor.popc"},
                           Form{16, 128, b1, b1, "s32", ".and.popc"}, Form{8, 128, b1, b1, "s32", ".xor.popc"}}) {
    Operands operands;
    for (auto [to, count, bits] :
         {std::tuple(&operands.a, form.m * form.k, form.a.bits), std::tuple(&operands.b, form.k * 8, form.b.bits),
          std::tuple(&operands.c, form.m * 8, 32u)})
      for (unsigned i = 0; i < count; ++i)
        to->push_back(random() & ((uint64_t(1) << bits) - 1));
    operands.c[0] = 0x7fffffff;
    operands.c[1] = 0x80000000;
    for (auto seed : {std::optional<uint64_t>(), std::optional<uint64_t>(1)}) {
      INFO(form.a.name << form.b.name << form.k << form.suffix << form.infix);
      const auto d = multiply(form, operands, seed);
      for (unsigned row = 0; row < form.m; ++row)
        for (unsigned column = 0; column < 8; ++column) {
          auto sum = int64_t(int32_t(operands.c[row * 8 + column]));
          for (unsigned k = 0; k < form.k; ++k) {
            const auto x = int64_t(form.a.decode(operands.a[row * form.k + k])),
                       y = int64_t(form.b.decode(operands.b[k * 8 + column]));
            sum += form.suffix == ".xor.popc" ? x ^ y : x * y;
          }
          if (!form.infix.empty())
            sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
          REQUIRE(d[row * 8 + column] == uint32_t(sum));
        }
    }
  }
}
