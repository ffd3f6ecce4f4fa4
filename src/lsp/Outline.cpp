// The structure of a text: symbols, what can be folded, shapes that are not written.

#include "Features.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::lsp {

namespace {

/// Of the protocol.
enum SymbolKind { Function = 12, Variable = 13, Constant = 14, TypeParameter = 26 };

/// Inside an object.
void writeSymbol(Out &out, const Document &document, llvm::StringRef name, llvm::StringRef detail, SymbolKind kind,
                 SourceRange range, SourceRange selection) {
  out.attribute("name", textValue(name.empty() ? "(unnamed)" : name));
  out.attribute("detail", textValue(detail));
  out.attribute("kind", int64_t(kind));
  writeRange(out, "range", document.lines(), range);
  writeRange(out, "selectionRange", document.lines(), selection);
}

SymbolKind kindOf(llvm::StringRef opcode) {
  return opcode == "parameter" ? TypeParameter : opcode == "constant" ? Constant : Variable;
}

void writeInstructions(Out &out, const Document &document, const TextScan &scan, const NamedComputation &computation,
                       size_t &left) {
  for (uint32_t i = computation.firstInstruction; i < computation.endInstruction && left > 0; ++i, --left) {
    const NamedInstruction &one = scan.instructions[i];
    constexpr size_t most = 60; // of a tuple's shape
    const std::string detail = (scan.slice(one.opcode) + " " + scan.slice(one.shape).take_front(most)).str();
    out.object([&] {
      writeSymbol(out, document, scan.slice(one.name), detail, kindOf(scan.slice(one.opcode)), one.range, one.name);
    });
  }
}

} // namespace

void outline(Document &document, Out &out) {
  const TextScan &scan = document.scan();
  size_t left = 100'000; // more than any list is read of; a text of 20 MB has as many
  out.array([&] {
    for (const NamedComputation &computation : scan.computations) {
      if (left == 0)
        return;
      if (computation.isInner && computation.open != none)
        continue;                        // its instructions are listed with those around it
      if (!computation.name.isValid()) { // the text is one instruction
        writeInstructions(out, document, scan, computation, left);
        continue;
      }
      --left;
      out.object([&] {
        writeSymbol(out, document, scan.slice(computation.name), computation.isEntry ? "ENTRY" : "", Function,
                    computation.range, computation.name);
        out.attributeArray("children", [&] { writeInstructions(out, document, scan, computation, left); });
      });
    }
  });
}

void foldingRanges(Document &document, Out &out) {
  const TextScan &scan = document.scan();
  out.array([&] {
    for (const NamedComputation &computation : scan.computations) {
      if (computation.open == none)
        continue;
      const uint32_t first = document.lines().lineOf(computation.open);
      const uint32_t last = document.lines().lineOf(computation.range.end);
      if (last > first + 1)
        out.object([&] {
          out.attribute("startLine", int64_t(first));
          out.attribute("endLine", int64_t(last - 1));
        });
    }
  });
}

namespace {

/// Of the protocol.
enum HintKind { TypeHint = 1 };

struct Hint {
  uint32_t at, instruction; ///< whose shape is shown there
};

/// In the order of the text.
std::vector<Hint> hintsIn(const TextScan &scan, SourceRange range) {
  constexpr size_t most = 2000;
  std::vector<Hint> hints;
  auto token =
      llvm::lower_bound(scan.tokens, range.begin, [](const ScannedToken &one, uint32_t at) { return one.begin < at; });
  for (; token != scan.tokens.end() && token->begin < range.end && hints.size() < most; ++token) {
    const bool afterShape = token != scan.tokens.begin() && (token - 1)->is(ScannedToken::Shape);
    if (afterShape)
      continue;
    if (token->role == Role::OperandName) {
      if (const NameUse *use = scan.useAt(token->end); use && use->target != none)
        hints.push_back({token->begin, use->target});
    } else if (token->role == Role::Opcode) {
      const uint32_t index = scan.instructionAt(token->begin);
      if (index != none && scan.instructions[index].opcode.begin == token->begin)
        hints.push_back({token->begin, index});
    }
  }
  return hints;
}

} // namespace

void inlayHints(Document &document, SourceRange range, Out &out) {
  constexpr size_t longest = 40;
  out.array([&] {
    for (const Hint &hint : hintsIn(document.scan(), range)) {
      std::string shape = document.shapeOf(hint.instruction, /*withLayout=*/false);
      if (shape.empty())
        continue;
      if (shape.size() > longest)
        shape = shape.substr(0, longest) + "...";
      out.object([&] {
        out.attributeBegin("position");
        write(out, document.lines().positionOf(hint.at));
        out.attributeEnd();
        out.attribute("label", textValue(shape));
        out.attribute("kind", int64_t(TypeHint));
        out.attribute("paddingRight", true);
      });
    }
  });
}

json::Array semanticTokenTypes() {
  return json::Array{"keyword",  "namespace", "class",      "parameter", "variable", "type",
                     "function", "property",  "enumMember", "number",    "string"};
}

static std::optional<unsigned> semanticType(Role role) {
  enum { Keyword, Namespace, Class, Parameter, Variable, Type, Function, Property, EnumMember, Number, String };
  switch (role) {
  case Role::Other:
    return std::nullopt;
  case Role::Keyword:
    return Keyword;
  case Role::ModuleName:
    return Namespace;
  case Role::ComputationName:
  case Role::ComputationUse:
    return Class;
  case Role::SignatureName:
    return Parameter;
  case Role::InstructionName:
  case Role::OperandName:
    return Variable;
  case Role::Type:
    return Type;
  case Role::Opcode:
    return Function;
  case Role::AttributeKey:
    return Property;
  case Role::Word:
    return EnumMember;
  case Role::Number:
    return Number;
  case Role::String:
    return String;
  }
  return std::nullopt;
}

/// Five numbers a token; none if there are too many.
static std::vector<uint32_t> semanticNumbers(Document &document, SourceRange range) {
  constexpr size_t most = 1'000'000; // of larger texts editors can ask for a range
  const TextScan &scan = document.scan();
  std::vector<uint32_t> data;
  Position last;
  auto token = std::lower_bound(scan.tokens.begin(), scan.tokens.end(), range.begin,
                                [](const ScannedToken &one, uint32_t at) { return one.begin < at; });
  for (; token != scan.tokens.end() && token->begin < range.end; ++token) {
    const std::optional<unsigned> type = semanticType(token->role);
    const uint32_t end = token->role == Role::AttributeKey ? token->end - 1 : token->end; // without `=`
    if (!type)
      continue;
    const Position begin = document.lines().positionOf(token->begin), behind = document.lines().positionOf(end);
    if (begin.line != behind.line) // a string over several lines, which tokens cannot be
      continue;
    if (data.size() >= most)
      return {};
    const bool sameLine = begin.line == last.line;
    for (uint32_t number : {begin.line - last.line, sameLine ? begin.character - last.character : begin.character,
                            behind.character - begin.character, *type, 0u})
      data.push_back(number);
    last = begin;
  }
  return data;
}

void semanticTokens(Document &document, SourceRange range, Out &out) {
  out.object([&] {
    out.attributeArray("data", [&] {
      for (uint32_t number : semanticNumbers(document, range))
        out.value(int64_t(number));
    });
  });
}

} // namespace hloc::lsp
