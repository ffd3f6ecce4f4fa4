#include "hloc/compare/NumpyLiteral.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// The names that ml_dtypes registers with numpy for types numpy itself lacks.
struct NamedType {
  llvm::StringLiteral descr;
  ElementType type;
};
constexpr NamedType namedTypes[] = {
    {"bfloat16", ElementType::BF16},
    {"float8_e3m4", ElementType::F8E3M4},
    {"float8_e4m3", ElementType::F8E4M3},
    {"float8_e4m3fn", ElementType::F8E4M3FN},
    {"float8_e4m3fnuz", ElementType::F8E4M3FNUZ},
    {"float8_e4m3b11fnuz", ElementType::F8E4M3B11FNUZ},
    {"float8_e5m2", ElementType::F8E5M2},
    {"float8_e5m2fnuz", ElementType::F8E5M2FNUZ},
    {"float8_e8m0fnu", ElementType::F8E8M0FNU},
    {"float6_e2m3fn", ElementType::F6E2M3FN},
    {"float6_e3m2fn", ElementType::F6E3M2FN},
    {"float4_e2m1fn", ElementType::F4E2M1FN},
    {"int1", ElementType::S1},
    {"int2", ElementType::S2},
    {"int4", ElementType::S4},
    {"uint1", ElementType::U1},
    {"uint2", ElementType::U2},
    {"uint4", ElementType::U4},
};

/// What numpy has a name for; empty otherwise. Integers narrower than a byte are bytes to it.
std::string plainDescr(ElementType type) {
  unsigned bytes = hostBytes(type);
  std::string size = std::to_string(bytes);
  switch (category(type)) {
  case ElementCategory::Pred:
    return "|b1";
  case ElementCategory::Signed:
    return (bytes == 1 ? "|i" : "<i") + size;
  case ElementCategory::Unsigned:
    return (bytes == 1 ? "|u" : "<u") + size;
  case ElementCategory::Float:
    return type == ElementType::F16 || bytes >= 4 ? "<f" + size : "";
  case ElementCategory::Complex:
    return "<c" + size;
  case ElementCategory::Token:
  case ElementCategory::Opaque:
    break;
  }
  return "";
}

bool typeFits(llvm::StringRef descr, ElementType type) {
  const NamedType *named = llvm::find_if(namedTypes, [&](const NamedType &each) { return each.type == type; });
  bool isNamed = named != std::end(namedTypes);
  if (isNamed && descr == named->descr)
    return true;
  if (descr.size() < 3)
    return false;
  // Byte order aside, of which readers have taken care.
  llvm::StringRef plain = descr.drop_front();
  std::string own = plainDescr(type);
  if (!own.empty() && plain == llvm::StringRef(own).drop_front())
    return true;
  // What numpy.save makes of ml_dtypes' arrays: raw bytes, but `<f1` of float8_e5m2.
  return (isNamed && plain == "V" + std::to_string(hostBytes(type))) || (type == ElementType::F8E5M2 && plain == "f1");
}

/// Bits above the width of the type are not ours: predicates become 0 or 1, integers are sign-extended.
void normalise(Literal &literal) {
  ElementType type = literal.shape().elementType();
  if (!isPred(type) && bitWidth(type) >= 8)
    return;
  for (int64_t i = 0; i < literal.numElements(); ++i) {
    uint64_t pattern = literal.getBits(i);
    if (isPred(type) || isInteger(type))
      literal.setInt(i, int64_t(pattern));
    else
      literal.setBits(i, pattern & ((1u << bitWidth(type)) - 1));
  }
}

} // namespace

std::string numpyDescr(ElementType type) {
  for (const NamedType &named : namedTypes)
    if (named.type == type)
      return named.descr.str();
  std::string plain = plainDescr(type);
  return plain.empty() ? "|V0" : plain;
}

std::optional<Literal> literalFromNumpy(llvm::StringRef descr, llvm::ArrayRef<int64_t> dims,
                                        llvm::ArrayRef<uint8_t> bytes, const Shape &shape, std::string &error) {
  if (!shape.isArray() || shape.hasDynamicDims() || !typeFits(descr, shape.elementType())) {
    error = "numpy type `" + descr.str() + "` does not fit " + shape.toString(false);
    return std::nullopt;
  }
  bool oneElement = shape.isScalar() && dims.size() == 1 && dims[0] == 1;
  if (dims != shape.dims() && !oneElement) {
    error = "the array's dimensions are";
    for (int64_t dim : dims)
      error += " " + std::to_string(dim);
    error += ", wanted is " + shape.toString(false);
    return std::nullopt;
  }
  Literal literal(shape);
  if (bytes.size() != literal.bytes().size()) {
    error = "the array has " + std::to_string(bytes.size()) + " bytes, wanted are " +
            std::to_string(literal.bytes().size());
    return std::nullopt;
  }
  llvm::copy(bytes, literal.mutableBytes().begin());
  normalise(literal);
  return literal;
}

} // namespace hloc
