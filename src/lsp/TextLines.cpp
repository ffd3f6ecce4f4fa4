#include "TextLines.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

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
  isAscii = llvm::isASCII(llvm::StringRef(contents));
  starts.push_back(0);
  for (size_t at = 0; at < contents.size(); ++at)
    if (startsLine(uint32_t(at + 1)))
      starts.push_back(uint32_t(at + 1));
}

/// Of an offset above 0; a matter of the letters before and behind it.
bool TextLines::startsLine(uint32_t offset) const {
  const char before = contents[offset - 1];
  return before == '\n' || (before == '\r' && (offset == contents.size() || contents[offset] != '\n'));
}

llvm::StringRef TextLines::line(uint32_t number) const {
  const uint32_t end = number + 1 < starts.size() ? starts[number + 1] : uint32_t(contents.size());
  return llvm::StringRef(contents).slice(starts[number], end).rtrim("\n\r");
}

uint32_t TextLines::lineOf(uint32_t offset) const {
  return uint32_t(std::upper_bound(starts.begin(), starts.end(), offset) - starts.begin()) - 1;
}

uint32_t TextLines::unitsIn(uint32_t begin, uint32_t end) const {
  if (encoding == Encoding::Utf8 || isAscii)
    return end - begin;
  uint32_t units = 0;
  for (uint32_t at = begin; at < end; ++at)
    if (!isContinuation(contents[at]))
      units += unitsOf(contents[at], encoding);
  return units;
}

/// From the beginning of the text.
uint32_t TextLines::unitsBefore(uint32_t offset) const {
  if (unitsBeforeBlock.empty()) {
    unitsBeforeBlock.push_back(0);
    for (size_t begin = 0; begin + blockBytes <= contents.size(); begin += blockBytes)
      unitsBeforeBlock.push_back(unitsBeforeBlock.back() + unitsIn(uint32_t(begin), uint32_t(begin) + blockBytes));
  }
  const uint32_t block = offset / blockBytes;
  return unitsBeforeBlock[block] + unitsIn(block * blockBytes, offset);
}

uint32_t TextLines::offsetOf(Position position) const {
  if (position.line >= starts.size())
    return uint32_t(contents.size());
  const uint32_t begin = starts[position.line], end = begin + uint32_t(line(position.line).size());
  uint32_t at = begin;
  if (encoding == Encoding::Utf8 || isAscii) {
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
  const uint32_t line = lineOf(offset), begin = starts[line];
  const bool isNear = isAscii || encoding == Encoding::Utf8 || offset - begin <= blockBytes;
  return {line, isNear ? unitsIn(begin, offset) : unitsBefore(offset) - unitsBefore(begin)};
}

void TextLines::replace(uint32_t begin, uint32_t end, llvm::StringRef with) {
  const uint32_t shift = uint32_t(with.size()) - (end - begin); // modulo 2^32
  contents.replace(begin, end - begin, with.data(), with.size());
  isAscii &= llvm::isASCII(with);
  unitsBeforeBlock.clear();
  const uint32_t first = std::max(begin, 1u);
  std::vector<uint32_t> fresh;
  for (uint32_t at = first; at <= begin + with.size() && at <= contents.size(); ++at)
    if (startsLine(at))
      fresh.push_back(at);
  auto from = std::lower_bound(starts.begin(), starts.end(), first);
  auto behind = std::upper_bound(from, starts.end(), end);
  for (auto at = behind; at != starts.end(); ++at)
    *at += shift;
  starts.insert(starts.erase(from, behind), fresh.begin(), fresh.end());
}

} // namespace hloc::lsp
