#pragma once
// The opcodes of HLO (rows in Opcodes.def) and the attributes each takes.

#include "hloc/hlo/Attribute.h"
#include "hloc/hlo/ElementType.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

namespace hloc {

enum class Opcode : uint8_t {
#define HLOC_OPCODE(name, ...) name,
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

/// What passes ask of an opcode, one bit a question (column `traits`; sets are written `A | B`).
enum class OpcodeTrait : uint16_t {
  None = 0,
  /// Result element i is made of element i of the operands and of scalar operands. Of bitcast-convert only if the
  /// widths are equal, which the opcode cannot know.
  InPlace = 1 << 0,
  /// A function of elements, applied in place.
  Elementwise = 1 << 1 | InPlace,
  /// The result has the operands' values, bit for bit, in other places; operands after the data may say which.
  Moves = 1 << 2,
  /// Each result element is one element of operand 0, and which one is known at compile time.
  Rearranges = 1 << 3,
  /// The result is operand 0 as it is.
  PassesOn = 1 << 4,
  /// Between kernels it costs nothing: it only says which buffers are meant.
  NamesBuffers = 1 << 5,
  /// A result element is computed from many elements of the operands, in a loop.
  Contracts = 1 << 6,
  /// Every right implementation gives the same bits for floats: nothing is rounded but as the op itself says.
  Exact = 1 << 7,
  /// `to_apply` is called with elements, in an order that nobody promises.
  AppliesToElements = 1 << 8,
  /// `dimensions` names one dimension.
  OneDimension = 1 << 9,
  /// Starts or continues what one other instruction goes on with: it has one user.
  OneUser = 1 << 10,
  /// Operands and result may differ in float precision (hlo-text 6).
  MixedPrecision = 1 << 11,
  /// Must happen even if the result is not used. A custom call says by an attribute whether it is one.
  SideEffect = 1 << 12,
  /// Numbers can be combined by it in any order, but for how floats are rounded: what reductions are made of.
  Combines = 1 << 13,
};

constexpr OpcodeTrait operator|(OpcodeTrait a, OpcodeTrait b) {
  return static_cast<OpcodeTrait>(static_cast<uint16_t>(a) | static_cast<uint16_t>(b));
}
constexpr bool includes(OpcodeTrait set, OpcodeTrait trait) { return (set | trait) == set; }

/// Element categories an op is defined on (column `types`): bit i is ElementCategory i.
enum class TypeSet : uint8_t {
  None = 0,
  Pred = 1 << 0,
  Signed = 1 << 1,
  Unsigned = 1 << 2,
  Float = 1 << 3,
  Complex = 1 << 4,
  Integer = Signed | Unsigned,
  Number = Integer | Float | Complex,
  Any = Pred | Number,
};

constexpr TypeSet operator|(TypeSet a, TypeSet b) {
  return static_cast<TypeSet>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool includes(TypeSet set, TypeSet part) { return (set | part) == set; }
/// The element type of the result of an op of the Unary or Binary family (column `result`).
enum class OpcodeResult : uint8_t {
  Same,    ///< that of the operands
  Pred,    ///< pred
  Part,    ///< that of a part of a complex operand; of others the same
  OfParts, ///< the complex one of which the operands are parts
};

/// None for token and opaque.
TypeSet typeSet(ElementType type);
/// "pred, integer, float"
std::string describe(TypeSet set);

/// One attribute an opcode takes.
struct AttributeSpec {
  AttributeKey key;
  AttributeGrammar grammar;
  bool required;
};

/// The columns of Opcodes.def that are known at compile time, so that tables of other layers can be checked against
/// them.
struct OpcodeFacts {
  llvm::StringLiteral text;
  OpcodeFamily family;
  OpcodeTrait traits;
  TypeSet types;
  OpcodeResult result;
};
inline constexpr OpcodeFacts opcodeFacts[] = {
#define HLOC_TRAITS(traits)                                                                                            \
  [] {                                                                                                                 \
    using enum OpcodeTrait;                                                                                            \
    return traits;                                                                                                     \
  }()
#define HLOC_TYPES(types)                                                                                              \
  [] {                                                                                                                 \
    using enum TypeSet;                                                                                                \
    return types;                                                                                                      \
  }()
#define HLOC_OPCODE(name, text, minOperands, maxOperands, family, shape, traits, attributes)                           \
  {text, OpcodeFamily::family, HLOC_TRAITS(traits), TypeSet::None, OpcodeResult::Same},
#define HLOC_ELEMENTWISE(name, text, operands, family, shape, types, result, traits, attributes)                       \
  {text, OpcodeFamily::family, HLOC_TRAITS(Elementwise | traits), HLOC_TYPES(types), OpcodeResult::result},
#include "hloc/hlo/Opcodes.def"
#undef HLOC_TYPES
#undef HLOC_TRAITS
};
constexpr const OpcodeFacts &facts(Opcode opcode) { return opcodeFacts[static_cast<size_t>(opcode)]; }

inline llvm::StringRef text(Opcode opcode) { return facts(opcode).text; }
std::optional<Opcode> parseOpcode(llvm::StringRef text);
constexpr unsigned numOpcodes() { return std::size(opcodeFacts); }
constexpr OpcodeFamily family(Opcode opcode) { return facts(opcode).family; }
int minOperands(Opcode opcode);
int maxOperands(Opcode opcode); ///< -1: any number
bool mayOmitShape(Opcode opcode);
/// Opcode-specific attributes in the order of the table; common attributes are not listed.
llvm::ArrayRef<AttributeSpec> attributeSpecs(Opcode opcode);
constexpr bool hasTrait(Opcode opcode, OpcodeTrait trait) { return includes(facts(opcode).traits, trait); }
constexpr bool isElementwise(Opcode opcode) { return hasTrait(opcode, OpcodeTrait::Elementwise); }
/// Element types of the operands of an opcode of the Unary or Binary family.
constexpr TypeSet operandTypes(Opcode opcode) { return facts(opcode).types; }
/// Is it an opcode of these families that is defined on one of `types`?
constexpr bool isDefinedOn(Opcode opcode, TypeSet types) {
  return (static_cast<uint8_t>(operandTypes(opcode)) & static_cast<uint8_t>(types)) != 0;
}
/// Of an op that moves data: the first of the operands that say where, which are the last ones. Nothing if it has none.
std::optional<unsigned> firstIndexOperand(Opcode opcode);

} // namespace hloc
