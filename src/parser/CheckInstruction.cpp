// What the parser demands of an instruction once all of its text is read: what later code relies on when it looks at an
// instruction, and what XLA's parser refuses. Everything else is the verifier's.
#include "ModuleParser.h"

#include "hloc/hlo/ShapeInference.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

const AttributeValue *findIn(llvm::ArrayRef<Attribute> attributes, AttributeKey key) {
  const Attribute *found = llvm::find_if(attributes, [&](const Attribute &a) { return a.key == key; });
  return found == attributes.end() ? nullptr : &found->value;
}

std::string countText(int64_t count, llvm::StringRef what) {
  return std::to_string(count) + " " + what.str() + (count == 1 ? "" : "s");
}

} // namespace

bool ModuleParser::checkDraft(Scope &scope, Draft &draft) {
  if (!checkOperandCount(draft) || !checkBroadcast(draft) || !checkTupleElement(draft) || !checkConditional(draft) ||
      !checkOneDimension(draft) || !checkDynamicIndices(draft) || !checkPairs(draft))
    return false;
  readAsMeant(scope, draft);
  if (!draft.shapeGiven) {
    if (!mayOmitShape(draft.spec.opcode) || draft.async != Draft::Async::None)
      return error(DiagnosticKind::MissingShape, draft.opcodeRange,
                   "`" + draft.opcodeText.str() + "` needs a result shape");
    InstructionSpec spec = draft.spec;
    spec.operands = draft.operands;
    spec.attributes = draft.attributes;
    std::string message;
    std::optional<Shape> inferred = inferShape(spec, message);
    if (!inferred)
      return error(DiagnosticKind::ShapeMismatch, draft.opcodeRange, message);
    draft.spec.shape = *inferred;
  }
  return checkReshape(draft) && checkLayoutConstraints(draft) && checkAsync(draft);
}

bool ModuleParser::checkRequiredAttributes(const Draft &draft) {
  if (draft.async == Draft::Async::Update || draft.async == Draft::Async::Done)
    return true; // as the start has them
  bool good = true;
  for (const AttributeSpec &spec : attributeSpecs(draft.spec.opcode))
    if (spec.required && !findIn(draft.attributes, spec.key))
      good = error(DiagnosticKind::MissingAttribute, draft.opcodeRange,
                   "`" + draft.opcodeText.str() + "` needs attribute `" + text(spec.key).str() + "`");
  return good;
}

/// A scalar has no dimensions to place.
bool ModuleParser::checkBroadcast(const Draft &draft) {
  if (draft.spec.opcode != Opcode::Broadcast || draft.async != Draft::Async::None ||
      findIn(draft.attributes, AttributeKey::Dimensions))
    return true;
  const Shape &operand = draft.operands[0]->shape();
  if (operand.isArray() && operand.rank() == 0)
    return true;
  return error(DiagnosticKind::MissingAttribute, draft.opcodeRange,
               "`broadcast` of `" + operand.toString(false) + "` needs attribute `dimensions`");
}

bool ModuleParser::checkOperandCount(const Draft &draft) {
  Opcode opcode = draft.spec.opcode;
  auto count = int(draft.operands.size());
  bool viaAsync = draft.async == Draft::Async::Update || draft.async == Draft::Async::Done;
  int least = viaAsync ? 1 : minOperands(opcode), most = viaAsync ? 1 : maxOperands(opcode);
  auto wrong = [&](const std::string &wanted) {
    return error(DiagnosticKind::OperandCount, draft.opcodeRange,
                 "`" + draft.opcodeText.str() + "` expects " + wanted + ", has " + std::to_string(count));
  };
  if (count < least || (most >= 0 && count > most))
    return wrong((least == most ? "" : "at least ") + countText(least, "operand"));
  if (viaAsync)
    return true;
  if ((opcode == Opcode::Reduce || opcode == Opcode::ReduceWindow) && count % 2 != 0)
    return wrong("an even number of operands");
  if (opcode == Opcode::Scatter && count % 2 == 0)
    return wrong("an odd number of operands");
  return true;
}

bool ModuleParser::checkReshape(const Draft &draft) {
  if (draft.spec.opcode != Opcode::Reshape || draft.async != Draft::Async::None)
    return true;
  const Shape &to = draft.spec.shape, &from = draft.operands[0]->shape();
  if (!to.isArray() || !from.isArray() || to.hasDynamicDims() || from.hasDynamicDims() ||
      to.numElements() == from.numElements())
    return true;
  return error(DiagnosticKind::ShapeMismatch, draft.opcodeRange,
               "reshape of `" + from.toString(false) + "` to `" + to.toString(false) +
                   "` changes the number of elements");
}

bool ModuleParser::checkTupleElement(const Draft &draft) {
  const AttributeValue *value = findIn(draft.attributes, AttributeKey::Index);
  if (draft.spec.opcode != Opcode::GetTupleElement || !value)
    return true;
  int64_t index = std::get<int64_t>(*value);
  const Shape &tuple = draft.operands[0]->shape();
  if (tuple.isTuple() && index >= 0 && index < int64_t(tuple.elements().size()))
    return true;
  return error(DiagnosticKind::ShapeMismatch, draft.opcodeRange,
               "`" + tuple.toString(false) + "` has no element " + std::to_string(index));
}

/// The selector decides which attributes name the branches: pred[] two computations, s32[] a list.
bool ModuleParser::checkConditional(const Draft &draft) {
  if (draft.spec.opcode != Opcode::Conditional || draft.async == Draft::Async::Update ||
      draft.async == Draft::Async::Done)
    return true;
  const Shape &selector = draft.operands[0]->shape();
  bool scalar = selector.isArray() && selector.rank() == 0;
  bool two = scalar && isPred(selector.elementType());
  if (!two && !(scalar && selector.elementType() == ElementType::S32))
    return error(DiagnosticKind::TypeMismatch, draft.opcodeRange,
                 "a conditional selects by `pred[]` or `s32[]`, not `" + selector.toString(false) + "`");
  using Keys = llvm::SmallVector<AttributeKey, 2>;
  const Keys byPred{AttributeKey::TrueComputation, AttributeKey::FalseComputation},
      byIndex{AttributeKey::BranchComputations};
  for (AttributeKey key : two ? byIndex : byPred)
    if (findIn(draft.attributes, key))
      return error(DiagnosticKind::UnknownAttribute, draft.opcodeRange,
                   "a conditional on `" + selector.toString(false) + "` has no attribute `" + text(key).str() + "`");
  for (AttributeKey key : two ? byPred : byIndex)
    if (!findIn(draft.attributes, key))
      return error(DiagnosticKind::MissingAttribute, draft.opcodeRange,
                   "a conditional on `" + selector.toString(false) + "` needs attribute `" + text(key).str() + "`");
  size_t branches = 2;
  if (!two)
    branches =
        std::get<llvm::ArrayRef<HloComputation *>>(*findIn(draft.attributes, AttributeKey::BranchComputations)).size();
  if (draft.operands.size() != branches + 1)
    return error(DiagnosticKind::OperandCount, draft.opcodeRange,
                 "`conditional` expects " + countText(int64_t(branches), "operand") +
                     " after its selector, one for each branch, has " + std::to_string(draft.operands.size() - 1));
  return true;
}

bool ModuleParser::checkOneDimension(const Draft &draft) {
  if (!hasTrait(draft.spec.opcode, OpcodeTrait::OneDimension))
    return true;
  const AttributeValue *value = findIn(draft.attributes, AttributeKey::Dimensions);
  size_t count = value ? std::get<llvm::ArrayRef<int64_t>>(*value).size() : 1;
  if (count == 1)
    return true;
  return error(DiagnosticKind::BadAttribute, draft.opcodeRange,
               "`" + draft.opcodeText.str() + "` needs exactly one dimension, `dimensions` has " +
                   std::to_string(count));
}

/// One scalar index a dimension, or all of them in one array of rank 1.
bool ModuleParser::checkDynamicIndices(const Draft &draft) {
  Opcode opcode = draft.spec.opcode;
  if ((opcode != Opcode::DynamicSlice && opcode != Opcode::DynamicUpdateSlice) || draft.async == Draft::Async::Update ||
      draft.async == Draft::Async::Done)
    return true;
  size_t first = opcode == Opcode::DynamicSlice ? 1 : 2;
  const Shape &operand = draft.operands[0]->shape();
  size_t count = draft.operands.size() - first;
  if (!operand.isArray() || count == operand.rank())
    return true;
  if (count == 1 && draft.operands[first]->shape().isArray() && draft.operands[first]->shape().rank() == 1)
    return true;
  return error(DiagnosticKind::OperandCount, draft.opcodeRange,
               "`" + draft.opcodeText.str() + "` of `" + operand.toString(false) + "` expects " +
                   countText(operand.rank(), "index operand") + ", has " + std::to_string(count));
}

bool ModuleParser::checkPairs(const Draft &draft) {
  const AttributeValue *value = findIn(draft.attributes, AttributeKey::SourceTargetPairs);
  if (!value)
    return true;
  for (llvm::ArrayRef<int64_t> pair : std::get<llvm::ArrayRef<llvm::ArrayRef<int64_t>>>(*value))
    if (pair.size() != 2)
      return error(DiagnosticKind::BadAttribute, draft.opcodeRange,
                   "`source_target_pairs` has a list of " + std::to_string(pair.size()) + " where a pair is expected");
  return true;
}

bool ModuleParser::checkLayoutConstraints(const Draft &draft) {
  const AttributeValue *value = findIn(draft.attributes, AttributeKey::OperandLayoutConstraints);
  if (!value)
    return true;
  llvm::ArrayRef<Shape> shapes = std::get<llvm::ArrayRef<Shape>>(*value);
  if (shapes.size() != draft.operands.size())
    return error(DiagnosticKind::BadAttribute, draft.opcodeRange,
                 "`operand_layout_constraints` has " + countText(int64_t(shapes.size()), "shape") + " for " +
                     countText(int64_t(draft.operands.size()), "operand"));
  for (auto [shape, operand] : llvm::zip(shapes, draft.operands))
    if (!shape.compatible(operand->shape()))
      return error(DiagnosticKind::ShapeMismatch, draft.opcodeRange,
                   "`operand_layout_constraints` says `" + shape.toString(false) + "`, operand `" +
                       operand->name().str() + "` is `" + operand->shape().toString(false) + "`");
  return true;
}

/// Updates keep the shape of what they update; a computation belongs to one asynchronous op.
bool ModuleParser::checkAsync(const Draft &draft) {
  Opcode opcode = draft.spec.opcode;
  bool update = opcode == Opcode::AsyncUpdate || draft.async == Draft::Async::Update;
  if (update && !draft.spec.shape.compatible(draft.operands[0]->shape()))
    return error(DiagnosticKind::ShapeMismatch, draft.opcodeRange,
                 "`" + draft.opcodeText.str() + "` has the shape of its operand, `" +
                     draft.operands[0]->shape().toString(false) + "`, not `" + draft.spec.shape.toString(false) + "`");
  if (opcode != Opcode::AsyncStart)
    return true;
  const AttributeValue *called = findIn(draft.attributes, AttributeKey::Calls);
  auto *computation = called ? std::get<HloComputation *>(*called) : nullptr;
  if (!computation)
    return true;
  auto [first, isNew] = asyncStarts.try_emplace(computation, draft.opcodeRange);
  if (isNew)
    return true;
  diagnostics
      .report(DiagnosticKind::InvalidCallee, draft.opcodeRange,
              "computation `" + computation->name().str() + "` is called by another asynchronous op already")
      .note(first->second, "here");
  failed = true;
  return false;
}

} // namespace hloc
