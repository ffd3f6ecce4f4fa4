#include "hloc/parser/Lexer.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <array>

namespace hloc {

namespace {

enum : uint8_t { Blank = 1, Start = 2, Body = 4, Digit = 8, Single = 16 };

constexpr std::array<uint8_t, 256> makeClasses() {
  std::array<uint8_t, 256> classes{};
  for (char c : {' ', '\t', '\n', '\r'})
    classes[uint8_t(c)] |= Blank;
  for (int c = 'a'; c <= 'z'; ++c)
    classes[c] |= Start | Body;
  for (int c = 'A'; c <= 'Z'; ++c)
    classes[c] |= Start | Body;
  classes[uint8_t('_')] |= Start | Body;
  for (int c = '0'; c <= '9'; ++c)
    classes[c] |= Body | Digit;
  for (char c : {'.', '-'})
    classes[uint8_t(c)] |= Body;
  for (char c : {'=', ',', ':', '*', '?', '#', '+', '~', '[', ']', '{', '}', '(', ')'})
    classes[uint8_t(c)] |= Single;
  return classes;
}

constexpr std::array<uint8_t, 256> classes = makeClasses();

bool is(char c, uint8_t wanted) { return classes[uint8_t(c)] & wanted; }

} // namespace

bool isIdentifierStart(char c) { return is(c, Start); }
bool isIdentifierBody(char c) { return is(c, Body); }

Lexer::Lexer(llvm::StringRef text, DiagnosticEngine &diagnostics, OpenStrings openStrings)
    : text(text), diagnostics(diagnostics), openStrings(openStrings) {
  if (text.starts_with("\xEF\xBB\xBF")) // the byte order mark that Windows editors put before UTF-8
    position = 3;
  advance();
}

char Lexer::nextCharacter() const {
  size_t at = current.end;
  while (at < text.size() && is(text[at], Blank))
    ++at;
  return at < text.size() ? text[at] : '\0';
}

void Lexer::seek(uint32_t offset) {
  position = offset;
  advance();
}

void Lexer::finish(TokenKind kind, uint32_t begin, uint32_t end) {
  current.kind = kind;
  current.text = text.slice(begin, end);
  current.begin = begin;
  current.end = position = end;
}

void Lexer::invalid(DiagnosticKind kind, uint32_t begin, uint32_t end, std::string message) {
  diagnostics.report(kind, {begin, end}, std::move(message));
  finish(TokenKind::Invalid, begin, end);
}

/// False if a comment does not end (reported).
bool Lexer::skipBlanks() {
  while (position < text.size()) {
    char c = text[position];
    if (is(c, Blank)) {
      ++position;
    } else if (c == '/' && text.substr(position).starts_with("//")) {
      position = uint32_t(std::min(text.find_first_of("\n\r", position), text.size()));
    } else if (c == '/' && text.substr(position).starts_with("/*")) {
      size_t end = text.find("*/", position + 2);
      if (end == llvm::StringRef::npos) {
        diagnostics.report(DiagnosticKind::UnterminatedToken, {position, position + 2},
                           "comment is not closed by `*/`");
        return false;
      }
      position = uint32_t(end + 2);
    } else {
      break;
    }
  }
  return true;
}

void Lexer::advance() {
  if (!skipBlanks())
    return finish(TokenKind::Invalid, position, uint32_t(text.size()));
  uint32_t begin = position;
  if (begin >= text.size())
    return finish(TokenKind::End, uint32_t(text.size()), uint32_t(text.size()));
  char c = text[begin];
  if (is(c, Start))
    return lexIdentifier(begin);
  llvm::StringRef here = text.substr(begin);
  if (c == '-' && here.starts_with("->"))
    return finish(TokenKind::Arrow, begin, begin + 2);
  if (is(c, Digit) || c == '-')
    return lexNumber(begin);
  if (is(c, Single))
    return finish(TokenKind::Punctuation, begin, begin + 1);
  switch (c) {
  case '%': {
    uint32_t end = begin + 1;
    while (end < text.size() && is(text[end], Body))
      ++end;
    if (end == begin + 1)
      return invalid(DiagnosticKind::BadName, begin, end, "expected a name after `%`");
    finish(TokenKind::Name, begin, end);
    current.text = text.slice(begin + 1, end);
    return;
  }
  case '"':
  case '\'':
    return lexString(begin, c);
  case '<':
    if (here.starts_with("<="))
      return finish(TokenKind::LessEqual, begin, begin + 2);
    break;
  case '.':
    if (here.starts_with("..."))
      return finish(TokenKind::Ellipsis, begin, begin + 3);
    break;
  default:
    break;
  }
  std::string shown = llvm::isPrint(c) ? "`" + std::string(1, c) + "`" : "byte 0x" + llvm::toHex(here.take_front(1));
  invalid(DiagnosticKind::BadCharacter, begin, begin + 1, "unexpected " + shown);
}

void Lexer::lexIdentifier(uint32_t begin) {
  uint32_t end = begin + 1;
  while (end < text.size() && is(text[end], Body))
    ++end;
  if (end < text.size() && text[end] == '=') {
    finish(TokenKind::Attribute, begin, end + 1);
    current.text = text.slice(begin, end);
    return;
  }
  finish(TokenKind::Identifier, begin, end);
}

void Lexer::lexNumber(uint32_t begin) {
  uint32_t end = begin;
  if (text[end] == '-')
    ++end;
  uint32_t digits = end;
  while (end < text.size() && is(text[end], Digit))
    ++end;
  auto isDigitAt = [&](uint32_t at) { return at < text.size() && is(text[at], Digit); };
  bool fractionOnly = end == digits && end < text.size() && text[end] == '.' && isDigitAt(end + 1); // -.5
  if (end == digits && !fractionOnly)
    return finish(TokenKind::Punctuation, begin, begin + 1); // of `-inf` and `-nan`
  bool decimal = false;
  if (end < text.size() && text[end] == '.' && !text.substr(end).starts_with("...")) {
    decimal = true;
    ++end;
    while (end < text.size() && is(text[end], Digit))
      ++end;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    uint32_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-'))
      ++exponent;
    uint32_t first = exponent;
    while (exponent < text.size() && is(text[exponent], Digit))
      ++exponent;
    if (exponent > first) {
      decimal = true;
      end = exponent;
    }
  }
  finish(decimal ? TokenKind::Decimal : TokenKind::Integer, begin, end);
}

void Lexer::lexString(uint32_t begin, char quote) {
  size_t at = begin + 1;
  for (; at < text.size(); ++at) {
    if (text[at] == '\n' && openStrings == OpenStrings::ToEndOfLine)
      break;
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      return finish(TokenKind::String, begin, uint32_t(at + 1));
    }
  }
  invalid(DiagnosticKind::UnterminatedToken, begin, uint32_t(std::min(at, text.size())), "string is not closed");
}

bool unescape(llvm::StringRef quoted, std::string &out) {
  llvm::StringRef body = quoted.drop_front().drop_back();
  out.clear();
  if (!body.contains('\\')) {
    out = body.str();
    return true;
  }
  auto hex = [&](size_t at, size_t count, unsigned &value) {
    return at + count <= body.size() && !body.substr(at, count).getAsInteger(16, value);
  };
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    if (++i == body.size())
      return false;
    unsigned value = 0;
    switch (body[i]) {
    case 'n':
      out += '\n';
      break;
    case 't':
      out += '\t';
      break;
    case 'r':
      out += '\r';
      break;
    case 'a':
      out += '\a';
      break;
    case 'b':
      out += '\b';
      break;
    case 'f':
      out += '\f';
      break;
    case 'v':
      out += '\v';
      break;
    case '"':
    case '\'':
    case '\\':
    case '?':
      out += body[i];
      break;
    case 'x':
    case 'X':
      if (!hex(i + 1, 2, value))
        return false;
      out += char(value);
      i += 2;
      break;
    case 'u':
      if (!hex(i + 1, 4, value) || (value >= 0xD800 && value < 0xE000))
        return false;
      if (value >= 0x800)
        out += {char(0xE0 | (value >> 12)), char(0x80 | ((value >> 6) & 0x3F)), char(0x80 | (value & 0x3F))};
      else if (value >= 0x80)
        out += {char(0xC0 | (value >> 6)), char(0x80 | (value & 0x3F))};
      else
        out += char(value);
      i += 4;
      break;
    default: {
      if (body[i] < '0' || body[i] > '7')
        return false;
      size_t count = 0;
      while (count < 3 && i < body.size() && body[i] >= '0' && body[i] <= '7') {
        value = value * 8 + unsigned(body[i++] - '0');
        ++count;
      }
      --i;
      out += char(value);
    }
    }
  }
  return true;
}

size_t balancedLength(llvm::StringRef text) {
  llvm::SmallVector<char, 16> open;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\')
          ++i;
    } else if (c == '{' || c == '[' || c == '(') {
      open.push_back(c);
    } else if (c == '}' || c == ']' || c == ')') {
      char matching = c == '}' ? '{' : c == ']' ? '[' : '(';
      if (open.empty() || open.pop_back_val() != matching)
        return llvm::StringRef::npos;
      if (open.empty())
        return i + 1;
    }
  }
  return llvm::StringRef::npos;
}

size_t balancedBraces(llvm::StringRef text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\')
          ++i;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return llvm::StringRef::npos;
}

} // namespace hloc
