#include "hloc/kernel/TensorMapRecipe.h"

#include <catch2/catch.hpp>
#include <functional>

using namespace hloc;

namespace {

TensorMapRecipe tiles() {
  TensorMapRecipe r;
  r.type = TensorMapType::Bf16;
  r.dims = {1024, 512};
  r.strides = {2048};
  r.box = {64, 128};
  r.elementStrides = {1, 1};
  r.swizzle = TensorMapSwizzle::Bytes128;
  return r;
}

TensorMapRecipe pixels() {
  TensorMapRecipe r;
  r.type = TensorMapType::F16;
  r.dims = {64, 28, 28, 2};
  r.strides = {128, 3584, 100352};
  r.im2col = TensorMapPixels{{-1, -1}, {-1, -1}, 64, 128};
  return r;
}

std::string errorOf(TensorMapRecipe r, const std::function<void(TensorMapRecipe &)> &change, uint64_t address = 256) {
  change(r);
  return findTensorMapError(r, address);
}

} // namespace

TEST_CASE("tensor maps that the driver takes", "[kernel][tensor-map]") {
  CHECK(findTensorMapError(tiles(), 16) == "");
  CHECK(findTensorMapError(pixels(), 256) == "");
  CHECK(errorOf(tiles(), [](TensorMapRecipe &r) { r.elementStrides.clear(); }) == "");
  CHECK(errorOf(tiles(), [](TensorMapRecipe &r) { r.strides[0] = 0; }) == "");
  CHECK(errorOf(tiles(), [](TensorMapRecipe &r) { r.dims[1] = uint64_t(1) << 32; }) == "");
}

TEST_CASE("tensor maps that the driver refuses", "[kernel][tensor-map]") {
  CHECK(findTensorMapError(tiles(), 8) == "its tensor begins 8 bytes behind a multiple of 16");
  auto refuses = [](const char *message, const std::function<void(TensorMapRecipe &)> &change) {
    CHECK(errorOf(tiles(), change) == message);
  };
  refuses("it has 0 dimensions; maps have 1 to 5", [](auto &r) { r.dims.clear(); });
  refuses("it has 6 dimensions; maps have 1 to 5", [](auto &r) { r.dims.resize(6, 1); });
  refuses("it has 2 dimensions; interleaved maps have 3 to 5",
          [](auto &r) { r.interleave = TensorMapInterleave::Bytes16; });
  refuses("dimension 1 has 0 elements; 1 to 2^32 can be", [](auto &r) { r.dims[1] = 0; });
  refuses("dimension 0 has 4294967297 elements; 1 to 2^32 can be",
          [](auto &r) { r.dims[0] = (uint64_t(1) << 32) + 1; });
  refuses("2 strides for 2 dimensions; there is one for each but the first", [](auto &r) { r.strides.push_back(16); });
  refuses("the stride of dimension 1 is 2056 bytes; it has to be a multiple of 16 below 2^40",
          [](auto &r) { r.strides[0] = 2056; });
  refuses("the stride of dimension 1 is 1099511627776 bytes; it has to be a multiple of 16 below 2^40",
          [](auto &r) { r.strides[0] = uint64_t(1) << 40; });
  refuses("its box has 1 dimensions, its tensor 2", [](auto &r) { r.box.pop_back(); });
  refuses("dimension 1 of its box has 257 elements; 1 to 256 can be", [](auto &r) { r.box[1] = 257; });
  refuses("a row of its box has 8 bytes; it has to be a multiple of 16", [](auto &r) { r.box[0] = 4; });
  refuses("a row of its box has 256 bytes; swizzled by 128 bytes it may have no more", [](auto &r) { r.box[0] = 128; });
  refuses("1 element strides for 2 dimensions", [](auto &r) { r.elementStrides.pop_back(); });
  refuses("element stride 1 is 9; 1 to 8 can be", [](auto &r) { r.elementStrides[1] = 9; });
  refuses("it fills u16 with NaN", [](auto &r) {
    r.type = TensorMapType::U16;
    r.fill = TensorMapFill::Nan;
  });
}

TEST_CASE("im2col maps that the driver refuses", "[kernel][tensor-map]") {
  auto refuses = [](const char *message, const std::function<void(TensorMapRecipe &)> &change) {
    CHECK(errorOf(pixels(), change) == message);
  };
  refuses("it has 2 dimensions; im2col maps have 3 to 5", [](auto &r) { r.dims.resize(2); });
  refuses("its corners have 1 and 2 coordinates; a map of 4 dimensions has 2",
          [](auto &r) { r.im2col->lower.pop_back(); });
  refuses("corner 0 is 128; -128 to 127 can be", [](auto &r) { r.im2col->upper[0] = 128; });
  refuses("its bounding box is empty in dimension 2", [](auto &r) { r.im2col->upper[1] = -29; });
  refuses("257 channels a pixel; 1 to 256 can be", [](auto &r) { r.im2col->channels = 257; });
  refuses("0 pixels; 1 to 1024 can be", [](auto &r) { r.im2col->pixels = 0; });
  refuses("a row of its box has 4 bytes; it has to be a multiple of 16", [](auto &r) { r.im2col->channels = 2; });
  refuses("im2col maps have no box", [](auto &r) { r.box = {64, 1, 1, 1}; });
}

TEST_CASE("names of a tensor map's parts lead back to them", "[kernel][tensor-map]") {
  for (unsigned i = 0; i <= unsigned(TensorMapType::Tf32Ftz); ++i) {
    TensorMapType type = TensorMapType::U8;
    CHECK(parse(nameOf(TensorMapType(i)), type));
    CHECK(type == TensorMapType(i));
  }
  TensorMapSwizzle swizzle = TensorMapSwizzle::None;
  CHECK(parse("64B", swizzle));
  CHECK(swizzle == TensorMapSwizzle::Bytes64);
  CHECK_FALSE(parse("96B", swizzle));
  CHECK(extentOf(tiles()) == 511 * 2048 + 2048);
  TensorMapRecipe vast = tiles();
  vast.dims = {1, 1ull << 32, 1ull << 32};
  vast.strides = {1ull << 39, 1ull << 39};
  CHECK(extentOf(vast) == UINT64_MAX);
}
