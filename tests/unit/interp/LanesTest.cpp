// Loads, stores and rounding of every element type, against the slow definitions in support/FloatFormat.h.
#include "interp/Lanes.h"
#include "interp/NarrowFloat.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <random>

using namespace hloc;
using namespace hloc::interp;

namespace {

const ElementType narrowFloats[] = {ElementType::F16,        ElementType::BF16,       ElementType::F8E5M2,
                                    ElementType::F8E4M3,     ElementType::F8E4M3FN,   ElementType::F8E4M3B11FNUZ,
                                    ElementType::F8E5M2FNUZ, ElementType::F8E4M3FNUZ, ElementType::F8E3M4,
                                    ElementType::F8E8M0FNU,  ElementType::F6E3M2FN,   ElementType::F6E2M3FN,
                                    ElementType::F4E2M1FN};

uint64_t stored(ElementType type, float value) {
  uint64_t pattern = 0;
  storeFunction(type)(&value, reinterpret_cast<uint8_t *>(&pattern), 1);
  return pattern;
}

float loaded(ElementType type, uint64_t pattern) {
  float value = 0;
  loadFunction(type)(reinterpret_cast<const uint8_t *>(&pattern), &value, 1);
  return value;
}

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) && std::signbit(a) == std::signbit(b)
                       : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

} // namespace

TEST_CASE("every pattern of a narrow float loads as its value") {
  for (ElementType type : narrowFloats) {
    INFO(text(type).str());
    for (uint64_t pattern = 0; pattern < uint64_t(1) << bitWidth(type); ++pattern)
      REQUIRE(same(loaded(type, pattern), float(decodeFloat(floatFormat(type), pattern))));
  }
}

TEST_CASE("stores round as the format table says") {
  std::mt19937 random(1);
  for (ElementType type : narrowFloats) {
    INFO(text(type).str());
    auto check = [&](float value) {
      const FloatFormat &format = floatFormat(type);
      if (std::isnan(value) && format.specials == FloatFormat::Specials::Ieee) {
        // The upper bits of its mantissa stay, and it stays a NaN.
        uint64_t kept =
            std::bit_cast<uint32_t>(value) >> (23 - format.mantissaBits) & ((1u << format.mantissaBits) - 1);
        REQUIRE(stored(type, value) == (encodeFloat(format, value) | kept));
        return;
      }
      if (stored(type, value) != encodeFloat(floatFormat(type), value)) {
        CAPTURE(value);
        REQUIRE(stored(type, value) == encodeFloat(floatFormat(type), value));
      }
    };
    for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) // every exponent, ties, near ties
      for (uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
        check(std::bit_cast<float>(pattern << 16 | low));
    for (int i = 0; i < 200000; ++i)
      check(std::bit_cast<float>(uint32_t(random())));
  }
}

TEST_CASE("integers wrap to their width") {
  auto wrapped = [](ElementType type, int64_t value) {
    roundFunction(type)(&value, 1);
    return value;
  };
  CHECK(wrapped(ElementType::S4, 7) == 7);
  CHECK(wrapped(ElementType::S4, 8) == -8);
  CHECK(wrapped(ElementType::S8, 200) == -56);
  CHECK(wrapped(ElementType::S2, 2) == -2);
  CHECK(wrapped(ElementType::U4, 17) == 1);
  CHECK(wrapped(ElementType::U8, -1) == 255);
  CHECK(wrapped(ElementType::S32, int64_t(1) << 31) == -(int64_t(1) << 31));
  CHECK(roundFunction(ElementType::U64) == nullptr);
}
