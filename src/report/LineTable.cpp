#include "LineTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <map>

namespace hloc {

/// If `number` is a better line to tell it by than what it has.
void LineTable::tellBy(Line &line, uint32_t number) const {
  llvm::StringRef other = lines[number].text;
  auto isPlain = [](llvm::StringRef text) { return llvm::all_of(text, [](char c) { return llvm::isASCII(c); }); };
  const auto shorter = std::min(line.text.size(), other.size());
  uint32_t first = 0, last = 0;
  while (first < shorter && line.text[first] == other[first])
    ++first;
  while (first + last < shorter && line.text.rbegin()[last] == other.rbegin()[last])
    ++last;
  // Readers count characters in units of their own; below some eight a line is told as quickly without another.
  if (first + last < std::max<uint32_t>(line.first + line.last + 1, 8) || !isPlain(line.text) || !isPlain(other))
    return;
  line.of = uint32_t(lines.size()) - number;
  line.first = first;
  line.last = last;
}

std::vector<uint32_t> LineTable::numbersOf(llvm::ArrayRef<ShownLine> text) {
  constexpr size_t nearby = 24; // lines of the text before that may be the like
  std::vector<uint32_t> result;
  size_t at = 0; // in the text before, where this one is
  for (const ShownLine &shown : text) {
    std::string key = shown.text;
    key += '\n';
    for (uint32_t hloLine : shown.hloLines)
      key += std::to_string(hloLine) + ' ';
    auto [entry, isNew] = numbers.try_emplace(key, uint32_t(lines.size()));
    result.push_back(entry->second);
    const auto ahead = llvm::ArrayRef(before).drop_front(at).take_front(nearby);
    if (!isNew) {
      if (auto same = llvm::find(ahead, entry->second); same != ahead.end())
        at += size_t(same - ahead.begin()) + 1;
      continue;
    }
    Line line{entry->first().take_front(shown.text.size()), {shown.hloLines.begin(), shown.hloLines.end()}};
    for (uint32_t other : ahead)
      tellBy(line, other);
    if (!lines.empty())
      tellBy(line, uint32_t(lines.size()) - 1);
    lines.push_back(std::move(line));
    if (at < before.size())
      ++at;
  }
  before = result;
  return result;
}

void LineTable::write(llvm::json::OStream &json) const {
  auto column = [&](llvm::StringRef key, auto valueOf) {
    json.attributeArray(key, [&] {
      for (const Line &line : lines)
        json.value(valueOf(line));
    });
  };
  column("of", [](const Line &line) { return line.of; });
  column("first", [](const Line &line) { return line.first; });
  column("last", [](const Line &line) { return line.last; });
  column("rest", [](const Line &line) {
    return llvm::json::fixUTF8(line.text.substr(line.first, line.text.size() - line.first - line.last));
  });
  std::map<std::vector<uint32_t>, uint32_t> places;
  std::vector<const std::vector<uint32_t> *> inOrder;
  column("place", [&](const Line &line) {
    auto [entry, isNew] = places.try_emplace(line.hloLines, uint32_t(inOrder.size()));
    if (isNew)
      inOrder.push_back(&entry->first);
    return entry->second;
  });
  json.attributeArray("places", [&] {
    for (const std::vector<uint32_t> *place : inOrder)
      json.array([&] {
        for (uint32_t hloLine : *place)
          json.value(hloLine);
      });
  });
}

void writeSteps(llvm::json::OStream &json, llvm::StringRef key, llvm::ArrayRef<uint32_t> numbers) {
  json.attributeArray(key, [&] {
    int64_t expected = 0;
    for (uint32_t number : numbers) {
      json.value(int64_t(number) - expected);
      expected = int64_t(number) + 1;
    }
  });
}

} // namespace hloc
