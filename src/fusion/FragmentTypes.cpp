// In which types tensor cores multiply the factors of a contraction: those that have all values of its factors, as
// these are before they are widened, or as they are in the result's type.

#include "fusion/ContractionMatch.h"
#include "hloc/kernel/TargetInfo.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {
namespace {

using enum ElementType;

/// Words of f32 count as many bits on tensor cores.
constexpr unsigned bitsOfWord = 10;

int leastExponent(const FloatFormat &format) {
  return format.specials == FloatFormat::Specials::PowerOfTwo ? -format.bias : 1 - format.bias - format.mantissaBits;
}
int mostExponent(const FloatFormat &format) {
  return (1 << format.exponentBits) - 1 - format.bias - (format.hasInfinity() ? 1 : 0);
}

/// Has a float type all values of the other, with so many bits behind the leading one?
bool findIfAllValues(ElementType type, unsigned mantissaBits, ElementType of) {
  const FloatFormat &format = floatFormat(type);
  if (isInteger(of))
    return bitWidth(of) <= mantissaBits + 1 && int(bitWidth(of)) <= mostExponent(format);
  if (!isFloat(of))
    return false;
  const FloatFormat &narrow = floatFormat(of);
  return narrow.mantissaBits <= mantissaBits && mostExponent(narrow) <= mostExponent(format) &&
         leastExponent(narrow) >= leastExponent(format) - int(format.mantissaBits - mantissaBits);
}

/// Both are asked for each of thousands of tiles.
struct AllValues {
  static constexpr size_t numTypes = 0
#define HLOC_ELEMENT_TYPE(name, text, bits, category) +1
#include "hloc/hlo/ElementTypes.def"
      ;
  bool ofType[numTypes][numTypes] = {}; ///< has a type all values of the other?
  bool ofWords[numTypes] = {};          ///< have words of f32, on tensor cores?

  AllValues();
};
bool findIfAllValues(ElementType type, ElementType of) {
  if (type == of)
    return true;
  if (isInteger(type) && isInteger(of))
    return bitWidth(of) + (isUnsigned(of) && isSigned(type)) <= bitWidth(type) && (isUnsigned(of) || isSigned(type));
  return isFloat(type) && findIfAllValues(type, floatFormat(type).mantissaBits, of);
}

AllValues::AllValues() {
  for (size_t of = 0; of < numTypes; ++of) {
    ofWords[of] = findIfAllValues(F32, bitsOfWord, ElementType(of));
    for (size_t type = 0; type < numTypes; ++type)
      ofType[type][of] = findIfAllValues(ElementType(type), ElementType(of));
  }
}

const AllValues &allValues() {
  static const AllValues all;
  return all;
}
bool hasAllValues(ElementType type, ElementType of) { return allValues().ofType[size_t(type)][size_t(of)]; }
bool wordsHaveAllValues(ElementType of) { return allValues().ofWords[size_t(of)]; }

} // namespace

ElementType typeOfValues(const HloInstruction &operand) {
  const ElementType type = operand.shape().elementType();
  if (operand.opcode() != Opcode::Convert || !operand.operand(0)->shape().isArray())
    return type;
  const ElementType from = operand.operand(0)->shape().elementType();
  return hasAllValues(type, from) ? from : type;
}

namespace {

/// Of the values that are multiplied: factors are rounded to a narrower result's type.
std::array<ElementType, 2> factorsOf(const HloInstruction &hero) {
  const ElementType result = hero.shape().elementType();
  std::array<ElementType, 2> factors = {typeOfValues(*hero.operand(0)), typeOfValues(*hero.operand(1))};
  for (ElementType &factor : factors)
    if (isFloat(result) && !hasAllValues(result, factor))
      factor = result;
  return factors;
}

using Types = std::optional<std::array<ElementType, 2>>;

/// Sums wrap, so that it does not matter whether they, or what is added up, are cut to the result's bits.
Types ofIntegers(const std::array<ElementType, 2> &factors) {
  std::array<ElementType, 2> types;
  for (auto [factor, type] : llvm::zip_equal(factors, types)) {
    if (!isInteger(factor) || bitWidth(factor) > 8)
      return std::nullopt;
    type = isSigned(factor) ? S8 : U8;
  }
  return types;
}

/// As what an algorithm has f32 multiplied.
std::optional<ElementType> typeOfAlgorithm(DotAlgorithm algorithm) {
  switch (algorithm) {
  case DotAlgorithm::BF16BF16F32:
  case DotAlgorithm::BF16BF16F32X3:
  case DotAlgorithm::BF16BF16F32X6:
  case DotAlgorithm::BF16BF16F32X9:
    return BF16;
  case DotAlgorithm::TF32TF32F32:
  case DotAlgorithm::TF32TF32F32X3:
    return F32;
  default:
    return std::nullopt;
  }
}

/// Is one factor a whole f32 and the other no more than a bf16? Then three pieces of the one have all of its bits.
bool areInPieces(const std::array<ElementType, 2> &factors, ElementType result, DotAlgorithm algorithm) {
  return algorithm == DotAlgorithm::Unset && result == F32 &&
         ((factors[0] == F32 && hasAllValues(BF16, factors[1])) ||
          (factors[1] == F32 && hasAllValues(BF16, factors[0])));
}

/// Both as they are.
Types ofWholeFloats(const std::array<ElementType, 2> &factors, ElementType result) {
  auto hasBoth = [&](ElementType type) {
    return llvm::all_of(factors, [&](ElementType factor) { return hasAllValues(type, factor); });
  };
  if (result == F64)
    return hasBoth(F64) ? Types({F64, F64}) : std::nullopt;
  for (ElementType type : {F16, BF16})
    if (hasBoth(type))
      return {{type, type}};
  return llvm::all_of(factors, wordsHaveAllValues) ? Types({F32, F32}) : std::nullopt;
}

Types ofFloats(const std::array<ElementType, 2> &factors, ElementType result, DotAlgorithm algorithm) {
  if (Types types = ofWholeFloats(factors, result))
    return types;
  if (std::optional<ElementType> type = typeOfAlgorithm(algorithm); type && result == F32)
    return {{*type, *type}};
  return areInPieces(factors, result, algorithm) ? Types({BF16, BF16}) : std::nullopt;
}

} // namespace

std::optional<std::array<ElementType, 2>> ContractionPlan::fragmentTypes(const HloInstruction &hero,
                                                                         DotAlgorithm algorithm) {
  const ElementType result = hero.shape().elementType();
  const std::array<ElementType, 2> factors = factorsOf(hero);
  if (isInteger(result) && bitWidth(result) <= 32)
    return ofIntegers(factors);
  return isFloat(result) ? ofFloats(factors, result, algorithm) : std::nullopt;
}

/// Whoever widens factors before a product asks for all of their bits, however narrow they were (interp/TensorCores.h).
static bool isWidened(const HloInstruction &factor) {
  if (factor.opcode() != Opcode::Convert)
    return false;
  const ElementType from = factor.operand(0)->shape().elementType();
  return !isFloat(from) || deviceBits(from) <= deviceBits(factor.shape().elementType());
}

bool ContractionPlan::mayPromote() const {
  auto isAsItIs = [](const HloInstruction &factor) {
    return llvm::is_contained({F8E4M3FN, F8E5M2}, factor.shape().elementType()) && !isWidened(factor);
  };
  constexpr DotAlgorithm admits[] = {DotAlgorithm::Unset, DotAlgorithm::AnyF8AnyF8F32,
                                     DotAlgorithm::AnyF8AnyF8F32FastAccum};
  return bits == 32 && llvm::is_contained(admits, algorithm()) &&
         llvm::all_of(heroes(), [&](const HloInstruction *product) {
           const ElementType result = product->shape().elementType();
           return isFloat(result) && llvm::all_of(product->operands().take_front(2), [&](const HloInstruction *factor) {
                    return isAsItIs(*factor) && hasAllValues(result, factor->shape().elementType());
                  });
         });
}

bool ContractionPlan::hasTensorCores(const TargetInfo &target, const std::array<ElementType, 2> &types) {
  constexpr ElementType ofFirst[] = {F16, S8, U8};
  return target.atLeast(8, 0) || (target.atLeast(7, 5) && llvm::all_of(types, [&](ElementType type) {
                                    return llvm::is_contained(ofFirst, type);
                                  }));
}

unsigned FactorPieces::products() const {
  unsigned count = 0;
  for (unsigned i = 0; i < ofOperand[0]; ++i)
    for (unsigned j = 0; j < ofOperand[1]; ++j)
      count += i + j <= order;
  return count;
}

FactorPieces ContractionPlan::piecesOf(const HloInstruction &hero, DotAlgorithm algorithm) {
  const std::array<ElementType, 2> factors = factorsOf(hero);
  const ElementType result = hero.shape().elementType();
  if (!isFloat(result) || ofWholeFloats(factors, result))
    return {};
  if (areInPieces(factors, result, algorithm))
    return factors[0] == F32 ? FactorPieces{{3, 1}, 2} : FactorPieces{{1, 3}, 2};
  switch (algorithm) {
  case DotAlgorithm::BF16BF16F32X3:
  case DotAlgorithm::TF32TF32F32X3:
    return {{2, 2}, 1};
  case DotAlgorithm::BF16BF16F32X6:
    return {{3, 3}, 2};
  case DotAlgorithm::BF16BF16F32X9:
    return {{3, 3}, 4};
  default:
    return {};
  }
}

} // namespace hloc
