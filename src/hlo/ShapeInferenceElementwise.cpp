// Elementwise ops (hlo-text 6.1, 6.2): type classes, equal dimensions.
#include "ShapeInferenceContext.h"
#include "hloc/hlo/ShapeInference.h"
#include "hloc/support/Check.h"

namespace hloc {

namespace {

// unary_c1, binary_c3
bool checkTypes(InferenceContext &c, VerifierRule rule) {
  const Shape &x = c.operand(0);
  TypeSet allowed = operandTypes(c.opcode()), type = typeSet(x.elementType());
  if (type != TypeSet::None && includes(allowed, type))
    return true;
  c.fail(rule, "is defined on " + describe(allowed) + ", not on " + show(x));
  return false;
}

// binary_c1, binary_c2: also what compare asks of its operands
bool checkSameOperands(InferenceContext &c) {
  const Shape &a = c.operand(0), &b = c.operand(1);
  if (!a.sameDims(b)) {
    c.fail(VerifierRule::binary_c1, "operand shapes " + show(a) + " and " + show(b) + " differ in their dimensions");
    return false;
  }
  if (a.elementType() != b.elementType()) {
    c.fail(VerifierRule::binary_c2, "operand shapes " + show(a) + " and " + show(b) + " differ in their element types");
    return false;
  }
  return true;
}

std::optional<Shape> inferBitcastConvert(InferenceContext &c) {
  const Shape &x = c.operand(0);
  ElementType from = x.elementType(), to = c.declared().elementType();
  if (isComplex(from) != isComplex(to))
    return c.fail(VerifierRule::bitcast_convert_c1,
                  "converts between real and complex numbers: " + show(x) + " to " + show(c.declared()));
  unsigned fromBits = bitWidth(from), toBits = bitWidth(to);
  if (fromBits == toBits)
    return InferenceContext::elementwise(x, to);
  if (std::max(fromBits, toBits) % std::min(fromBits, toBits) != 0)
    return c.fail(VerifierRule::bitcast_convert_c2,
                  "neither element width divides the other: " + show(x) + " to " + show(c.declared()));
  DimVector dims(x.dims());
  if (fromBits > toBits) {
    dims.push_back(fromBits / toBits);
    return c.array(to, dims);
  }
  if (dims.empty() || dims.back() != toBits / fromBits)
    return c.fail(VerifierRule::bitcast_convert_c2, "the last dimension of " + show(x) + " must be " +
                                                        llvm::Twine(toBits / fromBits) + " to become " +
                                                        show(c.declared()));
  dims.pop_back();
  return c.array(to, dims);
}

std::optional<Shape> inferStochasticConvert(InferenceContext &c) {
  const Shape &x = c.operand(0), &random = c.operand(1);
  if (!isFloat(x.elementType()) || !isUnsigned(random.elementType()) ||
      bitWidth(x.elementType()) != bitWidth(random.elementType()) || !isSigned(c.declared().elementType()))
    return c.fail(VerifierRule::stochastic_convert_c1,
                  "cannot convert " + show(x) + " with random bits " + show(random) + " to " + show(c.declared()));
  if (!x.sameDims(random))
    return c.fail(VerifierRule::stochastic_convert_c2,
                  "operand shapes " + show(x) + " and " + show(random) + " differ in their dimensions");
  return InferenceContext::elementwise(x, c.declared().elementType());
}

std::optional<Shape> inferClamp(InferenceContext &c) {
  const Shape &x = c.operand(1);
  for (unsigned i : {0u, 2u}) {
    const Shape &bound = c.operand(i);
    if (!bound.isScalar() && !bound.sameDims(x))
      return c.fail(VerifierRule::clamp_c1, "the bound " + show(bound) + " is no scalar and differs from " + show(x));
    if (bound.elementType() != x.elementType())
      return c.fail(VerifierRule::clamp_c2, "the bound " + show(bound) + " differs in element type from " + show(x));
  }
  return x;
}

std::optional<Shape> inferSelect(InferenceContext &c) {
  const Shape &selector = c.operand(0), &onTrue = c.operand(1), &onFalse = c.operand(2);
  if (!isPred(selector.elementType()))
    return c.fail(VerifierRule::select_c1, "the selector is " + show(selector) + ", not pred");
  if (!onTrue.compatible(onFalse))
    return c.fail(VerifierRule::select_c3, "the choices " + show(onTrue) + " and " + show(onFalse) + " differ");
  if (!selector.isScalar() && !selector.sameDims(onTrue))
    return c.fail(VerifierRule::select_c2,
                  "the selector " + show(selector) + " is no scalar and has other dimensions than " + show(onTrue));
  return onTrue;
}

ElementType resultType(Opcode opcode, ElementType operand) {
  switch (facts(opcode).result) {
  case OpcodeResult::Same:
    return operand;
  case OpcodeResult::Pred:
    return ElementType::Pred;
  case OpcodeResult::Part:
    return componentType(operand);
  case OpcodeResult::OfParts:
    return operand == ElementType::F32 ? ElementType::C64 : ElementType::C128;
  }
  HLOC_UNREACHABLE("a result of no kind");
}

} // namespace

std::optional<Shape> inferUnary(InferenceContext &c) {
  const Shape &x = c.operand(0);
  if (!checkTypes(c, VerifierRule::unary_c1))
    return std::nullopt;
  if (c.opcode() == Opcode::ReducePrecision &&
      (c.integer(AttributeKey::ExponentBits, 0) < 1 || c.integer(AttributeKey::MantissaBits, -1) < 0))
    return c.fail(VerifierRule::reduce_precision_c1,
                  "exponent_bits=" + llvm::Twine(c.integer(AttributeKey::ExponentBits, 0)) +
                      " or mantissa_bits=" + llvm::Twine(c.integer(AttributeKey::MantissaBits, -1)) + " is too small");
  return InferenceContext::elementwise(x, resultType(c.opcode(), x.elementType()));
}

std::optional<Shape> inferBinary(InferenceContext &c) {
  if (!checkSameOperands(c) || !checkTypes(c, VerifierRule::binary_c3))
    return std::nullopt;
  const Shape &x = c.operand(0);
  if (c.opcode() == Opcode::Complex && x.elementType() != ElementType::F32 && x.elementType() != ElementType::F64)
    return c.fail(VerifierRule::binary_c3, "is defined on f32 and f64, not on " + show(x));
  return InferenceContext::elementwise(x, resultType(c.opcode(), x.elementType()));
}

std::optional<Shape> inferTernary(InferenceContext &c) {
  switch (c.opcode()) {
  case Opcode::Clamp:
    return inferClamp(c);
  case Opcode::Select:
    return inferSelect(c);
  default:
    HLOC_UNREACHABLE("an op of the Ternary family has no shape inference");
  }
}

bool suitsComparison(ComparisonType order, ElementType operands) {
  switch (order) {
  case ComparisonType::Float:
    return isFloat(operands) || isComplex(operands);
  case ComparisonType::TotalOrder:
    return isFloat(operands);
  case ComparisonType::Signed:
    return isSigned(operands);
  case ComparisonType::Unsigned:
    return isUnsigned(operands) || isPred(operands);
  }
  return false;
}

std::optional<Shape> inferCompare(InferenceContext &c) {
  if (!checkSameOperands(c))
    return std::nullopt;
  ElementType type = c.operand(0).elementType();
  auto direction = static_cast<ComparisonDirection>(c.integer(AttributeKey::Direction, 0));
  if (isComplex(type) && direction != ComparisonDirection::Eq && direction != ComparisonDirection::Ne)
    return c.fail(VerifierRule::compare_c2, "complex numbers have no order: " + show(c.operand(0)));
  if (const auto *written = c.get<int64_t>(AttributeKey::Type)) {
    auto order = static_cast<ComparisonType>(*written);
    if (!suitsComparison(order, type))
      return c.fail(VerifierRule::compare_c1, "`type=" + enumText(EnumType::ComparisonType, order) +
                                                  "` does not suit operands of shape " + show(c.operand(0)));
  }
  return InferenceContext::elementwise(c.operand(0), ElementType::Pred);
}

std::optional<Shape> inferConversion(InferenceContext &c) {
  if (!c.declaresArray())
    return c.fail(VerifierRule::convert_c1, "the result must be an array, not " + show(c.declared()));
  switch (c.opcode()) {
  case Opcode::Convert:
    if (isComplex(c.operand(0).elementType()) && !isComplex(c.declared().elementType()))
      return c.fail(VerifierRule::convert_c2, "cannot convert " + show(c.operand(0)) + " to " + show(c.declared()));
    return InferenceContext::elementwise(c.operand(0), c.declared().elementType());
  case Opcode::BitcastConvert:
    return inferBitcastConvert(c);
  case Opcode::StochasticConvert:
    return inferStochasticConvert(c);
  default:
    HLOC_UNREACHABLE("a conversion has no shape inference");
  }
}

std::optional<Shape> inferIdentity(InferenceContext &c) {
  if (c.opcode() == Opcode::AddDependency && !c.operand(1).isToken())
    return c.fail(VerifierRule::add_dependency_c1, "the second operand is " + show(c.operand(1)) + ", not a token");
  return c.operand(0);
}

} // namespace hloc
