#include "TensorMap.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>

namespace hloc::emulator {
namespace {

constexpr unsigned maxRank = TensorMapRecipe::maxRank;

/// The 128 bytes.
struct Encoded {
  std::array<char, 4> magic;
  uint32_t reserved;
  uint64_t address;
  std::array<uint64_t, maxRank> dims;
  std::array<uint64_t, maxRank - 1> strides;
  std::array<uint16_t, maxRank> box;
  std::array<uint8_t, maxRank> elementStrides;
  uint8_t lastDim; ///< rank - 1
  std::array<int16_t, 3> lower, upper;
  uint16_t channels, pixels;
  uint8_t type, interleave, swizzle, fill, l2, im2col; ///< `type` by the numbers of PTX
  std::array<uint8_t, 2> tail;
};
static_assert(sizeof(Encoded) == tensorMapBytes);

constexpr std::array<char, 4> magicBytes = {'T', 'M', 'A', '1'};

/// In the order of PTX's numbers.
constexpr TensorMapType typesOfPtx[] = {
    TensorMapType::U8,   TensorMapType::U16,  TensorMapType::U32,    TensorMapType::S32,    TensorMapType::U64,
    TensorMapType::S64,  TensorMapType::F16,  TensorMapType::F32,    TensorMapType::F32Ftz, TensorMapType::F64,
    TensorMapType::Bf16, TensorMapType::Tf32, TensorMapType::Tf32Ftz};

Encoded load(llvm::ArrayRef<uint8_t> bytes) {
  Encoded e;
  std::memcpy(&e, bytes.data(), sizeof e);
  return e;
}

/// Nothing, with `error`, if a field has no meaning.
std::optional<TensorMapRecipe> recipeOf(const Encoded &e, std::string &error) {
  TensorMapRecipe r;
  auto enumerator = [&](const char *what, uint8_t value, unsigned count) {
    if (value >= count && error.empty())
      error = fmt::format("its {} is {}, which means nothing for sm_90", what, value);
    return value < count ? value : 0;
  };
  r.type = typesOfPtx[enumerator("element type", e.type, std::size(typesOfPtx))];
  r.interleave = TensorMapInterleave(enumerator("interleaved layout", e.interleave, 3));
  r.swizzle = TensorMapSwizzle(enumerator("swizzle mode", e.swizzle, 4));
  r.fill = TensorMapFill(enumerator("fill mode", e.fill, 2));
  r.l2 = TensorMapL2(enumerator("L2 promotion", e.l2, 4));
  const unsigned rank = 1u + enumerator("rank", e.lastDim, maxRank);
  if (!error.empty())
    return std::nullopt;
  r.dims.assign(e.dims.begin(), e.dims.begin() + rank);
  r.strides.assign(e.strides.begin(), e.strides.begin() + rank - 1);
  r.elementStrides.assign(e.elementStrides.begin(), e.elementStrides.begin() + rank);
  if (!e.im2col) {
    r.box.assign(e.box.begin(), e.box.begin() + rank);
    return r;
  }
  r.im2col.emplace();
  for (unsigned i = 0; i + 2 < rank; ++i) {
    r.im2col->lower.push_back(e.lower[i]);
    r.im2col->upper.push_back(e.upper[i]);
  }
  r.im2col->channels = e.channels;
  r.im2col->pixels = e.pixels;
  return r;
}

template <typename Value> void set(Value &field, uint64_t value) {
  // What does not fit stays what it is not: no value that is allowed.
  field = value > std::numeric_limits<Value>::max() ? std::numeric_limits<Value>::max() : Value(value);
}

/// Puts pieces together, in chunks of 16 bytes where they are swizzled.
class Collector {
public:
  Collector(const TensorMap &map, uint32_t shared, TensorPieces &pieces)
      : span(spanOf(map.recipe.swizzle)), shared(shared), pieces(pieces) {}

  /// `offset` of the box without swizzle.
  void add(bool outside, uint64_t global, uint32_t offset, uint32_t bytes) {
    if (!span)
      return append({global, shared + offset, bytes, outside});
    while (bytes) {
      const uint32_t at = shared + offset, part = std::min(bytes, 16 - at % 16);
      append({global, swizzled(at, span), part, outside});
      global += outside ? 0 : part;
      offset += part;
      bytes -= part;
    }
  }

private:
  void append(const TensorPiece &piece) {
    if (!pieces.empty()) {
      TensorPiece &last = pieces.back();
      if (last.outside == piece.outside && last.shared + last.bytes == piece.shared &&
          (piece.outside || last.global + last.bytes == piece.global)) {
        last.bytes += piece.bytes;
        return;
      }
    }
    pieces.push_back(piece);
  }

  const unsigned span;
  const uint32_t shared;
  TensorPieces &pieces;
};

/// A row along dimension 0 from `first` on, of which the part inside [0, dims[0]) lies at `base`.
void addRow(const TensorMap &map, bool inside, uint64_t base, int64_t first, uint32_t offset, Collector &collector) {
  const int64_t count = map.counts[0], size = map.elementBytes;
  const int64_t begin = inside ? std::clamp<int64_t>(-first, 0, count) : count;
  const int64_t end = inside ? std::clamp<int64_t>(int64_t(map.recipe.dims[0]) - first, begin, count) : count;
  auto add = [&](bool outside, int64_t from, int64_t to) {
    if (from < to)
      collector.add(outside, outside ? 0 : base + uint64_t((first + from) * size), offset + uint32_t(from * size),
                    uint32_t((to - from) * size));
  };
  add(true, 0, begin);
  add(false, begin, end);
  add(true, end, count);
}

} // namespace

TensorMapBytes encodeTensorMap(const TensorMapRecipe &recipe, uint64_t address) {
  Encoded e = {};
  e.magic = magicBytes;
  e.address = address;
  llvm::copy(recipe.dims, e.dims.begin());
  llvm::copy(recipe.strides, e.strides.begin());
  e.lastDim = uint8_t(recipe.dims.size() - 1);
  for (size_t i = 0; i < recipe.dims.size(); ++i)
    e.elementStrides[i] = uint8_t(recipe.elementStrides.empty() ? 1 : recipe.elementStrides[i]);
  for (size_t i = 0; i < recipe.box.size(); ++i)
    e.box[i] = uint16_t(recipe.box[i]);
  if (const auto &pixels = recipe.im2col) {
    e.im2col = 1;
    for (size_t i = 0; i < pixels->lower.size(); ++i) {
      e.lower[i] = int16_t(pixels->lower[i]);
      e.upper[i] = int16_t(pixels->upper[i]);
    }
    e.channels = uint16_t(pixels->channels);
    e.pixels = uint16_t(pixels->pixels);
  }
  e.type = uint8_t(llvm::find(typesOfPtx, recipe.type) - std::begin(typesOfPtx));
  e.interleave = uint8_t(recipe.interleave);
  e.swizzle = uint8_t(recipe.swizzle);
  e.fill = uint8_t(recipe.fill);
  e.l2 = uint8_t(recipe.l2);
  TensorMapBytes bytes;
  std::memcpy(bytes.data(), &e, sizeof e);
  return bytes;
}

std::optional<TensorMap> decodeTensorMap(llvm::ArrayRef<uint8_t> bytes, std::string &error) {
  const Encoded e = load(bytes);
  if (e.magic != magicBytes) {
    error = "it was never made: these bytes come neither from the launch nor from tensormap.replace";
    return std::nullopt;
  }
  auto recipe = recipeOf(e, error);
  if (!recipe || !(error = findTensorMapError(*recipe, e.address)).empty())
    return std::nullopt;
  if (recipe->interleave != TensorMapInterleave::None) {
    error = "it is interleaved, which is not supported";
    return std::nullopt;
  }
  TensorMap map;
  map.address = e.address;
  map.rank = unsigned(recipe->dims.size());
  map.elementBytes = bytesOf(recipe->type);
  map.rows = 1;
  if (recipe->im2col) {
    map.counts[0] = recipe->im2col->channels;
    map.counts[1] = map.rows = recipe->im2col->pixels;
  } else {
    for (unsigned i = 0; i < map.rank; ++i) {
      // Dimension 0 has no steps.
      map.counts[i] = i ? (recipe->box[i] + recipe->elementStrides[i] - 1) / recipe->elementStrides[i] : recipe->box[i];
      map.rows *= i ? map.counts[i] : 1;
    }
  }
  map.rowBytes = map.counts[0] * map.elementBytes;
  map.pitch = std::max(map.rowBytes, spanOf(recipe->swizzle));
  map.recipe = std::move(*recipe);
  return map;
}

bool replaceField(llvm::MutableArrayRef<uint8_t> bytes, TensorMapField field, unsigned ordinal, uint64_t value) {
  Encoded e = load(bytes);
  if (e.magic != magicBytes) {
    if (llvm::any_of(bytes.take_front(tensorMapBytes), [](uint8_t byte) { return byte != 0; }))
      return false;
    e.magic = magicBytes;
  }
  switch (field) {
  case TensorMapField::Address:
    e.address = value;
    break;
  case TensorMapField::Rank:
    set(e.lastDim, value);
    break;
  case TensorMapField::Box:
    set(e.box[ordinal], value);
    break;
  case TensorMapField::Dim:
    e.dims[ordinal] = value;
    break;
  case TensorMapField::Stride:
    e.strides[ordinal] = value;
    break;
  case TensorMapField::ElementStride:
    set(e.elementStrides[ordinal], value);
    break;
  case TensorMapField::Type:
    set(e.type, value);
    break;
  case TensorMapField::Interleave:
    set(e.interleave, value);
    break;
  case TensorMapField::Swizzle:
    set(e.swizzle, value);
    break;
  case TensorMapField::Fill:
    set(e.fill, value);
    break;
  }
  std::memcpy(bytes.data(), &e, sizeof e);
  return true;
}

void findTilePieces(const TensorMap &map, llvm::ArrayRef<int32_t> coordinates, uint32_t shared, TensorPieces &pieces) {
  const TensorMapRecipe &r = map.recipe;
  Collector collector(map, shared, pieces);
  std::array<uint32_t, maxRank> at = {};
  for (uint32_t row = 0; row < map.rows; ++row) {
    uint64_t base = map.address;
    bool inside = true;
    for (unsigned i = 1; i < map.rank; ++i) {
      const int64_t place = int64_t(coordinates[i]) + int64_t(at[i]) * r.elementStrides[i];
      inside &= place >= 0 && uint64_t(place) < r.dims[i];
      base += uint64_t(place) * r.strides[i - 1];
    }
    addRow(map, inside, base, coordinates[0], row * map.pitch, collector);
    for (unsigned i = 1; i < map.rank && ++at[i] == map.counts[i]; ++i)
      at[i] = 0;
  }
}

void findPixelPieces(const TensorMap &map, llvm::ArrayRef<int32_t> coordinates, llvm::ArrayRef<uint16_t> offsets,
                     uint32_t shared, TensorPieces &pieces) {
  const TensorMapRecipe &r = map.recipe;
  const unsigned image = map.rank - 1; // the dimension of images
  Collector collector(map, shared, pieces);
  std::array<int64_t, maxRank> at = {};
  llvm::copy(coordinates, at.begin());
  for (uint32_t pixel = 0; pixel < map.rows; ++pixel) {
    uint64_t base = map.address;
    bool inside = true;
    for (unsigned i = 1; i < map.rank; ++i) {
      const int64_t place = at[i] + (i < image && i <= offsets.size() ? offsets[i - 1] : 0);
      inside &= place >= 0 && uint64_t(place) < r.dims[i];
      base += uint64_t(place) * r.strides[i - 1];
    }
    addRow(map, inside, base, coordinates[0], pixel * map.pitch, collector);
    unsigned i = 1;
    for (; i < image; ++i) {
      at[i] += r.elementStrides[i];
      if (at[i] <= int64_t(r.dims[i]) - 1 + r.im2col->upper[i - 1])
        break;
      at[i] = r.im2col->lower[i - 1];
    }
    at[image] += i == image ? r.elementStrides[image] : 0;
  }
}

std::string findPlaceError(const TensorMap &map, llvm::ArrayRef<int32_t> coordinates, bool isStore) {
  constexpr int64_t alignment = 16;
  const TensorMapRecipe &r = map.recipe;
  if (const int64_t byte = int64_t(coordinates[0]) * map.elementBytes; byte % alignment)
    return fmt::format("begins {} bytes along dimension 0, which is no multiple of {}", byte, alignment);
  for (unsigned i = 0; isStore && i < map.rank; ++i)
    if (coordinates[i] < 0)
      return fmt::format("begins at {} along dimension {}: a store may only reach beyond the tensor's end",
                         coordinates[i], i);
  for (unsigned i = 1; r.im2col && i + 1 < map.rank; ++i) {
    const int64_t first = r.im2col->lower[i - 1], last = int64_t(r.dims[i]) - 1 + r.im2col->upper[i - 1];
    if (coordinates[i] < first || coordinates[i] > last)
      return fmt::format("begins at {} along dimension {}, where pixels are from {} to {}", coordinates[i], i, first,
                         last);
  }
  return "";
}

void fillOutside(const TensorMap &map, llvm::MutableArrayRef<uint8_t> data) {
  if (map.recipe.fill == TensorMapFill::Zero) {
    std::memset(data.data(), 0, data.size());
    return;
  }
  constexpr uint16_t nan = 0x7ff7;
  for (size_t i = 0; i < data.size(); i += sizeof nan)
    std::memcpy(&data[i], &nan, sizeof nan);
}

void convertElements(TensorMapType type, llvm::MutableArrayRef<uint8_t> data) {
  if (type != TensorMapType::Tf32 && type != TensorMapType::Tf32Ftz)
    return;
  constexpr uint32_t exponent = 0x7f800000, mantissa = 0x007fffff, dropped = 0x1fff, nan = 0x7fffe000;
  for (size_t i = 0; i < data.size(); i += 4) {
    uint32_t bits;
    std::memcpy(&bits, &data[i], 4);
    if ((bits & exponent) == exponent && (bits & mantissa))
      bits = nan;
    else // to nearest, ties to even; beyond the largest comes infinity
      bits = (bits + dropped / 2 + (bits >> 13 & 1)) & ~dropped;
    std::memcpy(&data[i], &bits, 4);
  }
}

} // namespace hloc::emulator
