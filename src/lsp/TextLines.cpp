#include "TextLines.h"

#include <algorithm>
#include <cstring>

namespace hloc::lsp {

namespace {

bool isContinuation(char c) { return (uint8_t(c) & 0xC0) == 0x80; }

/// Of a character that begins with this byte.
uint32_t unitsOf(char first, Encoding encoding) {
  if (encoding == Encoding::Utf8)
    return uint8_t(first) < 0x80 ? 1 : uint8_t(first) < 0xE0 ? 2 : uint8_t(first) < 0xF0 ? 3 : 4;
  return encoding == Encoding::Utf16 && uint8_t(first) >= 0xF0 ? 2 : 1;
}

} // namespace

TextLines::TextLines(std::string text, Encoding encoding) : contents(std::move(text)), encoding(encoding) {
  starts.push_back(0);
  addStarts(starts, 0, uint32_t(contents.size()));
}

/// Of lines that begin in (begin, end].
void TextLines::addStarts(std::vector<uint32_t> &into, uint32_t begin, uint32_t end) const {
  llvm::StringRef text = contents;
  for (size_t at = text.find_first_of("\n\r", begin); at < end; at = text.find_first_of("\n\r", at)) {
    at += text.substr(at).starts_with("\r\n") ? 2 : 1;
    if (at <= end)
      into.push_back(uint32_t(at));
  }
}

llvm::StringRef TextLines::line(uint32_t number) const {
  const uint32_t end = number + 1 < starts.size() ? starts[number + 1] : uint32_t(contents.size());
  return llvm::StringRef(contents).slice(starts[number], end).rtrim("\n\r");
}

uint32_t TextLines::lineOf(uint32_t offset) const {
  return uint32_t(std::upper_bound(starts.begin(), starts.end(), offset) - starts.begin()) - 1;
}

uint32_t TextLines::unitsIn(uint32_t begin, uint32_t end) const {
  if (encoding == Encoding::Utf8)
    return end - begin;
  uint32_t units = 0;
  for (uint32_t at = begin; at < end; ++at)
    if (!isContinuation(contents[at]))
      units += unitsOf(contents[at], encoding);
  return units;
}

uint32_t TextLines::offsetOf(Position position) const {
  if (position.line >= starts.size())
    return uint32_t(contents.size());
  const uint32_t begin = starts[position.line], end = begin + uint32_t(line(position.line).size());
  uint32_t at = begin;
  if (encoding == Encoding::Utf8) {
    at = begin + std::min(position.character, end - begin);
    while (at > begin && at < contents.size() && isContinuation(contents[at]))
      --at;
    return at;
  }
  uint32_t left = position.character;
  while (at < end && left >= unitsOf(contents[at], encoding)) {
    left -= unitsOf(contents[at], encoding);
    for (++at; at < end && isContinuation(contents[at]);)
      ++at;
  }
  return at;
}

Position TextLines::positionOf(uint32_t offset) const {
  offset = std::min(offset, uint32_t(contents.size()));
  const bool goesOn = offset >= cursorOffset && cursorLine < starts.size() &&
                      (cursorLine + 1 == starts.size() || offset < starts[cursorLine + 1]);
  if (!goesOn) {
    cursorLine = lineOf(offset);
    cursorOffset = starts[cursorLine];
    cursorUnits = 0;
  }
  cursorUnits += unitsIn(cursorOffset, offset);
  cursorOffset = offset;
  return {cursorLine, cursorUnits};
}

void TextLines::replace(uint32_t begin, uint32_t end, llvm::StringRef with) {
  // A \r may be parted from its \n, or joined with one: the lines before and behind are looked at again.
  const uint32_t first = lineOf(begin ? begin - 1 : 0);
  const uint32_t last = lineOf(std::min(end + 1, uint32_t(contents.size())));
  const uint32_t oldEnd = last + 1 < starts.size() ? starts[last + 1] : uint32_t(contents.size());
  const uint32_t shift = uint32_t(with.size()) - (end - begin); // modulo 2^32
  contents.replace(begin, end - begin, with.data(), with.size());
  std::vector<uint32_t> fresh;
  addStarts(fresh, starts[first], oldEnd + shift);
  const bool isLast = last + 1 == starts.size();
  for (auto at = starts.begin() + last + 1; at != starts.end(); ++at)
    *at += shift;
  if (!isLast && !fresh.empty() && fresh.back() == starts[last + 1])
    fresh.pop_back();
  auto gap = starts.erase(starts.begin() + first + 1, starts.begin() + last + 1);
  starts.insert(gap, fresh.begin(), fresh.end());
  cursorOffset = cursorUnits = cursorLine = 0;
}

} // namespace hloc::lsp
