#include "../../../src/emulator/Floats.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace hloc::emulator;

TEST_CASE("floats: every f16 and bf16 survives decode and encode") {
  for (SmallFormat format : {half, bfloat})
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      double value = decode(bits, format);
      if (std::isnan(value))
        REQUIRE(encode(value, format, Rounding::Nearest) == 0x7fff);
      else
        REQUIRE(encode(value, format, Rounding::Up) == bits);
    }
}

TEST_CASE("floats: ties, directed modes, overflow and subnormals") {
  CHECK(encode(1 + 0x1p-11, half, Rounding::Nearest) == 0x3c00);
  CHECK(encode(1 + 3 * 0x1p-11, half, Rounding::Nearest) == 0x3c02);
  CHECK(encode(1 + 0x1p-20, half, Rounding::Up) == 0x3c01);
  CHECK(encode(1 + 0x1p-20, half, Rounding::Down) == 0x3c00);
  CHECK(encode(-1 - 0x1p-20, half, Rounding::Down) == 0xbc01);
  CHECK(encode(-1 - 0x1p-20, half, Rounding::Up) == 0xbc00);
  CHECK(encode(65520, half, Rounding::Nearest) == 0x7c00);
  CHECK(encode(65519, half, Rounding::Nearest) == 0x7bff);
  CHECK(encode(1e6, half, Rounding::Zero) == 0x7bff);
  CHECK(encode(-1e6, half, Rounding::Up) == 0xfbff);
  CHECK(encode(0x1p-25, half, Rounding::Nearest) == 0);
  CHECK(encode(0x1.8p-25, half, Rounding::Nearest) == 1);
  CHECK(encode(-0.0, half, Rounding::Nearest) == 0x8000);
}

TEST_CASE("floats: operations in the four modes") {
  CHECK(compute(FloatOp::Add, 1.0f, 0x1p-30f, 0.0f, Rounding::Nearest) == 1.0f);
  CHECK(compute(FloatOp::Add, 1.0f, 0x1p-30f, 0.0f, Rounding::Up) == 1.0f + 0x1p-23f);
  CHECK(compute(FloatOp::Sub, 1.0f, 0x1p-30f, 0.0f, Rounding::Zero) == 1.0f - 0x1p-24f);
  CHECK(compute(FloatOp::Div, 1.0, 3.0, 0.0, Rounding::Up) > compute(FloatOp::Div, 1.0, 3.0, 0.0, Rounding::Down));
  CHECK(compute(FloatOp::Fma, 1 + 0x1p-12f, 1 + 0x1p-12f, -1.0f, Rounding::Nearest) == 0x1p-11f + 0x1p-24f);
}

TEST_CASE("floats: an fma rounded to odd rounds on as the exact value") {
  // 1 + 2^-11 is a tie between two f16; the 2^-60 below it must push it up, which a double sum alone forgets.
  CHECK(encode(fmaToOdd(0x1p-30, 0x1p-30, 1 + 0x1p-11), half, Rounding::Nearest) == 0x3c01);
  CHECK(encode(0x1p-60 + (1 + 0x1p-11), half, Rounding::Nearest) == 0x3c00);
  CHECK(encode(fmaToOdd(-0x1p-30, 0x1p-30, 1 + 3 * 0x1p-11), half, Rounding::Nearest) == 0x3c01);
}
