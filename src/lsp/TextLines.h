#pragma once
// A text that is edited, and the positions of the protocol in it: lines, and characters counted as the client counts
// them.

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hloc::lsp {

/// What `character` of a position counts.
enum class Encoding : uint8_t { Utf8, Utf16, Utf32 };

/// 0-based.
struct Position {
  uint32_t line = 0, character = 0;
  bool operator==(const Position &) const = default;
};

/// The text is UTF-8 and stays it: edits begin and end between characters. Lines end with \n, \r\n or \r.
class TextLines {
public:
  explicit TextLines(std::string text = "", Encoding encoding = Encoding::Utf16);

  llvm::StringRef text() const { return contents; }
  uint32_t numLines() const { return uint32_t(starts.size()); }
  /// Without what ends it.
  llvm::StringRef line(uint32_t number) const;
  uint32_t lineOf(uint32_t offset) const;
  uint32_t startOf(uint32_t line) const { return starts[line]; }

  /// A position outside the text is moved to the end of its line, or of the text; one inside a character to its start.
  uint32_t offsetOf(Position position) const;
  /// Cheap, however long the lines are.
  Position positionOf(uint32_t offset) const;

  /// Puts `with` where [begin, end) is. What is not moved is not looked at.
  void replace(uint32_t begin, uint32_t end, llvm::StringRef with);

private:
  bool startsLine(uint32_t offset) const;
  uint32_t unitsIn(uint32_t begin, uint32_t end) const;
  uint32_t unitsBefore(uint32_t offset) const;

  std::string contents;
  Encoding encoding;
  std::vector<uint32_t> starts; ///< of lines, ascending; the first is 0
  bool isAscii = true;
  static constexpr uint32_t blockBytes = 1024;
  mutable std::vector<uint32_t> unitsBeforeBlock; ///< of the text, by block; empty: not counted since the last edit
};

} // namespace hloc::lsp
