#include "hloc/support/SourceFile.h"

#include <algorithm>
#include <cstring>

namespace hloc {

SourceFile::SourceFile(std::string name, std::string text) : fileName(std::move(name)), contents(std::move(text)) {}

const std::vector<uint32_t> &SourceFile::lines() const {
  std::call_once(lineStartsBuilt, [this] {
    lineStarts.push_back(0);
    for (const char *p = contents.data(), *end = p + contents.size(); p < end;) {
      const auto *newline = static_cast<const char *>(std::memchr(p, '\n', end - p));
      if (!newline)
        break;
      p = newline + 1;
      lineStarts.push_back(static_cast<uint32_t>(p - contents.data()));
    }
  });
  return lineStarts;
}

LineColumn SourceFile::lineColumn(uint32_t offset) const {
  const std::vector<uint32_t> &starts = lines();
  auto next = std::upper_bound(starts.begin(), starts.end(), offset);
  uint32_t line = static_cast<uint32_t>(next - starts.begin());
  return {line, offset - starts[line - 1] + 1};
}

uint32_t SourceFile::offsetOf(LineColumn place) const {
  const std::vector<uint32_t> &starts = lines();
  size_t line = std::clamp<size_t>(place.line, 1, starts.size()) - 1;
  return uint32_t(std::min<size_t>(starts[line] + (place.column ? place.column - 1 : 0), contents.size()));
}

llvm::StringRef SourceFile::lineAt(uint32_t offset) const {
  uint32_t begin = offset - (lineColumn(offset).column - 1);
  return llvm::StringRef(contents).substr(begin).take_until([](char c) { return c == '\n' || c == '\r'; });
}

} // namespace hloc
