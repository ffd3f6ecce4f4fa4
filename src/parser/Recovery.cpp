// What the parser says beyond "expected X": what was meant, where something is defined, how to go on after an error.
#include "ModuleParser.h"

#include "hloc/hlo/Verifier.h"
#include "hloc/support/Suggestion.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hloc {

namespace {

/// Element types as numpy, torch, MLIR and C spell them.
constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> otherSpellings[] = {{"bool", "pred"},
                                                                                  {"i1", "pred"},
                                                                                  {"int2", "s2"},
                                                                                  {"int4", "s4"},
                                                                                  {"int8", "s8"},
                                                                                  {"int16", "s16"},
                                                                                  {"int32", "s32"},
                                                                                  {"int64", "s64"},
                                                                                  {"i4", "s4"},
                                                                                  {"i8", "s8"},
                                                                                  {"i16", "s16"},
                                                                                  {"i32", "s32"},
                                                                                  {"i64", "s64"},
                                                                                  {"int", "s32"},
                                                                                  {"long", "s64"},
                                                                                  {"uint2", "u2"},
                                                                                  {"uint4", "u4"},
                                                                                  {"uint8", "u8"},
                                                                                  {"uint16", "u16"},
                                                                                  {"uint32", "u32"},
                                                                                  {"uint64", "u64"},
                                                                                  {"ui4", "u4"},
                                                                                  {"ui8", "u8"},
                                                                                  {"ui16", "u16"},
                                                                                  {"ui32", "u32"},
                                                                                  {"ui64", "u64"},
                                                                                  {"float16", "f16"},
                                                                                  {"half", "f16"},
                                                                                  {"bfloat16", "bf16"},
                                                                                  {"float32", "f32"},
                                                                                  {"float", "f32"},
                                                                                  {"float64", "f64"},
                                                                                  {"double", "f64"},
                                                                                  {"complex64", "c64"},
                                                                                  {"complex128", "c128"},
                                                                                  {"float8_e4m3fn", "f8e4m3fn"},
                                                                                  {"float8_e5m2", "f8e5m2"},
                                                                                  {"float4_e2m1fn", "f4e2m1fn"},
                                                                                  {"fp4", "f4e2m1fn"},
                                                                                  {"fp8", "f8e4m3fn"},
                                                                                  {"fp16", "f16"},
                                                                                  {"fp32", "f32"},
                                                                                  {"fp64", "f64"}};

llvm::StringRef meantElementType(llvm::StringRef written) {
  std::string lower = written.lower();
  for (const auto &[other, own] : otherSpellings)
    if (other == lower)
      return own;
  llvm::SmallVector<llvm::StringRef> all;
#define HLOC_ELEMENT_TYPE(name, text, ...) all.push_back(text);
#include "hloc/hlo/ElementTypes.def"
  return nearestName(lower, all);
}

/// Does this line of a body begin an instruction?
bool startsInstruction(llvm::StringRef line, llvm::StringRef &name) {
  line = line.ltrim();
  if (line.consume_front("ROOT "))
    line = line.ltrim();
  line.consume_front("%");
  name = line.take_while(isIdentifierBody);
  return !name.empty() && line.drop_front(name.size()).ltrim().starts_with("=");
}

llvm::StringRef lineAt(llvm::StringRef source, size_t at) {
  return source.substr(at).take_until([](char c) { return c == '\n'; });
}

} // namespace

bool ModuleParser::unclosed(llvm::StringRef what, SourceRange open) {
  failed = true;
  if (token().kind != TokenKind::Invalid) // which has been reported
    diagnostics
        .report(DiagnosticKind::ExpectedToken, token().range(), "expected " + what.str() + ", found " + describeToken())
        .note(open, "`" + lexer.source().slice(open.begin, open.end).str() + "` is opened here");
  return false;
}

bool ModuleParser::unknownElementType() {
  return errorHere(DiagnosticKind::BadShape,
                   "unknown element type `" + token().text.str() + "`" + suggestion(meantElementType(token().text)));
}

bool ModuleParser::unknownOpcode() {
  llvm::SmallVector<llvm::StringRef> all;
  for (unsigned i = 0; i < numOpcodes(); ++i)
    all.push_back(text(static_cast<Opcode>(i)));
  std::string meant = token().text.str(); // `stablehlo.dot_general`
  if (size_t dialect = meant.find("hlo."); dialect != std::string::npos)
    meant.erase(0, dialect + 4);
  std::replace(meant.begin(), meant.end(), '_', '-');
  return errorHere(DiagnosticKind::UnknownOpcode,
                   "unknown opcode `" + token().text.str() + "`" + suggestion(nearestName(meant, all)));
}

void ModuleParser::undefinedName(const Scope &scope, llvm::StringRef name, SourceRange use) {
  Diagnostic &report = diagnostics.report(DiagnosticKind::UndefinedName, use,
                                          "instruction `" + name.str() + "` is not defined before this use");
  failed = true;
  if (SourceRange later = definitionAfter(name, use.end); later.isValid()) {
    report.note(later, "it is defined here, after this use");
    return;
  }
  llvm::SmallVector<llvm::StringRef> known;
  for (const auto &entry : scope.names)
    known.push_back(entry.first);
  llvm::StringRef near = nearestName(name, known);
  if (!near.empty() && near != name)
    report.note(scope.names.find(near)->second.range, "did you mean `" + near.str() + "`?");
}

/// In the lines of this body, which ends at a line that starts with `}`.
SourceRange ModuleParser::definitionAfter(llvm::StringRef name, uint32_t from) const {
  llvm::StringRef source = lexer.source();
  for (size_t at = source.find('\n', from); at != llvm::StringRef::npos; at = source.find('\n', at)) {
    llvm::StringRef line = lineAt(source, ++at), defined;
    if (line.starts_with("}"))
      break;
    if (startsInstruction(line, defined) && defined == name) {
      auto begin = uint32_t(defined.data() - source.data());
      return {begin, begin + uint32_t(name.size())};
    }
  }
  return {};
}

void ModuleParser::undefinedComputation(llvm::StringRef name, SourceRange use) {
  Diagnostic &report = diagnostics.report(DiagnosticKind::UndefinedName, use,
                                          "computation `" + name.str() + "` is not defined before this use");
  failed = true;
  if (SourceRange later = computationAfter(name, use.end); later.isValid()) {
    report.note(later, "it is defined here, after this use");
    return;
  }
  llvm::SmallVector<llvm::StringRef> known;
  for (const auto &entry : computations)
    known.push_back(entry.first);
  if (llvm::StringRef near = nearestName(name, known); !near.empty())
    report.note(computationRanges.lookup(near), "did you mean `" + near.str() + "`?");
}

/// In a line that is the head of a computation, at its start.
SourceRange ModuleParser::computationAfter(llvm::StringRef name, uint32_t from) const {
  llvm::StringRef source = lexer.source();
  for (size_t at = source.find('\n', from); at != llvm::StringRef::npos; at = source.find('\n', at)) {
    llvm::StringRef line = lineAt(source, ++at), rest = line;
    rest.consume_front("%");
    llvm::StringRef defined = rest.take_while(isIdentifierBody);
    if (defined != name || !line.rtrim().ends_with("{"))
      continue;
    auto begin = uint32_t(defined.data() - source.data());
    return {begin, begin + uint32_t(name.size())};
  }
  return {};
}

/// To the next line that can be an instruction, or the end of the body. The line of the error itself is one if what
/// failed began before it: something was not closed there.
void ModuleParser::recover(uint32_t failedInstruction) {
  llvm::StringRef source = lexer.source();
  if (tooManyErrors())
    return lexer.seek(uint32_t(source.size()));
  size_t at = token().begin, line = source.take_front(at).rfind('\n') + 1;
  llvm::StringRef name;
  if (line > failedInstruction && startsInstruction(lineAt(source, line), name))
    return lexer.seek(uint32_t(line));
  while (true) {
    if (at < source.size() && source[at] == '}' && (at == 0 || source[at - 1] == '\n'))
      return lexer.seek(uint32_t(at));
    at = source.find('\n', at);
    if (at == llvm::StringRef::npos)
      return lexer.seek(uint32_t(source.size()));
    ++at;
    llvm::StringRef text = lineAt(source, at);
    if (text.ltrim().starts_with("}"))
      return lexer.seek(uint32_t(source.find('}', at)));
    if (startsInstruction(text, name))
      return lexer.seek(uint32_t(at));
  }
}

/// After an error in the header: to the first line that ends like the head of a computation.
void ModuleParser::skipToComputation() {
  llvm::StringRef source = lexer.source();
  size_t at = token().begin;
  while (at < source.size() && !lineAt(source, at).rtrim().ends_with("{"))
    at += lineAt(source, at).size() + 1;
  lexer.seek(uint32_t(std::min(at, source.size())));
}

/// After an error in a signature: to the `{` at the end of its line.
bool ModuleParser::skipToBody() {
  llvm::StringRef line = lineAt(lexer.source(), token().begin).rtrim();
  if (tooManyErrors() || !line.ends_with("{"))
    return false;
  lexer.seek(token().begin + uint32_t(line.size()) - 1);
  return true;
}

/// What was read well is checked too, so that one run reports all that is wrong. The users of what was not read well
/// are not there, hence the rules of single instructions only.
void ModuleParser::verifyWhatIsThere() {
  for (const auto &computation : module->computations())
    if (computation->root())
      verifyInstructions(*computation, diagnostics);
  for (const auto &computation : brokenComputations)
    verifyInstructions(*computation, diagnostics);
}

} // namespace hloc
