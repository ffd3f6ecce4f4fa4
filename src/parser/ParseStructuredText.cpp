// Attribute values that nothing in the compiler computes with: read once for their form, kept as they are written.
#include "ModuleParser.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

std::optional<llvm::StringRef> ModuleParser::parseStructuredText(AttributeKey key) {
  if (!token().is('{')) {
    expected("`{` of " + text(key).str());
    return std::nullopt;
  }
  uint32_t begin = token().begin;
  bool good = false;
  switch (key) {
  case AttributeKey::Metadata:
    good = parseMetadata();
    break;
  case AttributeKey::FrontendAttributes:
    good = parseFrontendAttributes();
    break;
  case AttributeKey::ParameterReplication:
  case AttributeKey::AllowSpmdToParameters:
  case AttributeKey::AllowSpmdToOutput:
    good = parseBools();
    break;
  case AttributeKey::InputOutputAlias:
  case AttributeKey::BufferDonor:
    good = parseModuleAliases(key == AttributeKey::BufferDonor);
    break;
  case AttributeKey::ReplicaGroups:
    good = parseIntLists().has_value();
    break;
  case AttributeKey::Domain:
    good = parseDomain();
    break;
  case AttributeKey::Sharding:
    good = parseSharding();
    break;
  default:
    return parseRaw(text(key));
  }
  if (!good)
    return std::nullopt;
  llvm::StringRef whole = lexer.source().slice(begin, token().begin);
  return whole.take_front(whole.rfind('}') + 1);
}

/// {op_type="add" op_name="a/b" source_line=3}: blanks or commas between the entries.
bool ModuleParser::parseMetadata() {
  enum class Field { String, Int, Ints };
  constexpr std::pair<llvm::StringLiteral, Field> fields[] = {
      {"op_name", Field::String},           {"stack_frame_id", Field::Int},     {"source_file", Field::String},
      {"source_line", Field::Int},          {"op_type", Field::String},         {"source_end_line", Field::Int},
      {"source_column", Field::Int},        {"source_end_column", Field::Int},  {"profile_type", Field::Ints},
      {"deduplicated_name", Field::String}, {"scheduling_name", Field::String}, {"metadata_payload", Field::String}};
  lexer.advance();
  while (!token().is('}')) {
    Token name = token();
    if (name.kind != TokenKind::Attribute)
      return expected("a metadata field");
    auto *field = llvm::find_if(fields, [&](const auto &known) { return known.first == name.text; });
    if (field == std::end(fields))
      return error(DiagnosticKind::BadAttribute, name.range(), "metadata has no field `" + name.text.str() + "`");
    lexer.advance();
    llvm::SmallVector<int64_t> ints;
    if (field->second == Field::Ints) {
      if (!parseInts(ints))
        return false;
    } else {
      bool string = field->second == Field::String;
      if (token().kind != (string ? TokenKind::String : TokenKind::Integer))
        return expected(string ? "a string" : "an integer");
      lexer.advance();
    }
    accept(',');
  }
  lexer.advance();
  return true;
}

/// {key="text", other={json}}
bool ModuleParser::parseFrontendAttributes() {
  lexer.advance();
  for (bool first = true; !token().is('}'); first = false) {
    if (!first && !expect(','))
      return false;
    if (token().kind != TokenKind::Attribute)
      return expected("`key=`");
    lexer.advance();
    if (token().kind == TokenKind::String)
      lexer.advance();
    else if (!parseRaw("a frontend attribute", balancedBraces))
      return false;
  }
  lexer.advance();
  return true;
}

bool ModuleParser::parseBools() {
  lexer.advance();
  for (bool first = true; !token().is('}'); first = false)
    if ((!first && !expect(',')) || !parseBool())
      return false;
  lexer.advance();
  return true;
}

/// Aliases { {0}: (1, {}, may-alias) } or, of buffer_donor, { (1, {}) }.
bool ModuleParser::parseModuleAliases(bool donors) {
  lexer.advance();
  auto parseIndex = [&] {
    llvm::SmallVector<int64_t> index;
    return parseInts(index);
  };
  for (bool first = true; !token().is('}'); first = false) {
    if (!first && !expect(','))
      return false;
    if (!donors && (!parseIndex() || !expect(':')))
      return false;
    if (!expect('(') || !parseInt() || !expect(',') || !parseIndex())
      return false;
    if (!donors && accept(',')) {
      if (token().text != "may-alias" && token().text != "must-alias")
        return expected("`may-alias` or `must-alias`");
      lexer.advance();
    }
    if (!expect(')'))
      return false;
  }
  lexer.advance();
  return true;
}

/// {kind="sharding", entry={...}, exit={...}}
bool ModuleParser::parseDomain() {
  lexer.advance();
  for (llvm::StringRef name : {"kind", "entry", "exit"}) {
    if (name != "kind" && !expect(','))
      return false;
    if (token().kind != TokenKind::Attribute || token().text != name)
      return expected("`" + name.str() + "=`");
    lexer.advance();
    if (name == "kind") {
      if (token().kind != TokenKind::String || token().text.drop_front().drop_back() != "sharding")
        return errorHere(DiagnosticKind::BadAttribute, "the one kind of domain is \"sharding\"");
      lexer.advance();
    } else if (!parseRaw(name)) {
      return false;
    }
  }
  return expect('}');
}

/// {replicated}, {maximal device=3}, {devices=[2,2]<=[4] last_tile_dims={manual}}, {mesh['x'=2], [{'x'}]}, {{..},
/// {..}}. Only the first word is checked; the rest must be balanced.
bool ModuleParser::parseSharding(unsigned depth) {
  if (depth > maxNesting)
    return errorHere(DiagnosticKind::TooDeep, "shardings nest deeper than " + std::to_string(maxNesting));
  llvm::StringRef inside = lexer.rest().drop_front().ltrim();
  if (!inside.starts_with("{")) {
    llvm::StringRef word = inside.take_while(isIdentifierBody);
    bool known = llvm::is_contained({"", "replicated", "manual", "unknown", "unreduced", "maximal", "devices", "mesh",
                                     "maximal_mesh", "shard_as", "shard_like", "metadata", "last_tile_dim_replicate"},
                                    word);
    if (!known)
      return errorHere(DiagnosticKind::BadAttribute, "`" + word.str() + "` starts no sharding");
    return parseRaw("sharding").has_value();
  }
  lexer.advance();
  for (bool first = true; !token().is('}'); first = false) {
    if (!first && !expect(','))
      return false;
    if (!token().is('{'))
      return expected("`{`");
    if (!parseSharding(depth + 1))
      return false;
  }
  lexer.advance();
  return true;
}

} // namespace hloc
