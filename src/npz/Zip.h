#pragma once
// The part of the zip format that numpy writes: stored and deflated members, zip64.

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hloc::npz {

struct ZipMember {
  std::string name;
  std::string contents;
};

/// All members in the order of the directory, checked against their CRC. Untrusted input: see readNpz.
std::optional<std::vector<ZipMember>> readZip(llvm::StringRef file, std::string &error, uint64_t maxBytes);

/// Members are stored, without dates, so that equal contents give equal files. Uses zip64 where sizes need it.
std::string writeZip(llvm::ArrayRef<ZipMember> members);

} // namespace hloc::npz
