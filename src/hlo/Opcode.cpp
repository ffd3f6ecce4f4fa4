#include "hloc/hlo/Opcode.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <vector>

namespace hloc {

namespace {

enum class ShapeRule : uint8_t { Inferred, Required };

struct Row {
  llvm::StringLiteral text;
  int8_t minOperands, maxOperands;
  OpcodeFamily family;
  ShapeRule shape;
  llvm::StringLiteral attributes;
};

constexpr Row rows[] = {
#define HLOC_OPCODE(name, text, minOperands, maxOperands, family, shape, attributes)                                   \
  {text, minOperands, maxOperands, OpcodeFamily::family, ShapeRule::shape, attributes},
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

llvm::StringRef text(Opcode opcode) { return row(opcode).text; }

std::optional<Opcode> parseOpcode(llvm::StringRef text) {
  static const llvm::StringMap<Opcode> opcodes = [] {
    llvm::StringMap<Opcode> map;
    for (size_t i = 0; i < std::size(rows); ++i)
      map.try_emplace(rows[i].text, static_cast<Opcode>(i));
    return map;
  }();
  auto found = opcodes.find(text);
  return found == opcodes.end() ? std::nullopt : std::optional(found->second);
}

unsigned numOpcodes() { return std::size(rows); }
OpcodeFamily family(Opcode opcode) { return row(opcode).family; }
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

bool isElementwise(Opcode opcode) {
  switch (family(opcode)) {
  case OpcodeFamily::Unary:
  case OpcodeFamily::Binary:
  case OpcodeFamily::Ternary:
  case OpcodeFamily::Compare:
  case OpcodeFamily::Convert:
    return true;
  default:
    return false;
  }
}

} // namespace hloc
