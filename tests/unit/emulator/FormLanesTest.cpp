// Forms that differ from their siblings in a rare operand or modifier, against models.
#include "Harness.h"
#include "LaneProgram.h"

#include <bit>
#include <cfenv>
#include <cmath>

using namespace hloc::emulator;
using namespace hloc::emulator::test;
using hloc::emulator::testing::Harness;

namespace {

float asFloat(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
uint64_t bitsOf(float value) { return std::isnan(value) ? 0x7fffffff : std::bit_cast<uint32_t>(value); }

const std::vector<uint64_t> values = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x40200000, 0xc0200000,
                                      0x00000001, 0x80000123, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001};

/// The manual's pseudo code of min and max for two numbers of f32.
float extreme(float a, float b, bool isMin, bool nan, bool xorSign, bool magnitudes) {
  const bool sign = std::signbit(a) != std::signbit(b);
  if (xorSign || magnitudes)
    a = std::fabs(a), b = std::fabs(b);
  float result;
  if ((std::isnan(a) && std::isnan(b)) || (nan && (std::isnan(a) || std::isnan(b))))
    return NAN;
  if (std::isnan(a) || std::isnan(b))
    result = std::isnan(a) ? b : a;
  else if (a == b)
    result = std::signbit(a) == isMin ? a : b;
  else
    result = (a < b) == isMin ? a : b;
  return xorSign ? std::copysign(result, sign ? -1.0f : 1.0f) : result;
}

float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

} // namespace

TEST_CASE("forms: min and max with the sign of the product, one operand NaN or both") {
  for (bool isMin : {true, false})
    for (bool nan : {false, true}) {
      const std::string name = std::string(isMin ? "min" : "max") + (nan ? ".NaN" : "") + ".xorsign.abs.f32";
      checkLanes(name + " %r0, %a, %b;", 32, triples(values, values), [=](uint64_t a, uint64_t b, uint64_t) {
        return bitsOf(extreme(asFloat(a), asFloat(b), isMin, nan, true, false));
      });
    }
  // f16: the magnitude of a number beside a NaN, and the NaN's sign.
  checkLanes("max.xorsign.abs.f16 %h0, %ha, %hb;", 16, {{0xfe00, 0x4000, 0}, {0x7e00, 0xc000, 0}, {0xfe00, 0xc000, 0}},
             [](uint64_t a, uint64_t b, uint64_t) { return ((a ^ b) & 0x8000) | 0x4000; });
}

TEST_CASE("forms: min and max of three, of magnitudes too") {
  for (bool isMin : {true, false})
    for (bool nan : {false, true})
      for (bool magnitudes : {false, true})
        for (bool ftz : {false, true}) {
          const std::string name = std::string(isMin ? "min" : "max") + (ftz ? ".ftz" : "") + (nan ? ".NaN" : "") +
                                   (magnitudes ? ".abs" : "") + ".f32";
          checkLanes(name + " %r0, %a, %b, %c;", 32, triples(values, values, values),
                     [=](uint64_t a, uint64_t b, uint64_t c) {
                       auto in = [&](uint64_t bits) { return ftz ? flushed(asFloat(bits)) : asFloat(bits); };
                       float first = extreme(in(a), in(b), isMin, nan, false, magnitudes);
                       return bitsOf(extreme(first, in(c), isMin, nan, false, magnitudes));
                     });
        }
}

TEST_CASE("forms: f32x2 in every rounding") {
  const std::vector<uint64_t> pairs = {0x3f8000003dcccccd, 0x7f7fffff00000001, 0x4b80000033d6bf95, 0xbf8000004b000001};
  for (auto [rounding, mode] :
       {std::pair{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}})
    checkLanes(std::string("add.") + rounding + ".f32x2 %l0, %la, %lb;", 64, triples(pairs, pairs),
               [mode = mode](uint64_t a, uint64_t b, uint64_t) {
                 auto add = [&](uint64_t x, uint64_t y) {
                   volatile float first = asFloat(x), second = asFloat(y);
                   std::fesetround(mode);
                   volatile float sum = first + second;
                   std::fesetround(FE_TONEAREST);
                   return bitsOf(sum);
                 };
                 return add(a >> 32, b >> 32) << 32 | add(uint32_t(a), uint32_t(b));
               });
}

TEST_CASE("forms: cp.async with a predicate that ignores the source") {
  Harness h;
  // Odd threads copy zeros; their addresses lie far outside, since they are not read.
  h.runOnThree(R"(
    and.b32 %r5, %r1, 1;
    setp.eq.u32 %p1, %r5, 1;
    mov.u32 %r6, s;
    shl.b32 %r7, %r1, 2;
    add.u32 %r6, %r6, %r7;
    st.shared.u32 [%r6], -1;
    add.s64 %d5, %d2, %d0;
    @%p1 add.s64 %d5, %d5, 1048576;
    cp.async.ca.shared.global [%r6], [%d5], 4, %p1;
    cp.async.wait_all;
    ld.shared.u32 %r8, [%r6];
    add.s64 %d6, %d3, %d0;
    st.global.u32 [%d6], %r8;)",
               ".shared .align 4 .b8 s[128];");
  INFO(h.messages());
  REQUIRE(h.silent());
  std::vector<uint32_t> result = h.read<uint32_t>(2);
  for (uint32_t i = 0; i < 32; ++i)
    CHECK(result[i] == (i % 2 ? 0 : i + 1));
}
