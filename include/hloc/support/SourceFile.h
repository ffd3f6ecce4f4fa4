#pragma once
// The text of one input and the mapping from byte offsets to lines and columns.

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace hloc {

/// Half-open byte range in a SourceFile. `begin == end == npos` means "no location".
struct SourceRange {
  static constexpr uint32_t npos = ~0u;
  uint32_t begin = npos;
  uint32_t end = npos;
  bool isValid() const { return begin != npos; }
};

/// 1-based line and column; the column counts bytes.
struct LineColumn {
  uint32_t line = 0;
  uint32_t column = 0;
};

/// Owns the text. Instruction names and other StringRefs of a parsed module may point into it, so it outlives the
/// module.
class SourceFile {
public:
  SourceFile(std::string name, std::string text);
  llvm::StringRef name() const { return fileName; }
  llvm::StringRef text() const { return contents; }

  /// Line table is built on the first call, O(log lines) after that. Threads may share the file.
  LineColumn lineColumn(uint32_t offset) const;
  /// Inverse of lineColumn; positions outside the text are moved to its nearest end.
  uint32_t offsetOf(LineColumn place) const;
  /// The line (without its newline) that contains `offset`.
  llvm::StringRef lineAt(uint32_t offset) const;

private:
  const std::vector<uint32_t> &lines() const;

  std::string fileName;
  std::string contents;
  mutable std::once_flag lineStartsBuilt;
  mutable std::vector<uint32_t> lineStarts; ///< offset of each line, ascending
};

} // namespace hloc
