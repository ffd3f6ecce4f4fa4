#include "ModuleParser.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

namespace hloc {

namespace {

/// Attributes every instruction may have.
bool isCommon(AttributeKey key) {
  switch (key) {
  case AttributeKey::ParameterReplication:
  case AttributeKey::Sharding:
  case AttributeKey::FrontendAttributes:
  case AttributeKey::ControlPredecessors:
  case AttributeKey::Statistics:
  case AttributeKey::Origin:
  case AttributeKey::Metadata:
  case AttributeKey::BackendConfig:
    return true;
  default:
    return false;
  }
}

std::string allowedAttributes(Opcode opcode) {
  std::string names;
  for (const AttributeSpec &spec : attributeSpecs(opcode))
    names += "`" + text(spec.key).str() + "`, ";
  return names + "and what every instruction may have (sharding, metadata, backend_config, ...)";
}

} // namespace

bool ModuleParser::parseAttributes(Draft &draft, Scope &scope, unsigned depth) {
  Opcode opcode = draft.spec.opcode;
  bool good = true;
  while (token().is(',')) {
    lexer.advance();
    Token name = token();
    if (name.kind == TokenKind::Identifier && lexer.rest().drop_front(name.text.size()).ltrim().starts_with("=")) {
      lexer.advance(); // `name =` with a blank
    } else if (name.kind != TokenKind::Attribute) {
      return expected("an attribute");
    }
    std::optional<AttributeKey> key = parseAttributeKey(name.text);
    const AttributeSpec *spec =
        key ? llvm::find_if(attributeSpecs(opcode), [&](const AttributeSpec &s) { return s.key == *key; }) : nullptr;
    // Sugar (`call-start`) takes what async-start takes beside what the wrapped opcode does.
    bool ofAsync = draft.async != Draft::Async::None &&
                   (key == AttributeKey::AsyncExecutionThread || key == AttributeKey::OutputToOperandAliasing);
    bool known = key && (spec != attributeSpecs(opcode).end() || isCommon(*key) || ofAsync);
    if (!known) {
      diagnostics
          .report(DiagnosticKind::UnknownAttribute, name.range(),
                  "`" + text(opcode).str() + "` has no attribute `" + name.text.str() + "`")
          .note("it takes " + allowedAttributes(opcode));
      failed = true;
      return false;
    }
    if (llvm::any_of(draft.attributes, [&](const Attribute &a) { return a.key == *key; }))
      good =
          error(DiagnosticKind::DuplicateAttribute, name.range(), "attribute `" + name.text.str() + "` is given twice");
    lexer.advance();
    AttributeGrammar how = spec != attributeSpecs(opcode).end() ? spec->grammar : grammar(*key);
    std::optional<AttributeValue> value = parseValue(*key, how, &scope, depth);
    if (!value)
      return false;
    draft.attributes.push_back({*key, *value});
  }
  return good;
}

std::optional<AttributeValue> ModuleParser::parseValue(AttributeKey key, AttributeGrammar how, Scope *scope,
                                                       unsigned depth) {
  auto wrap = [](auto parsed) -> std::optional<AttributeValue> {
    if (!parsed)
      return std::nullopt;
    return AttributeValue(*parsed);
  };
  switch (how) {
  case AttributeGrammar::Bool:
    return wrap(parseBool());
  case AttributeGrammar::Int:
    return wrap(parseInt());
  case AttributeGrammar::Double:
    return wrap(parseDouble());
  case AttributeGrammar::Ints: {
    llvm::SmallVector<int64_t, 8> values;
    if (!parseInts(values))
      return std::nullopt;
    return AttributeValue(llvm::ArrayRef<int64_t>(arena->saveList(llvm::ArrayRef<int64_t>(values))));
  }
  case AttributeGrammar::IntLists:
    return parseIntLists();
  case AttributeGrammar::Enum:
  case AttributeGrammar::DotAlgorithm:
  case AttributeGrammar::RandomAlgorithm:
    return parseEnum(enumTypeOf(key, how));
  case AttributeGrammar::EnumList:
    return parseEnumList(enumTypeOf(key, how));
  case AttributeGrammar::String:
    return wrap(parseString());
  case AttributeGrammar::Raw:
    return wrap(parseStructuredText(key));
  case AttributeGrammar::StringOrRaw:
    return token().kind == TokenKind::String ? wrap(parseString()) : wrap(parseRaw(text(key), balancedBraces));
  case AttributeGrammar::Window:
    return parseWindow();
  case AttributeGrammar::Padding:
    return parsePadding();
  case AttributeGrammar::Slice:
    return parseSlice();
  case AttributeGrammar::DimLabels:
    return parseDimLabels();
  case AttributeGrammar::Computation: {
    HloComputation *called = parseComputationRef(depth);
    return called ? std::optional(AttributeValue(called)) : std::nullopt;
  }
  case AttributeGrammar::Computations: {
    llvm::SmallVector<HloComputation *> list;
    if (!expect('{'))
      return std::nullopt;
    while (!token().is('}')) {
      if (!list.empty() && !expect(','))
        return std::nullopt;
      HloComputation *called = parseComputationRef(depth);
      if (!called)
        return std::nullopt;
      list.push_back(called);
    }
    lexer.advance();
    return AttributeValue(llvm::ArrayRef<HloComputation *>(arena->saveList(llvm::ArrayRef<HloComputation *>(list))));
  }
  case AttributeGrammar::Instructions:
    return scope ? parseInstructionList(*scope) : std::nullopt;
  case AttributeGrammar::ShapeValue: {
    std::optional<Shape> shape = parseShape();
    return shape ? std::optional(AttributeValue(arena->saveObject(*shape))) : std::nullopt;
  }
  case AttributeGrammar::Shapes: {
    llvm::SmallVector<Shape> shapes;
    if (!expect('{'))
      return std::nullopt;
    while (!token().is('}')) {
      if (!shapes.empty() && !expect(','))
        return std::nullopt;
      std::optional<Shape> shape = parseShape();
      if (!shape)
        return std::nullopt;
      shapes.push_back(*shape);
    }
    lexer.advance();
    return AttributeValue(llvm::ArrayRef<Shape>(arena->saveList(llvm::ArrayRef<Shape>(shapes))));
  }
  case AttributeGrammar::ProgramShape:
    return parseProgramShape();
  case AttributeGrammar::Literal: {
    std::optional<Literal> literal = parseLiteralWithShape();
    return literal ? std::optional(AttributeValue(arena->saveObject(std::move(*literal)))) : std::nullopt;
  }
  case AttributeGrammar::Alias:
    return parseAlias();
  case AttributeGrammar::ReplicaGroups:
    return wrap(parseReplicaGroups());
  }
  return std::nullopt;
}

std::optional<bool> ModuleParser::parseBool() {
  bool yes = token().kind == TokenKind::Identifier && token().text == "true";
  if (!yes && !(token().kind == TokenKind::Identifier && token().text == "false")) {
    expected("`true` or `false`");
    return std::nullopt;
  }
  lexer.advance();
  return yes;
}

std::optional<int64_t> ModuleParser::parseInt() {
  if (token().kind != TokenKind::Integer) {
    expected("an integer");
    return std::nullopt;
  }
  int64_t value = 0;
  uint64_t large = 0;
  if (token().text.getAsInteger(10, value)) {
    if (token().text.getAsInteger(10, large)) {
      errorHere(DiagnosticKind::BadNumber, "`" + token().text.str() + "` does not fit 64 bits");
      return std::nullopt;
    }
    value = int64_t(large);
  }
  lexer.advance();
  return value;
}

std::optional<double> ModuleParser::parseDouble() {
  Literal value(Shape::scalar(ElementType::F64));
  if (!parseScalar(value, 0))
    return std::nullopt;
  return value.getDouble(0);
}

bool ModuleParser::parseInts(llvm::SmallVectorImpl<int64_t> &values) {
  if (!expect('{'))
    return false;
  while (!token().is('}')) {
    if (!values.empty() && !expect(','))
      return false;
    std::optional<int64_t> value = parseInt();
    if (!value)
      return false;
    values.push_back(*value);
  }
  lexer.advance();
  return true;
}

std::optional<AttributeValue> ModuleParser::parseIntLists() {
  llvm::SmallVector<llvm::ArrayRef<int64_t>> lists;
  if (!expect('{'))
    return std::nullopt;
  while (!token().is('}')) {
    if (!lists.empty() && !expect(','))
      return std::nullopt;
    llvm::SmallVector<int64_t> values;
    if (!parseInts(values))
      return std::nullopt;
    lists.push_back(arena->saveList(llvm::ArrayRef<int64_t>(values)));
  }
  lexer.advance();
  using List = llvm::ArrayRef<llvm::ArrayRef<int64_t>>;
  return AttributeValue(List(arena->saveList(List(lists))));
}

std::optional<AttributeValue> ModuleParser::parseEnum(EnumType type) {
  llvm::ArrayRef<llvm::StringRef> spellings = enumSpellings(type);
  if (token().kind == TokenKind::Identifier)
    for (size_t i = 0; i < spellings.size(); ++i)
      if (enumIgnoresCase(type) ? token().text.equals_insensitive(spellings[i]) : token().text == spellings[i]) {
        lexer.advance();
        return AttributeValue(int64_t(i));
      }
  std::string all;
  for (llvm::StringRef spelling : spellings)
    all += (all.empty() ? "`" : ", `") + spelling.str() + "`";
  errorHere(DiagnosticKind::BadAttribute, "expected one of " + all + ", found " + describeToken());
  return std::nullopt;
}

std::optional<AttributeValue> ModuleParser::parseEnumList(EnumType type) {
  llvm::SmallVector<int64_t> values;
  if (!expect('{'))
    return std::nullopt;
  while (!token().is('}')) {
    if (!values.empty() && !expect(','))
      return std::nullopt;
    std::optional<AttributeValue> value = parseEnum(type);
    if (!value)
      return std::nullopt;
    values.push_back(std::get<int64_t>(*value));
  }
  lexer.advance();
  return AttributeValue(llvm::ArrayRef<int64_t>(arena->saveList(llvm::ArrayRef<int64_t>(values))));
}

std::optional<llvm::StringRef> ModuleParser::parseString() {
  if (token().kind != TokenKind::String) {
    expected("a string");
    return std::nullopt;
  }
  std::string contents;
  if (!unescape(token().text, contents)) {
    errorHere(DiagnosticKind::BadEscape, "malformed escape in string");
    return std::nullopt;
  }
  llvm::StringRef saved = token().text.contains('\\') ? arena->save(contents) : token().text.drop_front().drop_back();
  lexer.advance();
  return saved;
}

std::optional<llvm::StringRef> ModuleParser::parseRaw(llvm::StringRef what, size_t (*lengthOf)(llvm::StringRef)) {
  if (!token().is('{')) {
    expected("`{` of " + what.str());
    return std::nullopt;
  }
  uint32_t begin = token().begin;
  size_t length = lengthOf(lexer.rest());
  if (length == llvm::StringRef::npos) {
    errorHere(DiagnosticKind::UnterminatedToken, "`" + what.str() + "` is not closed by a matching `}`");
    return std::nullopt;
  }
  llvm::StringRef raw = lexer.rest().take_front(length);
  lexer.seek(uint32_t(begin + length));
  return raw;
}

llvm::StringRef ModuleParser::takeWord(llvm::StringRef extraCharacters) {
  llvm::StringRef word =
      lexer.rest().take_while([&](char c) { return isIdentifierBody(c) || extraCharacters.contains(c); });
  lexer.seek(token().begin + uint32_t(word.size()));
  return word;
}

namespace {

/// `3x3` -> {3, 3}
bool splitSizes(llvm::StringRef word, llvm::SmallVectorImpl<int64_t> &out) {
  llvm::SmallVector<llvm::StringRef> parts;
  word.split(parts, 'x');
  for (llvm::StringRef part : parts) {
    int64_t value = 0;
    if (part.getAsInteger(10, value))
      return false;
    out.push_back(value);
  }
  return true;
}

/// `0_1x2_2_1` -> {{0, 1, 0}, {2, 2, 1}}
bool splitPadding(llvm::StringRef word, bool interiorAllowed, llvm::SmallVectorImpl<PaddingDim> &out) {
  llvm::SmallVector<llvm::StringRef> parts;
  word.split(parts, 'x');
  for (llvm::StringRef part : parts) {
    llvm::SmallVector<llvm::StringRef> fields;
    part.split(fields, '_');
    PaddingDim dim;
    if (fields.size() < 2 || fields.size() > (interiorAllowed ? 3u : 2u) || fields[0].getAsInteger(10, dim.low) ||
        fields[1].getAsInteger(10, dim.high) ||
        (fields.size() == 3 && (fields[2].getAsInteger(10, dim.interior) || dim.interior < 0)))
      return false;
    out.push_back(dim);
  }
  return true;
}

} // namespace

std::optional<AttributeValue> ModuleParser::parseWindow() {
  SourceRange range = token().range();
  if (!expect('{'))
    return std::nullopt;
  llvm::SmallVector<int64_t> lists[5]; // size, stride, lhs_dilate, rhs_dilate, rhs_reversal
  constexpr llvm::StringLiteral names[] = {"size", "stride", "lhs_dilate", "rhs_dilate", "rhs_reversal"};
  llvm::SmallVector<PaddingDim> pads;
  while (token().kind == TokenKind::Attribute) {
    llvm::StringRef name = token().text;
    SourceRange nameRange = token().range();
    lexer.advance();
    SourceRange wordRange = token().range();
    auto *found = llvm::find(names, name);
    bool isPad = name == "pad";
    if (!isPad && found == std::end(names)) {
      error(DiagnosticKind::BadAttribute, nameRange, "a window has no `" + name.str() + "`");
      return std::nullopt;
    }
    if (isPad ? !pads.empty() : !lists[found - names].empty()) {
      error(DiagnosticKind::DuplicateAttribute, nameRange, "`" + name.str() + "` is given twice in a window");
      return std::nullopt;
    }
    llvm::StringRef word = takeWord("-");
    if (isPad ? !splitPadding(word, false, pads) : !splitSizes(word, lists[found - names])) {
      error(DiagnosticKind::BadAttribute, wordRange,
            isPad ? "expected `pad=LOW_HIGHxLOW_HIGH...`" : "expected sizes such as `3x3`");
      return std::nullopt;
    }
    range.end = token().begin;
  }
  if (!expect('}'))
    return std::nullopt;
  Window window;
  size_t rank = lists[0].size();
  bool agrees = !pads.empty() ? pads.size() == rank : true;
  for (const auto &list : lists)
    agrees &= list.empty() || list.size() == rank;
  if (!agrees) {
    error(DiagnosticKind::BadAttribute, range,
          lists[0].empty() ? "window without `size`" : "the lists of a window have different lengths");
    return std::nullopt;
  }
  for (size_t i = 0; i < rank; ++i) {
    WindowDim dim;
    dim.size = lists[0][i];
    dim.stride = lists[1].empty() ? 1 : lists[1][i];
    dim.baseDilation = lists[2].empty() ? 1 : lists[2][i];
    dim.windowDilation = lists[3].empty() ? 1 : lists[3][i];
    dim.reversed = !lists[4].empty() && lists[4][i] != 0;
    if (!pads.empty()) {
      dim.padLow = pads[i].low;
      dim.padHigh = pads[i].high;
    }
    window.dims.push_back(dim);
  }
  return AttributeValue(arena->saveObject(std::move(window)));
}

std::optional<AttributeValue> ModuleParser::parsePadding() {
  SourceRange range = token().range();
  llvm::SmallVector<PaddingDim> dims;
  llvm::StringRef word = takeWord("-");
  // A scalar is padded by nothing at all.
  if (!word.empty() && !splitPadding(word, true, dims)) {
    error(DiagnosticKind::BadAttribute, {range.begin, uint32_t(range.begin + word.size())},
          "expected padding such as `0_1x2_2_1` (low, high, interior)");
    return std::nullopt;
  }
  return AttributeValue(llvm::ArrayRef<PaddingDim>(arena->saveList(llvm::ArrayRef<PaddingDim>(dims))));
}

std::optional<AttributeValue> ModuleParser::parseSlice() {
  llvm::SmallVector<SliceDim> dims;
  if (!expect('{'))
    return std::nullopt;
  while (!token().is('}')) {
    if (!dims.empty() && !expect(','))
      return std::nullopt;
    SliceDim dim;
    if (!expect('['))
      return std::nullopt;
    std::optional<int64_t> start = parseInt();
    if (!start || !expect(':'))
      return std::nullopt;
    std::optional<int64_t> limit = parseInt();
    if (!limit)
      return std::nullopt;
    dim.start = *start;
    dim.limit = *limit;
    if (accept(':')) {
      std::optional<int64_t> stride = parseInt();
      if (!stride)
        return std::nullopt;
      dim.stride = *stride;
    }
    if (!expect(']'))
      return std::nullopt;
    dims.push_back(dim);
  }
  lexer.advance();
  return AttributeValue(llvm::ArrayRef<SliceDim>(arena->saveList(llvm::ArrayRef<SliceDim>(dims))));
}

namespace {

/// Positions in one part of the labels: `b01f`. `names` are its two letters; false if malformed.
bool readLabels(llvm::StringRef part, llvm::StringRef names, int64_t &first, int64_t &second,
                llvm::SmallVectorImpl<int64_t> &spatial) {
  first = second = -1;
  size_t digits = llvm::count_if(part, llvm::isDigit);
  spatial.assign(digits, -1);
  for (size_t i = 0; i < part.size(); ++i) {
    int64_t *slot = part[i] == names[0]                                        ? &first
                    : part[i] == names[1]                                      ? &second
                    : llvm::isDigit(part[i]) && size_t(part[i] - '0') < digits ? &spatial[part[i] - '0']
                                                                               : nullptr;
    if (part[i] == '?')
      continue;
    if (!slot || *slot != -1)
      return false;
    *slot = int64_t(i);
  }
  return first >= 0 && second >= 0;
}

} // namespace

std::optional<AttributeValue> ModuleParser::parseDimLabels() {
  SourceRange range = token().range();
  llvm::StringRef word = takeWord("-?>");
  range.end = uint32_t(range.begin + word.size());
  auto [operands, out] = word.split("->");
  auto [lhs, rhs] = operands.split('_');
  ConvolutionLabels labels;
  labels.spelling = word.str();
  if (!readLabels(lhs, "bf", labels.lhsBatch, labels.lhsFeature, labels.lhsSpatial) ||
      !readLabels(rhs, "io", labels.rhsInput, labels.rhsOutput, labels.rhsSpatial) ||
      !readLabels(out, "bf", labels.outBatch, labels.outFeature, labels.outSpatial)) {
    error(DiagnosticKind::BadAttribute, range, "expected dimension labels such as `b01f_01io->b01f`");
    return std::nullopt;
  }
  return AttributeValue(arena->saveObject(std::move(labels)));
}

HloComputation *ModuleParser::parseComputationRef(unsigned depth) {
  if (token().is('{')) {
    SourceRange range = token().range();
    std::string name = uniqueComputationName("inline");
    return parseBody(arena->save(name), range, depth + computationLevels);
  }
  llvm::StringRef name;
  SourceRange range;
  if (!parseName(name, range))
    return nullptr;
  auto found = computations.find(name);
  if (found != computations.end())
    return found->second;
  if (llvm::is_contained(openComputations, name))
    error(DiagnosticKind::InvalidCallee, range, "computation `" + name.str() + "` calls itself");
  else if (!computationRanges.contains(name)) // else its own errors were reported
    undefinedComputation(name, range);
  failed = true;
  return nullptr;
}

std::optional<AttributeValue> ModuleParser::parseInstructionList(Scope &scope) {
  llvm::SmallVector<HloInstruction *> list;
  if (!expect('{'))
    return std::nullopt;
  while (!token().is('}')) {
    if (!list.empty() && !expect(','))
      return std::nullopt;
    llvm::StringRef name;
    SourceRange range;
    bool poisoned = false;
    if (!parseName(name, range))
      return std::nullopt;
    HloInstruction *instr = lookUp(scope, name, range, poisoned);
    if (!instr)
      return std::nullopt;
    list.push_back(instr);
  }
  lexer.advance();
  return AttributeValue(llvm::ArrayRef<HloInstruction *>(arena->saveList(llvm::ArrayRef<HloInstruction *>(list))));
}

/// {{0}: (1, {}), {1}: (2, {0})}
std::optional<AttributeValue> ModuleParser::parseAlias() {
  llvm::SmallVector<OutputAlias> aliases;
  if (!expect('{'))
    return std::nullopt;
  while (!token().is('}')) {
    if (!aliases.empty() && !expect(','))
      return std::nullopt;
    llvm::SmallVector<int64_t> output, operandIndex;
    if (!parseInts(output) || !expect(':') || !expect('('))
      return std::nullopt;
    std::optional<int64_t> operand = parseInt();
    if (!operand || !expect(',') || !parseInts(operandIndex) || !expect(')'))
      return std::nullopt;
    aliases.push_back({arena->saveList(llvm::ArrayRef<int64_t>(output)), *operand,
                       arena->saveList(llvm::ArrayRef<int64_t>(operandIndex))});
  }
  lexer.advance();
  return AttributeValue(llvm::ArrayRef<OutputAlias>(arena->saveList(llvm::ArrayRef<OutputAlias>(aliases))));
}

/// {(f32[2]{0}, s32[])->f32[]}
std::optional<AttributeValue> ModuleParser::parseProgramShape() {
  if (!expect('{') || !expect('('))
    return std::nullopt;
  llvm::SmallVector<Shape> shapes;
  while (!token().is(')')) {
    if (!shapes.empty() && !expect(','))
      return std::nullopt;
    std::optional<Shape> shape = parseShape();
    if (!shape)
      return std::nullopt;
    shapes.push_back(*shape);
  }
  lexer.advance();
  if (token().kind != TokenKind::Arrow) {
    expected("`->`");
    return std::nullopt;
  }
  lexer.advance();
  std::optional<Shape> result = parseShape();
  if (!result || !expect('}'))
    return std::nullopt;
  shapes.push_back(*result);
  return AttributeValue(llvm::ArrayRef<Shape>(arena->saveList(llvm::ArrayRef<Shape>(shapes))));
}

/// {{0,1},{2,3}} | {} | [2,4]<=[8] | [4,2]<=[2,4]T(1,0) | mesh['x'=2,'y'=2] {'y'}
std::optional<llvm::StringRef> ModuleParser::parseReplicaGroups() {
  if (token().is('{'))
    return parseStructuredText(AttributeKey::ReplicaGroups);
  uint32_t begin = token().begin;
  llvm::StringRef all = lexer.rest();
  auto bad = [&]() -> std::optional<llvm::StringRef> {
    errorHere(DiagnosticKind::BadAttribute, "expected replica groups such as `{{0,1}}` or `[2,4]<=[8]`");
    return std::nullopt;
  };
  llvm::StringRef rest = all;
  bool mesh = rest.consume_front("mesh");
  auto skipBalanced = [&] {
    size_t length = balancedLength(rest);
    if (rest.empty() || length == llvm::StringRef::npos)
      return false;
    rest = rest.drop_front(length);
    return true;
  };
  if (!rest.starts_with("[") || !skipBalanced())
    return bad();
  if (mesh) {
    llvm::StringRef devices = rest.ltrim();
    if (devices.consume_front(",") && devices.ltrim().consume_front("device_ids=")) {
      rest = devices.ltrim().drop_front(strlen("device_ids="));
      if (!skipBalanced())
        return bad();
    }
    rest = rest.ltrim();
    if (!rest.starts_with("{") || !skipBalanced())
      return bad();
  } else {
    if (!rest.consume_front("<=") || !rest.starts_with("[") || !skipBalanced())
      return bad();
    if (rest.starts_with("T(")) {
      rest = rest.drop_front();
      if (!skipBalanced())
        return bad();
    }
  }
  llvm::StringRef value = all.drop_back(rest.size());
  lexer.seek(uint32_t(begin + value.size()));
  return value;
}

} // namespace hloc
