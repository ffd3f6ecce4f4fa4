#pragma once
// numpy's .npz archives, as bytes: a zip of .npy members, stored or deflated, zip64 included.
//
//   std::optional<std::vector<NpzArray>> arrays = readNpz(file, error);   // from untrusted files
//   NpzArray: name "0", descr "<f4", shape {2, 3}, 24 bytes
//
// The layer knows nothing of HLO: what a descr means is decided in compare/NumpyLiteral.h. Types that numpy lacks
// (bf16, f8, 4-bit) have the names of ml_dtypes in such files, or are raw bytes, `|V1` or `|V2`.

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

struct NpzArray {
  std::string name;  ///< without `.npy`
  std::string descr; ///< as written, e.g. `<f4`, `|b1`, `|V2`, `bfloat16`
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes; ///< dense, C order, little-endian
};

/// All arrays, in the order of the archive. Nothing and `error` set if the file is not sound; memory stays within a
/// fixed multiple of the file's size and below `maxBytes`, whatever the headers claim.
std::optional<std::vector<NpzArray>> readNpz(llvm::StringRef file, std::string &error,
                                             uint64_t maxBytes = uint64_t(16) << 30);
/// One .npy file.
std::optional<NpzArray> readNpy(llvm::StringRef file, std::string &error);

/// An archive that numpy.load reads; the same arrays give the same bytes.
std::string writeNpz(llvm::ArrayRef<NpzArray> arrays);
std::string writeNpy(const NpzArray &array);

/// Bytes of one element of a descr; 0 if it is not a plain type (records, objects, strings).
unsigned descrBytes(llvm::StringRef descr);

} // namespace hloc
