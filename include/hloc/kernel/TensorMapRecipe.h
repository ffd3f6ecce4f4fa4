#pragma once
// What a tensor map says: a tensor in global memory, and the box of it that one bulk copy moves. The driver makes 128
// bytes of it at launch (cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col), so it travels as data. The order is that of
// the driver: the innermost dimension first.
//
//   bf16[512,1024], tiles of 128 rows and 64 columns, rows swizzled by 128 bytes:
//   {type Bf16, dims {1024, 512}, strides {2048}, box {64, 128}, swizzle Bytes128}

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"

namespace hloc {

/// In the order of CUtensorMapDataType. Elements of less than a byte are for sm_100 and not here.
enum class TensorMapType : uint8_t { U8, U16, U32, S32, U64, S64, F16, F32, F64, Bf16, F32Ftz, Tf32, Tf32Ftz };
/// The next four in the order of the driver's enumerations, which is that of the names below.
enum class TensorMapInterleave : uint8_t { None, Bytes16, Bytes32 };
enum class TensorMapSwizzle : uint8_t { None, Bytes32, Bytes64, Bytes128 };
enum class TensorMapFill : uint8_t { Zero, Nan };
enum class TensorMapL2 : uint8_t { None, Bytes64, Bytes128, Bytes256 };

/// Boxes of im2col maps: `pixels` pixels of `channels` elements each, of those whose corner lies in a bounding box.
struct TensorMapPixels {
  std::vector<int32_t> lower, upper; ///< corners of the bounding box, of dimensions 1 to rank - 2: W, H, D
  uint32_t channels = 0, pixels = 0;
  bool operator==(const TensorMapPixels &) const = default;
};

struct TensorMapRecipe {
  static constexpr unsigned maxRank = 5;
  TensorMapType type = TensorMapType::U8;
  std::vector<uint64_t> dims;           ///< elements; as many as the map has dimensions
  std::vector<uint64_t> strides;        ///< bytes, of dimensions 1 and up
  std::vector<uint32_t> box;            ///< elements; empty for im2col
  std::vector<uint32_t> elementStrides; ///< steps between elements of the box; empty: all 1
  TensorMapInterleave interleave = TensorMapInterleave::None;
  TensorMapSwizzle swizzle = TensorMapSwizzle::None;
  TensorMapFill fill = TensorMapFill::Zero;
  TensorMapL2 l2 = TensorMapL2::None;
  std::optional<TensorMapPixels> im2col;
  bool operator==(const TensorMapRecipe &) const = default;
};

/// "bf16", "f32_ftz"; "16B"; "128B"; "nan"; "256B".
llvm::StringRef nameOf(TensorMapType type);
llvm::StringRef nameOf(TensorMapInterleave interleave);
llvm::StringRef nameOf(TensorMapSwizzle swizzle);
llvm::StringRef nameOf(TensorMapFill fill);
llvm::StringRef nameOf(TensorMapL2 l2);
/// False, with `value` as it was, if there is no such name.
bool parse(llvm::StringRef name, TensorMapType &value);
bool parse(llvm::StringRef name, TensorMapInterleave &value);
bool parse(llvm::StringRef name, TensorMapSwizzle &value);
bool parse(llvm::StringRef name, TensorMapFill &value);
bool parse(llvm::StringRef name, TensorMapL2 &value);

unsigned bytesOf(TensorMapType type); ///< of an element
bool isFloat(TensorMapType type);
/// 16, 32, 64 or 128; 0 for None.
unsigned spanOf(TensorMapSwizzle swizzle);
/// What the address of the tensor has to be a multiple of: 16, or 32 if it is interleaved by so many bytes.
unsigned alignmentOf(const TensorMapRecipe &recipe);
/// Bytes from the first element of the tensor to behind the last; 2^64 - 1 if there are more. There is a stride for
/// each dimension but the first.
uint64_t extentOf(const TensorMapRecipe &recipe);

/// On one line, without what is as usual: "bf16 1024x512, strides 2048, box 64x128, swizzle 128B".
std::string describeTensorMap(const TensorMapRecipe &recipe);

/// Why the driver would not encode it for a tensor at `address`, by its manual; empty if it would.
std::string findTensorMapError(const TensorMapRecipe &recipe, uint64_t address);

} // namespace hloc
