// Which bytes a box touches, against a model that takes one element at a time.
#include "emulator/TensorMap.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

using namespace hloc;
using namespace hloc::emulator;

namespace {

constexpr uint64_t base = 0x20000;
constexpr uint64_t nowhere = ~uint64_t(0);

/// By byte of shared memory: the byte of global memory that it comes from, or `nowhere`.
using Bytes = std::map<uint32_t, uint64_t>;

Bytes bytesOf(llvm::ArrayRef<TensorPiece> pieces) {
  Bytes bytes;
  for (const TensorPiece &piece : pieces)
    for (uint32_t i = 0; i < piece.bytes; ++i) {
      const bool isNew = bytes.emplace(piece.shared + i, piece.outside ? nowhere : piece.global + i).second;
      CHECK(isNew);
    }
  return bytes;
}

/// Bits of the address, as the manual draws them.
uint32_t swizzleByBits(uint32_t address, TensorMapSwizzle swizzle) {
  auto bit = [&](unsigned i) { return address >> i & 1; };
  switch (swizzle) {
  case TensorMapSwizzle::None:
    return address;
  case TensorMapSwizzle::Bytes32:
    return address ^ bit(7) << 4;
  case TensorMapSwizzle::Bytes64:
    return address ^ bit(7) << 4 ^ bit(8) << 5;
  case TensorMapSwizzle::Bytes128:
    return address ^ bit(7) << 4 ^ bit(8) << 5 ^ bit(9) << 6;
  }
  return 0;
}

/// Element (along dimension 0) of a row of the box at `place` of the tensor.
void expectElement(const TensorMapRecipe &r, std::vector<int64_t> place, uint32_t row, uint32_t element,
                   uint32_t rowElements, uint32_t shared, Bytes &bytes) {
  const unsigned size = bytesOf(r.type);
  bool inside = true;
  uint64_t global = base;
  for (size_t i = 0; i < place.size(); ++i) {
    inside &= place[i] >= 0 && place[i] < int64_t(r.dims[i]);
    global += uint64_t(place[i] * int64_t(i ? r.strides[i - 1] : size));
  }
  const uint32_t pitch = std::max(rowElements * size, spanOf(r.swizzle));
  for (unsigned b = 0; b < size; ++b)
    bytes[swizzleByBits(shared + row * pitch + element * size + b, r.swizzle)] = inside ? global + b : nowhere;
}

Bytes modelOfTiles(const TensorMapRecipe &r, const std::vector<int32_t> &coordinates, uint32_t shared) {
  Bytes bytes;
  std::vector<uint32_t> counts, at(r.dims.size());
  for (size_t i = 0; i < r.box.size(); ++i) {
    const uint32_t step = i ? r.elementStrides[i] : 1;
    counts.push_back((r.box[i] + step - 1) / step);
  }
  uint32_t all = 1;
  for (uint32_t count : counts)
    all *= count;
  for (uint32_t n = 0; n < all; ++n) {
    uint32_t rest = n;
    std::vector<int64_t> place;
    for (size_t i = 0; i < counts.size(); ++i) {
      place.push_back(coordinates[i] + int64_t(rest % counts[i]) * (i ? r.elementStrides[i] : 1));
      rest /= counts[i];
    }
    expectElement(r, place, n / counts[0], n % counts[0], counts[0], shared, bytes);
  }
  return bytes;
}

/// The start lies in the bounding box, a multiple of the steps from its corner.
Bytes modelOfPixels(const TensorMapRecipe &r, const std::vector<int32_t> &start, const std::vector<uint16_t> &offsets,
                    uint32_t shared) {
  Bytes bytes;
  const size_t spatial = r.dims.size() - 2;
  const TensorMapPixels &p = *r.im2col;
  std::vector<uint32_t> counts; // places of corners along W, H, D
  uint64_t first = 0, all = 1;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = int64_t(r.dims[i + 1]) + p.upper[i] - p.lower[i];
    counts.push_back(uint32_t((reach + r.elementStrides[i + 1] - 1) / r.elementStrides[i + 1]));
    first += all * uint64_t((start[i + 1] - p.lower[i]) / int64_t(r.elementStrides[i + 1]));
    all *= counts[i];
  }
  first += all * uint64_t(start[spatial + 1]);
  for (uint32_t pixel = 0; pixel < p.pixels; ++pixel)
    for (uint32_t c = 0; c < p.channels; ++c) {
      uint64_t rest = first + pixel;
      std::vector<int64_t> place = {start[0] + int64_t(c)};
      for (size_t i = 0; i < spatial; ++i) {
        place.push_back(p.lower[i] + int64_t(rest % counts[i] * r.elementStrides[i + 1]) +
                        (offsets.empty() ? 0 : offsets[i]));
        rest /= counts[i];
      }
      place.push_back(int64_t(rest));
      expectElement(r, place, pixel, c, p.channels, shared, bytes);
    }
  return bytes;
}

struct Random {
  std::mt19937_64 engine;
  int64_t operator()(int64_t low, int64_t high) { return low + int64_t(engine() % uint64_t(high - low + 1)); }
};

TensorMapRecipe randomTensor(Random &random, unsigned rank) {
  TensorMapRecipe r;
  r.type = TensorMapType(random(0, 12));
  r.swizzle = TensorMapSwizzle(random(0, 3));
  uint64_t stride = 0;
  for (unsigned i = 0; i < rank; ++i) {
    r.dims.push_back(uint64_t(random(1, i ? 9 : 70)));
    r.elementStrides.push_back(uint32_t(random(0, 2) ? 1 : random(1, 8)));
    if (i)
      r.strides.push_back(stride);
    const uint64_t bytes = i ? stride * r.dims[i] : r.dims[0] * bytesOf(r.type);
    stride = (bytes + 15) / 16 * 16 + 16 * uint64_t(random(0, 2));
  }
  return r;
}

TensorMap decoded(const TensorMapRecipe &recipe) {
  std::string error = findTensorMapError(recipe, base);
  CHECK(error == "");
  auto map = decodeTensorMap(encodeTensorMap(recipe, base), error);
  INFO(error);
  REQUIRE(map);
  return *map;
}

/// Elements of a row of the box: whole chunks of 16 bytes, no more than the swizzle takes.
uint32_t randomRow(Random &random, const TensorMapRecipe &r) {
  const unsigned most = spanOf(r.swizzle) ? spanOf(r.swizzle) : 256u;
  return uint32_t(16 * random(1, most / 16)) / bytesOf(r.type);
}

} // namespace

TEST_CASE("a box of tiles is what a model makes of it, element by element", "[emulator][tensor-map]") {
  Random random{std::mt19937_64(7)};
  for (unsigned round = 0; round < 300; ++round) {
    TensorMapRecipe r = randomTensor(random, unsigned(random(1, 5)));
    r.box = {randomRow(random, r)};
    std::vector<int32_t> coordinates;
    for (size_t i = 0; i < r.dims.size(); ++i) {
      if (i)
        r.box.push_back(uint32_t(random(1, 6)));
      coordinates.push_back(int32_t(random(-12, int64_t(r.dims[i]) + 3)));
    }
    const uint32_t shared = uint32_t(128 * random(0, 9));
    llvm::SmallVector<TensorPiece> pieces;
    const TensorMap map = decoded(r);
    findTilePieces(map, coordinates, shared, pieces);
    const Bytes expected = modelOfTiles(r, coordinates, shared);
    REQUIRE(bytesOf(pieces) == expected);
    CHECK(map.boxBytes() == expected.size());
  }
}

TEST_CASE("pixels of im2col are what a model makes of them", "[emulator][tensor-map]") {
  Random random{std::mt19937_64(11)};
  for (unsigned round = 0; round < 300; ++round) {
    const unsigned rank = unsigned(random(3, 5));
    TensorMapRecipe r = randomTensor(random, rank);
    r.elementStrides[rank - 1] = 1;
    r.im2col.emplace();
    r.im2col->channels = randomRow(random, r);
    r.im2col->pixels = uint32_t(random(1, 40));
    std::vector<int32_t> start = {int32_t(random(-3, int64_t(r.dims[0])))};
    std::vector<uint16_t> offsets;
    for (unsigned i = 1; i + 1 < rank; ++i) {
      const int32_t lower = int32_t(random(-3, 1));
      r.im2col->lower.push_back(lower);
      r.im2col->upper.push_back(int32_t(random(std::max<int64_t>(-4, lower + 1 - int64_t(r.dims[i])), 3)));
      const int64_t last = int64_t(r.dims[i]) - 1 + r.im2col->upper.back();
      start.push_back(lower + int32_t(random(0, (last - lower) / r.elementStrides[i]) * r.elementStrides[i]));
      offsets.push_back(uint16_t(random(0, 4)));
    }
    start.push_back(int32_t(random(0, int64_t(r.dims[rank - 1]))));
    if (random(0, 3) == 0)
      offsets.clear();
    const uint32_t shared = uint32_t(128 * random(0, 9));
    llvm::SmallVector<TensorPiece> pieces;
    findPixelPieces(decoded(r), start, offsets, shared, pieces);
    REQUIRE(bytesOf(pieces) == modelOfPixels(r, start, offsets, shared));
  }
}

TEST_CASE("pieces are as long as both sides allow", "[emulator][tensor-map]") {
  TensorMapRecipe r;
  r.type = TensorMapType::Bf16;
  r.dims = {64, 8};
  r.strides = {128};
  r.box = {64, 4};
  llvm::SmallVector<TensorPiece> pieces;
  findTilePieces(decoded(r), {0, 2}, 0x400, pieces);
  CHECK(pieces == llvm::SmallVector<TensorPiece>{{base + 256, 0x400, 512, false}});

  pieces.clear();
  r.box = {32, 2};
  r.dims = {64, 3};
  findTilePieces(decoded(r), {40, 2}, 0x400, pieces);
  CHECK(pieces == llvm::SmallVector<TensorPiece>{{base + 256 + 80, 0x400, 48, false}, {0, 0x430, 80, true}});

  pieces.clear();
  r.box = {64, 2};
  r.swizzle = TensorMapSwizzle::Bytes128;
  findTilePieces(decoded(r), {0, 0}, 0x400, pieces);
  REQUIRE(pieces.size() == 9); // the first row whole, the second in chunks, each pair of neighbours exchanged
  CHECK(pieces[0] == TensorPiece{base, 0x400, 128, false});
  CHECK(pieces[1] == TensorPiece{base + 128, 0x490, 16, false});
}

TEST_CASE("what kernels write field by field is the map that the launch would make", "[emulator][tensor-map]") {
  TensorMapRecipe r;
  r.type = TensorMapType::Bf16;
  r.dims = {512, 256, 3};
  r.strides = {1024, 1 << 20};
  r.box = {64, 128, 1};
  r.elementStrides = {1, 2, 1};
  r.swizzle = TensorMapSwizzle::Bytes128;
  r.fill = TensorMapFill::Nan;
  TensorMapBytes bytes = {};
  auto set = [&](TensorMapField field, unsigned ordinal, uint64_t value) {
    CHECK(replaceField(bytes, field, ordinal, value));
  };
  set(TensorMapField::Address, 0, base);
  set(TensorMapField::Rank, 0, 2);
  for (unsigned i = 0; i < 3; ++i) {
    set(TensorMapField::Dim, i, r.dims[i]);
    set(TensorMapField::Box, i, r.box[i]);
    set(TensorMapField::ElementStride, i, r.elementStrides[i]);
    if (i)
      set(TensorMapField::Stride, i - 1, r.strides[i - 1]);
  }
  set(TensorMapField::Type, 0, 10);
  set(TensorMapField::Swizzle, 0, 3);
  set(TensorMapField::Fill, 0, 1);
  CHECK(bytes == encodeTensorMap(r, base));
  std::string error;
  auto map = decodeTensorMap(bytes, error);
  REQUIRE(map);
  CHECK(map->recipe == r);
  CHECK(map->address == base);

  set(TensorMapField::Box, 1, 257);
  CHECK_FALSE(decodeTensorMap(bytes, error));
  CHECK(error == "dimension 1 of its box has 257 elements; 1 to 256 can be");
  set(TensorMapField::Rank, 0, 5);
  error.clear();
  CHECK_FALSE(decodeTensorMap(bytes, error));
  CHECK(error == "its rank is 5, which means nothing for sm_90");

  TensorMapBytes garbage;
  garbage.fill(0xa5);
  CHECK_FALSE(replaceField(garbage, TensorMapField::Rank, 0, 1));
  error.clear();
  CHECK_FALSE(decodeTensorMap(garbage, error));
  CHECK(error.find("never made") != std::string::npos);
}

TEST_CASE("elements outside are zero or NaN, and loads round to tf32", "[emulator][tensor-map]") {
  TensorMapRecipe r;
  r.type = TensorMapType::F16;
  r.dims = {8};
  r.box = {8};
  std::array<uint8_t, 8> data = {1, 2, 3, 4, 5, 6, 7, 8};
  fillOutside(decoded(r), data);
  CHECK(data == std::array<uint8_t, 8>{});
  r.fill = TensorMapFill::Nan;
  for (TensorMapType type : {TensorMapType::F16, TensorMapType::Tf32, TensorMapType::F64}) {
    r.type = type;
    data = {};
    fillOutside(decoded(r), data);
    CHECK(data == std::array<uint8_t, 8>{0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f});
  }

  auto converted = [](TensorMapType type, uint32_t bits) {
    std::array<uint8_t, 4> element;
    std::memcpy(element.data(), &bits, 4);
    convertElements(type, element);
    std::memcpy(&bits, element.data(), 4);
    return bits;
  };
  for (uint32_t bits : {0x3f800fffu, 0x80000001u, 0x7f800001u}) {
    CHECK(converted(TensorMapType::F32, bits) == bits);
    CHECK(converted(TensorMapType::F32Ftz, bits) == bits);
  }
  // As an H100 has them.
  const std::pair<uint32_t, uint32_t> measured[] = {
      {0x80000000, 0x80000000}, {0x007fffff, 0x00800000}, {0x00000fff, 0},          {0x00001000, 0},
      {0x00745130, 0x00746000}, {0x3f800fff, 0x3f800000}, {0x3f801000, 0x3f800000}, {0x3f801001, 0x3f802000},
      {0x3f803000, 0x3f804000}, {0xbf801000, 0xbf800000}, {0xff7fffff, 0xff800000}, {0x7f7fefff, 0x7f7fe000},
      {0x7f7ff000, 0x7f800000}, {0xff800000, 0xff800000}, {0x7f800001, 0x7fffe000}, {0xffc12345, 0x7fffe000},
      {0x7f801000, 0x7fffe000}, {0xff801fff, 0x7fffe000}, {0xfc985000, 0xfc984000}};
  for (auto [bits, expected] : measured) {
    INFO(bits);
    CHECK(converted(TensorMapType::Tf32, bits) == expected);
    CHECK(converted(TensorMapType::Tf32Ftz, bits) == expected);
  }
}

TEST_CASE("boxes begin where the engine lets them", "[emulator][tensor-map]") {
  TensorMapRecipe r;
  r.type = TensorMapType::F32;
  r.dims = {16, 8};
  r.strides = {64};
  r.box = {16, 4};
  auto error = [&](std::vector<int32_t> coordinates, bool isStore = false) {
    return findPlaceError(decoded(r), coordinates, isStore);
  };
  for (const std::vector<int32_t> &place : std::vector<std::vector<int32_t>>{
           {0, 0}, {4, 3}, {-8, -3}, {16, 8}, {-64, 0}, {1 << 20, 5}, {std::numeric_limits<int32_t>::min(), -1}})
    CHECK(error(place) == "");
  CHECK(error({2, 0}) == "begins 8 bytes along dimension 0, which is no multiple of 16");
  CHECK(error({-3, 0}) == "begins -12 bytes along dimension 0, which is no multiple of 16");
  CHECK(error({4, 7}, true) == "");
  CHECK(error({1 << 20, 8}, true) == "");
  CHECK(error({4, -4}, true) == "begins at -4 along dimension 1: a store may only reach beyond the tensor's end");
  CHECK(error({-4, 0}, true) == "begins at -4 along dimension 0: a store may only reach beyond the tensor's end");
  r.type = TensorMapType::F64;
  r.dims[0] = r.box[0] = 8;
  CHECK(error({2, 0}) == "");
  CHECK(error({3, 0}) == "begins 24 bytes along dimension 0, which is no multiple of 16");

  r.type = TensorMapType::Bf16;
  r.dims = {16, 7, 5, 3};
  r.strides = {32, 224, 1120};
  r.box = {};
  r.im2col = TensorMapPixels{{-1, -2}, {-1, 0}, 8, 20};
  CHECK(error({8, -1, -2, 0}) == "");
  CHECK(error({0, 5, 4, -1}) == ""); // images end anywhere
  CHECK(error({4, 0, 0, 0}) == "begins 8 bytes along dimension 0, which is no multiple of 16");
  CHECK(error({0, -2, 0, 0}) == "begins at -2 along dimension 1, where pixels are from -1 to 5");
  CHECK(error({0, 0, 5, 0}) == "begins at 5 along dimension 2, where pixels are from -2 to 4");
}
