#pragma once
// JSON of manifests.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hloc_launch {

/// JSON as a list of nodes, each before what is in it. Takes no memory but for these, of 24 bytes: texts stay where
/// they are. Manifests come from files: whatever is in them, reading ends, with an error if it is not JSON.
class Json {
public:
  static constexpr size_t maxBytes = size_t(1) << 30, maxNodes = size_t(1) << 24;
  static constexpr unsigned maxDepth = 200;

  struct Node {
    char kind;               ///< { [ " 0 (number) t f n
    uint32_t keyAt, keySize; ///< in an object: the text between the quotes, escapes as they are
    uint32_t at, size;       ///< of a string, a number: its text
    uint32_t end;            ///< the node behind this one and what is in it
  };

  /// `text` has to stay as long as this is used. False: not JSON, see error().
  bool parse(std::string_view newText) {
    text = newText;
    if (text.size() > maxBytes)
      return fail("it has more than 1 GiB");
    return value(0, 0, 0) && (skipBlanks(), at == text.size() || fail("something stands behind its end"));
  }
  const std::string &error() const { return why; } ///< with the line
  const std::vector<Node> &nodes() const { return all; }
  std::string_view key(const Node &node) const { return text.substr(node.keyAt, node.keySize); }
  std::string_view raw(const Node &node) const { return text.substr(node.at, node.size); }
  size_t line(size_t place) const { return 1 + size_t(std::count(text.data(), text.data() + place, '\n')); }

  /// A string with its escapes replaced, of \u those of ASCII; others become '?': texts are for people.
  std::string string(const Node &node) const {
    std::string result;
    std::string_view from = raw(node);
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != '\\') {
        result += from[i];
      } else if (from[++i] == 'u') {
        unsigned code = 0;
        for (int digit = 0; digit < 4; ++digit)
          code = code * 16 + unsigned(digitOf(from[++i]));
        result += code && code < 128 ? char(code) : '?';
      } else {
        const char *found = std::strchr("b\bf\fn\nr\rt\t", from[i]);
        result += found ? found[1] : from[i];
      }
    }
    return result;
  }
  static int digitOf(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  }

private:
  bool fail(const char *reason) {
    why = "line " + std::to_string(line(std::min(at, text.size()))) + " is not JSON: " + reason;
    return false;
  }
  bool next(char c) { return at < text.size() && text[at] == c && ++at; }
  void skipBlanks() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
      ++at;
  }
  bool value(unsigned depth, uint32_t keyAt, uint32_t keySize) {
    skipBlanks();
    if (depth > maxDepth)
      return fail("it is nested too deeply");
    if (all.size() >= maxNodes)
      return fail("it has too many values");
    if (at >= text.size())
      return fail("it ends early");
    const size_t index = all.size();
    const char c = text[at];
    const char kind = c == '-' || (c >= '0' && c <= '9') ? '0' : c;
    all.push_back({kind, keyAt, keySize, uint32_t(at), 0, 0});
    bool fine = kind == '{' || kind == '[' ? list(depth)
                : kind == '"'              ? quoted(all[index].at, all[index].size)
                                           : word(c);
    if (kind != '"')
      all[index].size = uint32_t(at) - all[index].at;
    all[index].end = uint32_t(all.size());
    return fine;
  }
  bool list(unsigned depth) {
    const bool isObject = text[at++] == '{';
    const char end = isObject ? '}' : ']';
    for (bool isFirst = true; skipBlanks(), !next(end); isFirst = false) {
      if (!isFirst && !next(','))
        return fail("a comma or the end of a list is missing");
      uint32_t keyAt = 0, keySize = 0;
      skipBlanks();
      if (isObject && (!quoted(keyAt, keySize) || (skipBlanks(), !next(':'))))
        return why.empty() ? fail("a colon is missing") : false;
      if (!value(depth + 1, keyAt, keySize))
        return false;
    }
    return true;
  }
  bool quoted(uint32_t &begin, uint32_t &size) {
    if (!next('"'))
      return fail("a string is missing");
    for (begin = uint32_t(at); at < text.size() && text[at] != '"'; ++at) {
      if (static_cast<unsigned char>(text[at]) < 0x20)
        return fail("a control character in a string");
      if (text[at] != '\\')
        continue;
      if (++at >= text.size() || !text[at] || !std::strchr("\"\\/bfnrtu", text[at]))
        return fail("an unknown escape");
      for (int digit = text[at] == 'u' ? 4 : 0; digit > 0; --digit)
        if (++at >= text.size() || digitOf(text[at]) < 0)
          return fail("an unknown escape");
    }
    size = uint32_t(at) - begin;
    return next('"') || fail("a string does not end");
  }
  bool word(char first) {
    for (std::string_view known : {"true", "false", "null"})
      if (text.substr(at, known.size()) == known) {
        at += known.size();
        return true;
      }
    next('-');
    const bool isZero = first == '0' || text.substr(at, 1) == "0";
    if (const size_t count = digits(); !count || (isZero && count > 1))
      return fail("a value is missing, or no number");
    if (next('.') && !digits())
      return fail("a number ends early");
    if (next('e') || next('E')) {
      if (!next('+'))
        next('-');
      if (!digits())
        return fail("a number ends early");
    }
    return true;
  }
  size_t digits() {
    const size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
      ++at;
    return at - begin;
  }

  std::string_view text;
  size_t at = 0;
  std::vector<Node> all;
  std::string why;
};

} // namespace hloc_launch
