#include "hloc/hlo/Opcode.h"

#include "hloc/hlo/OpcodeTable.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <vector>

namespace hloc {

namespace {

enum class ShapeRule : uint8_t { Inferred, Required };

/// The other columns (see opcodeFacts).
struct Row {
  int8_t minOperands, maxOperands;
  ShapeRule shape;
  llvm::StringLiteral attributes;
};

constexpr Row rows[] = {
#define HLOC_OPCODE(name, text, minOperands, maxOperands, family, shape, traits, attributes)                           \
  {minOperands, maxOperands, ShapeRule::shape, attributes},
#include "hloc/hlo/Opcodes.def"
};

const Row &row(Opcode opcode) { return rows[static_cast<size_t>(opcode)]; }

AttributeGrammar grammarNamed(llvm::StringRef text, AttributeKey key) {
  if (text == "DotAlgorithm")
    return AttributeGrammar::DotAlgorithm;
  if (text == "RandomAlgorithm")
    return AttributeGrammar::RandomAlgorithm;
  if (text == "IntLists")
    return AttributeGrammar::IntLists;
  HLOC_CHECK(text.empty(), "unknown grammar in Opcodes.def");
  return grammar(key);
}

/// `"dimensions! to_apply! algorithm:DotAlgorithm"`
std::vector<AttributeSpec> parseSpecs(llvm::StringRef column) {
  std::vector<AttributeSpec> specs;
  llvm::SmallVector<llvm::StringRef> words;
  column.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef word : words) {
    auto [name, grammarName] = word.split(':');
    bool required = name.consume_back("!");
    std::optional<AttributeKey> key = parseAttributeKey(name);
    HLOC_CHECK(key.has_value(), "unknown attribute in Opcodes.def");
    specs.push_back({*key, grammarNamed(grammarName, *key), required});
  }
  return specs;
}

} // namespace

std::optional<Opcode> parseOpcode(llvm::StringRef text) {
  static const llvm::StringMap<Opcode> opcodes = [] {
    llvm::StringMap<Opcode> map;
    for (unsigned i = 0; i < numOpcodes(); ++i)
      map.try_emplace(opcodeFacts[i].text, Opcode(i));
    return map;
  }();
  auto found = opcodes.find(text);
  return found == opcodes.end() ? std::nullopt : std::optional(found->second);
}

int minOperands(Opcode opcode) { return row(opcode).minOperands; }
int maxOperands(Opcode opcode) { return row(opcode).maxOperands; }
bool mayOmitShape(Opcode opcode) { return row(opcode).shape == ShapeRule::Inferred; }

llvm::ArrayRef<AttributeSpec> attributeSpecs(Opcode opcode) {
  static const std::vector<std::vector<AttributeSpec>> specs = [] {
    std::vector<std::vector<AttributeSpec>> all;
    for (const Row &row : rows)
      all.push_back(parseSpecs(row.attributes));
    return all;
  }();
  return specs[static_cast<size_t>(opcode)];
}

std::optional<unsigned> firstIndexOperand(Opcode opcode) {
  using enum Opcode;
  static constexpr OpcodeTable<std::optional<unsigned>> first(
      [](Opcode each) { return hasTrait(each, OpcodeTrait::Moves); },
      {
          {{Bitcast, Broadcast, Concatenate, Pad, Reshape, Reverse, Slice, Transpose}, std::nullopt},
          {{DynamicSlice, Gather}, 1},
          {{DynamicUpdateSlice}, 2},
      });
  return hasTrait(opcode, OpcodeTrait::Moves) ? first[opcode] : std::nullopt;
}

TypeSet typeSet(ElementType type) {
  return isArrayType(type) ? static_cast<TypeSet>(1 << static_cast<unsigned>(category(type))) : TypeSet::None;
}

std::string describe(TypeSet set) {
  constexpr std::pair<TypeSet, const char *> names[] = {
      {TypeSet::Pred, "pred"},
      {TypeSet::Integer, "integer"},
      {TypeSet::Signed, "signed integer"},
      {TypeSet::Unsigned, "unsigned integer"},
      {TypeSet::Float, "float"},
      {TypeSet::Complex, "complex"},
  };
  std::string out;
  TypeSet named = TypeSet::None;
  for (auto [part, name] : names)
    if (includes(set, part) && !includes(named, part)) {
      out += (out.empty() ? "" : ", ") + std::string(name);
      named = named | part;
    }
  return out;
}

} // namespace hloc
