#include "hloc/hlo/ElementType.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/StringMap.h"

namespace hloc {

namespace {

struct Row {
  llvm::StringLiteral text;
  uint8_t bits;
  ElementCategory category;
};

constexpr Row rows[] = {
#define HLOC_ELEMENT_TYPE(name, text, bits, category) {text, bits, ElementCategory::category},
#include "hloc/hlo/ElementTypes.def"
};

const Row &row(ElementType type) { return rows[static_cast<size_t>(type)]; }

constexpr FloatFormat formats[] = {
#define HLOC_ELEMENT_TYPE(name, text, bits, category)
#define HLOC_FLOAT_TYPE(name, text, bits, exponentBits, mantissaBits, bias, specials)                                  \
  {bits, exponentBits, mantissaBits, bias, FloatFormat::Specials::specials},
#include "hloc/hlo/ElementTypes.def"
};

} // namespace

llvm::StringRef text(ElementType type) { return row(type).text; }

std::optional<ElementType> parseElementType(llvm::StringRef text) {
  static const llvm::StringMap<ElementType> types = [] {
    llvm::StringMap<ElementType> map;
    for (size_t i = 0; i < std::size(rows); ++i)
      map.try_emplace(rows[i].text, static_cast<ElementType>(i));
    map.try_emplace("opaque_type", ElementType::Opaque);
    return map;
  }();
  constexpr size_t longest = 16; // most names that are asked for are no types
  auto found = text.size() > longest ? types.end() : types.find(text);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

ElementCategory category(ElementType type) { return row(type).category; }

unsigned bitWidth(ElementType type) { return row(type).bits; }

unsigned deviceBits(ElementType type) {
  unsigned bits = bitWidth(type);
  return bits == 6 ? 8 : bits;
}

uint64_t deviceBytes(ElementType type, uint64_t elements) {
  unsigned bits = deviceBits(type);
  return bits >= 8 ? elements * (bits / 8) : (elements * bits + 7) / 8;
}

ElementType componentType(ElementType type) {
  if (type == ElementType::C64)
    return ElementType::F32;
  return type == ElementType::C128 ? ElementType::F64 : type;
}

const FloatFormat &floatFormat(ElementType type) {
  HLOC_CHECK(isFloat(type), "float format of a type that is not a float");
  return formats[static_cast<size_t>(type) - static_cast<size_t>(ElementType::F16)];
}

} // namespace hloc
