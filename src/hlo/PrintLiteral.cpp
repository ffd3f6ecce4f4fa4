#include "hloc/hlo/Printer.h"

#include "hloc/support/Check.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace hloc {

namespace {

/// Shortest form that reads back: `digits10` of the type if that round-trips, `max_digits10` otherwise.
std::string floatText(ElementType type, uint64_t pattern) {
  const FloatFormat &format = floatFormat(type);
  double value = decodeFloat(format, pattern);
  if (std::isnan(value)) {
    std::string out =
        (pattern >> (format.bits - 1)) & 1 && format.specials == FloatFormat::Specials::Ieee ? "-nan" : "nan";
    if (format.specials == FloatFormat::Specials::NanAllOnes && ((pattern >> (format.bits - 1)) & 1))
      out = "-nan";
    uint64_t payload = pattern & ((uint64_t(1) << format.mantissaBits) - 1);
    bool canonical = payload == (canonicalNan(format) & ((uint64_t(1) << format.mantissaBits) - 1));
    if (format.specials == FloatFormat::Specials::Ieee && !canonical)
      out += fmt::format("(0x{:x})", payload);
    return out;
  }
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  int digits10 = int(std::floor(format.mantissaBits * 0.30103));
  int maxDigits10 = int(std::ceil((format.mantissaBits + 1) * 0.30103 + 1));
  if (bitWidth(type) >= 32) {
    std::string brief = fmt::format("{:.{}g}", value, std::max(1, digits10));
    double back = std::strtod(brief.c_str(), nullptr);
    if (encodeFloat(format, back) == pattern)
      return brief;
  }
  return fmt::format("{:.{}g}", value, maxDigits10);
}

std::string componentText(double value, ElementType type) {
  return floatText(type, encodeFloat(floatFormat(type), value));
}

std::string elementText(const Literal &literal, int64_t index, bool scalar) {
  ElementType type = literal.shape().elementType();
  switch (category(type)) {
  case ElementCategory::Pred:
    return scalar ? (literal.getInt(index) ? "true" : "false") : literal.getInt(index) ? "1" : "0";
  case ElementCategory::Signed:
    return std::to_string(literal.getInt(index));
  case ElementCategory::Unsigned:
    return std::to_string(literal.getBits(index));
  case ElementCategory::Float:
    return floatText(type, literal.getBits(index));
  case ElementCategory::Complex: {
    std::complex<double> value = literal.getComplex(index);
    ElementType component = componentType(type);
    return "(" + componentText(value.real(), component) + ", " + componentText(value.imag(), component) + ")";
  }
  default:
    HLOC_UNREACHABLE("literal of a type without elements");
  }
}

void printDimension(const Literal &literal, unsigned dim, int64_t &next, llvm::raw_ostream &os) {
  const Shape &shape = literal.shape();
  int64_t size = shape.dim(dim);
  bool innermost = dim + 1 == shape.rank();
  bool padded = shape.rank() > 1 && size > 0 && (!innermost || size > 1);
  os << (padded ? "{ " : "{");
  for (int64_t i = 0; i < size; ++i) {
    if (i)
      os << ", ";
    if (shape.rank() > 3 && !innermost)
      os << "/*i" << dim << "=" << i << "*/ ";
    if (innermost)
      os << elementText(literal, next++, false);
    else
      printDimension(literal, dim + 1, next, os);
  }
  os << (padded ? " }" : "}");
}

} // namespace

void printLiteral(const Literal &literal, llvm::raw_ostream &os) {
  if (literal.isTuple()) {
    os << "( ";
    for (size_t i = 0; i < literal.elements().size(); ++i) {
      if (i)
        os << ", ";
      printLiteral(literal.element(i), os);
    }
    os << " )";
    return;
  }
  if (literal.isElided()) {
    os << "{...}";
    return;
  }
  if (literal.shape().rank() == 0) {
    os << elementText(literal, 0, true);
    return;
  }
  int64_t next = 0;
  printDimension(literal, 0, next, os);
}

} // namespace hloc
