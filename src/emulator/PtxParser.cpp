#include "PtxParser.h"

using namespace llvm;

namespace hloc::ptx {

std::optional<Module> Parser::run() {
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

void Parser::skipBraces() {
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

void Parser::topLevel() {
  if (take(';'))
    return;
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
    fileName();
  else if (directive == "section")
    skipBraces();
  else if (directive == "alias")
    alias();
  else if (directive == "pragma")
    restOfLine();
  else
    declaration(directive);
}

/// .file 1 "gelu.hlo", and sometimes a time stamp and a size
void Parser::fileName() {
  constexpr uint64_t maxFiles = 1 << 16;
  uint64_t index = literalInteger();
  if (index >= maxFiles)
    return error(DiagnosticKind::InputTooLarge, "file number is too large");
  peek();
  std::string path = quoted();
  restOfLine();
  if (failed)
    return;
  if (module.files.size() <= index)
    module.files.resize(index + 1);
  module.files[index] = std::move(path);
}

void Parser::alias() {
  std::string first = name();
  expect(',');
  module.aliases.emplace_back(std::move(first), name());
  expect(';');
}

void Parser::declaration(std::string directive) {
  std::string linkage;
  if (directive == "visible" || directive == "extern" || directive == "weak" || directive == "common") {
    linkage = directive;
    expect('.');
    directive = dotted();
  }
  if (directive == "entry" || directive == "func")
    return function(std::move(linkage), directive == "entry");
  if (directive != "global" && directive != "shared" && directive != "const")
    return error(DiagnosticKind::UnsupportedFeature, "directive `." + directive + "` is not supported");
  module.variables.push_back(variable(std::move(linkage), std::move(directive)));
  expect(';');
}

std::vector<Variable> Parser::parameters() {
  std::vector<Variable> result;
  if (!take('(') || take(')'))
    return result;
  do {
    expect('.');
    result.push_back(variable("", dotted()));
  } while (!failed && take(','));
  expect(')');
  return result;
}

void Parser::function(std::string linkage, bool isEntry) {
  Function f;
  f.linkage = std::move(linkage);
  f.isEntry = isEntry;
  if (!isEntry) {
    f.results = parameters();
    if (take('.') && dotted() != "noreturn") // .func .noreturn is not written so by anyone, but allowed
      return error(DiagnosticKind::ExpectedToken, "expected the name of a function");
  }
  peek();
  f.where.begin = uint32_t(at);
  f.name = name();
  f.where.end = uint32_t(at);
  f.parameters = parameters();
  while (!failed && peek() == '.')
    f.directives.push_back(restOfDirective());
  f.hasBody = !take(';');
  if (f.hasBody) {
    if (const Function *other = module.find(f.name); other && other->hasBody)
      return error(DiagnosticKind::Redefinition, "`" + f.name + "` is defined twice");
    expect('{');
    body(f);
  }
  module.functions.push_back(std::move(f));
}

void Parser::body(Function &f) {
  constexpr unsigned maxScopes = 1000;
  Statement brace;
  for (unsigned depth = 1; !failed && depth;) {
    if (atEnd())
      return error(DiagnosticKind::UnterminatedToken, "body of `" + f.name + "` is not closed");
    if (take('}')) {
      brace.kind = Statement::Kind::Close;
      if (--depth)
        f.body.push_back(brace);
    } else if (take('{')) {
      brace.kind = Statement::Kind::Open;
      f.body.push_back(brace);
      if (++depth > maxScopes)
        return error(DiagnosticKind::TooDeep, "scopes are nested too deeply");
    } else if (take('.')) {
      bodyDirective(f);
    } else if (!take(';')) {
      statement(f);
    }
  }
}

void Parser::location(Function &f) {
  Statement s;
  s.kind = Statement::Kind::Location;
  for (uint32_t &part : s.location) {
    peek();
    part = uint32_t(literalInteger());
  }
  s.text = restOfLine();
  f.body.push_back(std::move(s));
}

void Parser::bodyDirective(Function &f) {
  std::string directive = dotted();
  if (directive == "loc")
    return location(f);
  if (directive == "pragma") {
    Statement s;
    s.kind = Statement::Kind::Directive;
    s.text = ".pragma " + (skipSpace(), restOfLine());
    f.body.push_back(std::move(s));
    return;
  }
  std::string linkage;
  if (directive == "extern" && take('.')) {
    linkage = directive;
    directive = dotted();
  }
  for (const char *space : {"reg", "shared", "local", "param", "global", "const"})
    if (directive == space)
      return variables(f, std::move(linkage), directive);
  error(DiagnosticKind::UnsupportedFeature, "directive `." + directive + "` is not supported");
}

/// `.reg .b32 %r<8>, %t;` declares one variable a comma.
void Parser::variables(Function &f, std::string linkage, const std::string &space) {
  Statement s;
  s.kind = Statement::Kind::Variable;
  s.variable = variable(std::move(linkage), space);
  f.body.push_back(s);
  while (!failed && take(',')) {
    Variable next = variable(s.variable.linkage, space);
    next.type = s.variable.type;
    next.align = s.variable.align;
    s.variable = next;
    f.body.push_back(s);
  }
  expect(';');
}

void Parser::labelled(Function &f, std::string label) {
  Statement s;
  s.label = std::move(label);
  if (peek() == '.') {
    size_t before = at++;
    if (text.substr(at).starts_with("branchtargets")) {
      dotted();
      s.kind = Statement::Kind::Targets;
      do
        s.names.push_back(name());
      while (!failed && take(','));
      expect(';');
    } else if (text.substr(at).starts_with("callprototype") || text.substr(at).starts_with("calltargets")) {
      return error(DiagnosticKind::UnsupportedFeature, "indirect calls (`." + dotted() + "`) are not supported");
    } else {
      at = before;
    }
  }
  f.body.push_back(std::move(s));
}

void Parser::statement(Function &f) {
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
  if (i.guard.empty() && take(':'))
    return labelled(f, std::move(i.parts[0]));
  s.kind = Statement::Kind::Instruction;
  while (at < text.size() && text[at] == '.') {
    ++at;
    i.parts.push_back(dotted());
  }
  opcode = i.opcode();
  if (peek() != ';')
    do
      i.operands.push_back(operand());
    while (!failed && take(','));
  i.range.end = uint32_t(at);
  expect(';');
  f.body.push_back(std::move(s));
}

std::string Instruction::opcode() const {
  std::string result;
  for (const std::string &part : parts)
    result += (result.empty() ? "" : ".") + part;
  return result;
}

const Function *Module::find(StringRef name) const {
  const Function *found = nullptr;
  for (const Function &f : functions)
    if (f.name == name && (!found || f.hasBody))
      found = &f;
  return found;
}

std::optional<Module> parse(DiagnosticEngine &diagnostics) { return Parser(diagnostics).run(); }

} // namespace hloc::ptx
