#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/External.h"
#include "hloc/planner/ExecutionPlan.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

bool checkLeaves(const HloInstruction &instr, DiagnosticEngine &diagnostics) {
  bool good = true;
  for (const Shape::Leaf &leaf : instr.shape().leaves())
    if (!leaf.shape.isArray() && !leaf.shape.isToken()) {
      good = false;
      diagnostics.report(DiagnosticKind::UnsupportedType, instr.range(),
                         "`" + leaf.shape.toString() + "` cannot be in device memory");
    }
  return good;
}

/// Whether values of the one shape can lie where values of the other lie.
bool lieAlike(const Shape &a, const Shape &b) {
  llvm::SmallVector<Shape::Leaf, 4> left = a.leaves(), right = b.leaves();
  return left.size() == right.size() && llvm::all_of(llvm::zip_equal(left, right), [](const auto &pair) {
           const Shape &one = std::get<0>(pair).shape, &other = std::get<1>(pair).shape;
           return (one.isArray() || one.isToken()) && one == other;
         });
}

/// What goes in and out of the computations has the shapes that they have.
bool checkControlFlow(const HloInstruction &instr, DiagnosticEngine &diagnostics) {
  if (!checkLeaves(instr, diagnostics))
    return false;
  bool fits = !instr.shape().hasDynamicDims();
  for (auto [i, called] : llvm::enumerate(instr.calledComputations())) {
    const bool isLoop = instr.opcode() == Opcode::While;
    const HloInstruction &operand = *instr.operand(isLoop ? 0 : unsigned(i) + 1);
    const bool isCondition = called == instr.computation(AttributeKey::Condition);
    fits = fits && called->numParameters() == 1 && lieAlike(operand.shape(), called->parameter(0)->shape()) &&
           (isCondition || lieAlike(called->root()->shape(), instr.shape())) &&
           (!isLoop || lieAlike(operand.shape(), instr.shape()));
  }
  if (!fits)
    diagnostics.report(DiagnosticKind::UnsupportedFeature, instr.range(),
                       "a `" + text(instr.opcode()).str() +
                           "` whose operands and results differ in type from what its computations take and return "
                           "is not supported");
  return fits;
}

} // namespace

bool isWork(const HloInstruction &instr) {
  auto isSomething = [](const Shape::Leaf &leaf) { return leaf.shape.byteSize() != 0; };
  return instr.reachesSideEffect() || llvm::any_of(instr.shape().leaves(), isSomething);
}

bool checkNormalForm(const HloInstruction &instr, DiagnosticEngine &diagnostics) {
  switch (instr.opcode()) {
  case Opcode::Parameter:
  case Opcode::Constant:
  case Opcode::Fusion:
    return checkLeaves(instr, diagnostics);
  case Opcode::While:
  case Opcode::Conditional:
    return checkControlFlow(instr, diagnostics);
  case Opcode::Tuple:
  case Opcode::GetTupleElement:
  case Opcode::Bitcast:
  case Opcode::OptimizationBarrier:
  case Opcode::AfterAll:
    return true;
  default:
    if (isExternal(instr))
      return checkLeaves(instr, diagnostics);
    diagnostics.report(DiagnosticKind::UnsupportedOpcode, instr.range(),
                       "`" + text(instr.opcode()).str() +
                           "` at the top level of the entry is not supported: hloc "
                           "compiles fusions and entries made of fusible ops");
    return false;
  }
}

bool checkNormalForm(const HloModule &module, DiagnosticEngine &diagnostics) {
  bool good = true;
  for (const HloComputation *computation : controlComputations(module))
    for (const HloInstruction *instr : computation->instructions())
      good &= checkNormalForm(*instr, diagnostics);
  return good;
}

} // namespace hloc
