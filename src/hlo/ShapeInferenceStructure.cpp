// Random numbers, tuples, calls and control flow (hlo-text 6.3, 6.6).
#include "ShapeInferenceContext.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

std::optional<Shape> inferRng(InferenceContext &c) {
  const Shape &result = c.declared();
  for (unsigned i = 0; i < c.numOperands(); ++i)
    if (c.numOperands() != 2 || !c.operand(i).isScalar() || !result.isArray() ||
        c.operand(i).elementType() != result.elementType())
      return c.fail(VerifierRule::rng_c1, "operand " + llvm::Twine(i) + " is " + show(c.operand(i)) +
                                              ", not one of two scalars of the type of " + show(result));
  auto distribution = static_cast<RandomDistribution>(c.integer(AttributeKey::Distribution, 0));
  ElementType type = result.elementType();
  bool fits = isFloat(type) || (distribution == RandomDistribution::Uniform && (isInteger(type) || isPred(type)));
  if (!fits)
    return c.fail(VerifierRule::rng_c2, "`distribution=" + enumText(EnumType::RandomDistribution, distribution) +
                                            "` cannot make " + show(result));
  return result;
}

std::optional<Shape> inferRngBitGenerator(InferenceContext &c) {
  const Shape &state = c.operand(0), &result = c.declared();
  auto algorithm = static_cast<RandomAlgorithm>(c.integer(AttributeKey::Algorithm, 0));
  bool words = state.elementType() == ElementType::U64 && state.rank() == 1;
  bool fits = algorithm == RandomAlgorithm::Default    ? isInteger(state.elementType())
              : algorithm == RandomAlgorithm::ThreeFry ? words && state.dim(0) == 2
                                                       : words && (state.dim(0) == 2 || state.dim(0) == 3);
  if (!fits)
    return c.fail(VerifierRule::rng_bit_generator_c1, "`algorithm=" + enumText(EnumType::RandomAlgorithm, algorithm) +
                                                          "` cannot have the state " + show(state));
  if (result.isArray())
    return result;
  if (!result.isTuple() || result.elements().size() != 2 || !result.element(1).isArray())
    return c.fail(VerifierRule::rng_bit_generator_c2, "the result " + show(result) + " is not (state, bits)");
  return Shape::tuple({state, result.element(1)});
}

/// The callee's parameters as a tuple, for messages.
std::string showOperands(const InferenceContext &c, unsigned begin) {
  return show(Shape::tuple(c.operandShapes(begin, c.numOperands())));
}

std::optional<Shape> inferCall(InferenceContext &c, AttributeKey key, VerifierRule rule) {
  const HloComputation *callee = c.callee(key);
  if (!callee || !takes(*callee, c.operandShapes()))
    return c.fail(rule, "operands " + showOperands(c, 0) + " do not fit " +
                            (callee ? signature(*callee) : std::string("a missing computation")));
  return callee->root()->shape();
}

std::optional<Shape> inferWhile(InferenceContext &c) {
  const Shape &state = c.operand(0);
  const HloComputation *condition = c.callee(AttributeKey::Condition), *body = c.callee(AttributeKey::Body);
  if (!condition || !takes(*condition, {state}) ||
      !condition->root()->shape().compatible(Shape::scalar(ElementType::Pred)))
    return c.fail(VerifierRule::while_c1, "the condition " +
                                              (condition ? signature(*condition) : std::string("missing")) +
                                              " does not decide on " + show(state));
  if (!body || !takes(*body, {state}) || !body->root()->shape().compatible(state))
    return c.fail(VerifierRule::while_c2, "the body " + (body ? signature(*body) : std::string("missing")) +
                                              " does not map " + show(state) + " to itself");
  return state;
}

/// The branches in operand order; empty if the attributes do not suit the selector.
llvm::SmallVector<const HloComputation *, 2> branchesOf(const InferenceContext &c) {
  llvm::SmallVector<const HloComputation *, 2> branches;
  if (isPred(c.operand(0).elementType())) {
    const HloComputation *onTrue = c.callee(AttributeKey::TrueComputation),
                         *onFalse = c.callee(AttributeKey::FalseComputation);
    if (onTrue && onFalse && !c.has(AttributeKey::BranchComputations))
      branches = {onTrue, onFalse};
  } else if (const auto *list = c.get<llvm::ArrayRef<HloComputation *>>(AttributeKey::BranchComputations)) {
    if (!c.has(AttributeKey::TrueComputation) && !c.has(AttributeKey::FalseComputation))
      branches.append(list->begin(), list->end());
  }
  return branches;
}

std::optional<Shape> inferConditional(InferenceContext &c) {
  const Shape &selector = c.operand(0);
  if (!selector.isScalar() || (!isPred(selector.elementType()) && selector.elementType() != ElementType::S32))
    return c.fail(VerifierRule::conditional_c1, "the selector is " + show(selector) + ", not pred[] or s32[]");
  llvm::SmallVector<const HloComputation *, 2> branches = branchesOf(c);
  if (branches.empty() || branches.size() + 1 != c.numOperands())
    return c.fail(VerifierRule::conditional_c2, "selector " + show(selector) + " with " + llvm::Twine(branches.size()) +
                                                    " matching branches and " + llvm::Twine(c.numOperands() - 1) +
                                                    " branch operands");
  for (unsigned i = 0; i < branches.size(); ++i) {
    if (!takes(*branches[i], {c.operand(i + 1)}))
      return c.fail(VerifierRule::conditional_c3, "branch " + signature(*branches[i]) + " does not take operand " +
                                                      llvm::Twine(i + 1) + ", " + show(c.operand(i + 1)));
    if (!branches[i]->root()->shape().compatible(branches[0]->root()->shape()))
      return c.fail(VerifierRule::conditional_c4, "branches " + signature(*branches[0]) + " and " +
                                                      signature(*branches[i]) + " differ in their results");
  }
  return branches[0]->root()->shape();
}

std::optional<Shape> inferCustomCall(InferenceContext &c) {
  const auto *constraints = c.get<llvm::ArrayRef<Shape>>(AttributeKey::OperandLayoutConstraints);
  if (!constraints)
    return c.declared();
  bool fits = constraints->size() == c.numOperands();
  for (unsigned i = 0; fits && i < constraints->size(); ++i)
    fits = (*constraints)[i].compatible(c.operand(i));
  if (!fits)
    return c.fail(VerifierRule::custom_call_c1, "operand_layout_constraints " + show(Shape::tuple(*constraints)) +
                                                    " do not fit the operands " + showOperands(c, 0));
  return c.declared();
}

} // namespace

std::optional<Shape> inferRandom(InferenceContext &c) {
  switch (c.opcode()) {
  case Opcode::Rng:
    return inferRng(c);
  case Opcode::RngBitGenerator:
    return inferRngBitGenerator(c);
  case Opcode::RngGetAndUpdateState:
    if (!c.declared().compatible(Shape::array(ElementType::U64, {2})))
      return c.fail(VerifierRule::rng_get_and_update_state_c1,
                    "the result is " + show(c.declared()) + ", not `u64[2]`");
    return c.declared();
  default:
    HLOC_UNREACHABLE("a random op has no shape inference");
  }
}

std::optional<Shape> inferStructure(InferenceContext &c) {
  if (c.opcode() == Opcode::Tuple)
    return Shape::tuple(c.operandShapes());
  const Shape &tuple = c.operand(0);
  int64_t index = c.integer(AttributeKey::Index, -1);
  if (!tuple.isTuple())
    return c.fail(VerifierRule::get_tuple_element_c1, "the operand is " + show(tuple) + ", not a tuple");
  if (index < 0 || index >= static_cast<int64_t>(tuple.elements().size()))
    return c.fail(VerifierRule::get_tuple_element_c2,
                  "index=" + llvm::Twine(index) + " is no element of " + show(tuple));
  return tuple.element(index);
}

std::optional<Shape> inferControl(InferenceContext &c) {
  switch (c.opcode()) {
  case Opcode::Call:
    return inferCall(c, AttributeKey::ToApply, VerifierRule::call_c1);
  case Opcode::While:
    return inferWhile(c);
  case Opcode::Conditional:
    return inferConditional(c);
  case Opcode::Fusion:
    return inferCall(c, AttributeKey::Calls, VerifierRule::fusion_c1);
  case Opcode::CustomCall:
    return inferCustomCall(c);
  default:
    HLOC_UNREACHABLE("a control flow op has no shape inference");
  }
}

} // namespace hloc
