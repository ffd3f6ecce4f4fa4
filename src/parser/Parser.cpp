#include "ModuleParser.h"

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/ShapeInference.h"
#include "hloc/parser/OtherInput.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

bool isKeyword(llvm::StringRef name) {
  return llvm::is_contained({"HloModule", "ENTRY", "ROOT", "true", "false", "inf", "nan"}, name);
}

} // namespace

ModuleParser::ModuleParser(std::shared_ptr<const SourceFile> source, DiagnosticEngine &diagnostics)
    : file(std::move(source)), diagnostics(diagnostics), lexer(file->text(), diagnostics) {}

bool ModuleParser::error(DiagnosticKind kind, SourceRange range, std::string message) {
  diagnostics.report(kind, range, std::move(message));
  failed = true;
  return false;
}

bool ModuleParser::errorHere(DiagnosticKind kind, std::string message) {
  // The lexer has already said what is wrong with an invalid token.
  if (token().kind == TokenKind::Invalid) {
    failed = true;
    return false;
  }
  return error(kind, token().range(), std::move(message));
}

std::string ModuleParser::describeToken() const {
  switch (token().kind) {
  case TokenKind::End:
    return "the end of the text";
  case TokenKind::String:
    return "a string";
  default:
    llvm::StringRef shown = lexer.source().slice(token().begin, token().end);
    return "`" + shown.take_front(40).str() + (shown.size() > 40 ? "...`" : "`");
  }
}

bool ModuleParser::expected(llvm::StringRef what) {
  return errorHere(DiagnosticKind::ExpectedToken, "expected " + what.str() + ", found " + describeToken());
}

bool ModuleParser::accept(char punctuation) {
  if (!token().is(punctuation))
    return false;
  lexer.advance();
  return true;
}

bool ModuleParser::expect(char punctuation) {
  return accept(punctuation) || expected("`" + std::string(1, punctuation) + "`");
}

ReadModule ModuleParser::parse() {
  auto shared = std::make_shared<HloArena>();
  shared->source = file;
  arena = shared.get();
  if (token().kind == TokenKind::End) {
    error(DiagnosticKind::EmptyInput, {}, "the input holds no HLO");
    return {};
  }
  bool isModule = token().kind == TokenKind::Identifier && token().text == "HloModule";
  llvm::StringRef afterFirst = lexer.source().drop_front(token().end).ltrim();
  bool isComputation =
      (token().kind == TokenKind::Identifier && token().text == "ENTRY") ||
      ((token().kind == TokenKind::Identifier || token().kind == TokenKind::Name) &&
       (afterFirst.starts_with("{") || (afterFirst.starts_with("(") && !hloc::parseOpcode(token().text))));
  module = std::make_unique<HloModule>("", shared);
  if (isModule) {
    if (!parseModuleHeader())
      skipToComputation();
    parseComputations();
  } else if (isComputation) {
    parseComputations();
    if (module->entry()) {
      // Named after its entry, as XLA does.
      module->setName(("module_" + llvm::Twine(module->entry()->name())).str());
    }
    module->setHeaderless(true);
  } else {
    parseSingleInstruction();
    module->setHeaderless(true);
  }
  if (!failed && !module->entry())
    error(DiagnosticKind::BadModule, {}, "the module has no computation");
  if (failed)
    verifyWhatIsThere();
  return {std::move(module), std::move(brokenComputations), !failed};
}

bool ModuleParser::parseModuleHeader() {
  lexer.advance();
  llvm::StringRef name;
  SourceRange range;
  if (!parseName(name, range))
    return false;
  accept(':');
  module->setName(name);
  llvm::SmallVector<Attribute> attributes;
  while (accept(','))
    if (!parseHeaderAttribute(attributes))
      return false;
  module->setAttributes(attributes);
  return parseStackFrames();
}

bool ModuleParser::parseHeaderAttribute(llvm::SmallVectorImpl<Attribute> &attributes) {
  constexpr AttributeKey allowed[] = {AttributeKey::IsScheduled,
                                      AttributeKey::InputOutputAlias,
                                      AttributeKey::BufferDonor,
                                      AttributeKey::AliasPassthroughParams,
                                      AttributeKey::EntryComputationLayout,
                                      AttributeKey::AllowSpmdToParameters,
                                      AttributeKey::AllowSpmdToOutput,
                                      AttributeKey::ReplicaCount,
                                      AttributeKey::NumPartitions,
                                      AttributeKey::FrontendAttributes,
                                      AttributeKey::OriginRecoveryTable,
                                      AttributeKey::DebugAttributes};
  Token name = token();
  if (name.kind != TokenKind::Attribute)
    return expected("a module attribute");
  std::optional<AttributeKey> key = parseAttributeKey(name.text);
  if (!key || !llvm::is_contained(allowed, *key)) {
    std::string all;
    for (AttributeKey known : allowed)
      all += (all.empty() ? "`" : ", `") + text(known).str() + "`";
    diagnostics
        .report(DiagnosticKind::UnknownAttribute, name.range(), "a module has no attribute `" + name.text.str() + "`")
        .note("it takes " + all);
    failed = true;
    return false;
  }
  if (llvm::any_of(attributes, [&](const Attribute &a) { return a.key == *key; }))
    error(DiagnosticKind::DuplicateAttribute, name.range(), "attribute `" + name.text.str() + "` is given twice");
  lexer.advance();
  std::optional<AttributeValue> value;
  bool boolOrList = *key == AttributeKey::AllowSpmdToParameters || *key == AttributeKey::AllowSpmdToOutput;
  if (boolOrList && token().kind == TokenKind::Identifier) {
    llvm::StringRef spelling = token().text;
    if (!parseBool())
      return false;
    value = AttributeValue(arena->save(("{" + llvm::Twine(spelling) + "}").str()));
  } else {
    value = parseValue(*key, grammar(*key), nullptr, 0);
  }
  if (!value)
    return false;
  attributes.push_back({*key, *value});
  return true;
}

/// FileNames, FunctionNames, FileLocations, StackFrames: rows of a number and a string or a record.
bool ModuleParser::parseStackFrames() {
  uint32_t begin = token().begin, end = begin;
  while (token().kind == TokenKind::Identifier &&
         llvm::is_contained({"FileNames", "FunctionNames", "FileLocations", "StackFrames"}, token().text) &&
         !lexer.source().drop_front(token().end).ltrim().starts_with("{")) {
    end = token().end;
    lexer.advance();
    while (token().kind == TokenKind::Integer) {
      lexer.advance();
      bool record = token().is('{');
      end = record ? begin : token().end;
      if (record ? !parseRaw("a stack frame table") : !parseString())
        return false;
      if (record)
        end = uint32_t(lexer.source().take_front(token().begin).rtrim().size());
    }
  }
  if (end != begin)
    module->setStackFrames(lexer.source().slice(begin, end));
  return true;
}

void ModuleParser::parseComputations() {
  while (token().kind != TokenKind::End) {
    if (parseComputation())
      continue;
    // Resynchronise at a line that can start a computation.
    llvm::StringRef source = lexer.source();
    size_t at = source.find("\n}", token().begin);
    if (at == llvm::StringRef::npos || tooManyErrors())
      break;
    lexer.seek(uint32_t(at + 2));
  }
  if (!module->entry() && !module->computations().empty())
    module->setEntry(module->computations().back().get());
}

bool ModuleParser::parseComputation() {
  SourceRange entryToken = token().range();
  bool isEntry = token().kind == TokenKind::Identifier && token().text == "ENTRY";
  if (isEntry)
    lexer.advance();
  if (!isEntry && token().kind == TokenKind::Identifier && token().text == "HloModule") {
    errorHere(DiagnosticKind::BadModule, "another module begins here; an input holds one: write each to its own file");
    lexer.seek(uint32_t(lexer.source().size()));
    return true;
  }
  llvm::StringRef name;
  SourceRange range;
  if (!parseName(name, range))
    return false;
  if (isEntry && entryRange.isValid()) {
    diagnostics.report(DiagnosticKind::Redefinition, entryToken, "a module has one ENTRY")
        .note(entryRange, "the first one");
    failed = true;
  }
  std::optional<Shape> result;
  if (token().is('(') && !parseSignature(result)) {
    result = std::nullopt;
    if (!skipToBody())
      return false;
  }
  HloComputation *computation = parseBody(name, range, 0);
  if (isEntry && !entryRange.isValid())
    entryRange = entryToken;
  if (!computation && (token().is('}') || token().kind == TokenKind::End))
    return false;
  if (computation && isEntry && !module->entry())
    module->setEntry(computation);
  if (computation && result && !result->compatible(computation->root()->shape()))
    error(DiagnosticKind::ShapeMismatch, computation->root()->range(),
          "the signature of `" + name.str() + "` says `" + result->toString(false) + "`, its root is `" +
              computation->root()->shape().toString(false) + "`");
  if (accept(',')) {
    if (token().kind != TokenKind::Attribute || token().text != "execution_thread")
      return expected("`execution_thread=`");
    lexer.advance();
    std::optional<llvm::StringRef> thread = parseString();
    if (!thread)
      return false;
    if (computation) // else its body was skipped over
      computation->setExecutionThread(*thread);
  }
  return true;
}

/// (x: f32[2], y: s32[]) -> f32[2]. The parameters are parsed and not used: the body's `parameter`s count.
bool ModuleParser::parseSignature(std::optional<Shape> &result) {
  lexer.advance();
  while (!token().is(')')) {
    llvm::StringRef name;
    SourceRange range;
    if (!parseName(name, range) || !expect(':') || !parseShape())
      return false;
    if (!token().is(')') && !expect(','))
      return false;
  }
  lexer.advance();
  if (token().kind != TokenKind::Arrow)
    return expected("`->`");
  lexer.advance();
  result = parseShape();
  return result.has_value();
}

HloComputation *ModuleParser::parseBody(llvm::StringRef name, SourceRange nameRange, unsigned depth) {
  if (depth > maxNesting) {
    errorHere(DiagnosticKind::TooDeep, "computations nest deeper than " + std::to_string(maxNesting));
    return nullptr;
  }
  auto [known, isNew] = computationRanges.try_emplace(name, nameRange);
  if (!isNew) {
    diagnostics.report(DiagnosticKind::Redefinition, nameRange, "computation `" + name.str() + "` is already defined")
        .note(known->second, "here");
    failed = true;
  }
  openComputations.push_back(name);
  auto close = llvm::scope_exit([this] { openComputations.pop_back(); });
  uint32_t begin = nameRange.begin;
  const SourceRange open = token().range();
  if (!expect('{'))
    return nullptr;
  // Inline computations are finished before the computation around them, which keeps callees first.
  std::unique_ptr<HloComputation> owned = module->makeComputation(name);
  Scope scope;
  scope.computation = owned.get();
  scope.depth = depth;
  HloInstruction *root = nullptr;
  SourceRange rootRange;
  while (!token().is('}')) {
    if (token().kind == TokenKind::End) {
      if (!tooManyErrors())
        unclosed("`}`", open);
      return nullptr;
    }
    bool isRoot = false;
    SourceRange start = token().range();
    HloInstruction *instr = parseInstruction(scope, isRoot);
    if (!instr) {
      scope.poisoned = true;
      recover(start.begin);
      continue;
    }
    if (!isRoot)
      continue;
    if (root) {
      diagnostics.report(DiagnosticKind::Redefinition, start, "a computation has one ROOT")
          .note(rootRange, "the first one");
      failed = scope.poisoned = true;
    }
    root = instr;
    rootRange = start;
  }
  SourceRange range{begin, token().end};
  lexer.advance();
  if (!finishComputation(*owned, root, scope, range) || !isNew) {
    brokenComputations.push_back(std::move(owned));
    return nullptr;
  }
  HloComputation *computation = module->addComputation(std::move(owned));
  computations.try_emplace(computation->name(), computation);
  return computation;
}

bool ModuleParser::finishComputation(HloComputation &computation, HloInstruction *root, Scope &scope,
                                     SourceRange range) {
  if (scope.poisoned)
    return false;
  if (computation.instructions().empty())
    return error(DiagnosticKind::BadModule, {range.begin, range.begin + 1},
                 "computation `" + computation.name().str() + "` has no instruction");
  for (size_t i = 0; i < computation.parameters().size(); ++i)
    if (!computation.parameters()[i])
      return error(DiagnosticKind::BadParameter, {range.begin, range.begin + 1},
                   "computation `" + computation.name().str() + "` has no parameter " + std::to_string(i) + " of " +
                       std::to_string(computation.numParameters()));
  computation.setRoot(root ? root : computation.instructions().back());
  computation.setRange(range);
  return true;
}

bool ModuleParser::parseName(llvm::StringRef &name, SourceRange &range) {
  range = token().range();
  if (token().kind != TokenKind::Identifier && token().kind != TokenKind::Name)
    return expected("a name");
  name = token().text;
  // `pred:` is a name to XLA's lexer, whatever it is without the colon.
  bool bare = token().kind == TokenKind::Identifier && !lexer.source().substr(token().end).starts_with(":");
  if (bare && (isKeyword(name) || parseElementType(name)))
    return error(DiagnosticKind::BadName, range, "`" + name.str() + "` is reserved; write `%" + name.str() + "`");
  lexer.advance();
  return true;
}

bool ModuleParser::checkName(llvm::StringRef name, SourceRange range) {
  bool reservedPrefix = name.starts_with("__") && !name.starts_with("__xla_");
  if (!isIdentifierStart(name[0]) && !llvm::isDigit(name[0]))
    return error(DiagnosticKind::BadName, range, "`" + name.str() + "` is not a legal instruction name");
  if (reservedPrefix || parseElementType(name))
    return error(DiagnosticKind::BadName, range,
                 "`" + name.str() + "` is not a legal instruction name; try `" + (reservedPrefix ? "a" : "") +
                     name.str() + (reservedPrefix ? "`" : "_`"));
  return true;
}

std::string ModuleParser::uniqueComputationName(llvm::StringRef base) {
  std::string name = base.str();
  for (unsigned &next = nextSuffix[base]; computationRanges.contains(name);)
    name = (llvm::Twine(base) + "." + llvm::Twine(++next)).str();
  return name;
}

HloInstruction *ModuleParser::parseInstruction(Scope &scope, bool &isRoot) {
  isRoot = token().kind == TokenKind::Identifier && token().text == "ROOT";
  if (isRoot)
    lexer.advance();
  Token nameToken = token();
  llvm::StringRef name;
  SourceRange range;
  if (nameToken.kind == TokenKind::Attribute) { // `x=f32[] ...`
    name = nameToken.text;
    range = {nameToken.begin, nameToken.end - 1};
    lexer.advance();
  } else if (!parseName(name, range) || !expect('=')) {
    return nullptr;
  }
  auto [entry, isNew] = scope.names.try_emplace(name, Scope::Entry{nullptr, range});
  if (!isNew) {
    diagnostics.report(DiagnosticKind::Redefinition, range, "instruction `" + name.str() + "` is already defined")
        .note(entry->second.range, "here");
    failed = true;
    return nullptr;
  }
  if (!checkName(name, range))
    return nullptr;
  HloInstruction *instr = parseRhs(scope, name, range, scope.depth);
  scope.names[name].instr = instr;
  return instr;
}

HloInstruction *ModuleParser::parseRhs(Scope &scope, llvm::StringRef name, SourceRange nameRange, unsigned depth) {
  if (depth > maxNesting) {
    errorHere(DiagnosticKind::TooDeep, "operands nest deeper than " + std::to_string(maxNesting));
    return nullptr;
  }
  Draft draft;
  draft.spec.name = name;
  if (token().kind == TokenKind::Identifier && lexer.nextCharacter() == '[' && !startsShape()) {
    unknownElementType();
    return nullptr;
  }
  if (startsShape()) {
    std::optional<Shape> shape = parseShape();
    if (!shape)
      return nullptr;
    draft.spec.shape = *shape;
    draft.shapeGiven = true;
  }
  draft.spec.range = {nameRange.begin, token().end};
  if (!parseOpcode(draft) || !parseOperands(scope, draft, depth))
    return nullptr;
  bool nested = name.empty();
  if (!nested && !parseAttributes(draft, scope, depth))
    return nullptr;
  if (!checkRequiredAttributes(draft))
    return nullptr;
  draft.spec.range.end = uint32_t(lexer.source().take_front(token().begin).rtrim().size());
  if (draft.poisoned || !checkDraft(scope, draft))
    return nullptr;
  if (draft.async != Draft::Async::None && !wrapAsync(draft, name))
    return nullptr;
  draft.spec.operands = draft.operands;
  draft.spec.attributes = draft.attributes;
  if (draft.spec.opcode == Opcode::Parameter) {
    auto [first, isNew] = scope.parameters.try_emplace(draft.spec.parameterNumber, draft.spec.range);
    if (!isNew) {
      diagnostics
          .report(DiagnosticKind::BadParameter, draft.opcodeRange,
                  "parameter " + std::to_string(draft.spec.parameterNumber) + " is already defined")
          .note(first->second, "here");
      failed = true;
      return nullptr;
    }
  }
  std::string anonymous;
  if (nested) {
    unsigned &next = scope.anonymous[draft.spec.opcode];
    for (; anonymous.empty() || scope.names.contains(anonymous); ++next)
      anonymous = (llvm::Twine(draft.opcodeText) + ".anon" + (next ? "." + llvm::Twine(next) : llvm::Twine())).str();
    draft.spec.name = arena->save(anonymous);
    scope.names.try_emplace(draft.spec.name, Scope::Entry{nullptr, draft.spec.range});
  }
  HloInstruction *instr = addInstruction(scope, draft);
  if (nested)
    scope.names[instr->name()].instr = instr;
  return instr;
}

/// The instruction, or the convert that rounds it.
HloInstruction *ModuleParser::addInstruction(Scope &scope, const Draft &draft) {
  if (!draft.roundedTo)
    return scope.computation->add(draft.spec);
  InstructionSpec wide = draft.spec, rounded;
  std::string name = freshName(scope, draft.spec.name + ".in_" + text(draft.spec.shape.elementType()));
  wide.name = name;
  HloInstruction *computed = scope.computation->add(wide);
  scope.names[computed->name()] = {computed, draft.spec.range};
  rounded.opcode = Opcode::Convert;
  rounded.name = draft.spec.name;
  rounded.shape = *draft.roundedTo;
  rounded.operands = computed;
  rounded.range = draft.spec.range;
  return scope.computation->add(rounded);
}

std::string ModuleParser::freshName(const Scope &scope, const llvm::Twine &base) {
  std::string name = base.str();
  for (unsigned i = 1; scope.names.contains(name); ++i)
    name = (base + "." + llvm::Twine(i)).str();
  return name;
}

bool ModuleParser::parseOpcode(Draft &draft) {
  if (token().kind != TokenKind::Identifier)
    return expected(draft.shapeGiven ? "an opcode" : "a shape or an opcode");
  draft.opcodeText = token().text;
  draft.opcodeRange = token().range();
  std::optional<Opcode> opcode = hloc::parseOpcode(token().text);
  if (!opcode) { // `X-start` stands for async-start of a computation that holds X
    llvm::StringRef base = token().text;
    using Async = Draft::Async;
    draft.async = base.consume_back("-start")    ? Async::Start
                  : base.consume_back("-update") ? Async::Update
                  : base.consume_back("-done")   ? Async::Done
                                                 : Async::None;
    if (draft.async != Async::None)
      opcode = hloc::parseOpcode(base);
    bool excluded =
        llvm::is_contained({"all-gather", "all-reduce", "collective-permute", "copy", "send", "recv"}, base);
    if (excluded || (opcode && family(*opcode) == OpcodeFamily::Async))
      opcode = std::nullopt;
  }
  if (!opcode)
    return unknownOpcode();
  draft.spec.opcode = *opcode;
  lexer.advance();
  return true;
}

bool ModuleParser::parseOperands(Scope &scope, Draft &draft, unsigned depth) {
  SourceRange open = token().range();
  if (!expect('('))
    return false;
  if (draft.spec.opcode == Opcode::Parameter) {
    SourceRange range = token().range();
    std::optional<int64_t> number = parseInt();
    if (!number)
      return false;
    // Numbers are dense, so one beyond any possible count is wrong whatever follows.
    constexpr int64_t shortestParameter = 16; // characters of `a=u8[]parameter(0)`, less a few
    if (*number < 0 || *number > int64_t(lexer.source().size()) / shortestParameter)
      return error(DiagnosticKind::BadParameter, range,
                   "parameter number " + std::to_string(*number) + " is out of range");
    draft.spec.parameterNumber = *number;
    return accept(')') || unclosed("`)`", open);
  }
  if (draft.spec.opcode == Opcode::Constant) {
    if (!draft.shapeGiven)
      return error(DiagnosticKind::MissingShape, draft.opcodeRange, "`constant` needs a shape");
    std::optional<Literal> literal = parseLiteral(draft.spec.shape);
    if (!literal || !(accept(')') || unclosed("`)`", open)))
      return false;
    draft.spec.literal = arena->saveObject(std::move(*literal));
    return true;
  }
  for (bool first = true; !token().is(')'); first = false) {
    if (!first && !accept(','))
      return unclosed("`,` or `)`", open);
    if (!first && token().is(')')) // `add(a, b,)`
      break;
    if (token().kind == TokenKind::Attribute || token().kind == TokenKind::End || token().is('}'))
      return unclosed(first ? "an operand or `)`" : "an operand", open);
    if (!parseOperand(scope, draft, depth))
      return false;
  }
  lexer.advance();
  return true;
}

/// [shape] name {#index} | [shape] opcode(operands)
bool ModuleParser::parseOperand(Scope &scope, Draft &draft, unsigned depth) {
  SourceRange range = token().range();
  std::optional<Shape> shape;
  uint32_t shapeBegin = token().begin;
  if (startsShape()) {
    shape = parseShape();
    if (!shape)
      return false;
  }
  bool bare = token().kind == TokenKind::Identifier;
  bool nested = bare && lexer.nextCharacter() == '(';
  HloInstruction *operand = nullptr;
  if (nested) {
    if (shape)
      lexer.seek(shapeBegin);
    operand = parseRhs(scope, "", range, depth + 1);
    if (!operand)
      return false;
    draft.operands.push_back(operand);
    return true;
  }
  llvm::StringRef name;
  SourceRange nameRange;
  bool onlyShape = shape && (token().is(',') || token().is(')'));
  if (onlyShape && scope.impliedParameters)
    nameRange = range;
  else if (!parseName(name, nameRange))
    return false;
  if (scope.impliedParameters && shape && (name.empty() || !scope.names.contains(name))) {
    InstructionSpec spec;
    std::string made = name.empty() ? "parameter." + std::to_string(scope.parameters.size()) : name.str();
    spec.opcode = Opcode::Parameter;
    spec.name = made;
    spec.shape = *shape;
    spec.range = nameRange;
    spec.parameterNumber = int64_t(scope.parameters.size());
    scope.parameters[spec.parameterNumber] = nameRange;
    operand = scope.computation->add(spec);
    scope.names[operand->name()] = {operand, nameRange};
  } else {
    operand = lookUp(scope, name, nameRange, draft.poisoned);
  }
  while (accept('#')) {
    SourceRange indexRange = token().range();
    std::optional<int64_t> index = parseInt();
    if (!index)
      return false;
    if (operand && !(operand = tupleElement(scope, operand, *index, indexRange)))
      return false;
  }
  if (!operand)
    return draft.poisoned; // go on: the rest of the line may have errors of its own
  if (shape && !shape->compatible(operand->shape()))
    return error(DiagnosticKind::ShapeMismatch, range,
                 "operand is written as `" + shape->toString(false) + "`, `" + name.str() + "` is `" +
                     operand->shape().toString(false) + "`");
  draft.operands.push_back(operand);
  return true;
}

HloInstruction *ModuleParser::lookUp(Scope &scope, llvm::StringRef name, SourceRange range, bool &poisoned) {
  auto found = scope.names.find(name);
  if (found != scope.names.end() && found->second.instr)
    return found->second.instr;
  if (found == scope.names.end() || found->second.range.end > range.begin ||
      (found->second.range.begin != range.begin && !failed))
    undefinedName(scope, name, range);
  poisoned = true;
  return nullptr;
}

HloInstruction *ModuleParser::tupleElement(Scope &scope, HloInstruction *tuple, int64_t index, SourceRange range) {
  if (!tuple->shape().isTuple() || index < 0 || index >= int64_t(tuple->shape().elements().size())) {
    error(DiagnosticKind::ShapeMismatch, range,
          "`" + tuple->shape().toString(false) + "` has no element " + std::to_string(index));
    return nullptr;
  }
  HloInstruction *&element = scope.tupleElements[{tuple, index}];
  if (!element) {
    std::string name = freshName(scope, tuple->name() + ".gte." + llvm::Twine(index));
    Attribute attribute{AttributeKey::Index, index};
    InstructionSpec spec;
    spec.opcode = Opcode::GetTupleElement;
    spec.name = name;
    spec.shape = tuple->shape().element(index);
    spec.operands = tuple;
    spec.attributes = attribute;
    spec.range = range;
    element = scope.computation->add(spec);
    scope.names[element->name()] = {element, range};
  }
  return element;
}

/// `fusion-start(a, b), kind=..., calls=f` -> async-start(a, b), calls=%wrapper, where wrapper holds the fusion.
bool ModuleParser::wrapAsync(Draft &draft, llvm::StringRef name) {
  if (draft.async != Draft::Async::Start) {
    const HloInstruction *start = draft.operands[0];
    Opcode wrapped = draft.spec.opcode;
    draft.spec.opcode = draft.async == Draft::Async::Done ? Opcode::AsyncDone : Opcode::AsyncUpdate;
    bool isAsync = start->opcode() == Opcode::AsyncStart || start->opcode() == Opcode::AsyncUpdate;
    if (!isAsync)
      return error(DiagnosticKind::TypeMismatch, draft.opcodeRange,
                   "`" + draft.opcodeText.str() + "` follows an async-start, not `" + text(start->opcode()).str() +
                       "`");
    // What the wrapped op was told on the start holds for the whole chain.
    llvm::erase_if(draft.attributes, [&](const Attribute &attribute) {
      return attribute.key != AttributeKey::AsyncExecutionThread && attribute.key != AttributeKey::Calls &&
             llvm::any_of(attributeSpecs(wrapped), [&](const AttributeSpec &s) { return s.key == attribute.key; });
    });
    if (HloComputation *called = start->computation(AttributeKey::Calls))
      if (llvm::none_of(draft.attributes, [](const Attribute &a) { return a.key == AttributeKey::Calls; }))
        draft.attributes.push_back({AttributeKey::Calls, called});
    return true;
  }
  const Shape &shape = draft.spec.shape;
  if (!shape.isTuple() || shape.elements().size() < 2)
    return error(DiagnosticKind::ShapeMismatch, draft.opcodeRange,
                 "`" + draft.opcodeText.str() + "` has a result of the form `((operands), result, ...)`");
  HloComputation *wrapper = module->addComputation(uniqueComputationName(("async_wrapper." + llvm::Twine(name)).str()));
  computationRanges.try_emplace(wrapper->name(), draft.spec.range);
  computations.try_emplace(wrapper->name(), wrapper);
  wrapper->setRange(draft.spec.range);
  HloBuilder builder(*wrapper);
  builder.setRange(draft.spec.range);
  llvm::SmallVector<HloInstruction *> parameters;
  for (HloInstruction *operand : draft.operands)
    parameters.push_back(
        builder.parameter(int64_t(parameters.size()), operand->shape(), "param_" + std::to_string(parameters.size())));
  llvm::SmallVector<Attribute> inner, outer;
  for (const Attribute &attribute : draft.attributes) {
    bool stays = attribute.key == AttributeKey::AsyncExecutionThread ||
                 attribute.key == AttributeKey::ControlPredecessors ||
                 (attribute.key == AttributeKey::OutputToOperandAliasing && draft.spec.opcode != Opcode::Fusion &&
                  draft.spec.opcode != Opcode::CustomCall);
    (stays ? outer : inner).push_back(attribute);
  }
  wrapper->setRoot(builder.add(draft.spec.opcode, shape.element(1), parameters, inner, name));
  outer.push_back({AttributeKey::Calls, wrapper});
  draft.attributes.assign(outer.begin(), outer.end());
  draft.spec.opcode = Opcode::AsyncStart;
  return true;
}

/// The whole text is one instruction; operands it names are its parameters.
bool ModuleParser::parseSingleInstruction() {
  Scope scope;
  scope.impliedParameters = true;
  scope.computation = module->addComputation("entry");
  llvm::StringRef name = "result";
  SourceRange range = token().range();
  bool named = token().kind == TokenKind::Attribute || lexer.source().drop_front(token().end).ltrim().starts_with("=");
  HloInstruction *instr = nullptr;
  if (named && (token().kind == TokenKind::Identifier || token().kind == TokenKind::Name ||
                token().kind == TokenKind::Attribute)) {
    bool isRoot = false;
    instr = parseInstruction(scope, isRoot);
  } else if (startsShape() || (token().kind == TokenKind::Identifier && hloc::parseOpcode(token().text))) {
    instr = parseRhs(scope, name, range, 0);
  } else {
    return errorHere(DiagnosticKind::NotHloText,
                     "expected `HloModule`, `ENTRY`, a computation or an instruction, found " + describeToken());
  }
  if (!instr)
    return false;
  if (token().kind != TokenKind::End)
    return expected("the end of the text after a single instruction");
  if (!finishComputation(*scope.computation, instr, scope, instr->range()))
    return false;
  module->setEntry(scope.computation);
  module->setName("module_entry");
  return true;
}

std::unique_ptr<HloModule> parseHloModule(std::shared_ptr<const SourceFile> file, DiagnosticEngine &diagnostics) {
  ReadModule read = readHloModule(std::move(file), diagnostics);
  return read.isRight ? std::move(read.module) : nullptr;
}

ReadModule readHloModule(std::shared_ptr<const SourceFile> file, DiagnosticEngine &diagnostics) {
  diagnostics.setFile(file);
  constexpr size_t maxBytes = size_t(1) << 31;
  if (file->text().size() > maxBytes) {
    diagnostics.report(DiagnosticKind::InputTooLarge, "HLO text of more than 2 GiB");
    return {};
  }
  if (std::string other = otherInput(file->text()); !other.empty()) {
    const uint32_t begin = uint32_t(file->text().size() - file->text().ltrim().size());
    const size_t word = file->text().substr(begin).take_until([](char c) { return llvm::isSpace(c); }).size();
    diagnostics.report(DiagnosticKind::NotHloText, {begin, begin + uint32_t(std::min<size_t>(word, 32))}, other);
    return {};
  }
  return ModuleParser(file, diagnostics).parse();
}

std::vector<llvm::StringRef> splitModules(llvm::StringRef text) {
  std::vector<llvm::StringRef> parts;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    if (text.slice(at, end).rtrim() == "// -----") {
      parts.push_back(text.slice(begin, at));
      begin = end + 1;
    }
    at = end + 1;
  }
  parts.push_back(text.substr(std::min(begin, text.size())));
  return parts;
}

} // namespace hloc
