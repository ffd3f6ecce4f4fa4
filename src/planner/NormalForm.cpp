#include "hloc/planner/ExecutionPlan.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

bool checkLeaves(const HloInstruction &instr, DiagnosticEngine &diagnostics) {
  bool good = true;
  for (const Shape::Leaf &leaf : instr.shape().leaves())
    if (!leaf.shape.isArray()) {
      good = false;
      diagnostics.report(DiagnosticKind::UnsupportedType, instr.range(),
                         "`" + leaf.shape.toString() + "` cannot be in device memory");
    }
  return good;
}

} // namespace

bool isWork(const HloInstruction &fusion) {
  auto isSomething = [](const Shape::Leaf &leaf) { return !leaf.shape.isArray() || leaf.shape.byteSize() != 0; };
  return fusion.reachesSideEffect() || llvm::any_of(fusion.shape().leaves(), isSomething);
}

bool checkNormalForm(const HloInstruction &instr, DiagnosticEngine &diagnostics) {
  switch (instr.opcode()) {
  case Opcode::Parameter:
  case Opcode::Fusion:
    return checkLeaves(instr, diagnostics);
  case Opcode::Tuple:
  case Opcode::GetTupleElement:
  case Opcode::Bitcast:
  case Opcode::OptimizationBarrier:
    return true;
  default:
    diagnostics.report(DiagnosticKind::UnsupportedOpcode, instr.range(),
                       "`" + text(instr.opcode()).str() +
                           "` at the top level of the entry is not supported: hloc "
                           "compiles fusions and entries made of fusible ops");
    return false;
  }
}

bool checkNormalForm(const HloModule &module, DiagnosticEngine &diagnostics) {
  bool good = true;
  for (const HloInstruction *instr : module.entry()->instructions())
    good &= checkNormalForm(*instr, diagnostics);
  return good;
}

} // namespace hloc
