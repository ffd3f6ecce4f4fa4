#include "hloc/hlo/ShapeInference.h"

#include "ShapeInferenceContext.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// Families whose ops compute on arrays only.
bool takesArraysOnly(OpcodeFamily family) {
  switch (family) {
  case OpcodeFamily::Unary:
  case OpcodeFamily::Binary:
  case OpcodeFamily::Ternary:
  case OpcodeFamily::Compare:
  case OpcodeFamily::Convert:
  case OpcodeFamily::Movement:
  case OpcodeFamily::Structured:
  case OpcodeFamily::Random:
    return true;
  case OpcodeFamily::Identity:
  case OpcodeFamily::Source:
  case OpcodeFamily::Structure:
  case OpcodeFamily::Control:
  case OpcodeFamily::Host:
  case OpcodeFamily::Collective:
  case OpcodeFamily::Async:
    return false;
  }
  return false;
}

/// The rules of every instruction: what the op's own function may rely on.
bool checkOperandsAndAttributes(InferenceContext &c) {
  Opcode opcode = c.opcode();
  int count = c.numOperands(), least = minOperands(opcode), most = maxOperands(opcode);
  if (count < least || (most >= 0 && count > most)) {
    c.fail(VerifierRule::instruction_c1, "expects " + llvm::Twine(count < least && most != least ? "at least " : "") +
                                             llvm::Twine(count < least ? least : most) + " operands, but has " +
                                             llvm::Twine(count));
    return false;
  }
  for (const AttributeSpec &attribute : attributeSpecs(opcode))
    if (attribute.required && !c.has(attribute.key)) {
      c.fail(VerifierRule::instruction_c2, "attribute `" + text(attribute.key) + "` is missing");
      return false;
    }
  bool arraysOnly = takesArraysOnly(family(opcode));
  for (unsigned i = 0; i < c.numOperands(); ++i) {
    if (c.operand(i).hasBuffer()) {
      c.fail(VerifierRule::shape_c3, "operand " + llvm::Twine(i) + " is a buffer " + show(c.operand(i)));
      return false;
    }
    if (arraysOnly && !c.operand(i).isArray()) {
      c.fail(VerifierRule::instruction_c3, "operand " + llvm::Twine(i) + " is not an array but " + show(c.operand(i)));
      return false;
    }
  }
  return true;
}

/// Ops whose result keeps its meaning with dimensions that nobody knows yet.
std::optional<Shape> inferUnbounded(InferenceContext &c) {
  if (!c.isOmitted())
    return c.declared();
  if (family(c.opcode()) == OpcodeFamily::Unary || family(c.opcode()) == OpcodeFamily::Binary)
    return c.operand(0);
  if (c.opcode() == Opcode::Tuple || c.opcode() == Opcode::GetTupleElement)
    return inferStructure(c);
  return c.fail(VerifierRule::shape_c4, "the result shape must be written, as an operand has unbounded dimensions");
}

std::optional<Shape> inferStructured(InferenceContext &c) {
  switch (c.opcode()) {
  case Opcode::Scatter:
    return inferScatter(c);
  case Opcode::Sort:
    return inferSort(c);
  case Opcode::TopK:
    return inferTopK(c);
  case Opcode::Reduce:
    return inferReduce(c);
  case Opcode::ReduceWindow:
    return inferReduceWindow(c);
  case Opcode::SelectAndScatter:
    return inferSelectAndScatter(c);
  case Opcode::Map:
    return inferMap(c);
  case Opcode::Scan:
    return inferScan(c);
  case Opcode::Dot:
    return inferDot(c);
  case Opcode::ScaledDot:
    return inferScaledDot(c);
  case Opcode::RaggedDot:
    return inferRaggedDot(c);
  case Opcode::Convolution:
    return inferConvolution(c);
  case Opcode::BatchNormTraining:
  case Opcode::BatchNormInference:
  case Opcode::BatchNormGrad:
    return inferBatchNorm(c);
  case Opcode::Fft:
    return inferFft(c);
  case Opcode::Cholesky:
    return inferCholesky(c);
  case Opcode::TriangularSolve:
    return inferTriangularSolve(c);
  default:
    HLOC_UNREACHABLE("an opcode of the Structured family has no shape inference");
  }
}

std::optional<Shape> inferByFamily(InferenceContext &c) {
  switch (family(c.opcode())) {
  case OpcodeFamily::Unary:
    return inferUnary(c);
  case OpcodeFamily::Binary:
    return inferBinary(c);
  case OpcodeFamily::Ternary:
    return inferTernary(c);
  case OpcodeFamily::Compare:
    return inferCompare(c);
  case OpcodeFamily::Convert:
    return inferConversion(c);
  case OpcodeFamily::Identity:
    return inferIdentity(c);
  case OpcodeFamily::Source:
    return inferSource(c);
  case OpcodeFamily::Movement:
    return inferMovement(c);
  case OpcodeFamily::Structured:
    return inferStructured(c);
  case OpcodeFamily::Random:
    return inferRandom(c);
  case OpcodeFamily::Structure:
    return inferStructure(c);
  case OpcodeFamily::Control:
    return inferControl(c);
  case OpcodeFamily::Host:
    return inferHost(c);
  case OpcodeFamily::Collective:
    return inferCollective(c);
  case OpcodeFamily::Async:
    return inferAsync(c);
  }
  HLOC_UNREACHABLE("opcode without a family");
}

} // namespace

std::optional<Shape> inferWithRules(InferenceContext &c) {
  if (!checkOperandsAndAttributes(c))
    return std::nullopt;
  if (c.declared().hasBuffer())
    return c.fail(VerifierRule::shape_c3, "the result is a buffer " + show(c.declared()));
  bool unboundedOperand = c.declared().hasUnboundedDims();
  for (unsigned i = 0; i < c.numOperands() && !unboundedOperand; ++i)
    unboundedOperand = c.operand(i).hasUnboundedDims();
  return unboundedOperand ? inferUnbounded(c) : inferByFamily(c);
}

std::optional<Shape> inferShape(const InstructionSpec &spec, std::string &error) {
  InferenceContext context(spec);
  std::optional<Shape> shape = inferWithRules(context);
  if (!shape)
    error = context.message();
  return shape;
}

} // namespace hloc
