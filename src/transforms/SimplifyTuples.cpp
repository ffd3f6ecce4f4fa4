#include "Rewriter.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

HloInstruction *elementOfTuple(HloInstruction &element, HloRewriter &) {
  HloInstruction *tuple = element.operand(0);
  return tuple->opcode() == Opcode::Tuple ? tuple->operand(element.intOr(AttributeKey::Index, 0)) : nullptr;
}

HloInstruction *tupleOfElements(HloInstruction &tuple, HloRewriter &) {
  if (tuple.numOperands() == 0 || tuple.operand(0)->opcode() != Opcode::GetTupleElement)
    return nullptr;
  HloInstruction *source = tuple.operand(0)->operand(0);
  bool whole = source->shape().elements().size() == tuple.numOperands();
  for (auto [i, element] : llvm::enumerate(tuple.operands()))
    whole = whole && element->opcode() == Opcode::GetTupleElement && element->operand(0) == source &&
            element->intOr(AttributeKey::Index, 0) == static_cast<int64_t>(i);
  return whole ? source : nullptr;
}

constexpr RewriteRule rules[] = {
    {"simplify-tuples.element-of-tuple", Opcode::GetTupleElement, elementOfTuple},
    {"simplify-tuples.tuple-of-elements", Opcode::Tuple, tupleOfElements},
};

HloInstruction *operandOf(HloInstruction &instr, HloRewriter &) { return instr.operand(0); }

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
