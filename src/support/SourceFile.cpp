#include "hloc/support/SourceFile.h"

#include <algorithm>
#include <cstring>

namespace hloc {

SourceFile::SourceFile(std::string name, std::string text) : fileName(std::move(name)), contents(std::move(text)) {}

LineColumn SourceFile::lineColumn(uint32_t offset) const {
  if (lineStarts.empty()) {
    lineStarts.push_back(0);
    for (const char *p = contents.data(), *end = p + contents.size(); p < end;) {
      const auto *newline = static_cast<const char *>(std::memchr(p, '\n', end - p));
      if (!newline)
        break;
      p = newline + 1;
      lineStarts.push_back(static_cast<uint32_t>(p - contents.data()));
    }
  }
  auto next = std::upper_bound(lineStarts.begin(), lineStarts.end(), offset);
  uint32_t line = static_cast<uint32_t>(next - lineStarts.begin());
  return {line, offset - lineStarts[line - 1] + 1};
}

uint32_t SourceFile::offsetOf(LineColumn place) const {
  lineColumn(0); // builds the table
  size_t line = std::clamp<size_t>(place.line, 1, lineStarts.size()) - 1;
  return uint32_t(std::min<size_t>(lineStarts[line] + (place.column ? place.column - 1 : 0), contents.size()));
}

llvm::StringRef SourceFile::lineAt(uint32_t offset) const {
  uint32_t begin = offset - (lineColumn(offset).column - 1);
  return llvm::StringRef(contents).substr(begin).take_until([](char c) { return c == '\n' || c == '\r'; });
}

} // namespace hloc
