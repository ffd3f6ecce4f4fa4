// Texts that XLA reads as something other than what is written: older results of tokens and transfers, a `type=` of a
// compare that its operands decide, operands of several float precisions. Each becomes here what it means, with a
// warning, so that nothing behind the parser has to know such forms.
#include "ModuleParser.h"

#include "hloc/hlo/ShapeInference.h"
#include "hloc/support/FloatFormat.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

/// What the older form of a result means; nothing if the written shape counts.
std::optional<Shape> newerResult(Opcode opcode, const Shape &written, llvm::ArrayRef<HloInstruction *> operands) {
  Shape token = Shape::token();
  using enum Opcode;
  if (llvm::is_contained({AfterAll, Outfeed, SendDone}, opcode) && written.isTuple() && // () and (token[])
      llvm::all_of(written.elements(), [](const Shape &one) { return one.isToken(); }))
    return token;
  if ((opcode == Send || opcode == Recv) && written.isTuple() && written.elements().size() == 2) // (data, u32[])
    return Shape::tuple({written.element(0), written.element(1), token});
  if (opcode == RecvDone) { // data alone
    const Shape &started = operands[0]->shape();
    if (started.isTuple() && started.elements().size() == 3 && written.compatible(started.element(0)))
      return Shape::tuple({written, token});
  }
  return std::nullopt;
}

/// Operands that compute with each other, so that they have one element type.
llvm::SmallVector<unsigned, 4> operandsOfOneType(Opcode opcode, unsigned count) {
  if (opcode == Opcode::Select)
    return {1, 2};
  if (opcode == Opcode::DynamicUpdateSlice || opcode == Opcode::Pad)
    return {0, 1};
  if (opcode == Opcode::Scatter && count == 3) // of one array; of several, each pair has a type of its own
    return {0, 2};
  OpcodeFamily kind = family(opcode);
  if (kind != OpcodeFamily::Unary && kind != OpcodeFamily::Binary && kind != OpcodeFamily::Ternary &&
      kind != OpcodeFamily::Compare && opcode != Opcode::Concatenate)
    return {};
  llvm::SmallVector<unsigned, 4> all;
  for (unsigned i = 0; i < count; ++i)
    all.push_back(i);
  return all;
}

/// XLA's order of precision: the larger range first, then the longer significand. bf16 is above f16.
bool isHigherPrecision(ElementType a, ElementType b) {
  const FloatFormat &x = floatFormat(a), &y = floatFormat(b);
  return std::pair(x.exponentBits, x.mantissaBits) > std::pair(y.exponentBits, y.mantissaBits);
}

} // namespace

void ModuleParser::readResultAsMeant(Draft &draft) {
  if (!draft.shapeGiven)
    return;
  std::optional<Shape> meant = newerResult(draft.spec.opcode, draft.spec.shape, draft.operands);
  if (!meant || meant->compatible(draft.spec.shape))
    return;
  diagnostics.report(DiagnosticKind::IgnoredInput, draft.opcodeRange,
                     "the result of `" + draft.opcodeText.str() + "` is `" + meant->toString(false) +
                         "`, though it is written as `" + draft.spec.shape.toString(false) + "`");
  draft.spec.shape = *meant;
}

/// Waiting for an array is waiting for what computes it.
void ModuleParser::readDependenciesAsMeant(const Draft &draft) {
  if (draft.spec.opcode != Opcode::AfterAll)
    return;
  for (const HloInstruction *operand : draft.operands)
    if (operand->shape().isArray())
      diagnostics.report(DiagnosticKind::IgnoredInput, draft.opcodeRange,
                         "`after-all` waits for `" + operand->name().str() + "`, whose value, `" +
                             operand->shape().toString(false) + "`, it does not read");
}

/// What does not suit the operands is left out: their element type says how they compare.
void ModuleParser::readCompareAsMeant(Draft &draft) {
  Attribute *type = llvm::find_if(draft.attributes, [](const Attribute &a) { return a.key == AttributeKey::Type; });
  if (draft.spec.opcode != Opcode::Compare || type == draft.attributes.end() || !draft.operands[0]->shape().isArray())
    return;
  ElementType operands = draft.operands[0]->shape().elementType();
  auto order = static_cast<ComparisonType>(std::get<int64_t>(type->value));
  if (suitsComparison(order, operands))
    return;
  diagnostics.report(DiagnosticKind::IgnoredInput, draft.opcodeRange,
                     "`type=" + enumText(EnumType::ComparisonType, order).str() + "` does not suit operands of type `" +
                         text(operands).str() + "`, which decide how they compare");
  draft.attributes.erase(type);
}

/// The operand itself if it has this type already.
HloInstruction *ModuleParser::convertTo(Scope &scope, HloInstruction *operand, ElementType type, SourceRange range) {
  if (operand->shape().elementType() == type)
    return operand;
  HloInstruction *&converted = scope.conversions[{operand, unsigned(type)}];
  if (!converted) {
    InstructionSpec spec;
    std::string name = freshName(scope, operand->name() + ".to_" + text(type));
    spec.opcode = Opcode::Convert;
    spec.name = name;
    spec.shape = operand->shape().withElementType(type);
    spec.operands = operand;
    spec.range = range;
    converted = scope.computation->add(spec);
    scope.names[converted->name()] = {converted, range};
  }
  return converted;
}

/// Operands of several float precisions are converted to the highest of them, and of the result if that is higher.
void ModuleParser::readPrecisionAsMeant(Scope &scope, Draft &draft) {
  llvm::SmallVector<unsigned, 4> together = operandsOfOneType(draft.spec.opcode, unsigned(draft.operands.size()));
  std::optional<ElementType> highest;
  bool mixed = false;
  auto meet = [&](const Shape &shape) {
    if (!shape.isArray() || !isFloat(shape.elementType()))
      return false;
    mixed |= highest && *highest != shape.elementType();
    if (!highest || isHigherPrecision(shape.elementType(), *highest))
      highest = shape.elementType();
    return true;
  };
  for (unsigned i : together)
    if (!meet(draft.operands[i]->shape()))
      return;
  // The type of a result that is of the operands' type; a compare's, for one, is not.
  if (draft.shapeGiven && draft.spec.shape.isArray() && isFloat(draft.spec.shape.elementType()) && !together.empty())
    meet(draft.spec.shape);
  if (!mixed)
    return;
  diagnostics.report(DiagnosticKind::MixedPrecision, draft.opcodeRange,
                     "`" + draft.opcodeText.str() + "` of several float precisions: operands are converted to `" +
                         text(*highest).str() + "`");
  for (unsigned i : together)
    draft.operands[i] = convertTo(scope, draft.operands[i], *highest, draft.spec.range);
  if (draft.shapeGiven && draft.spec.shape.isArray() && isFloat(draft.spec.shape.elementType()) &&
      draft.spec.shape.elementType() != *highest) {
    draft.roundedTo = draft.spec.shape;
    draft.spec.shape = draft.spec.shape.withElementType(*highest);
  }
}

void ModuleParser::readAsMeant(Scope &scope, Draft &draft) {
  if (draft.async != Draft::Async::None)
    return;
  readResultAsMeant(draft);
  readDependenciesAsMeant(draft);
  readCompareAsMeant(draft);
  readPrecisionAsMeant(scope, draft);
}

} // namespace hloc
