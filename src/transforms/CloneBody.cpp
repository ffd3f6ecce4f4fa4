#include "CloneBody.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

std::vector<bool> liveInstructions(const HloComputation &computation) {
  std::vector<bool> live(computation.instructions().size(), false);
  for (HloInstruction *instr : llvm::reverse(computation.instructions())) {
    // A computation keeps its signature, used or not.
    if (instr == computation.root() || instr->hasSideEffect() || instr->opcode() == Opcode::Parameter)
      live[instr->id()] = true;
    if (live[instr->id()])
      for (HloInstruction *operand : instr->operands())
        live[operand->id()] = true;
  }
  return live;
}

HloInstruction *cloneLive(const HloComputation &from, HloBuilder &into, InstructionMap &mapped,
                          const ComputationMap &computations) {
  std::vector<bool> live = liveInstructions(from);
  llvm::SmallVector<HloInstruction *, 4> operands;
  for (HloInstruction *instr : from.instructions()) {
    if (!live[instr->id()] || mapped.contains(instr))
      continue;
    operands.clear();
    for (HloInstruction *operand : instr->operands())
      operands.push_back(mapped.lookup(operand));
    into.setRange(instr->range());
    mapped[instr] = into.clone(*instr, operands, computations);
  }
  return mapped.lookup(from.root());
}

HloComputation *cloneComputation(const HloComputation &from, HloModule &module, llvm::StringRef name,
                                 const ComputationMap &computations) {
  HloComputation *copy = module.addComputation(name);
  copy->setRange(from.range());
  copy->setExecutionThread(from.executionThread());
  HloBuilder builder(*copy);
  InstructionMap mapped;
  copy->setRoot(cloneLive(from, builder, mapped, computations));
  return copy;
}

std::unique_ptr<HloModule> emptyLike(const HloModule &module) {
  auto made = std::make_unique<HloModule>(module.name(), module.arenaPointer());
  made->setAttributes(module.attributes());
  made->setStackFrames(module.stackFrames());
  made->setHeaderless(module.headerless());
  return made;
}

std::vector<HloComputation *> reachableComputations(const HloModule &module) {
  llvm::DenseSet<const HloComputation *> seen{module.entry()};
  std::vector<HloComputation *> pending{module.entry()};
  while (!pending.empty()) {
    HloComputation *computation = pending.back();
    pending.pop_back();
    for (HloInstruction *instr : computation->instructions())
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

std::string freshComputationName(const HloModule &module, llvm::StringRef base) {
  std::string name = base.str();
  for (unsigned i = 1; module.findComputation(name); ++i)
    name = (llvm::Twine(base) + "." + llvm::Twine(i)).str();
  return name;
}

HloInstruction *withLayout(HloInstruction *value, const Shape &wanted, HloBuilder &builder) {
  if (value->shape() == wanted || !(wanted.isArray() || wanted.isTuple()))
    return value;
  if (wanted.isArray())
    return builder.add(Opcode::Copy, wanted, {value});
  llvm::SmallVector<HloInstruction *> elements;
  for (unsigned i = 0; i < wanted.elements().size(); ++i) {
    HloInstruction *element = value->opcode() == Opcode::Tuple ? value->operand(i) : builder.tupleElement(value, i);
    elements.push_back(withLayout(element, wanted.element(i), builder));
  }
  return builder.tuple(elements);
}

} // namespace hloc
