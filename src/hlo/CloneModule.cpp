#include "hloc/hlo/CloneComputations.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/DenseSet.h"

namespace hloc {

std::vector<HloComputation *> reachableComputations(const HloModule &module) {
  return reachableComputations(module, [](const HloInstruction &) { return true; });
}

std::vector<HloComputation *> reachableComputations(const HloModule &module,
                                                    llvm::function_ref<bool(const HloInstruction &)> follows) {
  llvm::DenseSet<const HloComputation *> seen{module.entry()};
  std::vector<HloComputation *> pending{module.entry()};
  while (!pending.empty()) {
    HloComputation *computation = pending.back();
    pending.pop_back();
    for (HloInstruction *instr : computation->instructions())
      if (follows(*instr))
        for (HloComputation *called : instr->calledComputations())
          if (seen.insert(called).second)
            pending.push_back(called);
  }
  std::vector<HloComputation *> reachable;
  for (const auto &computation : module.computations())
    if (computation.get() != module.entry() && seen.contains(computation.get()))
      reachable.push_back(computation.get());
  reachable.push_back(module.entry());
  return reachable;
}

std::vector<HloComputation *> calledComputations(const HloModule &module, llvm::ArrayRef<HloInstruction *> callers) {
  llvm::DenseSet<const HloComputation *> seen;
  std::vector<const HloComputation *> pending;
  auto follow = [&](llvm::ArrayRef<HloInstruction *> instructions) {
    for (const HloInstruction *instr : instructions)
      for (const HloComputation *called : instr->calledComputations())
        if (seen.insert(called).second)
          pending.push_back(called);
  };
  follow(callers);
  while (!pending.empty()) {
    const HloComputation *computation = pending.back();
    pending.pop_back();
    follow(computation->instructions());
  }
  std::vector<HloComputation *> called;
  for (const auto &computation : module.computations())
    if (seen.contains(computation.get()))
      called.push_back(computation.get());
  return called;
}

llvm::DenseMap<const HloComputation *, HloComputation *> cloneComputations(llvm::ArrayRef<HloComputation *> originals,
                                                                           HloModule &made) {
  llvm::DenseMap<const HloComputation *, HloComputation *> copies;
  std::vector<HloInstruction *> mapped; // by id
  llvm::SmallVector<HloInstruction *> operands;
  for (HloComputation *from : originals) {
    HloComputation *copy = copies[from] = made.addComputation(from->name());
    copy->setRange(from->range());
    copy->setExecutionThread(from->executionThread());
    HloBuilder builder(*copy);
    mapped.assign(from->instructions().size(), nullptr);
    for (HloInstruction *instr : from->instructions()) {
      operands.clear();
      for (HloInstruction *operand : instr->operands())
        operands.push_back(mapped[operand->id()]);
      mapped[instr->id()] = builder.clone(*instr, operands, copies);
    }
    copy->setRoot(mapped[from->root()->id()]);
  }
  return copies;
}

HloInstruction *placeComputation(const HloComputation &callee, llvm::ArrayRef<HloInstruction *> arguments,
                                 const llvm::Twine &prefix, HloInstruction &before, HloEditor &editor) {
  std::vector<HloInstruction *> mapped(callee.instructions().size()); // by id
  for (HloInstruction *parameter : callee.parameters())
    mapped[parameter->id()] = arguments[parameter->parameterNumber()];
  llvm::SmallVector<HloInstruction *> operands;
  for (HloInstruction *instr : callee.instructions()) {
    if (mapped[instr->id()])
      continue;
    HLOC_CHECK(!instr->has(AttributeKey::ControlPredecessors), "a module that passes change is made by cloneModule");
    operands.clear();
    for (HloInstruction *operand : instr->operands())
      operands.push_back(mapped[operand->id()]);
    const std::string name = (prefix + "." + instr->name()).str();
    InstructionSpec spec{instr->opcode(),       name,
                         instr->shape(),        operands,
                         instr->attributes(),   instr->range(),
                         /*parameterNumber=*/0, instr->hasLiteral() ? &instr->literal() : nullptr};
    mapped[instr->id()] = editor.insert(spec, &before);
  }
  return mapped[callee.root()->id()];
}

std::unique_ptr<HloModule> cloneModule(const HloModule &module) {
  auto made = std::make_unique<HloModule>(module.name(), module.arenaPointer());
  made->setAttributes(module.attributes());
  made->setStackFrames(module.stackFrames());
  made->setHeaderless(module.headerless());
  made->setEntry(cloneComputations(reachableComputations(module), *made).lookup(module.entry()));
  return made;
}

} // namespace hloc
