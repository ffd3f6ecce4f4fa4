// entry_computation_layout -> layouts of the entry's parameters and result, with copies where the body has others.

#include "CloneBody.h"
#include "hloc/transforms/Transforms.h"

namespace hloc {

std::unique_ptr<HloModule> applyEntryLayout(const HloModule &module, DiagnosticEngine &diagnostics) {
  std::unique_ptr<HloModule> result = emptyLike(module);
  ComputationMap copies;
  std::vector<HloComputation *> computations = reachableComputations(module);
  const AttributeValue *written = module.find(AttributeKey::EntryComputationLayout);
  llvm::ArrayRef<Shape> program = written ? std::get<llvm::ArrayRef<Shape>>(*written) : llvm::ArrayRef<Shape>();
  const HloComputation &entry = *module.entry();
  if (written && program.size() != entry.numParameters() + 1) {
    diagnostics.report(DiagnosticKind::ShapeMismatch, entry.range(),
                       "entry_computation_layout has " + std::to_string(program.size() - 1) +
                           " parameters, the entry " + std::to_string(entry.numParameters()));
    return nullptr;
  }
  for (HloComputation *computation : computations) {
    if (computation != &entry || !written) {
      copies[computation] = cloneComputation(*computation, *result, computation->name(), copies);
      continue;
    }
    HloComputation *copy = result->addComputation(entry.name());
    copy->setRange(entry.range());
    HloBuilder builder(*copy);
    InstructionMap mapped;
    for (HloInstruction *parameter : entry.parameters()) {
      builder.setRange(parameter->range());
      int64_t number = parameter->parameterNumber();
      HloInstruction *outer = builder.parameter(number, program[number], parameter->name());
      mapped[parameter] = withLayout(outer, parameter->shape(), builder);
    }
    HloInstruction *root = cloneLive(entry, builder, mapped, copies);
    builder.setRange(entry.root()->range());
    copy->setRoot(withLayout(root, program.back(), builder));
    copies[computation] = copy;
  }
  result->setEntry(copies.lookup(&entry));
  return result;
}

} // namespace hloc
