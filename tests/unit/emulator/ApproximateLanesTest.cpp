// Approximate functions: close to the exact value over the whole range, right at the edges that the PTX manual fixes.
#include "../../../src/emulator/Floats.h"
#include "LaneProgram.h"

#include <bit>
#include <cmath>

using namespace hloc::emulator;
using namespace hloc::emulator::test;

namespace {

float asFloat(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
uint64_t bitsOf(float value) { return std::isnan(value) ? 0x7fffffff : std::bit_cast<uint32_t>(value); }

/// All exponents and signs with varied mantissas, and the special values.
Inputs wholeRange() {
  Inputs inputs;
  uint32_t state = 5;
  for (uint32_t high = 0; high < 0x10000; high += 7) {
    state = state * 1664525 + 1013904223;
    inputs.push_back({uint64_t(high) << 16 | state >> 16, 0, 0});
  }
  for (uint64_t bits : {0u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u, 1u, 0x80000001u})
    inputs.push_back({bits, 0, 0});
  return inputs;
}

/// In units of the last place of the wanted value; the same special value is 0 away.
double distance(float got, double want) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) == std::isnan(got) ? 0 : 1e9;
  float nearest = float(want);
  if (std::isinf(nearest) || std::isinf(got))
    return got == nearest || std::fabs(want) > 3.4028e38 ? 0 : 1e9;
  if (want == 0)
    return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : 1e9;
  int exponent = std::max(std::ilogb(want), -126);
  return std::fabs(double(got) - want) / std::ldexp(1.0, exponent - 23);
}

template <typename Expected>
void checkNear(const std::string &body, const Inputs &inputs, double bound, Expected expected) {
  std::vector<uint64_t> results = runLanes(body, 32, inputs);
  double worst = 0;
  uint64_t at = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    double d = distance(asFloat(results[i]), expected(asFloat(inputs[i][0]), asFloat(inputs[i][1])));
    if (d > worst) {
      worst = d;
      at = i;
    }
  }
  INFO(body << " is worst for " << std::hex << inputs[at][0] << ", " << inputs[at][1] << ": " << results[at]);
  CHECK(worst <= bound);
}

double flushed(double value) { return std::fabs(value) < 0x1p-126 ? std::copysign(0.0, value) : value; }

} // namespace

TEST_CASE("approximate: f32 over the whole range") {
  Inputs all = wholeRange();
  checkNear("ex2.approx.f32 %r0, %a;", all, 1, [](float x, float) { return std::exp2(double(x)); });
  checkNear("ex2.approx.ftz.f32 %r0, %a;", all, 1, [](float x, float) { return flushed(std::exp2(flushed(x))); });
  checkNear("lg2.approx.f32 %r0, %a;", all, 1, [](float x, float) { return std::log2(double(x)); });
  checkNear("rcp.approx.f32 %r0, %a;", all, 1, [](float x, float) { return 1 / double(x); });
  checkNear("rcp.approx.ftz.f32 %r0, %a;", all, 1, [](float x, float) { return flushed(1 / flushed(x)); });
  checkNear("sqrt.approx.f32 %r0, %a;", all, 1, [](float x, float) { return std::sqrt(double(x)); });
  checkNear("rsqrt.approx.f32 %r0, %a;", all, 1, [](float x, float) { return 1 / std::sqrt(double(x)); });
  checkNear("rsqrt.approx.ftz.f32 %r0, %a;", all, 1, [](float x, float) { return 1 / std::sqrt(flushed(x)); });
  checkNear("tanh.approx.f32 %r0, %a;", all, 4, [](float x, float) { return std::tanh(double(x)); });
}

TEST_CASE("approximate: f32 where the manual bounds the error") {
  Inputs circle;
  for (int i = -4000; i <= 4000; ++i)
    circle.push_back({std::bit_cast<uint32_t>(float(i) * 0.0021f), 0, 0});
  checkNear("sin.approx.f32 %r0, %a;", circle, 1, [](float x, float) { return std::sin(double(x)); });
  checkNear("cos.approx.f32 %r0, %a;", circle, 1, [](float x, float) { return std::cos(double(x)); });
  checkLanes("sin.approx.f32 %r0, %a;", 32, {{0x7f800000, 0, 0}, {0xffc00000, 0, 0}, {0x80000000, 0, 0}}, // -0 stays
             [](uint64_t a, uint64_t, uint64_t) { return a == 0x80000000 ? a : 0x7fffffff; });
  std::vector<uint64_t> values = {0,          0x80000000, 0x3f800000, 0xc0490fdb, 0x00000001, 0x7f7fffff,
                                  0x7f800000, 0xff800000, 0x7fc00000, 0x3dcccccd, 0x00800000};
  checkNear("div.full.f32 %r0, %a, %b;", triples(values, values), 2,
            [](float x, float y) { return double(x) / double(y); });
  // a * (1 / b): the reciprocal of a large b is nothing.
  for (uint64_t bits : {0x7e800000u, 0x7e800001u, 0xfe800001u, 0xff000000u, 0x7effffffu})
    values.push_back(bits);
  checkNear("div.approx.f32 %r0, %a, %b;", triples(values, values), 2, [](float x, float y) {
    const bool flushes = std::fabs(y) > 0x1p126f && !std::isinf(y);
    return flushes ? double(x) * std::copysign(0.0, y) : double(x) / double(y);
  });
}

TEST_CASE("approximate: sin and cos of huge operands stay in [-1, 1]") {
  Inputs huge;
  for (uint32_t high = 0x4b80; high < 0x7f80; ++high)
    huge.push_back({high << 16 | high, 0, 0});
  for (const char *name : {"sin.approx.f32", "cos.approx.ftz.f32"})
    for (uint64_t result : runLanes(std::string(name) + " %r0, %a;", 32, huge))
      CHECK(std::fabs(asFloat(result)) <= 1);
  // While anything is left of the reduced operand, it is right: f64 has pi/2 in two parts.
  Inputs large;
  for (int i = 1; i < 1000; ++i)
    large.push_back({std::bit_cast<uint32_t>(float(i) * 1e6f), 0, 0});
  checkNear("sin.approx.f32 %r0, %a;", large, 2, [](float x, float) { return std::sin(double(x)); });
}

TEST_CASE("approximate: 16-bit functions round the f32 result") {
  Inputs all;
  for (uint32_t bits = 0; bits < 0x10000; bits += 3)
    all.push_back({bits, 0, 0});
  for (auto [name, format] : {std::pair{"f16", half}, {"bf16", bfloat}}) {
    bool isHalf = format.mantissaBits == 10;
    for (const char *function : {"ex2", "tanh"}) {
      bool isExp = function[0] == 'e';
      std::string mode = isExp && !isHalf ? ".approx.ftz." : ".approx.";
      std::string scalar = function + mode + name + " %h0, %ha;";
      std::string packed = function + mode + name + "x2 %r0, %a;\nmov.b32 {%h0, %h1}, %r0;";
      for (const std::string &body : {scalar, packed}) {
        std::vector<uint64_t> results = runLanes(body, 16, all);
        unsigned wrong = 0;
        for (size_t i = 0; i < all.size(); ++i) {
          double x = decode(uint32_t(all[i][0]), format), exact = isExp ? std::exp2(x) : std::tanh(x);
          uint32_t want = encode(exact, format, Rounding::Nearest);
          bool flush = isExp && !isHalf && want < 0x80; // bf16 ftz
          // One step of 16 bits where the f32 value was beside the middle of two.
          wrong += flush ? results[i] != 0 : std::abs(int(results[i]) - int(want)) > 1;
        }
        INFO(body);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("approximate: f64 delivers the upper word") {
  std::vector<uint64_t> values = {0,
                                  0x8000000000000000,
                                  0x3ff0000000000000,
                                  0xc008000000000000,
                                  0x7ff0000000000000,
                                  0x000fffffffffffff,
                                  0x7fe8000000000000,
                                  0x400921fb54442d18,
                                  0x7ff8000000000000};
  auto flush = [](double x) { return std::fabs(x) < 0x1p-1022 ? std::copysign(0.0, x) : x; };
  auto upper = [](double x) {
    return std::isnan(x) ? 0x7fffffff00000000 : std::bit_cast<uint64_t>(x) & 0xffffffff00000000;
  };
  auto operand = [&](uint64_t bits) { return flush(std::bit_cast<double>(bits & 0xffffffff00000000)); };
  values.push_back(0x7ff0000000000001); // its upper word is that of infinity
  values.push_back(0x000fffff80000000);
  checkLanes("rcp.approx.ftz.f64 %l0, %la;", 64, triples(values),
             [&](uint64_t a, uint64_t, uint64_t) { return upper(flush(1 / operand(a))); });
  checkLanes("rsqrt.approx.ftz.f64 %l0, %la;", 64, triples(values),
             [&](uint64_t a, uint64_t, uint64_t) { return upper(1 / std::sqrt(operand(a))); });
}

TEST_CASE("approximate: rsqrt.approx.f64 has full precision") {
  checkLanes("rsqrt.approx.f64 %l0, %la;", 64,
             triples(std::vector<uint64_t>{0x4000000000000000, 0x3fd5555555555555, 0x000fffffffffffff,
                                           0x8000000000000000, 0x7ff0000000000000, 0xc008000000000000}),
             [](uint64_t a, uint64_t, uint64_t) {
               double root = 1 / std::sqrt(std::bit_cast<double>(a));
               return std::isnan(root) ? 0x7ff8000000000000 : std::bit_cast<uint64_t>(root);
             });
}

TEST_CASE("approximate: results of invalid operands are the canonical NaN") {
  for (const char *op : {"rsqrt.approx.f32", "sqrt.approx.f32", "lg2.approx.f32", "sqrt.rz.f32"})
    checkLanes(std::string(op) + " %r0, %a;", 32, {{0xbf800000, 0, 0}, {0xff800000, 0, 0}, {0xffc12345, 0, 0}},
               [](uint64_t, uint64_t, uint64_t) { return bitsOf(NAN); });
}
