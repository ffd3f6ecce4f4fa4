// Recursive descent straight over the characters: PTX has few token kinds and every construct starts with a distinct
// one.
#include "hloc/emulator/Ptx.h"

#include "hloc/support/Diagnostics.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace hloc::ptx {
namespace {

bool isNameStart(char c) { return isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }
bool isNameChar(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

class Parser {
public:
  explicit Parser(DiagnosticEngine &diagnostics) : diagnostics(diagnostics), text(diagnostics.file()->text()) {}

  std::optional<Module> run() {
    while (!failed && !atEnd())
      topLevel();
    if (failed)
      return std::nullopt;
    if (module.version.empty()) {
      diagnostics.report(DiagnosticKind::EmptyInput, SourceRange(), "no `.version` directive: this is not PTX");
      return std::nullopt;
    }
    return std::move(module);
  }

private:
  void error(DiagnosticKind kind, std::string message) {
    if (!failed)
      diagnostics.report(kind, {uint32_t(at), uint32_t(std::min(at + 1, text.size()))}, std::move(message));
    failed = true;
    at = text.size();
  }
  void skipSpace() {
    while (at < text.size()) {
      if (text[at] == '\n')
        ++line;
      if (isspace(static_cast<unsigned char>(text[at]))) {
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
  bool atEnd() {
    skipSpace();
    return at >= text.size();
  }
  char peek() { return atEnd() ? '\0' : text[at]; }
  bool take(char c) {
    if (peek() != c)
      return false;
    ++at;
    return true;
  }
  void expect(char c) {
    if (!take(c))
      error(DiagnosticKind::ExpectedToken, std::string("expected `") + c + "`");
  }
  std::string word() {
    if (!isNameStart(peek())) {
      error(DiagnosticKind::ExpectedToken, "expected a name");
      return {};
    }
    size_t begin = at++;
    while (at < text.size() && isNameChar(text[at]))
      ++at;
    return text.slice(begin, at).str();
  }
  /// A name with the dots of `%tid.x`.
  std::string name() {
    std::string result = word();
    if (!result.empty() && result[0] == '%' && at < text.size() && text[at] == '.') {
      ++at;
      result += "." + word();
    }
    return result;
  }
  /// The word after a dot; `param::entry` and `L1::no_allocate` count as one.
  std::string dotted() {
    size_t begin = at;
    while (at < text.size() && (isNameChar(text[at]) || text.substr(at).starts_with("::")))
      at += text[at] == ':' ? 2 : 1;
    if (begin == at)
      error(DiagnosticKind::ExpectedToken, "expected a name after `.`");
    return text.slice(begin, at).str();
  }
  std::string restOfLine() {
    size_t begin = at;
    at = std::min(text.find('\n', at), text.size());
    return text.slice(begin, at).split("//").first.trim().str();
  }

  Operand number() {
    Operand result;
    result.kind = Operand::Kind::Integer;
    bool negative = take('-');
    peek();
    size_t begin = at;
    while (at < text.size() && isalnum(static_cast<unsigned char>(text[at])))
      ++at;
    StringRef digits = text.slice(begin, at);
    bool bad;
    if (digits.starts_with_insensitive("0f") && digits.size() == 10) {
      result.kind = Operand::Kind::Float32;
      bad = negative || digits.substr(2).getAsInteger(16, result.value);
    } else if (digits.starts_with_insensitive("0d") && digits.size() == 18) {
      result.kind = Operand::Kind::Float64;
      bad = negative || digits.substr(2).getAsInteger(16, result.value);
    } else {
      digits.consume_back("U");
      bad = digits.getAsInteger(0, result.value);
      if (negative)
        result.value = 0 - result.value;
    }
    if (bad)
      error(DiagnosticKind::BadNumber, "`" + digits.str() + "` is not a PTX number");
    return result;
  }

  Operand operand(unsigned depth = 0) {
    Operand result;
    if (depth > 4) {
      error(DiagnosticKind::TooDeep, "operand is nested too deeply");
      return result;
    }
    char c = peek();
    if (take('{')) {
      result.kind = Operand::Kind::Vector;
      do
        result.elements.push_back(operand(depth + 1));
      while (take(','));
      expect('}');
      return result;
    }
    if (take('[')) {
      result.kind = Operand::Kind::Address;
      if (isNameStart(peek()))
        result.name = name();
      while (!failed && peek() != ']') {
        bool plus = take('+');
        Operand offset = number();
        if (offset.kind != Operand::Kind::Integer || (!plus && !result.name.empty() && int64_t(offset.value) >= 0))
          error(DiagnosticKind::UnsupportedFeature, "address form is not known");
        result.value += offset.value;
      }
      expect(']');
      return result;
    }
    if (take('!')) {
      result = operand(depth + 1);
      result.negated = true;
      return result;
    }
    if (isdigit(static_cast<unsigned char>(c)) || c == '-')
      return number();
    result.name = name();
    result.kind = result.name == "_" ? Operand::Kind::Sink : Operand::Kind::Name;
    if (take('|')) {
      Operand pair;
      pair.kind = Operand::Kind::Pair;
      pair.elements.push_back(result);
      pair.elements.push_back(operand(depth + 1));
      return pair;
    }
    return result;
  }

  Variable variable(std::string linkage, std::string space) {
    Variable v;
    v.linkage = std::move(linkage);
    v.space = std::move(space);
    v.where = {uint32_t(at), uint32_t(at)};
    while (!failed && peek() == '.') {
      ++at;
      std::string part = dotted();
      if (part == "align")
        v.align = number().value;
      else if (part == "ptr")
        v.pointer = true;
      else if (v.pointer)
        v.pointerSpace = part;
      else if (v.type.empty())
        v.type = part;
      else
        error(DiagnosticKind::UnsupportedFeature, "variables with `." + part + "` are not supported");
    }
    v.name = name();
    if (take('<')) {
      v.range = number().value;
      expect('>');
    }
    if (take('[')) {
      v.length = peek() == ']' ? 0 : number().value;
      expect(']');
    }
    if (take('=')) {
      if (take('{')) {
        do
          v.initial.push_back(number().value);
        while (take(','));
        expect('}');
      } else {
        v.initial.push_back(number().value);
      }
    }
    v.where.end = uint32_t(at);
    if (v.range.value_or(0) > (1u << 20) || v.length.value_or(0) > (1ull << 32) || v.align > 4096)
      error(DiagnosticKind::InputTooLarge, "variable `" + v.name + "` is too large");
    return v;
  }

  void skipBraces() {
    while (!atEnd() && peek() != '{')
      ++at;
    for (int depth = 0; !atEnd();) {
      char c = text[at++];
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (depth == 0)
        return;
    }
    error(DiagnosticKind::UnterminatedToken, "block is not closed");
  }

  void topLevel() {
    if (!take('.'))
      return error(DiagnosticKind::ExpectedToken, "expected a directive");
    std::string directive = dotted();
    if (directive == "version")
      module.version = (skipSpace(), restOfLine());
    else if (directive == "target")
      module.target = (skipSpace(), restOfLine());
    else if (directive == "address_size")
      module.addressSize = (skipSpace(), restOfLine());
    else if (directive == "file")
      restOfLine();
    else if (directive == "section")
      skipBraces();
    else
      declaration(directive);
  }

  void declaration(std::string directive) {
    std::string linkage;
    if (directive == "visible" || directive == "extern" || directive == "weak") {
      linkage = directive;
      expect('.');
      directive = dotted();
    }
    if (directive == "entry")
      return function(std::move(linkage));
    if (directive != "global" && directive != "shared" && directive != "const")
      return error(DiagnosticKind::UnsupportedFeature, "directive `." + directive + "` is not supported");
    module.variables.push_back(variable(std::move(linkage), std::move(directive)));
    expect(';');
  }

  void function(std::string linkage) {
    Function f;
    f.linkage = std::move(linkage);
    f.name = name();
    if (take('(') && !take(')')) {
      do {
        expect('.');
        f.parameters.push_back(variable("", dotted()));
      } while (take(','));
      expect(')');
    }
    while (!failed && peek() == '.')
      f.directives.push_back(restOfLine());
    if (module.find(f.name))
      return error(DiagnosticKind::Redefinition, "`" + f.name + "` is defined twice");
    expect('{');
    statements(f, 1);
    module.functions.push_back(std::move(f));
  }

  void statements(Function &f, unsigned depth) {
    while (!failed && depth) {
      if (atEnd())
        return error(DiagnosticKind::UnterminatedToken, "body of `" + f.name + "` is not closed");
      if (take('}')) {
        --depth;
      } else if (take('{')) {
        ++depth;
      } else if (take('.')) {
        bodyDirective(f);
      } else {
        statement(f);
      }
    }
  }

  void bodyDirective(Function &f) {
    std::string directive = dotted();
    if (directive == "loc" || directive == "pragma") {
      restOfLine();
      return;
    }
    if (directive != "reg" && directive != "shared" && directive != "local")
      return error(DiagnosticKind::UnsupportedFeature, "directive `." + directive + "` is not supported");
    Statement s;
    s.kind = Statement::Kind::Variable;
    s.variable = variable("", directive);
    f.body.push_back(s);
    while (take(',')) {
      Variable next = variable("", directive);
      next.type = s.variable.type;
      s.variable = next;
      f.body.push_back(s);
    }
    expect(';');
  }

  void statement(Function &f) {
    Statement s;
    Instruction &i = s.instruction;
    i.line = line;
    i.range.begin = uint32_t(at);
    if (take('@')) {
      i.guardNegated = take('!');
      i.guard = name();
      skipSpace();
    }
    i.parts.push_back(word());
    if (i.guard.empty() && peek() == ':') {
      ++at;
      s.label = i.parts[0];
      f.body.push_back(std::move(s));
      return;
    }
    s.kind = Statement::Kind::Instruction;
    while (at < text.size() && text[at] == '.') {
      ++at;
      i.parts.push_back(dotted());
    }
    if (i.parts[0] == "call")
      return error(DiagnosticKind::UnsupportedFeature, "instruction `call` is not supported");
    if (peek() != ';')
      do
        i.operands.push_back(operand());
      while (!failed && take(','));
    i.range.end = uint32_t(at);
    expect(';');
    f.body.push_back(std::move(s));
  }

  DiagnosticEngine &diagnostics;
  StringRef text;
  size_t at = 0;
  uint32_t line = 1;
  bool failed = false;
  Module module;
};

} // namespace

std::string Instruction::opcode() const {
  std::string result;
  for (const std::string &part : parts)
    result += (result.empty() ? "" : ".") + part;
  return result;
}

const Function *Module::find(StringRef name) const {
  for (const Function &f : functions)
    if (f.name == name)
      return &f;
  return nullptr;
}

std::optional<Module> parse(DiagnosticEngine &diagnostics) { return Parser(diagnostics).run(); }

} // namespace hloc::ptx
