#include "hloc/compare/NumpyLiteral.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace hloc {

std::string numpyDescr(ElementType type) {
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
    return type == ElementType::F16 || bytes >= 4 ? "<f" + size : "|V" + size;
  case ElementCategory::Complex:
    return "<c" + size;
  case ElementCategory::Token:
  case ElementCategory::Opaque:
    break;
  }
  return "|V0";
}

namespace {

/// The dtype names ml_dtypes registers, as HLO spells them.
llvm::StringRef hloName(llvm::StringRef descr) {
  return llvm::StringSwitch<llvm::StringRef>(descr)
      .Case("bfloat16", "bf16")
      .Case("float8_e3m4", "f8e3m4")
      .Case("float8_e4m3", "f8e4m3")
      .Case("float8_e4m3fn", "f8e4m3fn")
      .Case("float8_e4m3fnuz", "f8e4m3fnuz")
      .Case("float8_e4m3b11fnuz", "f8e4m3b11fnuz")
      .Case("float8_e5m2", "f8e5m2")
      .Case("float8_e5m2fnuz", "f8e5m2fnuz")
      .Case("float8_e8m0fnu", "f8e8m0fnu")
      .Case("float4_e2m1fn", "f4e2m1fn")
      .Case("float6_e2m3fn", "f6e2m3fn")
      .Case("float6_e3m2fn", "f6e3m2fn")
      .Case("int2", "s2")
      .Case("int4", "s4")
      .Case("uint2", "u2")
      .Case("uint4", "u4")
      .Default("");
}

bool typeFits(llvm::StringRef descr, ElementType type) {
  if (!hloName(descr).empty())
    return hloName(descr) == text(type);
  if (descr.size() < 3)
    return false;
  std::string ownDescr = numpyDescr(type);
  llvm::StringRef rest = descr.drop_front(), wanted = llvm::StringRef(ownDescr).drop_front();
  // Raw bytes stand for anything numpy has no name for; some writers keep 4-bit integers so as well.
  bool raw = rest[0] == 'V' && rest.drop_front() == std::to_string(hostBytes(type));
  bool nameless = ownDescr[1] == 'V' || (isInteger(type) && bitWidth(type) < 8);
  return rest == wanted || (raw && nameless);
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
