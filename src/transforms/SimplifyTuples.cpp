#include "Rewriter.h"
#include "WithLayout.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// In the layout of the text: before layouts are assigned, an element may have another than its tuple says.
HloInstruction *elementOfTuple(HloInstruction &element, HloRewriter &r) {
  HloInstruction *tuple = element.operand(0);
  const int64_t index = element.intOr(AttributeKey::Index, 0);
  if (tuple->opcode() == Opcode::Tuple)
    return withLayout(tuple->operand(unsigned(index)), element.shape(), r.builder());
  if (element.shape() == tuple->shape().element(unsigned(index)))
    return nullptr;
  return withLayout(r.builder().tupleElement(tuple, index), element.shape(), r.builder());
}

HloInstruction *tupleOfOthers(HloInstruction &tuple, HloRewriter &r) {
  llvm::SmallVector<HloInstruction *> elements;
  bool same = true;
  for (auto [element, shape] : llvm::zip_equal(tuple.operands(), tuple.shape().elements())) {
    same &= element->shape() == shape;
    elements.push_back(withLayout(element, shape, r.builder()));
  }
  return same ? nullptr : r.builder().tuple(elements);
}

HloInstruction *tupleOfElements(HloInstruction &tuple, HloRewriter &) {
  if (tuple.numOperands() == 0 || tuple.operand(0)->opcode() != Opcode::GetTupleElement)
    return nullptr;
  HloInstruction *source = tuple.operand(0)->operand(0);
  bool whole = source->shape().elements().size() == tuple.numOperands();
  for (auto [i, element] : llvm::enumerate(tuple.operands()))
    whole = whole && element->opcode() == Opcode::GetTupleElement && element->operand(0) == source &&
            element->shape() == source->shape().element(unsigned(i)) &&
            element->intOr(AttributeKey::Index, 0) == static_cast<int64_t>(i);
  return whole ? source : nullptr;
}

HloInstruction *constantOf(const Literal &literal, HloBuilder &b) {
  if (!literal.shape().isTuple())
    return b.constant(literal);
  llvm::SmallVector<HloInstruction *> elements;
  for (const Literal &element : literal.elements())
    elements.push_back(constantOf(element, b));
  return b.tuple(elements);
}

HloInstruction *constantTuple(HloInstruction &constant, HloRewriter &r) {
  return constant.shape().isTuple()
             ? withLayout(constantOf(constant.literal(), r.builder()), constant.shape(), r.builder())
             : nullptr;
}

constexpr RewriteRule rules[] = {
    {"simplify-tuples.constant", Opcode::Constant, constantTuple},
    {"simplify-tuples.element-of-tuple", Opcode::GetTupleElement, elementOfTuple},
    {"simplify-tuples.tuple-of-elements", Opcode::Tuple, tupleOfElements},
    {"simplify-tuples.tuple-of-others", Opcode::Tuple, tupleOfOthers},
};

HloInstruction *operandOf(HloInstruction &barrier, HloRewriter &r) {
  return withLayout(barrier.operand(0), barrier.shape(), r.builder());
}

constexpr RewriteRule barrierRules[] = {{"drop-barriers", Opcode::OptimizationBarrier, operandOf}};

} // namespace

PassResult dropBarriers(HloModule &module, HloPassContext &context) {
  PassResult dropped = rewriteModule(module, barrierRules, context);
  if (dropped == PassResult::Changed)
    (void)simplifyTuples(module, context);
  return dropped;
}

PassResult simplifyTuples(HloModule &module, HloPassContext &context) { return rewriteModule(module, rules, context); }

} // namespace hloc
