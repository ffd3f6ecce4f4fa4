#include "Scanner.h"

#include "hloc/hlo/Opcode.h"

#include "llvm/ADT/StringSwitch.h"

#include <algorithm>

namespace hloc::lsp {

namespace {

/// Deeper operands and computations are passed over: each level is some frames of the stack.
constexpr unsigned maxDepth = 300;

bool isHeaderTable(llvm::StringRef word) {
  return word == "FileNames" || word == "FunctionNames" || word == "FileLocations" || word == "StackFrames";
}

} // namespace

Scanner::Scanner(llvm::StringRef text) : lexer(text, unheard, OpenStrings::ToEndOfLine) { made.text = text; }

//===--- tokens -------------------------------------------------------------------------------------------------===//

bool Scanner::isFirstOnLine() const {
  return lastEnd == 0 || made.text.slice(lastEnd, token().begin).find_first_of("\n\r") != llvm::StringRef::npos;
}

void Scanner::take(Role role, unsigned flags) {
  const Token &now = token();
  if (isFirstOnLine())
    flags |= ScannedToken::FirstOnLine;
  if (role == Role::Other && now.kind == TokenKind::String)
    role = Role::String;
  else if (role == Role::Other && (now.kind == TokenKind::Integer || now.kind == TokenKind::Decimal))
    role = Role::Number;
  made.tokens.push_back({now.begin, now.end, now.kind, role, uint8_t(flags)});
  lastEnd = now.end;
  lexer.advance();
}

void Scanner::takeValueToken(unsigned flags) {
  take(token().kind == TokenKind::Identifier ? Role::Word : Role::Other, flags);
}

SourceRange Scanner::nameOfToken() const {
  const auto begin = uint32_t(token().text.data() - made.text.data());
  return {begin, begin + uint32_t(token().text.size())};
}

/// `ENTRY`, or a name before a signature or a body.
bool Scanner::startsComputation() {
  if (!isWord())
    return false;
  if (token().kind == TokenKind::Identifier && token().text == "ENTRY")
    return true;
  const char next = lexer.nextCharacter();
  return next == '{' || next == '(';
}

/// `ROOT`, `name =`, `name=` where no attribute can be.
bool Scanner::startsInstruction() {
  if (token().kind == TokenKind::Attribute)
    return made.tokens.empty() || made.text[made.tokens.back().begin] != ',';
  return isWord() &&
         ((token().kind == TokenKind::Identifier && token().text == "ROOT") || lexer.nextCharacter() == '=');
}

bool Scanner::endsInstruction() {
  if (atEnd())
    return true;
  if (!isFirstOnLine())
    return false;
  const uint32_t begin = token().begin;
  const bool atMargin = begin == 0 || made.text[begin - 1] == '\n';
  if (token().kind != TokenKind::Attribute && startsInstruction())
    return true;
  if (!atMargin)
    return false;
  if (token().is('}'))
    return true;
  if (!startsComputation())
    return false;
  const bool isPlain =
      lexer.nextCharacter() == '{' || token().text == "ENTRY"; // else `name (`, which may be an operand
  return isPlain || made.text.substr(begin).take_until([](char c) { return c == '\n'; }).rtrim().ends_with("{");
}

void Scanner::takeBalanced(unsigned flags) {
  // JSON over several lines may have its braces at the margin.
  const char second = lexer.nextCharacter();
  const bool isBlock =
      token().is('{') && second != '\0' && made.text.substr(token().end).ltrim(" \t\r").starts_with("\n");
  unsigned open = 0;
  do {
    const bool opens = token().is('{') || token().is('[') || token().is('(');
    const bool closes = token().is('}') || token().is(']') || token().is(')');
    open += opens;
    open -= closes;
    const bool isType =
        (flags & ScannedToken::Shape) && token().kind == TokenKind::Identifier && lexer.nextCharacter() == '[';
    if (isType)
      take(Role::Type, flags);
    else
      takeValueToken(flags);
    if (open == 0)
      return;
  } while (isBlock ? !atEnd() && !(startsInstruction() && isFirstOnLine() && token().kind != TokenKind::Attribute)
                   : !endsInstruction());
}

//===--- what a text is made of ---------------------------------------------------------------------------------===//

TextScan Scanner::scan() {
  made.tokens.reserve(made.text.size() / 6);
  while (!atEnd()) {
    if (token().kind == TokenKind::Identifier && token().text == "HloModule")
      takeHeader();
    else if (startsInstruction() && token().text != "ENTRY") {
      const uint32_t alone = addComputation(/*isInner=*/true); // the text is one instruction
      takeInstruction(alone);
      made.computations[alone].endInstruction = uint32_t(made.instructions.size());
      made.computations[alone].range.end = lastEnd;
    } else if (startsComputation())
      takeComputation();
    else
      take();
  }
  resolve();
  return std::move(made);
}

void Scanner::takeHeader() {
  take(Role::Keyword, ScannedToken::StartsStatement);
  if (isWord())
    take(Role::ModuleName);
  unsigned inTable = 0; // rows, which the parser keeps as they are
  while (!atEnd() && !startsComputation() && !(isFirstOnLine() && startsInstruction())) {
    if (token().kind == TokenKind::Attribute) {
      take(Role::AttributeKey);
      takeValue(none, std::nullopt);
    } else if (token().is('{') || token().is('[') || token().is('(')) {
      takeBalanced(ScannedToken::Verbatim);
    } else if (token().kind == TokenKind::Identifier && isHeaderTable(token().text)) {
      inTable = ScannedToken::Verbatim;
      take(Role::Keyword, ScannedToken::StartsStatement | inTable);
    } else {
      take(Role::Other, inTable);
    }
  }
}

uint32_t Scanner::addComputation(bool isInner) {
  NamedComputation computation;
  computation.isInner = isInner;
  computation.range = {token().begin, token().end};
  computation.firstInstruction = computation.endInstruction = uint32_t(made.instructions.size());
  made.computations.push_back(computation);
  return uint32_t(made.computations.size() - 1);
}

void Scanner::takeComputation() {
  const uint32_t index = addComputation(/*isInner=*/false);
  unsigned starts = ScannedToken::StartsStatement;
  if (token().kind == TokenKind::Identifier && token().text == "ENTRY") {
    made.computations[index].isEntry = true;
    take(Role::Keyword, starts);
    starts = 0;
  }
  if (isWord()) {
    made.computations[index].name = nameOfToken();
    use(/*ofComputation=*/true, /*isDefinition=*/true, none, index);
    take(Role::ComputationName, starts);
  }
  if (token().is('('))
    takeSignature();
  if (token().is('{'))
    takeBody(index);
  made.computations[index].endInstruction = uint32_t(made.instructions.size());
  made.computations[index].range.end = lastEnd;
  if (token().is(',') && lexer.nextCharacter() == 'e') { // , execution_thread="..."
    take();
    if (token().kind == TokenKind::Attribute) {
      take(Role::AttributeKey);
      takeValue(none, std::nullopt);
    }
  }
}

/// (x: f32[2], y: s32[]) -> f32[2]
void Scanner::takeSignature() {
  const auto index = uint32_t(made.computations.size() - 1);
  unsigned open = 0;
  do {
    open += token().is('(');
    open -= token().is(')');
    if (isWord() && lexer.nextCharacter() == ':' && open == 1) {
      use(/*ofComputation=*/false, /*isDefinition=*/false, index);
      take(Role::SignatureName);
    } else if (startsShape() && !token().is('(')) {
      takeShape();
    } else {
      take();
    }
  } while (open && !endsInstruction());
  if (token().kind == TokenKind::Arrow) {
    take();
    if (startsShape())
      takeShape();
  }
}

void Scanner::takeBody(uint32_t index) {
  made.computations[index].open = token().begin;
  take(Role::Other, ScannedToken::Opens);
  while (!atEnd()) {
    if (token().is('}'))
      return take(Role::Other, ScannedToken::Closes);
    if (startsInstruction())
      takeInstruction(index);
    else if (isFirstOnLine() && endsInstruction()) // the head of another: this one is not closed
      return;
    else
      take();
  }
}

/// {x = ... ROOT y = ...} as the value of an attribute
void Scanner::takeInner() {
  if (depth >= maxDepth)
    return takeBalanced(ScannedToken::Verbatim);
  ++depth;
  const uint32_t index = addComputation(/*isInner=*/true);
  takeBody(index);
  made.computations[index].endInstruction = uint32_t(made.instructions.size());
  made.computations[index].range.end = lastEnd;
  --depth;
}

void Scanner::takeInstruction(uint32_t computation) {
  const auto index = uint32_t(made.instructions.size());
  NamedInstruction instruction{};
  instruction.computation = computation;
  instruction.range = token().range();
  unsigned starts = ScannedToken::StartsStatement;
  if (token().kind == TokenKind::Identifier && token().text == "ROOT") {
    instruction.isRoot = true;
    take(Role::Keyword, starts);
    starts = 0;
  }
  const bool isJoined = token().kind == TokenKind::Attribute; // `x=f32[]`
  if (!isJoined && !(isWord() && lexer.nextCharacter() == '='))
    return; // `ROOT` alone, which is being written
  instruction.name = nameOfToken();
  instruction.nameToken = token().begin;
  made.instructions.push_back(instruction);
  use(/*ofComputation=*/false, /*isDefinition=*/true, computation, index);
  take(Role::InstructionName, starts);
  if (!isJoined)
    take(); // =
  takeRhs(computation, index);
  made.instructions[index].range.end = lastEnd;
}

/// [shape] opcode(operands), attributes. `instruction`: none for one that is an operand.
void Scanner::takeRhs(uint32_t computation, uint32_t instruction) {
  if (endsInstruction())
    return;
  SourceRange shape, opcode;
  if (startsShape())
    shape = takeShape();
  llvm::StringRef opcodeText;
  if (token().kind == TokenKind::Identifier && !endsInstruction() && !startsInstruction()) {
    opcode = token().range();
    opcodeText = token().text;
    take(Role::Opcode);
  }
  if (instruction != none) {
    made.instructions[instruction].shape = shape;
    made.instructions[instruction].opcode = opcode;
  }
  if (token().is('('))
    takeOperands(computation, opcodeText);
  if (instruction != none)
    takeAttributes(computation, opcodeText);
}

/// `(` begins one where it can; `f32[`; `b(`
bool Scanner::startsShape() {
  if (token().is('('))
    return true;
  const char next = lexer.nextCharacter();
  return token().kind == TokenKind::Identifier && (next == '[' || (next == '(' && token().text == "b"));
}

SourceRange Scanner::takeShape() {
  SourceRange range = token().range();
  if (token().is('(')) {
    takeBalanced(ScannedToken::Shape);
    range.end = lastEnd;
    return range;
  }
  take(Role::Type, ScannedToken::Shape);
  if (token().is('[') || token().is('('))
    takeBalanced(ScannedToken::Shape);
  const char next = lexer.nextCharacter(); // `{` begins a layout only before a number or a colon
  if (token().is('{') && ((next >= '0' && next <= '9') || next == ':') && !endsInstruction())
    takeBalanced(ScannedToken::Shape);
  range.end = lastEnd;
  return range;
}

void Scanner::takeOperands(uint32_t computation, llvm::StringRef opcode) {
  if (opcode == "constant" || opcode == "parameter")
    return takeBalanced(ScannedToken::Verbatim);
  if (depth >= maxDepth)
    return takeBalanced(ScannedToken::Verbatim);
  ++depth;
  take(); // (
  while (!endsInstruction() && !token().is('}')) {
    if (token().is(')')) {
      take();
      break;
    }
    if (token().kind == TokenKind::Identifier && lexer.nextCharacter() == '(' && token().text != "b") {
      takeRhs(computation, none);
    } else if (startsShape()) {
      takeShape();
      if (token().kind == TokenKind::Identifier && lexer.nextCharacter() == '(' && !endsInstruction())
        takeRhs(computation, none);
    } else if (isWord()) {
      use(/*ofComputation=*/false, /*isDefinition=*/false, computation);
      take(Role::OperandName);
    } else if (token().kind == TokenKind::Attribute) { // an operand that is not closed: `add(a, dimensions=...`
      break;
    } else {
      take();
    }
  }
  --depth;
}

void Scanner::takeAttributes(uint32_t computation, llvm::StringRef opcode) {
  while (token().is(',') && !endsInstruction()) {
    take();
    if (endsInstruction())
      return;
    if (token().kind == TokenKind::Attribute) {
      const std::optional<AttributeGrammar> grammar = grammarOf(token().text, opcode);
      take(Role::AttributeKey);
      takeValue(computation, grammar);
    } else if (isWord()) {
      if (startsInstruction())
        return;
      take(Role::Other);
    }
  }
}

void Scanner::takeValue(uint32_t computation, std::optional<AttributeGrammar> grammar) {
  if (endsInstruction())
    return;
  if (grammar == AttributeGrammar::Computation)
    return takeComputationUse(computation);
  if (grammar == AttributeGrammar::Computations || grammar == AttributeGrammar::Instructions)
    return takeNames(computation, grammar == AttributeGrammar::Computations);
  bool first = true;
  while (!endsInstruction() && !token().is(',') && !token().is('}') && !token().is(')')) {
    if (token().is('{') || token().is('[') || token().is('(')) {
      if (computation == none && !first && token().is('{'))
        return;
      takeBalanced(ScannedToken::Verbatim);
    } else {
      if (!first && (startsInstruction() || token().kind == TokenKind::Attribute ||
                     (computation == none && (startsComputation() || isHeaderTable(token().text)))))
        return;
      takeValueToken(ScannedToken::Verbatim);
    }
    first = false;
  }
}

void Scanner::takeComputationUse(uint32_t computation) {
  if (token().is('{'))
    return takeInner();
  if (!isWord() || startsInstruction())
    return;
  use(/*ofComputation=*/true, /*isDefinition=*/false, computation);
  take(Role::ComputationUse);
}

/// {%a, %b}
void Scanner::takeNames(uint32_t computation, bool ofComputations) {
  if (!token().is('{'))
    return ofComputations ? takeComputationUse(computation) : void();
  take();
  while (!endsInstruction() && !startsInstruction()) {
    if (token().is('}'))
      return take();
    if (ofComputations && token().is('{')) {
      takeInner();
    } else if (isWord()) {
      use(ofComputations, /*isDefinition=*/false, computation);
      take(ofComputations ? Role::ComputationUse : Role::OperandName);
    } else {
      take();
    }
  }
}

//===--- names --------------------------------------------------------------------------------------------------===//

void Scanner::use(bool ofComputation, bool isDefinition, uint32_t computation, uint32_t target) {
  made.uses.push_back({nameOfToken(), ofComputation, isDefinition, computation, target});
}

/// Of two definitions of a name the first counts, as for the parser.
void Scanner::resolve() {
  for (auto [i, computation] : llvm::enumerate(made.computations))
    if (computation.name.isValid())
      made.computationOfName.try_emplace(made.slice(computation.name), uint32_t(i));
  made.instructionOfName.reserve(unsigned(made.instructions.size()));
  for (auto [i, instruction] : llvm::enumerate(made.instructions))
    made.instructionOfName.try_emplace({instruction.computation, made.slice(instruction.name)}, uint32_t(i));
  for (NameUse &use : made.uses) {
    if (use.isDefinition)
      continue;
    const llvm::StringRef name = made.slice(use.name);
    if (use.ofComputation) {
      auto found = made.computationOfName.find(name);
      use.target = found == made.computationOfName.end() ? none : found->second;
    } else {
      auto found = made.instructionOfName.find({use.computation, name});
      use.target = found == made.instructionOfName.end() ? none : found->second;
    }
  }
}

} // namespace hloc::lsp
