#pragma once
// The element types of HLO (rows in ElementTypes.def) and what can be asked of one.

#include "hloc/support/FloatFormat.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace hloc {

enum class ElementType : uint8_t {
#define HLOC_ELEMENT_TYPE(name, text, bits, category) name,
#include "hloc/hlo/ElementTypes.def"
};

enum class ElementCategory : uint8_t { Pred, Signed, Unsigned, Float, Complex, Token, Opaque };

llvm::StringRef text(ElementType type);
/// The spelling, lower case (`bf16`); `opaque_type` is an alias of `opaque`.
std::optional<ElementType> parseElementType(llvm::StringRef text);
ElementCategory category(ElementType type);
/// Logical width: pred 8, s4 4, c64 64; 0 for token and opaque.
unsigned bitWidth(ElementType type);
/// Bytes of one element of a Literal or npz array, where sub-byte elements take one byte each.
inline unsigned hostBytes(ElementType type) { return (bitWidth(type) + 7) / 8; }
/// Bytes of `elements` elements in device memory: sub-byte types other than pred packed, low bits first. f6 takes a
/// byte.
uint64_t deviceBytes(ElementType type, uint64_t elements);
/// Bits of one element in device memory (pred 8, s4 4, f6 8).
unsigned deviceBits(ElementType type);

inline bool isPred(ElementType type) { return type == ElementType::Pred; }
inline bool isSigned(ElementType type) { return category(type) == ElementCategory::Signed; }
inline bool isUnsigned(ElementType type) { return category(type) == ElementCategory::Unsigned; }
inline bool isInteger(ElementType type) { return isSigned(type) || isUnsigned(type); } ///< not pred
inline bool isFloat(ElementType type) { return category(type) == ElementCategory::Float; }
inline bool isComplex(ElementType type) { return category(type) == ElementCategory::Complex; }
/// Has elements in memory: everything but token and opaque.
inline bool isArrayType(ElementType type) { return type != ElementType::Token && type != ElementType::Opaque; }
/// c64 -> f32, c128 -> f64, others themselves.
ElementType componentType(ElementType type);
/// The format of a float type; must be a float.
const FloatFormat &floatFormat(ElementType type);

} // namespace hloc
