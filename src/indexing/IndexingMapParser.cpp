// Recursive descent over the text form. The text may come from anyone: depth, number of operations and the size of
// every coefficient are limited, so that neither the stack nor int64 overflows further in.

#include "hloc/indexing/IndexingMap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace hloc;
using mlir::AffineExpr;

namespace {

constexpr unsigned depthLimit = 64;
constexpr unsigned operationLimit = 4096;
constexpr unsigned variableLimit = 1024;
/// No coefficient that folding can produce is larger; leaves room for every sum and product of the algebra.
constexpr int64_t magnitudeLimit = int64_t(1) << 60;

/// An expression with a bound on the absolute value of each number that can appear in it after folding.
struct Parsed {
  AffineExpr expression;
  int64_t magnitude = 0;
};

class Parser {
public:
  Parser(llvm::StringRef text, mlir::MLIRContext *context, std::string &error)
      : text(text), context(context), error(error) {}

  std::optional<IndexingMap> parse();

private:
  bool fail(const llvm::Twine &message);
  void skipSpace();
  bool consume(llvm::StringRef token);
  bool expect(llvm::StringRef token);
  bool consumeWord(llvm::StringRef word);
  llvm::StringRef peekWord();

  bool parseVariables(llvm::StringRef close, llvm::StringRef prefix, llvm::SmallVectorImpl<IndexingVariable> &variables,
                      bool areDims);
  bool parseResults(llvm::SmallVectorImpl<AffineExpr> &results);
  bool parseDomain();
  bool parseInterval(Interval &interval);
  bool parseInteger(int64_t &value);
  IndexingVariable &variableOf(AffineExpr variable);

  bool parseSum(Parsed &result);
  bool parseProduct(Parsed &result);
  bool parseFactor(Parsed &result);
  bool apply(mlir::AffineExprKind kind, Parsed &left, const Parsed &right);
  bool countOperation();

  llvm::StringRef text;
  size_t position = 0;
  mlir::MLIRContext *context;
  std::string &error;
  unsigned depth = 0, operations = 0;
  llvm::StringMap<AffineExpr> names;
  llvm::SmallVector<IndexingVariable> dims, ranges, runtimes;
  llvm::SmallVector<IndexingMap::Constraint> constraints;
};

} // namespace

bool Parser::fail(const llvm::Twine &message) {
  if (error.empty())
    error = ("at offset " + llvm::Twine(position) + ": " + message).str();
  return false;
}

void Parser::skipSpace() {
  while (position < text.size() && llvm::isSpace(text[position]))
    ++position;
}

bool Parser::consume(llvm::StringRef token) {
  skipSpace();
  if (!text.substr(position).starts_with(token))
    return false;
  position += token.size();
  return true;
}

bool Parser::expect(llvm::StringRef token) { return consume(token) || fail("expected '" + token + "'"); }

llvm::StringRef Parser::peekWord() {
  skipSpace();
  llvm::StringRef rest = text.substr(position);
  if (rest.empty() || !(llvm::isAlpha(rest[0]) || rest[0] == '_'))
    return {};
  return rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
}

bool Parser::consumeWord(llvm::StringRef word) {
  if (!peekWord().equals_insensitive(word))
    return false;
  position += word.size();
  return true;
}

bool Parser::parseVariables(llvm::StringRef close, llvm::StringRef prefix,
                            llvm::SmallVectorImpl<IndexingVariable> &variables, bool areDims) {
  if (consume(close))
    return true;
  do {
    llvm::StringRef name = peekWord();
    if (name.empty())
      return fail("expected a variable name");
    if (names.size() >= variableLimit)
      return fail("too many variables");
    // Symbols are numbered as they come: ranges before runtimes.
    AffineExpr variable = areDims ? mlir::getAffineDimExpr(dims.size(), context)
                                  : mlir::getAffineSymbolExpr(ranges.size() + runtimes.size(), context);
    if (name.equals_insensitive("mod") || name.equals_insensitive("floordiv") || name.equals_insensitive("ceildiv") ||
        name == "in")
      return fail("'" + name + "' cannot name a variable");
    if (!names.try_emplace(name, variable).second)
      return fail("variable '" + name + "' is declared twice");
    bool isDefault = name == (prefix + llvm::Twine(variables.size())).str();
    variables.push_back({Interval{}, isDefault ? "" : name.str()});
    position += name.size();
  } while (consume(","));
  return expect(close);
}

bool Parser::parseInteger(int64_t &value) {
  skipSpace();
  llvm::StringRef digits = text.substr(position).take_while([](char c) { return llvm::isDigit(c); });
  if (digits.empty())
    return fail("expected an integer");
  if (digits.getAsInteger(10, value))
    return fail("integer out of range");
  position += digits.size();
  return true;
}

bool Parser::parseInterval(Interval &interval) {
  auto parseSigned = [&](int64_t &value) {
    bool negative = consume("-");
    if (!parseInteger(value))
      return false;
    if (negative)
      value = -value;
    return true;
  };
  return expect("[") && parseSigned(interval.lower) && expect(",") && parseSigned(interval.upper) && expect("]");
}

bool Parser::countOperation() { return ++operations <= operationLimit || fail("expression is too large"); }

bool Parser::apply(mlir::AffineExprKind kind, Parsed &left, const Parsed &right) {
  using Kind = mlir::AffineExprKind;
  if (!countOperation())
    return false;
  auto value = llvm::dyn_cast<mlir::AffineConstantExpr>(right.expression);
  int64_t magnitude = left.magnitude;
  bool tooLarge = false;
  if (kind == Kind::Add) {
    tooLarge = llvm::AddOverflow(left.magnitude, right.magnitude, magnitude);
  } else if (kind == Kind::Mul) {
    if (!value && !llvm::isa<mlir::AffineConstantExpr>(left.expression))
      return fail("a product of two variables is not affine");
    tooLarge = llvm::MulOverflow(left.magnitude, right.magnitude, magnitude);
  } else {
    if (!value || value.getValue() <= 0)
      return fail("a divisor must be a positive constant");
    // Folding (x / a) / b multiplies the divisors; ceildiv may be turned into floordiv with an added divisor.
    tooLarge = llvm::MulOverflow(left.magnitude, right.magnitude, magnitude);
  }
  if (tooLarge || magnitude > magnitudeLimit)
    return fail("numbers are too large");
  left = {mlir::getAffineBinaryOpExpr(kind, left.expression, right.expression), magnitude};
  return true;
}

bool Parser::parseSum(Parsed &result) {
  if (!parseProduct(result))
    return false;
  while (true) {
    // `->` is not a minus, though it cannot follow a sum in a well-formed text.
    bool plus = consume("+");
    if (!plus && !consume("-"))
      return true;
    Parsed right;
    if (!parseProduct(right))
      return false;
    if (!plus)
      right.expression = -right.expression;
    if (!apply(mlir::AffineExprKind::Add, result, right))
      return false;
  }
}

bool Parser::parseProduct(Parsed &result) {
  using Kind = mlir::AffineExprKind;
  if (!parseFactor(result))
    return false;
  while (true) {
    Kind kind;
    if (consume("*"))
      kind = Kind::Mul;
    else if (consume("/") || consumeWord("floordiv"))
      kind = Kind::FloorDiv;
    else if (consumeWord("ceildiv"))
      kind = Kind::CeilDiv;
    else if (consumeWord("mod"))
      kind = Kind::Mod;
    else
      return true;
    Parsed right;
    if (!parseFactor(right) || !apply(kind, result, right))
      return false;
  }
}

bool Parser::parseFactor(Parsed &result) {
  if (consume("-")) {
    // Binds like a product with -1: -d0 / 4 is (-d0) / 4.
    if (++depth > depthLimit)
      return fail("expression is nested too deeply");
    if (!parseFactor(result) || !countOperation())
      return false;
    --depth;
    result.expression = -result.expression;
    return true;
  }
  if (consume("(")) {
    if (++depth > depthLimit)
      return fail("expression is nested too deeply");
    if (!parseSum(result) || !expect(")"))
      return false;
    --depth;
    return true;
  }
  llvm::StringRef name = peekWord();
  if (name.empty()) {
    int64_t value;
    if (!parseInteger(value))
      return false;
    if (value > magnitudeLimit)
      return fail("numbers are too large");
    result = {mlir::getAffineConstantExpr(value, context), value};
    return true;
  }
  auto known = names.find(name);
  if (known == names.end()) {
    if (name == "min" || name == "max")
      return fail("'" + name + "' is not supported in an indexing map");
    return fail("unknown variable '" + name + "'");
  }
  position += name.size();
  result = {known->second, 1};
  return true;
}

bool Parser::parseResults(llvm::SmallVectorImpl<AffineExpr> &results) {
  if (!expect("->") || !expect("("))
    return false;
  if (consume(")"))
    return true;
  do {
    Parsed result;
    operations = 0;
    if (results.size() >= variableLimit)
      return fail("too many results");
    if (!parseSum(result))
      return false;
    results.push_back(result.expression);
  } while (consume(","));
  return expect(")");
}

IndexingVariable &Parser::variableOf(AffineExpr variable) {
  if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(variable))
    return dims[dim.getPosition()];
  unsigned symbol = llvm::cast<mlir::AffineSymbolExpr>(variable).getPosition();
  return symbol < ranges.size() ? ranges[symbol] : runtimes[symbol - ranges.size()];
}

/// `name in [l, u]` for each variable once, in any order, mixed with constraints. The first entry for a variable is its
/// bounds; a further one is a constraint on it.
bool Parser::parseDomain() {
  llvm::DenseMap<AffineExpr, bool> bounded;
  if (names.empty() && !consume(","))
    return true;
  if (!names.empty() && !expect(","))
    return false;
  if (!expect("domain") || !expect(":"))
    return false;
  do {
    Parsed entry;
    Interval interval;
    operations = 0;
    if (constraints.size() >= variableLimit)
      return fail("too many constraints");
    if (!parseSum(entry))
      return false;
    if (!consumeWord("in"))
      return fail("expected 'in'");
    if (!parseInterval(interval))
      return false;
    bool isVariable = llvm::isa<mlir::AffineDimExpr, mlir::AffineSymbolExpr>(entry.expression);
    if (isVariable && bounded.try_emplace(entry.expression, true).second)
      variableOf(entry.expression).bounds = interval;
    else
      constraints.push_back({entry.expression, interval});
  } while (consume(","));
  if (bounded.size() != names.size())
    return fail("a variable has no bounds");
  return true;
}

std::optional<IndexingMap> Parser::parse() {
  error.clear();
  constexpr size_t lengthLimit = size_t(1) << 20;
  if (text.size() > lengthLimit) {
    fail("text is too long");
    return std::nullopt;
  }
  llvm::SmallVector<AffineExpr> results;
  bool ok = expect("(") && parseVariables(")", "d", dims, /*areDims=*/true);
  if (ok && consume("["))
    ok = parseVariables("]", "s", ranges, /*areDims=*/false);
  if (ok && consume("{"))
    ok = parseVariables("}", "rt", runtimes, /*areDims=*/false);
  ok = ok && parseResults(results) && parseDomain();
  if (ok) {
    skipSpace();
    if (position != text.size())
      ok = fail("unexpected text after the map");
  }
  if (!ok)
    return std::nullopt;
  auto map = mlir::AffineMap::get(dims.size(), ranges.size() + runtimes.size(), results, context);
  return IndexingMap(map, dims, ranges, runtimes, constraints);
}

std::optional<IndexingMap> hloc::parseIndexingMap(llvm::StringRef text, mlir::MLIRContext *context,
                                                  std::string &error) {
  return Parser(text, context, error).parse();
}
