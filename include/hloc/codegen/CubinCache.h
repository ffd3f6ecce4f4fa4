#pragma once
// Cubins on disk, by the content they were made from: assembling is the slowest step of a compilation.
//
// A file per key, written to a temporary name and renamed, so that any number of processes may share a folder. Each
// carries a checksum; whatever is truncated, damaged or written by another version counts as absent. A cache that
// cannot be read or written is silently none.

#include "hloc/kernel/KernelSpec.h"
#include "hloc/support/Environment.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hloc {

/// What assembling one PTX file gives.
struct Cubin {
  std::string bytes;
  std::vector<std::pair<std::string, KernelResources>> resources; ///< by entry, in the assembler's order
  bool fromCache = false;
  size_t numFromCache = 0;                   ///< of a module: entries that came from there
  bool byPtxas = false, byNvJitLink = false; ///< what made it, now or when it was stored; of a module possibly both

  /// Null if there is no such entry.
  const KernelResources *find(llvm::StringRef entry) const;
};

/// Where a cache is. Without a folder it holds nothing. One that grows over `limit` bytes loses its oldest files, some
/// time.
struct CacheSettings {
  static constexpr uint64_t defaultLimit = 512u << 20;
  std::string folder;
  uint64_t limit = defaultLimit;

  /// `$HLOC_CACHE_DIR`, else `$XDG_CACHE_HOME/hloc`, else `~/.cache/hloc`, none if HLOC_NO_CACHE is set or there is no
  /// home;
  /// `$HLOC_CACHE_LIMIT`, a number of bytes with K, M, G or T after it. `problem` says what is wrong with that.
  static CacheSettings of(const Environment &environment, std::string &problem);
};

/// What is in a cache, by what the files are.
struct CacheContents {
  size_t numCubins = 0, numTexts = 0; ///< machine code; PTX of kernels of large modules
  uint64_t cubinBytes = 0, textBytes = 0;
  std::string oldest, newest; ///< time of the file that was written first and last, in UTC; empty: there is none
};

class CubinCache {
public:
  explicit CubinCache(CacheSettings settings) : folder(std::move(settings.folder)), limit(settings.limit) {}

  /// A file name from everything the result depends on; each part is kept apart from the next.
  static std::string key(llvm::ArrayRef<llvm::StringRef> parts);

  std::optional<Cubin> load(const std::string &key) const;
  void store(const std::string &key, const Cubin &cubin) const;
  /// Removes the oldest files until three quarters of the limit are left, if it is exceeded. Called by one store in
  /// 4096: asking 45,000 files for their sizes takes 0.3 s.
  void prune() const;

  CacheContents contents() const;

  /// Version of the ptxas at `path`, remembered by the file's size and time; asking it takes 3 ms.
  std::string ptxasVersion(const std::string &path) const;

private:
  std::string fileOf(const std::string &key) const;
  std::string folder;
  uint64_t limit;
};

} // namespace hloc
