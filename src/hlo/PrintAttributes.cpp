#include "PrintAttributes.h"

#include "hloc/hlo/HloComputation.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

template <typename List, typename Print>
void printList(llvm::raw_ostream &os, const List &list, Print print, llvm::StringRef separator = ",") {
  os << "{";
  bool first = true;
  for (const auto &element : list) {
    if (!first)
      os << separator;
    first = false;
    print(element);
  }
  os << "}";
}

void printInts(llvm::raw_ostream &os, llvm::ArrayRef<int64_t> values) {
  printList(os, values, [&](int64_t value) { os << value; });
}

std::string quoted(llvm::StringRef text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\'':
      out += "\\'";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    default:
      if (uint8_t(c) < 0x20 || c == 0x7f)
        out += fmt::format("\\{:03o}", uint8_t(c));
      else
        out += c;
    }
  }
  return out + "\"";
}

void printWindow(llvm::raw_ostream &os, const Window &window) {
  auto field = [&](llvm::StringRef name, auto value, bool always = false) {
    bool any = always;
    std::string text;
    for (const WindowDim &dim : window.dims) {
      auto [spelling, isDefault] = value(dim);
      any |= !isDefault;
      text += (text.empty() ? "" : "x") + spelling;
    }
    if (any && !window.dims.empty())
      os << (always ? "" : " ") << name << "=" << text;
  };
  os << "{";
  field("size", [](const WindowDim &d) { return std::pair(std::to_string(d.size), false); }, true);
  field("stride", [](const WindowDim &d) { return std::pair(std::to_string(d.stride), d.stride == 1); });
  field("pad", [](const WindowDim &d) {
    return std::pair(std::to_string(d.padLow) + "_" + std::to_string(d.padHigh), d.padLow == 0 && d.padHigh == 0);
  });
  field("lhs_dilate",
        [](const WindowDim &d) { return std::pair(std::to_string(d.baseDilation), d.baseDilation == 1); });
  field("rhs_dilate",
        [](const WindowDim &d) { return std::pair(std::to_string(d.windowDilation), d.windowDilation == 1); });
  field("rhs_reversal", [](const WindowDim &d) { return std::pair(std::string(d.reversed ? "1" : "0"), !d.reversed); });
  os << "}";
}

void printPadding(llvm::raw_ostream &os, llvm::ArrayRef<PaddingDim> dims) {
  bool interior = llvm::any_of(dims, [](const PaddingDim &dim) { return dim.interior != 0; });
  for (size_t i = 0; i < dims.size(); ++i) {
    os << (i ? "x" : "") << dims[i].low << "_" << dims[i].high;
    if (interior)
      os << "_" << dims[i].interior;
  }
}

void printSlice(llvm::raw_ostream &os, llvm::ArrayRef<SliceDim> dims) {
  bool strided = llvm::any_of(dims, [](const SliceDim &dim) { return dim.stride != 1; });
  printList(
      os, dims,
      [&](const SliceDim &dim) {
        os << "[" << dim.start << ":" << dim.limit;
        if (strided)
          os << ":" << dim.stride;
        os << "]";
      },
      ", ");
}

} // namespace

bool isOmitted(const HloInstruction &instr, const Attribute &attribute) {
  switch (attribute.key) {
  case AttributeKey::IsStable:
    return instr.opcode() == Opcode::Sort && !std::get<bool>(attribute.value);
  case AttributeKey::IndicesAreSorted:
  case AttributeKey::UniqueIndices:
  case AttributeKey::IsComposite:
  case AttributeKey::CustomCallHasSideEffect:
  case AttributeKey::IsHostTransfer:
    return !std::get<bool>(attribute.value);
  case AttributeKey::FeatureGroupCount:
  case AttributeKey::BatchGroupCount:
    return std::get<int64_t>(attribute.value) == 1;
  case AttributeKey::LhsBatchDims:
  case AttributeKey::RhsBatchDims:
  case AttributeKey::OperandBatchingDims:
  case AttributeKey::StartIndicesBatchingDims:
  case AttributeKey::InputBatchingDims:
  case AttributeKey::ScatterIndicesBatchingDims:
    return std::get<llvm::ArrayRef<int64_t>>(attribute.value).empty();
  case AttributeKey::OperandPrecision:
    return llvm::all_of(std::get<llvm::ArrayRef<int64_t>>(attribute.value), [](int64_t v) { return v == 0; });
  case AttributeKey::Type: {
    if (instr.opcode() != Opcode::Compare || !instr.operand(0)->shape().isArray())
      return false;
    ElementType type = instr.operand(0)->shape().elementType();
    ComparisonType natural = isSigned(type)                     ? ComparisonType::Signed
                             : isUnsigned(type) || isPred(type) ? ComparisonType::Unsigned
                                                                : ComparisonType::Float;
    return static_cast<ComparisonType>(std::get<int64_t>(attribute.value)) == natural;
  }
  default:
    return false;
  }
}

namespace {

/// The grammar this opcode reads the attribute with.
AttributeGrammar grammarIn(const HloInstruction &instr, AttributeKey key) {
  for (const AttributeSpec &spec : attributeSpecs(instr.opcode()))
    if (spec.key == key)
      return spec.grammar;
  return grammar(key);
}

/// Each array behind its shape, inside tuples too.
void printLiteralWithShapes(const Literal &literal, llvm::raw_ostream &os) {
  if (!literal.isTuple()) {
    os << literal.shape().toString() << " ";
    return printLiteral(literal, os);
  }
  os << "( ";
  for (size_t i = 0; i < literal.elements().size(); ++i) {
    os << (i ? ", " : "");
    printLiteralWithShapes(literal.element(unsigned(i)), os);
  }
  os << " )";
}

} // namespace

void printAttribute(const HloInstruction &instr, const Attribute &attribute, llvm::raw_ostream &os,
                    const PrintOptions &options) {
  bool verbose = attribute.key == AttributeKey::Metadata || attribute.key == AttributeKey::ControlPredecessors;
  if (isOmitted(instr, attribute) || (verbose && !options.full))
    return;
  os << ", " << text(attribute.key) << "=";
  printValue(attribute.key, grammarIn(instr, attribute.key), attribute.value, os, options);
}

void printValue(AttributeKey key, AttributeGrammar grammar, const AttributeValue &value, llvm::raw_ostream &os,
                const PrintOptions &options) {
  llvm::StringRef sigil = options.full ? "%" : "";
  switch (grammar) {
  case AttributeGrammar::Bool:
    os << (std::get<bool>(value) ? "true" : "false");
    return;
  case AttributeGrammar::Int:
    os << std::get<int64_t>(value);
    return;
  case AttributeGrammar::Double:
    os << fmt::format("{}", std::get<double>(value));
    return;
  case AttributeGrammar::Ints:
    return printInts(os, std::get<llvm::ArrayRef<int64_t>>(value));
  case AttributeGrammar::IntLists:
    return printList(os, std::get<llvm::ArrayRef<llvm::ArrayRef<int64_t>>>(value),
                     [&](llvm::ArrayRef<int64_t> list) { printInts(os, list); });
  case AttributeGrammar::Enum:
  case AttributeGrammar::DotAlgorithm:
  case AttributeGrammar::RandomAlgorithm:
    os << enumSpellings(enumTypeOf(key, grammar))[std::get<int64_t>(value)];
    return;
  case AttributeGrammar::EnumList:
    return printList(os, std::get<llvm::ArrayRef<int64_t>>(value),
                     [&](int64_t one) { os << enumSpellings(enumTypeOf(key, grammar))[one]; });
  case AttributeGrammar::String:
    os << quoted(std::get<llvm::StringRef>(value));
    return;
  case AttributeGrammar::Raw:
  case AttributeGrammar::ReplicaGroups:
    os << std::get<llvm::StringRef>(value);
    return;
  case AttributeGrammar::StringOrRaw: {
    llvm::StringRef text = std::get<llvm::StringRef>(value);
    os << (text.starts_with("{") ? text.str() : quoted(text));
    return;
  }
  case AttributeGrammar::Window:
    return printWindow(os, *std::get<const Window *>(value));
  case AttributeGrammar::Padding:
    return printPadding(os, std::get<llvm::ArrayRef<PaddingDim>>(value));
  case AttributeGrammar::Slice:
    return printSlice(os, std::get<llvm::ArrayRef<SliceDim>>(value));
  case AttributeGrammar::DimLabels:
    os << std::get<const ConvolutionLabels *>(value)->spelling;
    return;
  case AttributeGrammar::Computation:
    os << sigil << std::get<HloComputation *>(value)->name();
    return;
  case AttributeGrammar::Computations:
    return printList(
        os, std::get<llvm::ArrayRef<HloComputation *>>(value), [&](HloComputation *c) { os << sigil << c->name(); },
        ", ");
  case AttributeGrammar::Instructions:
    return printList(
        os, std::get<llvm::ArrayRef<HloInstruction *>>(value), [&](HloInstruction *i) { os << sigil << i->name(); },
        ", ");
  case AttributeGrammar::ShapeValue:
    os << std::get<const Shape *>(value)->toString();
    return;
  case AttributeGrammar::Shapes:
    return printList(
        os, std::get<llvm::ArrayRef<Shape>>(value), [&](const Shape &shape) { os << shape.toString(); }, ", ");
  case AttributeGrammar::ProgramShape: {
    llvm::ArrayRef<Shape> shapes = std::get<llvm::ArrayRef<Shape>>(value);
    os << "{(";
    for (size_t i = 0; i + 1 < shapes.size(); ++i)
      os << (i ? ", " : "") << shapes[i].toString();
    os << ")->" << shapes.back().toString() << "}";
    return;
  }
  case AttributeGrammar::Literal:
    printLiteralWithShapes(*std::get<const Literal *>(value), os);
    return;
  case AttributeGrammar::Alias:
    return printList(
        os, std::get<llvm::ArrayRef<OutputAlias>>(value),
        [&](const OutputAlias &alias) {
          printInts(os, alias.output);
          os << ": (" << alias.operand << ", ";
          printInts(os, alias.operandIndex);
          os << ")";
        },
        ", ");
  }
}

} // namespace hloc
