#include "fuzz/ModuleGenerator.h"

#include "fuzz/GeneratorState.h"

#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

bool needsSeveralDevices(Opcode opcode) {
  OpcodeFamily group = family(opcode);
  return group == OpcodeFamily::Host || group == OpcodeFamily::Collective || group == OpcodeFamily::Async ||
         group == OpcodeFamily::Random || opcode == Opcode::ReplicaId || opcode == Opcode::PartitionId ||
         opcode == Opcode::CustomCall || opcode == Opcode::Domain || opcode == Opcode::AddDependency ||
         opcode == Opcode::DynamicReshape || opcode == Opcode::SetDimensionSize;
}

std::vector<Opcode> usableOpcodes(const GeneratorOptions &options) {
  std::vector<Opcode> opcodes;
  for (unsigned i = 0; i < numOpcodes(); ++i) {
    auto opcode = static_cast<Opcode>(i);
    if (opcode != Opcode::Parameter && !(options.singleDeviceOnly && needsSeveralDevices(opcode)))
      opcodes.push_back(opcode);
  }
  return opcodes;
}

/// What nobody reads, or one value if everything is read.
HloInstruction *makeRoot(GeneratorState &state) {
  HloUsers users(*state.entry);
  llvm::SmallVector<HloInstruction *> unused;
  for (HloInstruction *instr : state.entry->instructions())
    if (users.of(instr).empty() && !instr->shape().isToken())
      unused.push_back(instr);
  if (unused.size() == 1)
    return unused.front();
  return state.add(Opcode::Tuple, {}, unused, {});
}

} // namespace

bool generateInstruction(GeneratorState &state, Opcode opcode) {
  if (needsSeveralDevices(opcode))
    return generateRemote(state, opcode);
  if (state.options.edgeSizes && opcode == Opcode::Transpose && !state.oneIn(3))
    return generateTiledTranspose(state);
  switch (family(opcode)) {
  case OpcodeFamily::Unary:
  case OpcodeFamily::Binary:
  case OpcodeFamily::Ternary:
  case OpcodeFamily::Compare:
  case OpcodeFamily::Convert:
  case OpcodeFamily::Identity:
    return generateElementwise(state, opcode);
  case OpcodeFamily::Structured:
    return generateStructured(state, opcode);
  case OpcodeFamily::Source:
  case OpcodeFamily::Movement:
    return generateMovement(state, opcode);
  default:
    return generateStructure(state, opcode);
  }
}

std::unique_ptr<HloModule> withEntryLast(const HloModule &module) {
  auto copy = std::make_unique<HloModule>(module.name(), module.arenaPointer());
  llvm::DenseMap<const HloComputation *, HloComputation *> computations;
  auto copyOne = [&](const HloComputation &from) {
    HloComputation *to = copy->addComputation(from.name());
    HloBuilder builder(*to);
    std::vector<HloInstruction *> made;
    for (const HloInstruction *instr : from.instructions()) {
      llvm::SmallVector<HloInstruction *, 4> operands;
      for (const HloInstruction *operand : instr->operands())
        operands.push_back(made[operand->id()]);
      made.push_back(builder.clone(*instr, operands, computations));
    }
    to->setRoot(made[from.root()->id()]);
    computations[&from] = to;
  };
  auto copyAfterCallees = [&](auto &self, const HloComputation &from) -> void {
    for (const HloInstruction *instr : from.instructions())
      for (const HloComputation *callee : instr->calledComputations())
        if (!computations.count(callee))
          self(self, *callee);
    copyOne(from);
  };
  for (const auto &computation : module.computations())
    if (!computation->isEntry() && !computations.count(computation.get()))
      copyAfterCallees(copyAfterCallees, *computation);
  copyOne(*module.entry());
  copy->setEntry(computations[module.entry()]);
  copy->setAttributes(module.attributes());
  return copy;
}

std::unique_ptr<HloModule> generateModule(uint64_t seed, const GeneratorOptions &options) {
  HloModule module("generated_" + std::to_string(seed));
  GeneratorState state(module, seed, options);
  std::vector<Opcode> opcodes = options.edgeSizes ? opcodesOfLargeArrays() : usableOpcodes(options);
  for (unsigned i = 0; i < options.instructions; ++i) {
    // An opcode may find no operands it can take; another draw is cheaper than a search.
    for (int attempt = 0; attempt < 8; ++attempt)
      if (generateInstruction(state, opcodes[state.below(opcodes.size())]))
        break;
  }
  if (state.entry->instructions().empty())
    state.anyArrayInstruction();
  HloInstruction *root = options.deadCode && state.oneIn(2) ? state.anyInstruction() : makeRoot(state);
  state.entry->setRoot(root);
  generateDonations(state);
  return withEntryLast(module);
}

} // namespace hloc
