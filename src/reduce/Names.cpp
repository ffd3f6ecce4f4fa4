// Names that say nothing but what they are of: `p0` of a parameter, `add.3` of the module's fourth instruction.

#include "Moves.h"

#include "hloc/hlo/HloBuilder.h"

#include "fmt/format.h"

namespace hloc::reduction {

namespace {

std::string newName(const HloInstruction &instr, size_t number) {
  return instr.opcode() == Opcode::Parameter ? fmt::format("p{}", instr.parameterNumber())
                                             : fmt::format("{}.{}", text(instr.opcode()).str(), number);
}

bool isLong(const HloModule &module) {
  size_t number = 0, computations = 0;
  for (const HloComputation *computation : reachableComputations(module)) {
    const bool isEntry = computation == module.entry();
    if (computation->name() != (isEntry ? "main" : fmt::format("f{}", computations++)))
      return true;
    for (const HloInstruction *instr : computation->instructions())
      if (instr->name() != newName(*instr, number++))
        return true;
  }
  return module.name() != "m";
}

} // namespace

size_t countNames(const HloModule &module) { return isLong(module); }

ModulePointer shortenNames(ModulePointer module, const llvm::BitVector &) {
  auto made = std::make_unique<HloModule>("m", module->arenaPointer());
  made->setAttributes(module->attributes());
  made->setHeaderless(module->headerless());
  llvm::DenseMap<const HloComputation *, HloComputation *> copies;
  size_t number = 0, computations = 0;
  for (HloComputation *from : reachableComputations(*module)) {
    const bool isEntry = from == module->entry();
    HloComputation *copy = made->addComputation(isEntry ? "main" : fmt::format("f{}", computations++));
    copies[from] = copy;
    copy->setExecutionThread(from->executionThread());
    llvm::DenseMap<const HloInstruction *, HloInstruction *> mapped;
    for (const HloInstruction *instr : from->instructions()) {
      llvm::SmallVector<HloInstruction *> operands;
      for (const HloInstruction *operand : instr->operands())
        operands.push_back(mapped.lookup(operand));
      llvm::SmallVector<Attribute> attributes;
      for (Attribute attribute : instr->attributes()) {
        if (auto *callee = std::get_if<HloComputation *>(&attribute.value))
          attribute.value = copies.lookup(*callee);
        else if (auto *callees = std::get_if<llvm::ArrayRef<HloComputation *>>(&attribute.value)) {
          std::vector<HloComputation *> others;
          for (HloComputation *callee : *callees)
            others.push_back(copies.lookup(callee));
          attribute.value = llvm::ArrayRef<HloComputation *>(made->arena().saveList<HloComputation *>(others));
        }
        if (attribute.key != AttributeKey::ControlPredecessors)
          attributes.push_back(attribute);
      }
      const std::string name = newName(*instr, number++);
      InstructionSpec spec{instr->opcode(), name, instr->shape(), operands, attributes, {}, 0, nullptr};
      if (instr->opcode() == Opcode::Parameter)
        spec.parameterNumber = instr->parameterNumber();
      if (instr->hasLiteral())
        spec.literal = &instr->literal();
      mapped[instr] = copy->add(spec);
    }
    copy->setRoot(mapped.lookup(from->root()));
  }
  made->setEntry(copies.lookup(module->entry()));
  return made;
}

} // namespace hloc::reduction
