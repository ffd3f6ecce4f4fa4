#include "hloc/kernel/TensorMapRecipe.h"

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace hloc {
namespace {

constexpr StringLiteral typeNames[] = {"u8",  "u16", "u32",  "s32",     "u64",  "s64",     "f16",
                                       "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"};
constexpr StringLiteral interleaveNames[] = {"none", "16B", "32B"};
constexpr StringLiteral swizzleNames[] = {"none", "32B", "64B", "128B"};
constexpr StringLiteral fillNames[] = {"zero", "nan"};
constexpr StringLiteral l2Names[] = {"none", "64B", "128B", "256B"};

template <typename Enum> bool find(ArrayRef<StringLiteral> names, StringRef name, Enum &value) {
  const auto *found = llvm::find(names, name);
  if (found == names.end())
    return false;
  value = Enum(found - names.begin());
  return true;
}

/// The checks one after the other; the first that fails is told.
class Checker {
public:
  Checker(const TensorMapRecipe &recipe, uint64_t address) : r(recipe), address(address) {}

  std::string run() {
    checkRank() && checkAddress() && checkDims() && checkStrides() && checkElementStrides() &&
        (r.im2col ? checkPixels() : checkBox()) && checkModes();
    return message;
  }

private:
  bool require(bool holds, std::string text) {
    if (!holds)
      message = std::move(text);
    return holds;
  }
  bool interleaved() const { return r.interleave != TensorMapInterleave::None; }
  uint64_t unit() const { return alignmentOf(r); }

  bool checkRank() {
    const size_t rank = r.dims.size();
    const size_t least = r.im2col || interleaved() ? 3 : 1;
    return require(rank >= least && rank <= TensorMapRecipe::maxRank,
                   fmt::format("it has {} dimensions; {} have {} to {}", rank,
                               r.im2col        ? "im2col maps"
                               : interleaved() ? "interleaved maps"
                                               : "maps",
                               least, TensorMapRecipe::maxRank));
  }
  bool checkAddress() {
    return require(address % unit() == 0,
                   fmt::format("its tensor begins {} bytes behind a multiple of {}", address % unit(), unit()));
  }
  bool checkDims() {
    for (auto [i, dim] : enumerate(r.dims))
      if (!require(dim && dim <= uint64_t(1) << 32,
                   fmt::format("dimension {} has {} elements; 1 to 2^32 can be", i, dim)))
        return false;
    return true;
  }
  bool checkStrides() {
    if (!require(r.strides.size() + 1 == r.dims.size(),
                 fmt::format("{} strides for {} dimensions; there is one for each but the first", r.strides.size(),
                             r.dims.size())))
      return false;
    for (auto [i, stride] : enumerate(r.strides))
      if (!require(stride % unit() == 0 && stride < uint64_t(1) << 40,
                   fmt::format("the stride of dimension {} is {} bytes; it has to be a multiple of {} below 2^40",
                               i + 1, stride, unit())))
        return false;
    return true;
  }
  bool checkElementStrides() {
    if (r.elementStrides.empty())
      return true;
    if (!require(r.elementStrides.size() == r.dims.size(),
                 fmt::format("{} element strides for {} dimensions", r.elementStrides.size(), r.dims.size())))
      return false;
    for (auto [i, stride] : enumerate(r.elementStrides))
      if (!require(stride >= 1 && stride <= 8, fmt::format("element stride {} is {}; 1 to 8 can be", i, stride)))
        return false;
    return true;
  }
  bool checkInner(uint64_t bytes) {
    if (interleaved())
      return true;
    if (!require(bytes % 16 == 0, fmt::format("a row of its box has {} bytes; it has to be a multiple of 16", bytes)))
      return false;
    const unsigned span = spanOf(r.swizzle);
    return require(!span || bytes <= span,
                   fmt::format("a row of its box has {} bytes; swizzled by {} bytes it may have no more", bytes, span));
  }
  bool checkBox() {
    if (!require(r.box.size() == r.dims.size(),
                 fmt::format("its box has {} dimensions, its tensor {}", r.box.size(), r.dims.size())))
      return false;
    for (auto [i, size] : enumerate(r.box))
      if (!require(size >= 1 && size <= 256,
                   fmt::format("dimension {} of its box has {} elements; 1 to 256 can be", i, size)))
        return false;
    return checkInner(uint64_t(r.box[0]) * bytesOf(r.type));
  }
  bool checkPixels() {
    const TensorMapPixels &p = *r.im2col;
    const size_t spatial = r.dims.size() - 2;
    if (!require(p.lower.size() == spatial && p.upper.size() == spatial,
                 fmt::format("its corners have {} and {} coordinates; a map of {} dimensions has {}", p.lower.size(),
                             p.upper.size(), r.dims.size(), spatial)) ||
        !require(r.box.empty(), "im2col maps have no box"))
      return false;
    const int32_t most = spatial == 1 ? 32767 : spatial == 2 ? 127 : 15;
    for (size_t i = 0; i < spatial; ++i) {
      for (int32_t corner : {p.lower[i], p.upper[i]})
        if (!require(corner >= -most - 1 && corner <= most,
                     fmt::format("corner {} is {}; {} to {} can be", i, corner, -most - 1, most)))
          return false;
      if (!require(p.lower[i] <= int64_t(r.dims[i + 1]) - 1 + p.upper[i],
                   fmt::format("its bounding box is empty in dimension {}", i + 1)))
        return false;
    }
    return require(p.channels >= 1 && p.channels <= 256,
                   fmt::format("{} channels a pixel; 1 to 256 can be", p.channels)) &&
           require(p.pixels >= 1 && p.pixels <= 1024, fmt::format("{} pixels; 1 to 1024 can be", p.pixels)) &&
           checkInner(uint64_t(p.channels) * bytesOf(r.type));
  }
  bool checkModes() {
    return require(r.interleave != TensorMapInterleave::Bytes32 || r.swizzle == TensorMapSwizzle::Bytes32,
                   "interleaved by 32 bytes it has to be swizzled by 32 bytes") &&
           require(r.fill == TensorMapFill::Zero || isFloat(r.type),
                   fmt::format("it fills {} with NaN", nameOf(r.type).str()));
  }

  const TensorMapRecipe &r;
  const uint64_t address;
  std::string message;
};

} // namespace

StringRef nameOf(TensorMapType type) { return typeNames[size_t(type)]; }
StringRef nameOf(TensorMapInterleave interleave) { return interleaveNames[size_t(interleave)]; }
StringRef nameOf(TensorMapSwizzle swizzle) { return swizzleNames[size_t(swizzle)]; }
StringRef nameOf(TensorMapFill fill) { return fillNames[size_t(fill)]; }
StringRef nameOf(TensorMapL2 l2) { return l2Names[size_t(l2)]; }
bool parse(StringRef name, TensorMapType &value) { return find(typeNames, name, value); }
bool parse(StringRef name, TensorMapInterleave &value) { return find(interleaveNames, name, value); }
bool parse(StringRef name, TensorMapSwizzle &value) { return find(swizzleNames, name, value); }
bool parse(StringRef name, TensorMapFill &value) { return find(fillNames, name, value); }
bool parse(StringRef name, TensorMapL2 &value) { return find(l2Names, name, value); }

unsigned bytesOf(TensorMapType type) {
  switch (type) {
  case TensorMapType::U8:
    return 1;
  case TensorMapType::U16:
  case TensorMapType::F16:
  case TensorMapType::Bf16:
    return 2;
  case TensorMapType::U32:
  case TensorMapType::S32:
  case TensorMapType::F32:
  case TensorMapType::F32Ftz:
  case TensorMapType::Tf32:
  case TensorMapType::Tf32Ftz:
    return 4;
  case TensorMapType::U64:
  case TensorMapType::S64:
  case TensorMapType::F64:
    return 8;
  }
  return 0;
}

bool isFloat(TensorMapType type) { return type >= TensorMapType::F16; }

unsigned spanOf(TensorMapSwizzle swizzle) { return swizzle == TensorMapSwizzle::None ? 0 : 16u << unsigned(swizzle); }

unsigned alignmentOf(const TensorMapRecipe &recipe) {
  return recipe.interleave == TensorMapInterleave::Bytes32 ? 32 : 16;
}

uint64_t extentOf(const TensorMapRecipe &recipe) {
  if (llvm::is_contained(recipe.dims, 0u) || recipe.dims.empty())
    return 0;
  uint64_t bytes = SaturatingMultiply<uint64_t>(recipe.dims[0], bytesOf(recipe.type));
  for (size_t i = 1; i < recipe.dims.size(); ++i)
    bytes = SaturatingMultiplyAdd<uint64_t>(recipe.dims[i] - 1, recipe.strides[i - 1], bytes);
  return bytes;
}

std::string describeTensorMap(const TensorMapRecipe &r) {
  std::string text = fmt::format("{} {}", nameOf(r.type).str(), fmt::join(r.dims, "x"));
  if (!r.strides.empty())
    text += fmt::format(", strides {}", fmt::join(r.strides, ", "));
  if (const auto &p = r.im2col)
    text += fmt::format(", {} pixels of {} channels from {} to {}", p->pixels, p->channels, fmt::join(p->lower, "x"),
                        fmt::join(p->upper, "x"));
  else
    text += fmt::format(", box {}", fmt::join(r.box, "x"));
  if (!r.elementStrides.empty())
    text += fmt::format(", element strides {}", fmt::join(r.elementStrides, ", "));
  if (r.interleave != TensorMapInterleave::None)
    text += ", interleave " + nameOf(r.interleave).str();
  if (r.swizzle != TensorMapSwizzle::None)
    text += ", swizzle " + nameOf(r.swizzle).str();
  if (r.fill != TensorMapFill::Zero)
    text += ", fill " + nameOf(r.fill).str();
  if (r.l2 != TensorMapL2::None)
    text += ", L2 " + nameOf(r.l2).str();
  return text;
}

std::string findTensorMapError(const TensorMapRecipe &recipe, uint64_t address) {
  return Checker(recipe, address).run();
}

} // namespace hloc
