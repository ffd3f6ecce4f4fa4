// What may stand where the cursor is: opcodes, attributes of an opcode, values, names.

#include "Features.h"
#include "OpcodeMeanings.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc::lsp {

namespace {

/// Of the protocol.
enum ItemKind { Function = 3, Variable = 6, Class = 7, Property = 10, EnumMember = 20, TypeParameter = 25 };

struct Item {
  std::string label;
  ItemKind kind;
  std::string detail = {};
  unsigned rank = 0; ///< in which order they are shown
};

/// Where the cursor is in the instruction that is being written.
struct Place {
  enum class Kind { Nowhere, Opcode, Operand, Attribute, Value, HeaderAttribute };
  Kind kind = Kind::Nowhere;
  llvm::StringRef opcode, key;                   ///< that it is about
  llvm::SmallVector<llvm::StringRef> given = {}; ///< attributes that are there
  uint32_t computation = none, instruction = none;
};

/// Follows the tokens of an instruction up to the cursor.
class PlaceFinder {
public:
  PlaceFinder(const TextScan &scan, Place &place) : scan(scan), place(place) {}

  void pass(const ScannedToken &token) {
    using enum Place::Kind;
    const llvm::StringRef text = scan.text.slice(token.begin, token.end);
    if (token.role == Role::InstructionName)
      place.kind = text.ends_with("=") ? Opcode : Nowhere;
    else if (token.role == Role::AttributeKey)
      passKey(text.drop_back());
    else if (token.role == Role::Opcode && parentheses == 0) {
      place.opcode = text;
      place.kind = Nowhere;
    } else if (token.kind == TokenKind::Punctuation && !token.is(ScannedToken::Shape))
      passPunctuation(text.front());
  }

private:
  bool takesOperands() const {
    return !place.opcode.empty() && place.key.empty() && place.opcode != "constant" && place.opcode != "parameter";
  }

  void passKey(llvm::StringRef key) {
    place.given.push_back(key);
    place.key = key;
    place.kind = Place::Kind::Value;
  }

  void passPunctuation(char c) {
    using enum Place::Kind;
    if (c == '=' && place.opcode.empty())
      place.kind = Opcode;
    else if (c == '{')
      ++braces;
    else if (c == '}')
      place.kind = --braces > 0 ? place.kind : Nowhere;
    else if (c == '(')
      place.kind = parentheses++ == 0 && takesOperands() ? Operand : place.kind;
    else if (c == ')')
      place.kind = --parentheses > 0 ? place.kind : Nowhere;
    else if (c == ',' && parentheses <= 0 && braces <= 0)
      place.kind = place.opcode.empty() ? Nowhere : Attribute;
  }

  const TextScan &scan;
  Place &place;
  int parentheses = 0, braces = 0;
};

class Completer {
public:
  Completer(Document &document, uint32_t offset) : document(document), scan(document.scan()), offset(offset) {
    const uint32_t index = scan.tokenAt(offset);
    const bool inWord =
        index != none && (scan.tokens[index].kind == TokenKind::Identifier ||
                          scan.tokens[index].kind == TokenKind::Name || scan.text[scan.tokens[index].begin] == '%');
    prefixBegin = inWord ? scan.tokens[index].begin : offset;
    prefix = scan.text.slice(prefixBegin, offset);
  }

  void write(Out &out) {
    const Place place = findPlace();
    switch (place.kind) {
    case Place::Kind::Nowhere:
      return out.value(nullptr);
    case Place::Kind::Opcode:
      addOpcodes();
      break;
    case Place::Kind::Operand:
      addNames(place);
      break;
    case Place::Kind::Attribute:
      addAttributes(place);
      break;
    case Place::Kind::HeaderAttribute:
      addHeaderAttributes();
      break;
    case Place::Kind::Value:
      addValues(place);
      break;
    }
    writeItems(out);
  }

private:
  Place findPlace() {
    Place place;
    place.computation = scan.computationAt(prefixBegin);
    auto after = std::upper_bound(scan.instructions.begin(), scan.instructions.end(), prefixBegin,
                                  [](uint32_t at, const NamedInstruction &one) { return at < one.range.begin; });
    // Behind an inner computation the instruction goes on that it stands in.
    while (after != scan.instructions.begin() && place.computation != none &&
           (after - 1)->computation != place.computation && (after - 1)->computation > place.computation)
      --after;
    auto token = llvm::upper_bound(scan.tokens, prefixBegin,
                                   [](uint32_t at, const ScannedToken &one) { return at <= one.begin; });
    if (after == scan.instructions.begin() || (after - 1)->computation != place.computation) {
      const bool inHeader = !scan.tokens.empty() && scan.text.substr(scan.tokens[0].begin).starts_with("HloModule") &&
                            (scan.computations.empty() || prefixBegin < scan.computations[0].range.begin);
      if (inHeader && token != scan.tokens.begin() && scan.text[(token - 1)->begin] == ',')
        place.kind = Place::Kind::HeaderAttribute;
      return place;
    }
    const NamedInstruction &instruction = *(after - 1);
    place.instruction = uint32_t(after - scan.instructions.begin() - 1);
    // Tokens behind it that are no part of it begin something else.
    if (token != scan.tokens.begin() && (token - 1)->begin >= instruction.range.end)
      return place;
    auto first = llvm::lower_bound(scan.tokens, instruction.range.begin,
                                   [](const ScannedToken &one, uint32_t at) { return one.begin < at; });
    PlaceFinder finder(scan, place);
    for (; first < token; ++first)
      finder.pass(*first);
    return place;
  }

  void add(Item item) {
    llvm::StringRef wanted = prefix;
    wanted.consume_front("%");
    if (!wanted.empty() && !llvm::StringRef(item.label).contains_insensitive(wanted))
      return;
    constexpr size_t most = 500;
    if (items.size() < most)
      items.push_back(std::move(item));
    else
      isCut = true;
  }

  void addOpcodes() {
    for (unsigned i = 0; i < numOpcodes(); ++i)
      add({text(Opcode(i)).str(), Function, meaning(Opcode(i)).str()});
#define HLOC_ELEMENT_TYPE(name, text, ...) add({text, TypeParameter, "element type", 1});
#include "hloc/hlo/ElementTypes.def"
  }

  /// Those defined before this one in its computation, the nearest first.
  void addNames(const Place &place) {
    unsigned rank = 0;
    for (uint32_t i = place.instruction; i-- > scan.computations[place.computation].firstInstruction;) {
      const NamedInstruction &one = scan.instructions[i];
      if (one.computation != place.computation)
        continue;
      const bool hasSign = scan.text[one.nameToken] == '%';
      add({(hasSign || prefix.starts_with("%") ? "%" : "") + scan.slice(one.name).str(), Variable,
           scan.slice(one.shape).take_front(100).str(), rank++});
    }
  }

  void addAttributes(const Place &place) {
    auto offer = [&](AttributeKey key, AttributeGrammar grammar, bool required, unsigned rank) {
      if (!llvm::is_contained(place.given, text(key)))
        add({text(key).str() + "=", Property, valueForm(key, grammar) + (required ? ", required" : ""), rank});
    };
    if (const std::optional<Opcode> opcode = parseOpcode(place.opcode))
      for (const AttributeSpec &spec : attributeSpecs(*opcode))
        offer(spec.key, spec.grammar, spec.required, spec.required ? 0 : 1);
    for (AttributeKey key : {AttributeKey::Metadata, AttributeKey::BackendConfig, AttributeKey::Sharding,
                             AttributeKey::FrontendAttributes, AttributeKey::ControlPredecessors,
                             AttributeKey::Statistics, AttributeKey::ParameterReplication, AttributeKey::Origin})
      offer(key, grammar(key), false, 2);
  }

  void addHeaderAttributes() {
    for (AttributeKey key :
         {AttributeKey::EntryComputationLayout, AttributeKey::IsScheduled, AttributeKey::InputOutputAlias,
          AttributeKey::BufferDonor, AttributeKey::ReplicaCount, AttributeKey::NumPartitions,
          AttributeKey::FrontendAttributes, AttributeKey::AllowSpmdToParameters, AttributeKey::AllowSpmdToOutput,
          AttributeKey::AliasPassthroughParams})
      add({text(key).str() + "=", Property, valueForm(key, grammar(key))});
  }

  void addValues(const Place &place) {
    const std::optional<AttributeGrammar> grammar = grammarOf(place.key, place.opcode);
    if (!grammar)
      return;
    using enum AttributeGrammar;
    if (*grammar == Bool) {
      add({"true", EnumMember});
      add({"false", EnumMember});
    } else if (*grammar == Computation || *grammar == Computations) {
      for (const NamedComputation &computation : scan.computations)
        if (computation.name.isValid() && computation.range.end < offset)
          add({(scan.text[computation.name.begin - (computation.name.begin > 0)] == '%' ? "%" : "") +
                   scan.slice(computation.name).str(),
               Class});
    } else if (*grammar == Instructions) {
      addNames(place);
    } else if (*grammar == Enum || *grammar == EnumList || *grammar == DotAlgorithm || *grammar == RandomAlgorithm) {
      for (llvm::StringRef word : enumSpellings(enumTypeOf(*parseAttributeKey(place.key), *grammar)))
        if (!word.empty())
          add({word.str(), EnumMember});
    }
  }

  void writeItems(Out &out) const {
    out.object([&] {
      out.attribute("isIncomplete", isCut);
      out.attributeArray("items", [&] {
        for (const Item &item : items)
          writeItem(out, item);
      });
    });
  }

  void writeItem(Out &out, const Item &item) const {
    out.object([&] {
      out.attribute("label", textValue(item.label));
      out.attribute("kind", int64_t(item.kind));
      if (!item.detail.empty())
        out.attribute("detail", textValue(item.detail));
      out.attribute("sortText", textValue(fmt::format("{:06}{}", item.rank, item.label)));
      out.attributeObject("textEdit", [&] {
        writeRange(out, "range", document.lines(), {prefixBegin, offset});
        out.attribute("newText", textValue(item.label));
      });
    });
  }

  Document &document;
  const TextScan &scan;
  uint32_t offset, prefixBegin;
  llvm::StringRef prefix;
  std::vector<Item> items;
  bool isCut = false;
};

} // namespace

void completion(Document &document, uint32_t offset, Out &out) { Completer(document, offset).write(out); }

} // namespace hloc::lsp
