#include "ModuleParser.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Error.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace hloc {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Correctly rounded; an exponent too large gives infinity.
double parseDecimal(llvm::StringRef text) {
  double value = 0;
  auto [end, failure] = std::from_chars(text.begin(), text.end(), value);
  if (failure == std::errc() && end == text.end())
    return value;
  // Too large or too small for from_chars.
  if (!text.getAsDouble(value, /*AllowInexact=*/true))
    return value;
  llvm::APFloat number(llvm::APFloat::IEEEdouble());
  auto status = number.convertFromString(text, llvm::APFloat::rmNearestTiesToEven);
  if (!status) {
    llvm::consumeError(status.takeError());
    return std::numeric_limits<double>::quiet_NaN();
  }
  return number.convertToDouble();
}

} // namespace

std::optional<Literal> ModuleParser::parseLiteral(const Shape &shape, unsigned depth) {
  if (depth > maxNesting) {
    errorHere(DiagnosticKind::TooDeep, "literals nest deeper than " + std::to_string(maxNesting));
    return std::nullopt;
  }
  if (shape.isTuple()) {
    if (!expect('('))
      return std::nullopt;
    std::vector<Literal> elements;
    for (const Shape &element : shape.elements()) {
      if (!elements.empty() && !expect(','))
        return std::nullopt;
      std::optional<Literal> value = parseLiteral(element, depth + 1);
      if (!value)
        return std::nullopt;
      elements.push_back(std::move(*value));
    }
    if (!expect(')'))
      return std::nullopt;
    return Literal::tuple(std::move(elements));
  }
  if (!shape.isArray() || llvm::is_contained(shape.dims(), Shape::unbounded)) {
    errorHere(DiagnosticKind::BadLiteral, "no literal has shape `" + shape.toString() + "`");
    return std::nullopt;
  }
  if (shape.rank() > 0 && startsElided())
    return parseElided(shape);
  // Every element takes a character of text, so a literal is never larger than the text allows. One bare value stands
  // for an array with memory, though.
  if (shape.rank() > 0 && !token().is('{')) {
    constexpr int64_t limit = int64_t(1) << 29;
    if (shape.numElements() <= limit)
      unwrittenBytes += shape.numElements() * std::max(1u, bitWidth(shape.elementType()) / 8);
    if (shape.numElements() > limit || unwrittenBytes > limit) {
      errorHere(DiagnosticKind::InputTooLarge, "constants without written values take more than 512 MiB");
      return std::nullopt;
    }
  } else if (shape.numElements() > int64_t(lexer.rest().size()) + 1) {
    errorHere(DiagnosticKind::BadLiteral,
              "literal has fewer than the " + std::to_string(shape.numElements()) + " elements of its shape");
    return std::nullopt;
  }
  Literal literal(shape);
  if (shape.rank() == 0 ? !parseScalar(literal, 0) : !parseArrayLiteral(literal))
    return std::nullopt;
  return literal;
}

std::optional<Literal> ModuleParser::parseLiteralWithShape(unsigned depth) {
  if (!token().is('(')) {
    std::optional<Shape> shape = parseShape(depth);
    return shape ? parseLiteral(*shape, depth) : std::nullopt;
  }
  if (depth > maxNesting) {
    errorHere(DiagnosticKind::TooDeep, "literals nest deeper than " + std::to_string(maxNesting));
    return std::nullopt;
  }
  SourceRange open = token().range();
  lexer.advance();
  std::vector<Literal> elements;
  while (!token().is(')')) {
    if (!elements.empty() && !accept(',')) {
      unclosed("`,` or `)`", open);
      return std::nullopt;
    }
    std::optional<Literal> element = parseLiteralWithShape(depth + 1);
    if (!element)
      return std::nullopt;
    elements.push_back(std::move(*element));
  }
  lexer.advance();
  return Literal::tuple(std::move(elements));
}

/// `{...}`, comments aside.
bool ModuleParser::startsElided() {
  if (!token().is('{'))
    return false;
  uint32_t begin = token().begin;
  lexer.advance();
  bool elided = token().kind == TokenKind::Ellipsis;
  lexer.seek(begin);
  return elided;
}

std::optional<Literal> ModuleParser::parseElided(const Shape &shape) {
  uint32_t begin = token().begin;
  lexer.advance();
  lexer.advance();
  if (!expect('}'))
    return std::nullopt;
  diagnostics.report(DiagnosticKind::ElidedConstant, {begin, token().begin},
                     "constant is elided (`{...}`); its values are taken as zeros");
  return Literal::elided(shape);
}

bool ModuleParser::parseArrayLiteral(Literal &literal) {
  const Shape &shape = literal.shape();
  unsigned rank = shape.rank();
  if (!token().is('{')) {
    // XLA reads one bare value as element 0 and leaves the rest zero.
    SourceRange range = token().range();
    if (literal.numElements() == 0)
      return expected("`{`");
    if (!parseScalar(literal, 0))
      return false;
    diagnostics.report(DiagnosticKind::IgnoredInput, range,
                       "one value for shape `" + shape.toString() + "` sets element 0 only; all others are 0");
    return true;
  }
  llvm::SmallVector<int64_t, 6> counts; // elements seen at each open level
  int64_t next = 0;
  do {
    if (token().is('{')) {
      if (counts.size() == rank)
        return errorHere(DiagnosticKind::BadLiteral, "literal nests deeper than its rank " + std::to_string(rank));
      if (!counts.empty())
        ++counts.back();
      counts.push_back(0);
      lexer.advance();
    } else if (token().is('}')) {
      int64_t wanted = shape.dim(counts.size() - 1);
      if (counts.back() != wanted)
        return errorHere(DiagnosticKind::BadLiteral, "expected " + std::to_string(wanted) + " elements in dimension " +
                                                         std::to_string(counts.size() - 1) + ", found " +
                                                         std::to_string(counts.back()));
      counts.pop_back();
      lexer.advance();
    } else if (token().is(',')) {
      lexer.advance();
    } else {
      if (counts.size() != rank)
        return errorHere(DiagnosticKind::BadLiteral, "value at nesting " + std::to_string(counts.size()) +
                                                         " of a literal of rank " + std::to_string(rank));
      if (++counts.back() > shape.dim(rank - 1) || next >= literal.numElements())
        return errorHere(DiagnosticKind::BadLiteral,
                         "more elements than the " + std::to_string(shape.dim(rank - 1)) + " of the minor dimension");
      if (!parseScalar(literal, next++))
        return false;
    }
  } while (!counts.empty());
  return true;
}

bool ModuleParser::parseScalar(Literal &literal, int64_t index) {
  ElementType type = literal.shape().elementType();
  if (isComplex(type)) {
    double real = 0, imaginary = 0;
    if (!expect('(') || !parseComplexPart(componentType(type), real) || !expect(',') ||
        !parseComplexPart(componentType(type), imaginary) || !expect(')'))
      return false;
    literal.setComplex(index, {real, imaginary});
    return true;
  }
  Token value = token();
  if (value.kind == TokenKind::Identifier && (value.text == "true" || value.text == "false")) {
    if (!isPred(type))
      return errorHere(DiagnosticKind::BadLiteral,
                       "`" + value.text.str() + "` is not a `" + text(type).str() + "` value");
    literal.setInt(index, value.text == "true");
    lexer.advance();
    return true;
  }
  if (value.kind == TokenKind::Integer && !isFloat(type)) {
    lexer.advance();
    return storeInteger(literal, index, value.text, value.range());
  }
  if (!isFloat(type))
    return expected("a `" + text(type).str() + "` value");
  if (value.kind == TokenKind::Integer || value.kind == TokenKind::Decimal) {
    lexer.advance();
    double number = parseDecimal(value.text);
    if (std::isinf(number))
      return error(DiagnosticKind::BadNumber, value.range(), "`" + value.text.str() + "` overflows f64");
    return storeFloat(literal, index, number, value.range());
  }
  // The lexer sees `-inf` and `-nan` as a lone minus; identifiers cannot start with one.
  llvm::StringRef rest = lexer.rest();
  bool negative = rest.consume_front("-");
  llvm::StringRef word = rest.take_while(isIdentifierBody);
  if (word == "inf") {
    lexer.seek(value.begin + negative + 3);
    literal.setDouble(index, negative ? -infinity : infinity);
    return true;
  }
  if (word == "nan") {
    lexer.seek(value.begin + negative + 3);
    return parseNan(literal, index, negative);
  }
  return expected("a `" + text(type).str() + "` value");
}

bool ModuleParser::parseComplexPart(ElementType component, double &value) {
  Literal part(Shape::scalar(component));
  if (!parseScalar(part, 0))
    return false;
  value = part.getDouble(0);
  return true;
}

bool ModuleParser::storeInteger(Literal &literal, int64_t index, llvm::StringRef digits, SourceRange range) {
  ElementType type = literal.shape().elementType();
  auto outOfRange = [&] {
    return error(DiagnosticKind::BadLiteral, range,
                 "`" + digits.str() + "` is out of range for `" + text(type).str() + "`");
  };
  bool negative = digits.starts_with("-");
  uint64_t magnitude = 0;
  if (digits.drop_front(negative).getAsInteger(10, magnitude))
    return error(DiagnosticKind::BadNumber, range, "`" + digits.str() + "` does not fit 64 bits");
  if (negative && magnitude > uint64_t(1) << 63)
    return error(DiagnosticKind::BadNumber, range, "`" + digits.str() + "` does not fit 64 bits");
  int64_t value = negative ? int64_t(0 - magnitude) : int64_t(magnitude);
  unsigned bits = bitWidth(type);
  if (isUnsigned(type) && bits < 64 && ((negative && magnitude) || magnitude >> bits))
    return outOfRange();
  if (isSigned(type) && bits < 64) {
    int64_t limit = int64_t(1) << (bits - 1);
    if ((!negative && magnitude >= uint64_t(limit)) || (negative && magnitude > uint64_t(limit)))
      return outOfRange();
  }
  literal.setInt(index, value);
  return true;
}

bool ModuleParser::storeFloat(Literal &literal, int64_t index, double value, SourceRange range) {
  ElementType type = literal.shape().elementType();
  const FloatFormat &format = floatFormat(type);
  bool saturates = format.specials == FloatFormat::Specials::None;
  if (!saturates && type != ElementType::F64) {
    double rounded = decodeFloat(format, encodeFloat(format, value));
    bool tooLarge = std::isinf(rounded) || (std::isnan(rounded) && std::fabs(value) > largestFinite(format));
    // XLA accepts what is beyond bf16's range of f16 and so on only if it is finite in the type itself.
    if (tooLarge)
      return error(DiagnosticKind::BadLiteral, range, "value is out of range for `" + text(type).str() + "`");
  }
  literal.setDouble(index, value);
  return true;
}

/// After `nan`: an optional payload `(0x123)`.
bool ModuleParser::parseNan(Literal &literal, int64_t index, bool negative) {
  ElementType type = literal.shape().elementType();
  const FloatFormat &format = floatFormat(type);
  literal.setDouble(index, std::copysign(std::numeric_limits<double>::quiet_NaN(), negative ? -1.0 : 1.0));
  if (!token().is('('))
    return true;
  uint32_t begin = token().begin;
  llvm::StringRef rest = lexer.rest().drop_front();
  llvm::StringRef digits = rest.take_until([](char c) { return c == ')'; });
  uint64_t payload = 0;
  llvm::StringRef number = digits;
  bool hex = number.consume_front("0x");
  auto end = uint32_t(begin + 1 + digits.size());
  if (!hex || number.getAsInteger(16, payload))
    return error(DiagnosticKind::BadNumber, {begin, end}, "expected a NaN payload such as `(0x7f)`");
  uint64_t mask = (uint64_t(1) << format.mantissaBits) - 1;
  bool takesPayload = format.specials == FloatFormat::Specials::Ieee;
  if (!takesPayload || payload == 0 || payload > mask)
    return error(DiagnosticKind::BadLiteral, {begin, end},
                 "`" + digits.str() + "` is no NaN payload of `" + text(type).str() + "`");
  uint64_t exponent = ((uint64_t(1) << format.exponentBits) - 1) << format.mantissaBits;
  literal.setBits(index, (uint64_t(negative) << (format.bits - 1)) | exponent | payload);
  lexer.seek(end);
  return expect(')');
}

} // namespace hloc
