#include "hloc/hlo/Attribute.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

namespace hloc {

namespace {

struct Row {
  llvm::StringLiteral text;
  AttributeGrammar grammar;
};

constexpr Row rows[] = {
#define HLOC_ATTRIBUTE(name, text, grammar) {text, AttributeGrammar::grammar},
#include "hloc/hlo/Attributes.def"
};

// The spellings of each enum type, in the order of its C++ enumerators.
template <EnumType wanted> llvm::ArrayRef<llvm::StringRef> spellings() {
  struct Value {
    EnumType type;
    llvm::StringRef text;
  };
  static const std::vector<llvm::StringRef> texts = [] {
    const Value all[] = {
#define HLOC_ENUM_VALUE(type, name, text) {EnumType::type, text},
#include "EnumValues.def"
    };
    std::vector<llvm::StringRef> own;
    for (const Value &value : all)
      if (value.type == wanted)
        own.push_back(value.text);
    return own;
  }();
  return texts;
}

} // namespace

// The enumerators are declared by hand in Attribute.h; a row that is out of place fails here.
#define HLOC_ENUM_VALUE(type, name, text) static_assert(static_cast<int64_t>(type::name) >= 0);
#include "EnumValues.def"

llvm::StringRef text(AttributeKey key) { return rows[static_cast<size_t>(key)].text; }

std::optional<AttributeKey> parseAttributeKey(llvm::StringRef text) {
  static const llvm::StringMap<AttributeKey> keys = [] {
    llvm::StringMap<AttributeKey> map;
    for (size_t i = 0; i < std::size(rows); ++i)
      map.try_emplace(rows[i].text, static_cast<AttributeKey>(i));
    return map;
  }();
  auto found = keys.find(text);
  return found == keys.end() ? std::nullopt : std::optional(found->second);
}

AttributeGrammar grammar(AttributeKey key) { return rows[static_cast<size_t>(key)].grammar; }

unsigned numAttributeKeys() { return std::size(rows); }

EnumType enumTypeOf(AttributeKey key, AttributeGrammar grammar) {
  if (grammar == AttributeGrammar::DotAlgorithm)
    return EnumType::DotAlgorithm;
  if (grammar == AttributeGrammar::RandomAlgorithm)
    return EnumType::RandomAlgorithm;
  switch (key) {
  case AttributeKey::Direction:
    return EnumType::ComparisonDirection;
  case AttributeKey::Type:
    return EnumType::ComparisonType;
  case AttributeKey::Kind:
    return EnumType::FusionKind;
  case AttributeKey::OperandPrecision:
    return EnumType::Precision;
  case AttributeKey::Distribution:
    return EnumType::RandomDistribution;
  case AttributeKey::FftType:
    return EnumType::FftType;
  case AttributeKey::TransposeA:
    return EnumType::Transpose;
  case AttributeKey::ConvolutionKind:
    return EnumType::ConvolutionKind;
  case AttributeKey::PaddingType:
    return EnumType::PaddingType;
  case AttributeKey::Schedule:
    return EnumType::CustomCallSchedule;
  case AttributeKey::ApiVersion:
    return EnumType::ApiVersion;
  case AttributeKey::Mode:
    return EnumType::CollectiveMode;
  default:
    HLOC_UNREACHABLE("attribute without an enum type");
  }
}

llvm::ArrayRef<llvm::StringRef> enumSpellings(EnumType type) {
  switch (type) {
#define HLOC_ENUM_TYPE(name)                                                                                           \
  case EnumType::name:                                                                                                 \
    return spellings<EnumType::name>();
    HLOC_ENUM_TYPES(HLOC_ENUM_TYPE)
#undef HLOC_ENUM_TYPE
  }
  HLOC_UNREACHABLE("enum type");
}

bool enumIgnoresCase(EnumType type) {
  return type == EnumType::Precision || type == EnumType::RandomDistribution || type == EnumType::RandomAlgorithm ||
         type == EnumType::DotAlgorithm || type == EnumType::CustomCallSchedule || type == EnumType::ApiVersion;
}

} // namespace hloc
