// Floating-point instructions against scalar host arithmetic and the rules of the PTX manual.
#include "../../../src/emulator/Floats.h"
#include "LaneProgram.h"

#include <bit>
#include <cfenv>
#include <cmath>

using namespace hloc::emulator;
using namespace hloc::emulator::test;

namespace {

const std::vector<uint64_t> singles = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000,
    0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xff812345, 0x3dcccccd, 0x40533333, 0x60ad78ec,
    0x9e3ce508, 0x40490fdb, 0x3f7fffff, 0x3f000000, 0x4b000001, 0x33800000, 0x0d000000};
const std::vector<uint64_t> doubles = {0,
                                       0x8000000000000000,
                                       0x3ff0000000000000,
                                       0xbff8000000000000,
                                       1,
                                       0x000fffffffffffff,
                                       0x0010000000000000,
                                       0x7fefffffffffffff,
                                       0x7ff0000000000000,
                                       0xfff0000000000000,
                                       0x7ff8000000000000,
                                       0x7ff4000000000123,
                                       0x3fb999999999999a,
                                       0x400921fb54442d18,
                                       0x41dfffffffc00000,
                                       0xc1e0000000200000,
                                       0x43e0000000000000};
const std::vector<uint64_t> halves = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3c00, 0xbc00, 0x3c01, 0x7bff,
                                      0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfd01, 0x3555, 0x2e66, 0x4248, 0x0211, 0x1400};
const std::vector<uint64_t> bfloats = {0,      0x8000, 1,      0x8001, 0x7f,   0x80,   0x3f80, 0xbf80, 0x3f81, 0x7f7f,
                                       0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xff91, 0x3e55, 0x3dcd, 0x4049, 0x0011, 0x2400};

float asFloat(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
double asDouble(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t bitsOf(float value) { return std::isnan(value) ? 0x7fffffff : std::bit_cast<uint32_t>(value); }
uint64_t bitsOf(double value) { return std::isnan(value) ? 0x7ff8000000000000 : std::bit_cast<uint64_t>(value); }
float flushed(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value; }

/// Evaluates in a host rounding mode; volatile keeps the compiler from doing it earlier.
template <typename T, typename Operation> T rounded(int mode, T a, T b, Operation operation) {
  volatile T x = a, y = b;
  std::fesetround(mode);
  volatile T result = operation(x, y);
  std::fesetround(FE_TONEAREST);
  return result;
}

const struct {
  const char *name;
  int mode;
} roundings[] = {
    {"", FE_TONEAREST}, {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};

template <typename T> T minOf(T a, T b) { // -0 < +0
  return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}
template <typename T> T maxOf(T a, T b) { return -minOf<T>(-a, -b); }

} // namespace

TEST_CASE("lanes: f32 in every rounding") {
  Inputs pairs = triples(singles, singles);
  for (auto [name, mode] : roundings) {
    std::string r = name;
    auto op = [mode = mode](auto f) {
      return [=](uint64_t a, uint64_t b, uint64_t) { return bitsOf(rounded(mode, asFloat(a), asFloat(b), f)); };
    };
    checkLanes("add" + r + ".f32 %r0, %a, %b;", 32, pairs, op([](float x, float y) { return x + y; }));
    checkLanes("sub" + r + ".f32 %r0, %a, %b;", 32, pairs, op([](float x, float y) { return x - y; }));
    checkLanes("mul" + r + ".f32 %r0, %a, %b;", 32, pairs, op([](float x, float y) { return x * y; }));
    if (r.empty())
      continue;
    checkLanes("div" + r + ".f32 %r0, %a, %b;", 32, pairs, op([](float x, float y) { return x / y; }));
    checkLanes("sqrt" + r + ".f32 %r0, %a;", 32, pairs, op([](float x, float) { return std::sqrt(x); }));
    checkLanes("rcp" + r + ".f32 %r0, %a;", 32, pairs, op([](float x, float) { return 1 / x; }));
    checkLanes(
        "fma" + r + ".f32 %r0, %a, %b, %c;", 32, triples(singles, singles, {0x33800001, 0xbf800000, 0, 0xff800000}),
        [mode = mode](uint64_t a, uint64_t b, uint64_t c) {
          float z = asFloat(c);
          return bitsOf(rounded(mode, asFloat(a), asFloat(b), [z](float x, float y) { return std::fma(x, y, z); }));
        });
  }
}

TEST_CASE("lanes: f64 in every rounding") {
  Inputs pairs = triples(doubles, doubles);
  for (auto [name, mode] : roundings) {
    std::string r = name;
    auto op = [mode = mode](auto f) {
      return [=](uint64_t a, uint64_t b, uint64_t) { return bitsOf(rounded(mode, asDouble(a), asDouble(b), f)); };
    };
    checkLanes("add" + r + ".f64 %l0, %la, %lb;", 64, pairs, op([](double x, double y) { return x + y; }));
    checkLanes("mul" + r + ".f64 %l0, %la, %lb;", 64, pairs, op([](double x, double y) { return x * y; }));
    if (r.empty())
      continue;
    checkLanes("div" + r + ".f64 %l0, %la, %lb;", 64, pairs, op([](double x, double y) { return x / y; }));
    checkLanes("sqrt" + r + ".f64 %l0, %la;", 64, pairs, op([](double x, double) { return std::sqrt(x); }));
    checkLanes("fma" + r + ".f64 %l0, %la, %lb, %la;", 64, pairs,
               op([](double x, double y) { return std::fma(x, y, x); }));
  }
}

TEST_CASE("lanes: ftz flushes operands and results, sat clamps NaN to zero") {
  Inputs pairs = triples(singles, singles);
  auto two = [](auto f) { return [=](uint64_t a, uint64_t b, uint64_t) { return bitsOf(f(asFloat(a), asFloat(b))); }; };
  checkLanes("add.ftz.f32 %r0, %a, %b;", 32, pairs,
             two([](float x, float y) { return flushed(flushed(x) + flushed(y)); }));
  checkLanes("mul.ftz.f32 %r0, %a, %b;", 32, pairs,
             two([](float x, float y) { return flushed(flushed(x) * flushed(y)); }));
  checkLanes("mul.rz.ftz.f32 %r0, %a, %b;", 32, pairs, two([](float x, float y) {
               return flushed(rounded(FE_TOWARDZERO, flushed(x), flushed(y), [](float p, float q) { return p * q; }));
             }));
  checkLanes("add.sat.f32 %r0, %a, %b;", 32, pairs, two([](float x, float y) {
               float sum = x + y;
               return sum > 0 ? std::min(sum, 1.0f) : 0.0f;
             }));
  checkLanes("neg.ftz.f32 %r0, %a;", 32, pairs, two([](float x, float) { return -flushed(x); }));
  checkLanes("abs.ftz.f32 %r0, %a;", 32, pairs, two([](float x, float) { return std::fabs(flushed(x)); }));
  checkLanes("setp.lt.ftz.f32 %p0, %a, %b;\nselp.b32 %r0, 1, 0, %p0;", 32, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return flushed(asFloat(a)) < flushed(asFloat(b)); });
}

TEST_CASE("lanes: min and max order zeros; NaN loses, or wins with .NaN") {
  Inputs pairs = triples(singles, singles);
  auto two = [](auto f) { return [=](uint64_t a, uint64_t b, uint64_t) { return bitsOf(f(asFloat(a), asFloat(b))); }; };
  checkLanes("min.f32 %r0, %a, %b;", 32, pairs, two([](float x, float y) { return minOf(x, y); }));
  checkLanes("max.f32 %r0, %a, %b;", 32, pairs, two([](float x, float y) { return maxOf(x, y); }));
  auto strict = [](auto f) { return [f](float x, float y) { return std::isnan(x) || std::isnan(y) ? NAN : f(x, y); }; };
  checkLanes("min.NaN.f32 %r0, %a, %b;", 32, pairs, two(strict([](float x, float y) { return minOf(x, y); })));
  checkLanes("max.NaN.f32 %r0, %a, %b;", 32, pairs, two(strict([](float x, float y) { return maxOf(x, y); })));
  checkLanes("min.f64 %l0, %la, %lb;", 64, triples(doubles, doubles),
             [](uint64_t a, uint64_t b, uint64_t) { return bitsOf(minOf(asDouble(a), asDouble(b))); });
}

TEST_CASE("lanes: float comparisons, ordered and not") {
  Inputs pairs = triples(singles, singles);
  struct {
    const char *name;
    bool (*holds)(float, float);
  } comparisons[] = {
      {"eq", [](float a, float b) { return a == b; }},
      {"ne", [](float a, float b) { return a < b || a > b; }},
      {"lt", [](float a, float b) { return a < b; }},
      {"ge", [](float a, float b) { return a >= b; }},
      {"equ", [](float a, float b) { return !(a < b || a > b); }},
      {"neu", [](float a, float b) { return a != b; }},
      {"ltu", [](float a, float b) { return !(a >= b); }},
      {"leu", [](float a, float b) { return !(a > b); }},
      {"gtu", [](float a, float b) { return !(a <= b); }},
      {"geu", [](float a, float b) { return !(a < b); }},
      {"num", [](float a, float b) { return !std::isnan(a) && !std::isnan(b); }},
      {"nan", [](float a, float b) { return std::isnan(a) || std::isnan(b); }},
  };
  for (auto &[name, holds] : comparisons)
    checkLanes(std::string("setp.") + name + ".f32 %p0, %a, %b;\nselp.b32 %r0, 1, 0, %p0;", 32, pairs,
               [holds = holds](uint64_t a, uint64_t b, uint64_t) { return holds(asFloat(a), asFloat(b)); });
}

static uint64_t halfResult(double exactOrOdd, SmallFormat format) {
  return encode(exactOrOdd, format, Rounding::Nearest);
}

TEST_CASE("lanes: 16-bit floats round once") {
  struct {
    std::string name;
    SmallFormat format;
    const std::vector<uint64_t> &values;
  } types[] = {{"f16", half, halves}, {"bf16", bfloat, bfloats}};
  for (auto &[name, format, values] : types) {
    Inputs all = triples(values, values, values);
    uint32_t state = 7;
    for (int i = 0; i < 20000; ++i) { // random bits, of which many are close to ties
      auto next = [&] { return (state = state * 1664525 + 1013904223) >> 16; };
      all.push_back({next(), next(), next()});
    }
    auto value = [f = format](uint64_t bits) { return decode(uint32_t(bits & 0xffff), f); };
    auto fma = [=, f = format](uint64_t a, uint64_t b, uint64_t c) {
      return halfResult(fmaToOdd(value(a), value(b), value(c)), f);
    };
    checkLanes("fma.rn." + name + " %h0, %ha, %hb, %hc;", 16, all, fma);
    checkLanes("fma.rn." + name + "x2 %r0, %a, %b, %c;\nmov.b32 {%h0, %h1}, %r0;", 16, all, fma);
    checkLanes("shl.b32 %r1, %a, 16;\nshl.b32 %r2, %b, 16;\nshl.b32 %r3, %c, 16;\nfma.rn." + name +
                   "x2 %r0, %r1, %r2, %r3;\nmov.b32 {%h1, %h0}, %r0;",
               16, all, fma);
    checkLanes("add.rn." + name + " %h0, %ha, %hb;", 16, all, [=, f = format](uint64_t a, uint64_t b, uint64_t) {
      return halfResult(fmaToOdd(value(a), 1, value(b)), f);
    });
    checkLanes("mul.rn." + name + " %h0, %ha, %hb;", 16, all,
               [=, f = format](uint64_t a, uint64_t b, uint64_t) { return halfResult(value(a) * value(b), f); });
    checkLanes("max." + name + " %h0, %ha, %hb;", 16, all,
               [=, f = format](uint64_t a, uint64_t b, uint64_t) { return halfResult(maxOf(value(a), value(b)), f); });
    checkLanes("min.NaN." + name + "x2 %r0, %a, %b;\nmov.b32 {%h0, %h1}, %r0;", 16, all,
               [=, f = format](uint64_t a, uint64_t b, uint64_t) {
                 bool nan = std::isnan(value(a)) || std::isnan(value(b));
                 return nan ? 0x7fff : halfResult(minOf(value(a), value(b)), f);
               });
    checkLanes("setp.lt." + name + " %p0, %ha, %hb;\nselp.b16 %h0, 1, 0, %p0;", 16, all,
               [=](uint64_t a, uint64_t b, uint64_t) { return value(a) < value(b); });
    checkLanes("neg." + name + " %h0, %ha;", 16, triples(values),
               [](uint64_t a, uint64_t, uint64_t) { return a ^ 0x8000; });
  }
  auto flush = [](uint64_t a) { return a & 0x7c00 ? a : a & 0x8000; };
  auto value = [=](uint64_t a) { return decode(uint32_t(flush(a & 0xffff)), half); };
  checkLanes("mul.ftz.f16 %h0, %ha, %hb;", 16, triples(halves, halves),
             [=](uint64_t a, uint64_t b, uint64_t) { return flush(halfResult(value(a) * value(b), half)); });
  checkLanes("add.ftz.f16x2 %r0, %a, %b;\nmov.b32 {%h0, %h1}, %r0;", 16, triples(halves, halves),
             [=](uint64_t a, uint64_t b, uint64_t) { return flush(halfResult(value(a) + value(b), half)); });
}

TEST_CASE("lanes: f32 arithmetic on 16-bit sources") {
  auto single = [](uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); };
  for (auto [type, format] : {std::pair<std::string, SmallFormat>{"f16", half}, {"bf16", bfloat}}) {
    auto narrow = [f = format](uint64_t bits) { return float(decode(uint32_t(bits & 0xffff), f)); };
    Inputs inputs;
    for (uint64_t a : {0x3c00, 0x4015, 0xbf80, 0x0001, 0x7c00})
      for (uint64_t b : {0x3c01, 0xc0a3})
        for (float c : {1.5f, -0x1p-20f, 3e10f})
          inputs.push_back({a, b, std::bit_cast<uint32_t>(c)});
    auto bits = [](float value) { return uint64_t(std::bit_cast<uint32_t>(value)); };
    checkLanes("add.rn.f32." + type + " %r0, %ha, %c;", 32, inputs,
               [=](uint64_t a, uint64_t, uint64_t c) { return bits(narrow(a) + single(c)); });
    checkLanes("sub.f32." + type + " %r0, %ha, %c;", 32, inputs,
               [=](uint64_t a, uint64_t, uint64_t c) { return bits(narrow(a) - single(c)); });
    checkLanes("fma.rn.f32." + type + " %r0, %ha, %hb, %c;", 32, inputs,
               [=](uint64_t a, uint64_t b, uint64_t c) { return bits(std::fma(narrow(a), narrow(b), single(c))); });
  }
}

TEST_CASE("lanes: pairs of f32 in one register") {
  auto single = [](uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); };
  auto pair = [](float low, float high) {
    return uint64_t(std::bit_cast<uint32_t>(high)) << 32 | std::bit_cast<uint32_t>(low);
  };
  Inputs inputs;
  for (float x : {1.5f, -0.25f, 3e10f})
    for (float y : {2.0f, -7.0f, 1e-20f})
      inputs.push_back({pair(x, y), pair(y, 0.5f), pair(-1.0f, x)});
  checkLanes("mul.f32x2 %l0, %la, %lb;", 64, inputs, [=](uint64_t a, uint64_t b, uint64_t) {
    return pair(single(a) * single(b), single(a >> 32) * single(b >> 32));
  });
  checkLanes("fma.rn.f32x2 %l0, %la, %lb, %lc;", 64, inputs, [=](uint64_t a, uint64_t b, uint64_t c) {
    return pair(std::fma(single(a), single(b), single(c)), std::fma(single(a >> 32), single(b >> 32), single(c >> 32)));
  });
}

TEST_CASE("lanes: conversions between float formats") {
  Inputs all = triples(singles);
  uint32_t state = 3;
  for (int i = 0; i < 4000; ++i)
    all.push_back({(state = state * 1664525 + 1013904223) & 0xfffff000, 0, 0});
  const struct {
    const char *name;
    Rounding rounding;
  } modes[] = {{"rn", Rounding::Nearest}, {"rz", Rounding::Zero}};
  for (auto [name, rounding] : modes) {
    std::string r = name;
    for (auto [type, format] : {std::pair{"f16", half}, {"bf16", bfloat}}) {
      auto expected = [=, rounding = rounding, format = format](uint64_t a, uint64_t, uint64_t) {
        return encode(asFloat(a), format, rounding);
      };
      checkLanes("cvt." + r + "." + type + ".f32 %h0, %a;", 16, all, expected);
      checkLanes("cvt." + r + "." + type + "x2.f32 %r1, 0f3F800000, %a;\nmov.b32 {%h0, %h1}, %r1;", 16, all, expected);
    }
  }
  checkLanes("cvt.f32.f16 %r0, %ha;", 32, triples(halves),
             [](uint64_t a, uint64_t, uint64_t) { return bitsOf(float(decode(uint32_t(a), half))); });
  checkLanes("cvt.f32.bf16 %r0, %ha;", 32, triples(bfloats),
             [](uint64_t a, uint64_t, uint64_t) { return bitsOf(float(decode(uint32_t(a), bfloat))); });
  for (auto [name, mode] : roundings)
    if (*name) {
      checkLanes(std::string("cvt") + name + ".f32.f64 %r0, %la;", 32, triples(doubles),
                 [mode = mode](uint64_t a, uint64_t, uint64_t) {
                   volatile double x = asDouble(a);
                   std::fesetround(mode);
                   volatile float result = float(x);
                   std::fesetround(FE_TONEAREST);
                   return bitsOf(float(result));
                 });
      checkLanes(std::string("cvt") + name + "i.f32.f32 %r0, %a;", 32, all,
                 [mode = mode](uint64_t a, uint64_t, uint64_t) {
                   std::fesetround(mode);
                   float result = std::nearbyint(asFloat(a));
                   std::fesetround(FE_TONEAREST);
                   return bitsOf(result);
                 });
    }
  checkLanes("cvt.f64.f32 %l0, %a;", 64, all,
             [](uint64_t a, uint64_t, uint64_t) { return bitsOf(double(asFloat(a))); });
  checkLanes("cvt.rn.f16.f64 %h0, %la;", 16, triples(doubles),
             [](uint64_t a, uint64_t, uint64_t) { return encode(asDouble(a), half, Rounding::Nearest); });
  checkLanes("cvt.sat.f32.f32 %r0, %a;", 32, all,
             [](uint64_t a, uint64_t, uint64_t) { return bitsOf(asFloat(a) > 0 ? std::min(asFloat(a), 1.0f) : 0.0f); });
}

template <typename Int> static uint64_t toInteger(double value, int mode) {
  if (std::isnan(value))
    return 0;
  std::fesetround(mode);
  double whole = std::nearbyint(value);
  std::fesetround(FE_TONEAREST);
  double low = double(std::numeric_limits<Int>::min()), high = std::ldexp(1.0, std::numeric_limits<Int>::digits);
  if (whole < low)
    return uint64_t(std::numeric_limits<Int>::min());
  return whole >= high ? uint64_t(std::numeric_limits<Int>::max()) : uint64_t(Int(whole));
}

TEST_CASE("lanes: floats to integers clamp, NaN gives zero") {
  Inputs all = triples(singles);
  for (float value : {0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 127.5f, 255.5f, -128.5f, 65535.5f, 2147483520.0f, 2147483648.0f,
                      -2147483648.0f, 4294967040.0f, 4294967296.0f, 9.2e18f, 9.3e18f, 1.9e19f, -9.3e18f, 123456.78f})
    all.push_back({std::bit_cast<uint32_t>(value), 0, 0});
  for (auto [name, mode] : roundings) {
    if (!*name)
      continue;
    std::string r = std::string("cvt") + name + "i";
    checkLanes(r + ".s32.f32 %r0, %a;", 32, all,
               [mode = mode](uint64_t a, uint64_t, uint64_t) { return toInteger<int32_t>(asFloat(a), mode); });
    checkLanes(r + ".u32.f32 %r0, %a;", 32, all,
               [mode = mode](uint64_t a, uint64_t, uint64_t) { return toInteger<uint32_t>(asFloat(a), mode); });
    checkLanes(r + ".u64.f32 %l0, %a;", 64, all,
               [mode = mode](uint64_t a, uint64_t, uint64_t) { return toInteger<uint64_t>(asFloat(a), mode); });
  }
  checkLanes("cvt.rzi.s64.f64 %l0, %la;", 64, triples(doubles),
             [](uint64_t a, uint64_t, uint64_t) { return toInteger<int64_t>(asDouble(a), FE_TOWARDZERO); });
  checkLanes("cvt.rzi.s16.f32 %h0, %a;", 16, all,
             [](uint64_t a, uint64_t, uint64_t) { return toInteger<int16_t>(asFloat(a), FE_TOWARDZERO); });
  checkLanes("cvt.rni.u8.f32 %r0, %a;", 32, all,
             [](uint64_t a, uint64_t, uint64_t) { return toInteger<uint8_t>(asFloat(a), FE_TONEAREST); });
  checkLanes("cvt.rzi.s32.f16 %r0, %ha;", 32, triples(halves), [](uint64_t a, uint64_t, uint64_t) {
    return toInteger<int32_t>(decode(uint32_t(a), half), FE_TOWARDZERO);
  });
}

TEST_CASE("lanes: integers to floats") {
  Inputs all = triples({0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x1000001, 0x1000003, 0xffffff80, 0xffffff81,
                        0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0x20000000000001,
                        0x8000008000000001, 0x4000004000000000, 0x1ff1, 65519, 65520});
  for (auto [name, mode] : roundings) {
    if (!*name)
      continue;
    auto in = [](int mode, auto integer) {
      volatile auto x = integer;
      std::fesetround(mode);
      volatile float result = float(x);
      std::fesetround(FE_TONEAREST);
      return bitsOf(float(result));
    };
    std::string r = std::string("cvt") + name;
    checkLanes(r + ".f32.s32 %r0, %a;", 32, all,
               [=, mode = mode](uint64_t a, uint64_t, uint64_t) { return in(mode, int32_t(a)); });
    checkLanes(r + ".f32.u32 %r0, %a;", 32, all,
               [=, mode = mode](uint64_t a, uint64_t, uint64_t) { return in(mode, uint32_t(a)); });
    checkLanes(r + ".f32.s64 %r0, %la;", 32, all,
               [=, mode = mode](uint64_t a, uint64_t, uint64_t) { return in(mode, int64_t(a)); });
  }
  checkLanes("cvt.rn.f32.u64 %r0, %la;", 32, all, [](uint64_t a, uint64_t, uint64_t) { return bitsOf(float(a)); });
  checkLanes("cvt.rn.f64.s64 %l0, %la;", 64, all,
             [](uint64_t a, uint64_t, uint64_t) { return bitsOf(double(int64_t(a))); });
  checkLanes("cvt.rn.f64.u32 %l0, %a;", 64, all,
             [](uint64_t a, uint64_t, uint64_t) { return bitsOf(double(uint32_t(a))); });
  checkLanes("cvt.rn.f16.s32 %h0, %a;", 16, all,
             [](uint64_t a, uint64_t, uint64_t) { return encode(int32_t(a), half, Rounding::Nearest); });
  checkLanes("cvt.rn.f16.u64 %h0, %la;", 16, all,
             [](uint64_t a, uint64_t, uint64_t) { return encode(double(a), half, Rounding::Nearest); });
}
