#include "hloc/support/FloatFormat.h"
#include "hloc/hlo/ElementType.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

using namespace hloc;

static double round(ElementType type, double value) {
  return decodeFloat(floatFormat(type), encodeFloat(floatFormat(type), value));
}

// Vectors of the HLO conversion rules: saturation, NaN overflow, ties to even.
TEST_CASE("float-format-overflow-rules") {
  CHECK(round(ElementType::F8E4M3FN, 464) == 448);
  CHECK(std::isnan(round(ElementType::F8E4M3FN, 465)));
  CHECK(std::isnan(round(ElementType::F8E4M3FN, INFINITY)));
  CHECK(round(ElementType::F8E4M3FN, 0.0009765625) == 0);
  CHECK(round(ElementType::F8E5M2, 61439) == 57344);
  CHECK(std::isinf(round(ElementType::F8E5M2, 61440)));
  CHECK(round(ElementType::F4E2M1FN, 2.5) == 2);
  CHECK(round(ElementType::F4E2M1FN, 7) == 6);
  CHECK(round(ElementType::F4E2M1FN, 0.25) == 0);
  CHECK(round(ElementType::F4E2M1FN, 0.75) == 1);
  CHECK(round(ElementType::F4E2M1FN, INFINITY) == 6);
  CHECK(std::isinf(round(ElementType::F16, 65520)));
  CHECK(round(ElementType::F16, 65519) == 65504);
}

TEST_CASE("float-format-e8m0") {
  const FloatFormat &format = floatFormat(ElementType::F8E8M0FNU);
  for (double bad : {0.0, -1.0, double(INFINITY), 1.5 * 0x1p127})
    CHECK(encodeFloat(format, bad) == 0xFF);
  CHECK(round(ElementType::F8E8M0FNU, 3) == 4);
  CHECK(round(ElementType::F8E8M0FNU, 6) == 8);
  CHECK(round(ElementType::F8E8M0FNU, 1.4999 * 0x1p127) == 0x1p127);
}

// Every pattern of every narrow format survives decoding and encoding; NaNs stay NaNs.
TEST_CASE("float-format-round-trips-every-pattern") {
#define HLOC_ELEMENT_TYPE(name, text, bits, category)
#define HLOC_FLOAT_TYPE(name, text, bits, e, m, bias, specials)                                                        \
  if (bits <= 16)                                                                                                      \
    for (uint64_t pattern = 0; pattern < (uint64_t(1) << bits); ++pattern) {                                           \
      double value = decodeFloat(floatFormat(ElementType::name), pattern);                                             \
      uint64_t back = encodeFloat(floatFormat(ElementType::name), value);                                              \
      if (std::isnan(value) ? !std::isnan(decodeFloat(floatFormat(ElementType::name), back)) : back != pattern)        \
        FAIL(text << " pattern " << pattern << " came back as " << back);                                              \
    }
#include "hloc/hlo/ElementTypes.def"
  SUCCEED();
}

// Against the machine's own rounding, for values around every f32 step of interest.
TEST_CASE("float-format-f32-agrees-with-the-machine") {
  for (int i = 0; i < 200000; ++i) {
    uint64_t seed = uint64_t(i) * 0x9E3779B97F4A7C15ull;
    double value;
    uint64_t bits = (seed & 0x800FFFFFFFFFFFFFull) | (uint64_t(1023 - 160 + i % 320) << 52);
    std::memcpy(&value, &bits, 8);
    auto expected = static_cast<float>(value);
    uint32_t pattern;
    std::memcpy(&pattern, &expected, 4);
    if (encodeFloat(floatFormat(ElementType::F32), value) != pattern)
      FAIL(value);
  }
  SUCCEED();
}
