// call -> the instructions of its callee.
//
// Callees come before callers in a module, so when a computation is copied the bodies it calls have been inlined
// already and one level of splicing is enough.

#include "CloneBody.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

class Inliner {
public:
  Inliner(const HloModule &module, DiagnosticEngine &diagnostics, size_t limit)
      : source(module), diagnostics(diagnostics), limit(limit), result(emptyLike(module)) {}

  std::unique_ptr<HloModule> run() {
    for (HloComputation *computation : reachableComputations(source))
      if (!inlineInto(*computation))
        return nullptr;
    result->setEntry(copies.lookup(source.entry()));
    return dropUncalled();
  }

private:
  bool inlineInto(const HloComputation &from) {
    HloComputation *copy = result->addComputation(from.name());
    copy->setRange(from.range());
    copy->setExecutionThread(from.executionThread());
    copies[&from] = copy;
    HloBuilder builder(*copy);
    InstructionMap mapped;
    std::vector<bool> live = liveInstructions(from);
    llvm::SmallVector<HloInstruction *> operands;
    for (HloInstruction *instr : from.instructions()) {
      if (!live[instr->id()])
        continue;
      operands.clear();
      for (HloInstruction *operand : instr->operands())
        operands.push_back(mapped.lookup(operand));
      builder.setRange(instr->range());
      matchLayouts(*instr, operands, builder);
      mapped[instr] = instr->opcode() == Opcode::Call     ? splice(*instr, operands, builder, *copy)
                      : instr->opcode() == Opcode::Fusion ? cloneFusion(*instr, operands, builder)
                                                          : builder.clone(*instr, operands, copies);
      if (copy->instructions().size() > limit) {
        diagnostics.report(DiagnosticKind::UnsupportedFeature, instr->range(),
                           "inlining calls makes `" + from.name().str() + "` larger than " + std::to_string(limit) +
                               " instructions");
        return false;
      }
    }
    copy->setRoot(mapped.lookup(from.root()));
    return true;
  }

  /// Bytes pass unchanged into tuples and the parameters of fusions: where the text gives them another layout, it means
  /// a copy.
  static void matchLayouts(const HloInstruction &instr, llvm::MutableArrayRef<HloInstruction *> operands,
                           HloBuilder &builder) {
    if (instr.opcode() == Opcode::Tuple)
      for (auto [i, operand] : llvm::enumerate(operands))
        operand = withLayout(operand, instr.shape().element(i), builder);
    if (instr.opcode() == Opcode::Fusion)
      for (const HloInstruction *parameter : instr.computation(AttributeKey::Calls)->parameters())
        operands[parameter->parameterNumber()] =
            withLayout(operands[parameter->parameterNumber()], parameter->shape(), builder);
  }

  /// A fusion's kernel writes what its root is, in the root's layout.
  HloInstruction *cloneFusion(const HloInstruction &fusion, llvm::ArrayRef<HloInstruction *> operands,
                              HloBuilder &builder) {
    const Shape &written = fusion.computation(AttributeKey::Calls)->root()->shape();
    return withLayout(builder.clone(fusion, operands, copies, &written), fusion.shape(), builder);
  }

  /// Copies the callee's instructions in place of `call`, named `<call>.<callee instruction>`.
  HloInstruction *splice(const HloInstruction &call, llvm::ArrayRef<HloInstruction *> operands, HloBuilder &builder,
                         HloComputation &into) {
    HloComputation *callee = copies.lookup(call.computation(AttributeKey::ToApply));
    InstructionMap mapped;
    for (HloInstruction *parameter : callee->parameters())
      mapped[parameter] = withLayout(operands[parameter->parameterNumber()], parameter->shape(), builder);
    llvm::SmallVector<HloInstruction *> inner;
    for (HloInstruction *instr : callee->instructions()) {
      if (mapped.contains(instr))
        continue;
      inner.clear();
      for (HloInstruction *operand : instr->operands())
        inner.push_back(mapped.lookup(operand));
      builder.setRange(instr->range());
      std::string name = (llvm::Twine(call.name()) + "." + instr->name()).str();
      InstructionSpec spec{instr->opcode(),       name,
                           instr->shape(),        inner,
                           instr->attributes(),   instr->range(),
                           /*parameterNumber=*/0, instr->hasLiteral() ? &instr->literal() : nullptr};
      mapped[instr] = into.add(spec);
    }
    return withLayout(mapped.lookup(callee->root()), call.shape(), builder);
  }

  /// Computations that only calls used are no longer reachable.
  std::unique_ptr<HloModule> dropUncalled() {
    std::vector<HloComputation *> keep = reachableComputations(*result);
    if (keep.size() == result->computations().size())
      return std::move(result);
    std::unique_ptr<HloModule> slim = emptyLike(source);
    ComputationMap kept;
    for (HloComputation *computation : keep)
      kept[computation] = cloneComputation(*computation, *slim, computation->name(), kept);
    slim->setEntry(kept.lookup(result->entry()));
    return slim;
  }

  const HloModule &source;
  DiagnosticEngine &diagnostics;
  size_t limit;
  std::unique_ptr<HloModule> result;
  ComputationMap copies;
};

} // namespace

std::unique_ptr<HloModule> inlineCalls(const HloModule &module, DiagnosticEngine &diagnostics, size_t maxInstructions) {
  return Inliner(module, diagnostics, maxInstructions).run();
}

} // namespace hloc
