#pragma once
// The opcodes of HLO (rows in Opcodes.def) and the attributes each takes.

#include "hloc/hlo/Attribute.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace hloc {

enum class Opcode : uint8_t {
#define HLOC_OPCODE(name, text, minOperands, maxOperands, family, shape, attributes) name,
#include "hloc/hlo/Opcodes.def"
};

/// Opcodes that share verification and naming rules.
enum class OpcodeFamily : uint8_t {
  Unary,
  Binary,
  Ternary,
  Compare,
  Convert,  ///< elementwise
  Identity, ///< result = first operand
  Source,
  Movement,
  Structured,
  Random,
  Structure,
  Control,
  Host,
  Collective,
  Async,
};

/// One attribute an opcode takes.
struct AttributeSpec {
  AttributeKey key;
  AttributeGrammar grammar;
  bool required;
};

llvm::StringRef text(Opcode opcode);
std::optional<Opcode> parseOpcode(llvm::StringRef text);
unsigned numOpcodes();
OpcodeFamily family(Opcode opcode);
int minOperands(Opcode opcode);
int maxOperands(Opcode opcode); ///< -1: any number
bool mayOmitShape(Opcode opcode);
/// Opcode-specific attributes in the order of the table; common attributes are not listed.
llvm::ArrayRef<AttributeSpec> attributeSpecs(Opcode opcode);
/// Unary, Binary, Ternary, Compare, and Convert families: result element i depends on element i of the operands (scalar
/// operands of select and clamp aside). bitcast-convert counts only if the widths are equal, which this cannot know.
bool isElementwise(Opcode opcode);

} // namespace hloc
