// Approximate instructions with a seed: every result is one that the PTX manual allows, results near the edges of what
// it allows do occur, and the same operands give the same bits everywhere.
#include "../../../src/emulator/Floats.h"
#include "LaneProgram.h"

#include <bit>
#include <cmath>
#include <functional>

using namespace hloc::emulator;
using namespace hloc::emulator::test;

namespace {

constexpr uint64_t seeds[] = {
    0, 1, 2, 1000003, EmulatorOptions::largestApproximations, EmulatorOptions::smallestApproximations};

double flushed(double x) { return std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; }
double unit(double exact) { return std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23); }

/// One form: the exact function, how far from it a result may be, and for which operands that is promised.
struct Form {
  const char *body;
  std::function<double(double, double)> exact;
  std::function<double(double exact, double a, double b)> allowed;
  /// Least part of the allowed error that some seed must show.
  double reach;
};

const double circle = std::exp2(-20.5), circleOfCosine = std::exp2(-20.42), wideCircle = std::exp2(-14.7);

const Form singles[] = {
    {"ex2.approx.f32 %r0, %a;", [](double x, double) { return std::exp2(x); },
     [](double e, double, double) { return 2.0625 * unit(e); }, 0.95},
    {"ex2.approx.ftz.f32 %r0, %a;", [](double x, double) { return flushed(std::exp2(flushed(x))); },
     [](double e, double, double) { return 2.0625 * unit(e); }, 0.95},
    {"rcp.approx.f32 %r0, %a;", [](double x, double) { return 1 / x; },
     [](double e, double, double) { return unit(e); }, 0.95},
    {"rcp.approx.ftz.f32 %r0, %a;", [](double x, double) { return flushed(1 / flushed(x)); },
     [](double e, double, double) { return unit(e); }, 0.95},
    {"sqrt.approx.f32 %r0, %a;", [](double x, double) { return std::sqrt(x); },
     [](double e, double, double) { return e * 0x1p-23; }, 0.95},
    {"rsqrt.approx.f32 %r0, %a;", [](double x, double) { return 1 / std::sqrt(x); },
     [](double e, double, double) { return e * std::exp2(-22.9); }, 0.95},
    {"lg2.approx.f32 %r0, %a;", [](double x, double) { return std::log2(x); },
     [](double e, double, double) { return std::max(1.0, std::fabs(e)) * 0x1p-22; }, 0.95},
    {"sin.approx.f32 %r0, %a;", [](double x, double) { return std::sin(x); },
     [](double, double x, double) {
       return std::fabs(x) <= 2 * M_PI ? circle : std::fabs(x) <= 100 * M_PI ? wideCircle : 2;
     },
     0.95},
    {"cos.approx.ftz.f32 %r0, %a;", [](double x, double) { return std::cos(flushed(x)); },
     [](double, double x, double) {
       return std::fabs(x) <= 2 * M_PI ? circleOfCosine : std::fabs(x) <= 100 * M_PI ? wideCircle : 2;
     },
     0.95},
    {"tanh.approx.f32 %r0, %a;", [](double x, double) { return std::tanh(x); },
     [](double e, double, double) { return std::fabs(e) * 0x1p-11; }, 0.95},
    {"div.full.f32 %r0, %a, %b;", [](double x, double y) { return x / y; },
     [](double e, double, double) { return 2.15 * unit(e); }, 0.95},
    {"div.approx.f32 %r0, %a, %b;", [](double x, double y) { return x / y; },
     [](double e, double, double) { return 2.15 * unit(e); }, 0.95},
};

float asFloat(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }

/// All exponents and signs with varied mantissas; operands of a division at most 2^126, as div.approx wants.
Inputs operands(bool quotients) {
  Inputs inputs;
  uint32_t state = 5;
  auto next = [&] { return state = state * 1664525 + 1013904223; };
  for (uint32_t high = 0; high < 0x10000; high += 7) {
    const uint64_t divisor = 0x00800000 + next() % 0x7e000000 + (next() & 0x80000000);
    inputs.push_back({uint64_t(high) << 16 | next() >> 16, quotients ? divisor : 0, 0});
  }
  for (int i = -2000; i <= 2000; ++i)
    inputs.push_back({std::bit_cast<uint32_t>(float(i) * 0.17f), 0x3f800000, 0});
  return inputs;
}

/// Largest error as a part of what is allowed; more than 1 is wrong. Special values must be the exact ones.
double largestPart(const Form &form, const Inputs &inputs, const std::vector<uint64_t> &results) {
  double largest = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const float a = asFloat(inputs[i][0]), b = asFloat(inputs[i][1]), got = asFloat(results[i]);
    const double exact = form.exact(a, b);
    const bool same = std::isnan(exact) ? std::isnan(got) : double(got) == exact;
    double part = same ? 0 : std::fabs(got - exact) / form.allowed(exact, a, b);
    if (!same && std::isinf(float(exact))) // overflow, exactly or by rounding
      part = std::isinf(got) ? 0 : 9;
    if (!same && exact != 0 && std::fabs(exact) < 0x1p-126 && std::fabs(got - exact) <= 0x1p-149)
      part = 0; // subnormal results are rounded, or flushed
    if (!(part <= 1)) {
      INFO(form.body << " of " << a << ", " << b << " gives " << got << " for " << exact);
      CHECK(part <= 1);
      return 9;
    }
    largest = std::max(largest, part);
  }
  return largest;
}

} // namespace

TEST_CASE("deviation: results of f32 are those that PTX allows, up to the edge") {
  for (const Form &form : singles) {
    const Inputs inputs = operands(std::string(form.body).find("%b") != std::string::npos);
    double largest = 0;
    for (uint64_t seed : seeds) {
      EmulatorOptions options;
      options.approximationSeed = seed;
      largest = std::max(largest, largestPart(form, inputs, runLanes(form.body, 32, inputs, options)));
    }
    INFO(form.body << " reaches " << largest << " of its bound");
    CHECK(largest <= 1);
    CHECK(largest >= form.reach);
  }
}

TEST_CASE("deviation: results of f16 and bf16 are those that PTX allows, up to the edge") {
  Inputs all;
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    all.push_back({bits, 0, 0});
  struct Narrow {
    const char *name;
    SmallFormat format;
    bool isExp;
    double bound;
  };
  const Narrow forms[] = {{"ex2.approx.f16", half, true, std::exp2(-9.9)},
                          {"ex2.approx.ftz.bf16", bfloat, true, 0x1p-7},
                          {"tanh.approx.f16", half, false, std::exp2(-10.987)},
                          {"tanh.approx.bf16", bfloat, false, 0x1p-8}};
  for (const Narrow &form : forms) {
    double largest = 0;
    for (uint64_t seed : seeds) {
      EmulatorOptions options;
      options.approximationSeed = seed;
      const std::string name = form.name;
      std::vector<uint64_t> results = runLanes(name + " %h0, %ha;", 16, all, options);
      std::vector<uint64_t> packed = runLanes(name + "x2 %r0, %a;\nmov.b32 {%h0, %h1}, %r0;", 16, all, options);
      for (size_t i = 0; i < all.size(); ++i)
        if (packed[i] != results[i])
          FAIL_CHECK(name << " of " << std::hex << i << " gives " << results[i] << ", packed " << packed[i]);
      for (size_t i = 0; i < all.size(); ++i) {
        const double x = decode(uint32_t(i), form.format), exact = form.isExp ? std::exp2(x) : std::tanh(x);
        const double got = decode(uint32_t(results[i]), form.format);
        const double nearest = decode(encode(exact, form.format, Rounding::Nearest), form.format);
        const double normal = form.format.exponentBits == 5 ? 0x1p-14 : 0x1p-126;
        if (std::isnan(exact) ? std::isnan(got) : got == nearest)
          continue;
        const double subnormal =
            std::ldexp(normal, -form.format.mantissaBits); // results between are rounded, or flushed
        const double part = std::fabs(exact) < normal && std::fabs(got - exact) <= (form.isExp ? normal : subnormal)
                                ? 0
                                : std::fabs(got - exact) / (form.isExp ? exact * form.bound : form.bound);
        INFO(name << " of " << x << " gives " << got << " for " << exact);
        if (!(part <= 1.0000001))
          FAIL_CHECK("further from the exact value than allowed");
        if (!form.isExp && (std::fabs(got) > 1 || std::signbit(got) != std::signbit(x)))
          FAIL_CHECK("not between 0 and 1 on the operand's side");
        largest = std::max(largest, part);
      }
    }
    INFO(form.name << " reaches " << largest << " of its bound");
    CHECK(largest >= 0.95);
  }
}

TEST_CASE("deviation: the upper words of reciprocals in f64, and of roots") {
  Inputs inputs;
  uint64_t state = 11;
  for (unsigned i = 0; i < 4000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    inputs.push_back({(state >> 1) % (0x7fdull << 52) + (1ull << 52), 0, 0}); // the upper word counts
  }
  struct Upper {
    const char *body;
    bool isRoot;
    double bound;
  };
  for (const Upper &form : {Upper{"rcp.approx.ftz.f64 %l0, %la;", false, std::exp2(-19.93)},
                            Upper{"rsqrt.approx.ftz.f64 %l0, %la;", true, 0x1p-20}}) {
    double largest = 0;
    for (uint64_t seed : seeds) {
      EmulatorOptions options;
      options.approximationSeed = seed;
      std::vector<uint64_t> results = runLanes(form.body, 64, inputs, options);
      for (size_t i = 0; i < inputs.size(); ++i) {
        const double x = std::bit_cast<double>(inputs[i][0] >> 32 << 32), got = std::bit_cast<double>(results[i]);
        const double exact = 1 / (form.isRoot ? std::sqrt(x) : x);
        if (exact >= 0x1p-1020)
          largest = std::max(largest, std::fabs(got - exact) / exact / form.bound);
        CHECK(uint32_t(results[i]) == 0);
      }
    }
    INFO(form.body << " reaches " << largest << " of its bound");
    CHECK(largest <= 1);
    CHECK(largest >= 0.95);
  }
}

TEST_CASE("deviation: what the manual's tables fix does not move") {
  struct Fixed {
    const char *name;
    std::vector<std::pair<uint32_t, uint32_t>> values;
  };
  const uint32_t nan = 0x7fffffff, inf = 0x7f800000, one = 0x3f800000, sign = 0x80000000;
  const Fixed forms[] = {
      {"ex2.approx.f32", {{0, one}, {sign, one}, {1, one}, {inf, inf}, {inf | sign, 0}, {0x7fc00001, nan}}},
      {"ex2.approx.f32", {{one, 0x40000000}, {0xc1200000, 0x3a800000}, {0x42fe0000, 0x7f000000}}},
      {"lg2.approx.f32", {{0, inf | sign}, {sign, inf | sign}, {inf, inf}, {inf | sign, nan}, {0xbf800000, nan}}},
      {"rcp.approx.f32", {{0, inf}, {sign, inf | sign}, {inf, 0}, {inf | sign, sign}, {0xffc00000, nan}}},
      {"sqrt.approx.f32", {{0, 0}, {sign, sign}, {inf, inf}, {0xbf800000, nan}, {inf | sign, nan}}},
      {"rsqrt.approx.f32", {{0, inf}, {sign, inf | sign}, {inf, 0}, {0xbf800000, nan}, {inf | sign, nan}}},
      {"sin.approx.f32", {{0, 0}, {sign, sign}, {inf, nan}, {inf | sign, nan}}},
      {"cos.approx.f32", {{0, one}, {sign, one}, {1, one}, {inf, nan}, {inf | sign, nan}}},
      {"tanh.approx.f32", {{0, 0}, {sign, sign}, {0x00000123, 0x00000123}, {inf, one}, {inf | sign, one | sign}}},
  };
  for (const Fixed &form : forms)
    for (uint64_t seed : seeds) {
      EmulatorOptions options;
      options.approximationSeed = seed;
      Inputs inputs;
      for (auto [operand, result] : form.values)
        inputs.push_back({operand, 0, 0});
      std::vector<uint64_t> results = runLanes(std::string(form.name) + " %r0, %a;", 32, inputs, options);
      for (size_t i = 0; i < inputs.size(); ++i) {
        INFO(form.name << " of " << std::hex << inputs[i][0] << " with seed " << seed);
        CHECK(results[i] == form.values[i].second);
      }
    }
}

TEST_CASE("deviation: a function of the operand, of the instruction and of the seed") {
  Inputs inputs;
  for (unsigned i = 0; i < 1000; ++i)
    inputs.push_back({0x3f800000 + i % 100 * 1000, 0, 0});
  auto run = [&](const char *name, std::optional<uint64_t> seed) {
    EmulatorOptions options;
    options.approximationSeed = seed;
    return runLanes(std::string(name) + " %r0, %a;", 32, inputs, options);
  };
  std::vector<uint64_t> first = run("tanh.approx.f32", 4);
  for (size_t i = 100; i < first.size(); ++i)
    CHECK(first[i] == first[i - 100]);
  CHECK(first == run("tanh.approx.f32", 4));
  CHECK(first != run("tanh.approx.f32", 8));
  CHECK(first != run("tanh.approx.f32", std::nullopt));
  CHECK(run("sqrt.approx.f32", 4) == run("sqrt.approx.ftz.f32", 4));
  std::vector<uint64_t> largest = run("tanh.approx.f32", EmulatorOptions::largestApproximations);
  std::vector<uint64_t> smallest = run("tanh.approx.f32", EmulatorOptions::smallestApproximations);
  for (size_t i = 0; i < first.size(); ++i) {
    CHECK(smallest[i] <= first[i]);
    CHECK(first[i] <= largest[i]);
    CHECK(smallest[i] < largest[i]);
  }
}
