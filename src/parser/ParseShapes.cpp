#include "ModuleParser.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace hloc {

namespace {

/// Length of `f32[2,3]{1,0}` at the start of `text` if it has nothing but digits and commas in its brackets; 0
/// otherwise.
size_t simpleShapeLength(llvm::StringRef text) {
  size_t at = 0;
  while (at < text.size() && isIdentifierBody(text[at]))
    ++at;
  if (at >= text.size() || text[at] != '[')
    return 0;
  auto skipList = [&](char close) {
    for (++at; at < text.size() && (text[at] == ',' || (text[at] >= '0' && text[at] <= '9')); ++at)
      ;
    return at < text.size() && text[at++] == close;
  };
  if (!skipList(']'))
    return 0;
  if (at < text.size() && text[at] == '{' && at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9' &&
      !skipList('}'))
    return 0;
  // A layout after a blank belongs to the shape as well: leave that to the full parser.
  llvm::StringRef next = text.drop_front(at).ltrim();
  return next.starts_with("{") ? 0 : at;
}

} // namespace

bool ModuleParser::startsShape() const {
  if (token().is('('))
    return true;
  if (token().kind != TokenKind::Identifier)
    return false;
  if (token().text == "b" && lexer.rest().starts_with("b("))
    return true;
  return lexer.nextCharacter() == '[' && parseElementType(token().text);
}

std::optional<Shape> ModuleParser::parseShape(unsigned depth) {
  if (depth > maxNesting) {
    errorHere(DiagnosticKind::TooDeep, "shapes nest deeper than " + std::to_string(maxNesting));
    return std::nullopt;
  }
  SourceRange open = token().range();
  if (accept('(')) {
    llvm::SmallVector<Shape> elements;
    while (!token().is(')')) {
      if (!elements.empty() && !accept(',')) {
        unclosed("`,` or `)`", open);
        return std::nullopt;
      }
      std::optional<Shape> element = parseShape(depth + 1);
      if (!element)
        return std::nullopt;
      elements.push_back(*element);
    }
    lexer.advance();
    return Shape::tuple(elements);
  }
  if (token().kind == TokenKind::Identifier && token().text == "b" && lexer.rest().starts_with("b(")) {
    lexer.advance();
    lexer.advance();
    std::optional<Shape> inner = parseShape(depth + 1);
    if (!inner || !expect(')'))
      return std::nullopt;
    if (!inner->isArray()) {
      errorHere(DiagnosticKind::BadShape, "a buffer holds an array");
      return std::nullopt;
    }
    return Shape::buffer(*inner);
  }
  std::optional<ElementType> type;
  if (token().kind == TokenKind::Identifier)
    type = parseElementType(token().text);
  if (!type) {
    bool array = token().kind == TokenKind::Identifier && lexer.nextCharacter() == '[';
    array ? unknownElementType() : expected("a shape");
    return std::nullopt;
  }
  uint32_t begin = token().begin;
  llvm::StringRef spelling = lexer.rest().take_front(simpleShapeLength(lexer.rest()));
  if (!spelling.empty()) {
    auto cached = shapeCache.find(spelling);
    if (cached != shapeCache.end()) {
      lexer.seek(begin + uint32_t(spelling.size()));
      return cached->second;
    }
  }
  std::optional<Shape> shape = parseArrayShape(*type);
  if (shape && !spelling.empty())
    shapeCache.try_emplace(spelling, *shape);
  return shape;
}

std::optional<Shape> ModuleParser::parseArrayShape(ElementType type) {
  SourceRange range = token().range();
  lexer.advance();
  llvm::SmallVector<int64_t, 6> dims;
  llvm::SmallVector<bool, 6> dynamic;
  if (!parseDimensions(dims, dynamic))
    return std::nullopt;
  Layout layout;
  bool given = false;
  if (token().is('{')) {
    llvm::StringRef after = lexer.rest().drop_front().ltrim();
    // `{` of a body follows a shape too; a layout goes on with a number or a colon.
    given = !after.empty() && (llvm::isDigit(after[0]) || after[0] == ':' || after[0] == '-');
    if (given && !parseLayout(layout, dims.size()))
      return std::nullopt;
  }
  if (!given || (layout.minorToMajor.empty() && !dims.empty()))
    layout.minorToMajor = defaultMinorToMajor(dims.size());
  if (type == ElementType::Token || type == ElementType::Opaque) {
    if (!dims.empty()) {
      error(DiagnosticKind::BadShape, range, "`" + text(type).str() + "` has no dimensions");
      return std::nullopt;
    }
    return type == ElementType::Token ? Shape::token() : Shape::opaque();
  }
  // Element counts and byte sizes fit an int64, whatever is multiplied later.
  uint64_t bytes = std::max(1u, hostBytes(type));
  bool overflow = false;
  for (int64_t dim : dims)
    if (dim != Shape::unbounded && dim != 0) {
      bytes = llvm::SaturatingMultiply<uint64_t>(bytes, uint64_t(dim));
      overflow |= bytes > uint64_t(INT64_MAX);
    }
  if (overflow) {
    error(DiagnosticKind::BadShape, range, "shape has more bytes than 64 bits can count");
    return std::nullopt;
  }
  if (!llvm::is_contained(dynamic, true))
    dynamic.clear();
  return Shape::array(type, dims, std::move(layout), dynamic, given);
}

bool ModuleParser::parseDimensions(llvm::SmallVectorImpl<int64_t> &dims, llvm::SmallVectorImpl<bool> &dynamic) {
  const SourceRange open = token().range();
  if (!expect('['))
    return false;
  while (!token().is(']')) {
    if (!dims.empty() && !accept(','))
      return unclosed("`,` or `]`", open);
    if (accept('?')) {
      dims.push_back(Shape::unbounded);
      dynamic.push_back(true);
      continue;
    }
    bool bounded = token().kind == TokenKind::LessEqual;
    if (bounded)
      lexer.advance();
    SourceRange range = token().range();
    std::optional<int64_t> dim = parseInt();
    if (!dim)
      return false;
    if (*dim < 0)
      return error(DiagnosticKind::BadShape, range, "dimension " + std::to_string(*dim) + " is negative");
    dims.push_back(*dim);
    dynamic.push_back(bounded);
  }
  lexer.advance();
  return true;
}

bool ModuleParser::parseLayout(Layout &layout, unsigned rank) {
  SourceRange range = token().range();
  lexer.advance();
  while (token().kind == TokenKind::Integer) {
    std::optional<int64_t> dim = parseInt();
    if (!dim)
      return false;
    layout.minorToMajor.push_back(*dim);
    if (!accept(','))
      break;
  }
  range.end = token().begin;
  bool onlyExtras = layout.minorToMajor.empty() && token().is(':');
  if (token().is(':') && !parseLayoutExtras(layout))
    return false;
  if (!expect('}'))
    return false;
  if (layout.minorToMajor.size() != rank && !onlyExtras)
    return error(DiagnosticKind::BadLayout, range,
                 "layout has " + std::to_string(layout.minorToMajor.size()) + " dimensions, the shape " +
                     std::to_string(rank));
  llvm::SmallVector<bool> seen(rank, false);
  for (int64_t dim : layout.minorToMajor) {
    if (dim < 0 || dim >= int64_t(rank) || seen[dim])
      return error(DiagnosticKind::BadLayout, range, "layout is not a permutation of the dimensions");
    seen[dim] = true;
  }
  return true;
}

/// `:T(8,128)(2,1)E(4)S(5)`: element size and memory space are kept apart, everything else verbatim.
bool ModuleParser::parseLayoutExtras(Layout &layout) {
  uint32_t begin = token().end;
  size_t close = lexer.source().find('}', begin);
  if (close == llvm::StringRef::npos)
    return errorHere(DiagnosticKind::BadLayout, "layout is not closed by `}`");
  llvm::StringRef extras = lexer.source().slice(begin, close);
  for (llvm::StringRef rest = extras.trim(); !rest.empty();) {
    size_t open = rest.find('('), end = open == llvm::StringRef::npos ? open : balancedLength(rest.substr(open));
    llvm::StringRef name = rest.take_front(std::min(open, rest.size())).trim();
    bool known = llvm::is_contained({"D", "T", "L", "#", "*", "E", "S", "SC", "M", ""}, name);
    if (end == llvm::StringRef::npos || !known)
      return error(DiagnosticKind::BadLayout, {begin, uint32_t(close)}, "malformed layout `" + extras.str() + "`");
    llvm::StringRef value = rest.substr(open + 1, end - 2).trim();
    unsigned *number = name == "E" ? &layout.elementSizeBits : name == "S" ? &layout.memorySpace : nullptr;
    if (number && value.getAsInteger(10, *number))
      return error(DiagnosticKind::BadLayout, {begin, uint32_t(close)},
                   "`" + name.str() + "(" + value.str() + ")` is not a number");
    if (!number)
      layout.extras += rest.take_front(open + end);
    rest = rest.drop_front(open + end).ltrim();
  }
  lexer.seek(uint32_t(close));
  return true;
}

} // namespace hloc
