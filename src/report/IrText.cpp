// The places in texts of MLIR, LLVM IR and PTX. Each notation is read for itself, and nothing else of the text is: what
// looks like a place inside a string is none.

#include "IrText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <map>

namespace hloc {
namespace {

using Lines = llvm::SmallVector<uint32_t, 2>;

void sortUnique(Lines &lines) {
  llvm::sort(lines);
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
}

template <typename Visit> void forEachLine(llvm::StringRef text, Visit visit) {
  for (uint32_t number = 1; !text.empty(); ++number) {
    auto [line, rest] = text.split('\n');
    visit(line, number);
    text = rest;
  }
}

/// Behind the string that begins at `at`; the end of the text if it has no end.
size_t endOfString(llvm::StringRef text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\')
      ++at;
  return std::min(at + 1, text.size());
}

/// Behind the parenthesis that closes the one at `open`.
size_t endOfParentheses(llvm::StringRef text, size_t open) {
  unsigned depth = 0;
  for (size_t at = open; at < text.size();) {
    if (text[at] == '"') {
      at = endOfString(text, at);
      continue;
    }
    depth += text[at] == '(';
    depth -= text[at] == ')';
    ++at;
    if (depth == 0)
      return at;
  }
  return text.size();
}

uint32_t readNumber(llvm::StringRef text) {
  uint32_t number = 0;
  return text.take_while(llvm::isDigit).getAsInteger(10, number) ? 0 : number;
}

// --- MLIR

/// `#loc15 = loc("mul.7"(#loc3))`
class MlirPlaces {
public:
  explicit MlirPlaces(llvm::StringRef text) {
    forEachLine(text, [&](llvm::StringRef line, uint32_t) {
      if (isDefinition(line))
        definitions[line.split(' ').first] = line.split('=').second;
    });
  }

  static bool isDefinition(llvm::StringRef line) {
    return line.starts_with("#loc") && line.split(' ').second.starts_with("= loc(");
  }

  /// Of the files that a location names, directly or by names: `"f.hlo":11:3`, `fused[#loc1, #loc2]`.
  void add(llvm::StringRef location, Lines &lines, unsigned depth = 0) const {
    constexpr unsigned deepest = 64; // a text is only a text, and may go round in circles
    if (depth > deepest)
      return;
    for (size_t at = 0; at < location.size();) {
      if (location[at] == '"') {
        at = endOfString(location, at);
        if (location.substr(at).starts_with(":"))
          if (uint32_t line = readNumber(location.substr(at + 1)))
            lines.push_back(line);
      } else if (location[at] == '#') {
        llvm::StringRef name = location.substr(at).take_while([](char c) { return c == '#' || llvm::isAlnum(c); });
        if (auto found = definitions.find(name); found != definitions.end())
          add(found->second, lines, depth + 1);
        at += std::max<size_t>(name.size(), 1);
      } else {
        ++at;
      }
    }
  }

private:
  llvm::StringMap<llvm::StringRef> definitions;
};

/// A line without its locations; that of the operation, the last one, goes to `lines`.
std::string withoutLocations(llvm::StringRef line, const MlirPlaces &places, Lines &lines) {
  std::string shown;
  for (size_t at = 0; at < line.size();) {
    if (line[at] == '"') {
      size_t end = endOfString(line, at);
      shown += line.slice(at, end);
      at = end;
    } else if (line.substr(at).starts_with(" loc(")) {
      size_t end = endOfParentheses(line, at + 4);
      lines.clear();
      places.add(line.slice(at + 4, end), lines);
      at = end;
    } else {
      shown += line[at++];
    }
  }
  sortUnique(lines);
  return shown;
}

std::vector<ShownLine> mlirLines(llvm::StringRef text) {
  const MlirPlaces places(text);
  std::vector<ShownLine> result;
  forEachLine(text, [&](llvm::StringRef line, uint32_t number) {
    if (MlirPlaces::isDefinition(line))
      return;
    ShownLine shown;
    shown.number = number;
    shown.text = withoutLocations(line, places, shown.hloLines);
    result.push_back(std::move(shown));
  });
  return result;
}

// --- LLVM IR

/// Metadata that is there for places: all that begins with `!DI`, and what names it.
bool isDebugMetadata(llvm::StringRef line) {
  if (line.starts_with("!llvm.dbg.cu"))
    return true;
  llvm::StringRef value = line.split('=').second.ltrim();
  value.consume_front("distinct ");
  return line.starts_with("!") && (value.starts_with("!DI") || value.contains("!\"Debug Info Version\""));
}

std::vector<ShownLine> llvmLines(llvm::StringRef text) {
  llvm::StringMap<uint32_t> places; // `!7`: a line
  forEachLine(text, [&](llvm::StringRef line, uint32_t) {
    auto [name, value] = line.split(" = ");
    value.consume_front("distinct ");
    if (name.starts_with("!") && value.starts_with("!DILocation(line: "))
      places[name] = readNumber(value.substr(llvm::StringRef("!DILocation(line: ").size()));
  });
  std::vector<ShownLine> result;
  forEachLine(text, [&](llvm::StringRef line, uint32_t number) {
    if (isDebugMetadata(line))
      return;
    ShownLine shown;
    shown.number = number;
    constexpr llvm::StringRef mark = "!dbg ";
    for (size_t at = line.find(mark); at != llvm::StringRef::npos; at = line.find(mark)) {
      llvm::StringRef name =
          line.substr(at + mark.size()).take_while([](char c) { return c == '!' || llvm::isDigit(c); });
      if (auto place = places.find(name); place != places.end() && place->second)
        shown.hloLines.push_back(place->second);
      llvm::StringRef before = line.take_front(at).rtrim(' ');
      before.consume_back(",");
      shown.text += before.str();
      line = line.substr(at + mark.size() + name.size());
      if (!line.empty() && line.front() != ',')
        shown.text += ' '; // `define ... !dbg !3 {`
      line = line.starts_with(" ") ? line.drop_front() : line;
    }
    shown.text += line.str();
    sortUnique(shown.hloLines);
    result.push_back(std::move(shown));
  });
  while (!result.empty() && result.back().text.empty())
    result.pop_back();
  return result;
}

// --- PTX

/// Labels that nothing but places needs, at the beginnings and ends of what has one.
bool isPlaceLabel(llvm::StringRef line) {
  return line.ends_with(":") && (line.starts_with("$L__tmp") || line.starts_with("$L__func_"));
}

/// An instruction, and not what only declares or opens and closes blocks.
bool isInstruction(llvm::StringRef line) {
  llvm::StringRef word = line.ltrim();
  return line.starts_with("\t") && !word.empty() && word.front() != '.' && !word.starts_with("//") && word != "{" &&
         word != "}";
}

std::vector<ShownLine> ptxLines(llvm::StringRef text) {
  std::vector<ShownLine> result;
  uint32_t place = 0;
  bool inDebugSection = false, afterPlace = false;
  forEachLine(text, [&](llvm::StringRef line, uint32_t number) {
    llvm::StringRef word = line.ltrim();
    inDebugSection |= word.starts_with(".section");
    if (inDebugSection) {
      inDebugSection = !word.starts_with("}");
      return;
    }
    if (word.consume_front(".loc\t") || word.consume_front(".loc ")) {
      place = readNumber(word.drop_while(llvm::isDigit).ltrim());
      // `.loc 1 23 0` of a function is followed by an empty line.
      afterPlace = true;
      return;
    }
    if (word.starts_with(".file") || isPlaceLabel(line) || (afterPlace && line.empty()))
      return;
    afterPlace = false;
    if (line == "}" || word.starts_with(".visible") || word.starts_with(".func"))
      place = 0;
    ShownLine shown;
    shown.text = line.str();
    shown.number = number;
    if (place && isInstruction(line))
      shown.hloLines.push_back(place);
    result.push_back(std::move(shown));
  });
  return result;
}

} // namespace

std::vector<ShownLine> shownLines(IrKind kind, llvm::StringRef text) {
  switch (kind) {
  case IrKind::Mlir:
    return mlirLines(text);
  case IrKind::Llvm:
    return llvmLines(text);
  case IrKind::Ptx:
    return ptxLines(text);
  case IrKind::Hlo:
    break;
  }
  std::vector<ShownLine> result;
  forEachLine(text, [&](llvm::StringRef line, uint32_t number) {
    result.push_back({.text = line.str(), .hloLines = {}, .number = number});
  });
  return result;
}

} // namespace hloc
