#include "PtxScanner.h"

#include "llvm/ADT/StringExtras.h"

#include <bit>

using namespace llvm;

namespace hloc::ptx {
namespace {

bool isNameStart(char c) { return isAlpha(c) || c == '_' || c == '$' || c == '%'; }
bool isNameChar(char c) { return isAlnum(c) || c == '_' || c == '$'; }
constexpr unsigned maxDepth = 16;

struct BinaryOperator {
  StringLiteral token;
  unsigned precedence;
};
/// Longer tokens first, so that `<<` is not read as `<`.
constexpr BinaryOperator binaryOperators[] = {{"<<", 8}, {">>", 8}, {"<=", 7}, {">=", 7}, {"==", 6}, {"!=", 6},
                                              {"&&", 2}, {"||", 1}, {"<", 7},  {">", 7},  {"&", 5},  {"^", 4},
                                              {"|", 3},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

/// Constant expressions are 64 bits, signed unless an operand is not. Empty for a division by zero.
std::optional<uint64_t> fold(StringRef op, uint64_t a, uint64_t b) {
  const int64_t x = int64_t(a), y = int64_t(b);
  if ((op == "/" || op == "%") && (b == 0 || (y == -1 && x == INT64_MIN)))
    return std::nullopt;
  if (op == "<<")
    return b < 64 ? a << b : 0;
  if (op == ">>")
    return uint64_t(x >> std::min<uint64_t>(b, 63));
  if (op == "+")
    return a + b;
  if (op == "-")
    return a - b;
  if (op == "*")
    return a * b;
  if (op == "/")
    return uint64_t(x / y);
  if (op == "%")
    return uint64_t(x % y);
  if (op == "&")
    return a & b;
  if (op == "^")
    return a ^ b;
  if (op == "|")
    return a | b;
  if (op == "&&")
    return a && b;
  if (op == "||")
    return a || b;
  if (op == "<")
    return x < y;
  if (op == ">")
    return x > y;
  if (op == "<=")
    return x <= y;
  if (op == ">=")
    return x >= y;
  return op == "==" ? a == b : a != b;
}

} // namespace

void Scanner::error(DiagnosticKind kind, std::string message) {
  if (!failed)
    diagnostics.report(kind, {uint32_t(at), uint32_t(std::min(at + 1, text.size()))}, std::move(message));
  failed = true;
  at = text.size();
}

void Scanner::skipSpace() {
  while (at < text.size()) {
    if (text[at] == '\n')
      ++line;
    if (isSpace(text[at])) {
      ++at;
    } else if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at).starts_with("/*")) {
      size_t end = text.find("*/", at + 2);
      if (end == StringRef::npos)
        return error(DiagnosticKind::UnterminatedToken, "comment is not closed");
      line += text.slice(at, end).count('\n');
      at = end + 2;
    } else {
      return;
    }
  }
}

bool Scanner::atEnd() {
  skipSpace();
  return at >= text.size();
}

char Scanner::peek() { return atEnd() ? '\0' : text[at]; }

bool Scanner::take(char c) {
  if (peek() != c)
    return false;
  ++at;
  return true;
}

bool Scanner::takeText(StringRef token) {
  if (atEnd() || !text.substr(at).starts_with(token))
    return false;
  at += token.size();
  return true;
}

void Scanner::expect(char c) {
  if (!take(c))
    error(DiagnosticKind::ExpectedToken, std::string("expected `") + c + "`");
}

bool Scanner::atName() { return isNameStart(peek()); }
bool Scanner::atNumber() {
  char c = peek();
  return isDigit(c) || c == '-' || c == '(' || c == '~';
}

std::string Scanner::word() {
  if (!atName()) {
    error(DiagnosticKind::ExpectedToken, "expected a name");
    return {};
  }
  size_t begin = at++;
  while (at < text.size() && isNameChar(text[at]))
    ++at;
  return text.slice(begin, at).str();
}

std::string Scanner::name() {
  std::string result = word();
  if (!result.empty() && result[0] == '%' && at < text.size() && text[at] == '.') {
    ++at;
    result += "." + word();
  }
  return result;
}

std::string Scanner::dotted() {
  size_t begin = at;
  while (at < text.size() && (isNameChar(text[at]) || text.substr(at).starts_with("::")))
    at += text[at] == ':' ? 2 : 1;
  if (begin == at)
    error(DiagnosticKind::ExpectedToken, "expected a name after `.`");
  return text.slice(begin, at).str();
}

std::string Scanner::restOfLine() {
  size_t begin = at;
  at = std::min(text.find('\n', at), text.size());
  return text.slice(begin, at).split("//").first.trim().str();
}

std::string Scanner::restOfDirective() {
  const size_t begin = at;
  const bool isText = text.substr(begin).starts_with(".pragma"); // which may hold any character
  at = std::min({text.find_first_of(isText ? "\n{;" : "\n{;.", begin + 1), text.find("//", begin), text.size()});
  return text.slice(begin, at).trim().str();
}

std::string Scanner::quoted() {
  expect('"');
  size_t begin = at, end = text.find('"', at);
  if (failed || end == StringRef::npos || text.slice(begin, end).contains('\n')) {
    error(DiagnosticKind::UnterminatedToken, "string is not closed");
    return {};
  }
  at = end + 1;
  return text.slice(begin, end).str();
}

Operand Scanner::literal() {
  Operand result;
  result.kind = Operand::Kind::Integer;
  peek();
  size_t begin = at;
  while (at < text.size() && isAlnum(text[at]))
    ++at;
  StringRef digits = text.slice(begin, at);
  bool bad;
  if (digits.starts_with_insensitive("0f") && digits.size() == 10) {
    result.kind = Operand::Kind::Float32;
    bad = digits.substr(2).getAsInteger(16, result.value);
  } else if (digits.starts_with_insensitive("0d") && digits.size() == 18) {
    result.kind = Operand::Kind::Float64;
    bad = digits.substr(2).getAsInteger(16, result.value);
  } else if (at < text.size() && text[at] == '.' && !digits.empty() && all_of(digits, isDigit)) {
    for (++at; at < text.size() &&
               (isAlnum(text[at]) || (toLower(text[at - 1]) == 'e' && (text[at] == '-' || text[at] == '+')));)
      ++at;
    double value = 0;
    bad = text.slice(begin, at).getAsDouble(value);
    result.kind = Operand::Kind::Float64;
    result.value = std::bit_cast<uint64_t>(value);
  } else {
    digits.consume_back("U");
    bad = digits.getAsInteger(0, result.value);
  }
  if (bad)
    error(DiagnosticKind::BadNumber, "`" + text.slice(begin, std::min(at, begin + 40)).str() + "` is not a PTX number");
  return result;
}

Operand Scanner::unary(unsigned depth) {
  Operand result;
  result.kind = Operand::Kind::Integer;
  if (depth > maxDepth) {
    error(DiagnosticKind::TooDeep, "constant expression is nested too deeply");
    return result;
  }
  if (take('(')) {
    result = binary(1, depth + 1);
    expect(')');
    return result;
  }
  const char op = peek();
  if (op != '-' && op != '~' && op != '!' && op != '+')
    return literal();
  ++at;
  result = unary(depth + 1);
  if (result.kind == Operand::Kind::Float64 && op == '-')
    result.value ^= 1ull << 63;
  else if (result.kind != Operand::Kind::Integer)
    error(DiagnosticKind::BadNumber, "operator on a float constant");
  else if (op != '+')
    result.value = op == '-' ? 0 - result.value : op == '~' ? ~result.value : !result.value;
  return result;
}

Operand Scanner::binary(unsigned minimum, unsigned depth) {
  Operand left = unary(depth);
  while (!failed) {
    skipSpace();
    const BinaryOperator *op = nullptr;
    for (const BinaryOperator &candidate : binaryOperators)
      if (!op && text.substr(at).starts_with(candidate.token))
        op = &candidate;
    if (!op || op->precedence < minimum)
      return left;
    at += op->token.size();
    Operand right = depth > maxDepth ? Operand() : binary(op->precedence + 1, depth + 1);
    auto value = left.kind == Operand::Kind::Integer && right.kind == Operand::Kind::Integer
                     ? fold(op->token, left.value, right.value)
                     : std::nullopt;
    if (!value)
      error(DiagnosticKind::BadNumber, "constant expression has no value");
    left.value = value.value_or(0);
  }
  return left;
}

Operand Scanner::number(unsigned depth) { return binary(1, depth); }

uint64_t Scanner::integer() {
  Operand value = number();
  if (value.kind != Operand::Kind::Integer)
    error(DiagnosticKind::BadNumber, "expected an integer");
  return value.value;
}

uint64_t Scanner::literalInteger() {
  Operand value = literal();
  if (value.kind != Operand::Kind::Integer)
    error(DiagnosticKind::BadNumber, "expected an integer");
  return value.value;
}

} // namespace hloc::ptx
