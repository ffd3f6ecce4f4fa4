#pragma once
// Tensor maps as the emulator has them: an encoding of its own of a TensorMapRecipe and an address into the 128 bytes
// that kernels pass around without looking into them, what `tensormap.replace` does to these, and which bytes of global
// and of shared memory a box touches.
//
//   bf16[3,64], box {32, 2}, no swizzle, coordinates {40, 2} (column, row), destination 0x400:
//     row 2: 24 elements inside      {address + 2 * 128 + 80, 0x400, 48 bytes}, 8 outside {-, 0x430, 16 bytes}
//     row 3: all outside             {-, 0x440, 64 bytes}, merged with the one before: {-, 0x430, 80 bytes}

#include "hloc/kernel/TensorMapRecipe.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <array>

namespace hloc::emulator {

inline constexpr unsigned tensorMapBytes = 128;
using TensorMapBytes = std::array<uint8_t, tensorMapBytes>;

/// Of tensormap.replace. Dimensions, strides and boxes have an ordinal.
enum class TensorMapField : uint8_t {
  Address,
  Rank, ///< counted from 0: 1 for two dimensions
  Box,
  Dim,
  Stride, ///< ordinal 0: of dimension 1
  ElementStride,
  Type, ///< by the numbers of PTX, which are not quite the driver's
  Interleave,
  Swizzle,
  Fill
};

/// A map that may be used.
struct TensorMap {
  TensorMapRecipe recipe;
  uint64_t address = 0;
  unsigned rank = 0, elementBytes = 0;
  uint32_t rowBytes = 0; ///< of the box, along dimension 0
  uint32_t pitch = 0;    ///< bytes between rows in shared memory: the span of the swizzle if that is more
  uint32_t rows = 0;     ///< of the box, or pixels
  /// Along each dimension of the box. Im2col: {channels, pixels}.
  std::array<uint32_t, TensorMapRecipe::maxRank> counts = {};
  uint64_t boxBytes() const { return uint64_t(rowBytes) * rows; } ///< what a copy completes, outside elements too
};

/// The recipe is one that the driver takes, and not interleaved.
TensorMapBytes encodeTensorMap(const TensorMapRecipe &recipe, uint64_t address);
/// Nothing, with what is wrong with it in `error`, if it is none that can be used.
std::optional<TensorMap> decodeTensorMap(llvm::ArrayRef<uint8_t> bytes, std::string &error);
/// Sets a field. False if the bytes are neither a map nor all zero, from which kernels begin.
bool replaceField(llvm::MutableArrayRef<uint8_t> bytes, TensorMapField field, unsigned ordinal, uint64_t value);

/// A piece of a box that is one run of bytes on both sides.
struct TensorPiece {
  uint64_t global = 0; ///< address, unless it is outside the tensor
  uint32_t shared = 0; ///< address
  uint32_t bytes = 0;
  bool outside = false;
  bool operator==(const TensorPiece &) const = default;
};
using TensorPieces = llvm::SmallVectorImpl<TensorPiece>;

/// The box at `coordinates` (as many as the map has dimensions) and its copy from `shared` on. Pieces come in the order
/// of the box, neighbours merged.
void findTilePieces(const TensorMap &map, llvm::ArrayRef<int32_t> coordinates, uint32_t shared, TensorPieces &pieces);
/// The pixels from the one at `coordinates` on, each `offsets` further along W, H and D.
void findPixelPieces(const TensorMap &map, llvm::ArrayRef<int32_t> coordinates, llvm::ArrayRef<uint16_t> offsets,
                     uint32_t shared, TensorPieces &pieces);

/// The address of shared memory where the engine puts what would lie at `address`.
inline uint32_t swizzled(uint32_t address, unsigned span) {
  return span ? address ^ (address >> 3 & (span - 16)) : address;
}

/// Why no box may begin at `coordinates`, by what an H100 ends kernels for with an illegal instruction; empty: it may.
std::string findPlaceError(const TensorMap &map, llvm::ArrayRef<int32_t> coordinates, bool isStore);

/// What a load puts in place of elements outside: zeros, or 0x7ff7 in every two bytes, which is NaN in each type.
/// `data` is whole elements.
void fillOutside(const TensorMap &map, llvm::MutableArrayRef<uint8_t> data);
/// What a load makes of elements inside: tf32 and tf32_ftz alike round to nearest even (subnormal ones too), with one
/// NaN. No type flushes, and stores leave elements as they are.
void convertElements(TensorMapType type, llvm::MutableArrayRef<uint8_t> data);

} // namespace hloc::emulator
