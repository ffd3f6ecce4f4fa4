#include "hloc/run/LintFacts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace hloc {

namespace {

/// What a fusion asks for that would be a defect otherwise.
void addWishes(const HloInstruction &fusion, lint::KernelFacts &facts) {
  auto isDouble = [](const HloInstruction *value) {
    ElementType type = value->shape().isArray() ? value->shape().elementType() : ElementType::Pred;
    return type == ElementType::F64 || type == ElementType::C128;
  };
  llvm::SetVector<const HloComputation *> computations;
  auto look = [&](const HloInstruction &instr) {
    facts.wantsDouble |= isDouble(&instr) || llvm::any_of(instr.operands(), isDouble);
    facts.wantsIntegerDivision |= (instr.opcode() == Opcode::Divide || instr.opcode() == Opcode::Remainder) &&
                                  instr.shape().isArray() && isInteger(instr.shape().elementType());
    for (const HloComputation *called : instr.calledComputations())
      computations.insert(called);
  };
  look(fusion);
  for (size_t i = 0; i < computations.size(); ++i)
    for (const HloInstruction *inner : computations[i]->instructions())
      look(*inner);
}

} // namespace

std::map<std::string, lint::KernelFacts> lintFactsOf(const Manifest &manifest, const HloModule *fused) {
  llvm::StringMap<const HloInstruction *> byName;
  if (fused)
    for (const auto &computation : fused->computations())
      for (const HloInstruction *instr : computation->instructions())
        byName.try_emplace(instr->name(), instr);
  std::map<std::string, lint::KernelFacts> facts;
  for (const KernelSpec &kernel : manifest.kernels) {
    lint::KernelFacts &known = facts[kernel.name];
    known.resources = kernel.resources;
    known.registerLimit = kernel.plannedRegisters;
    if (!fused)
      continue;
    known.grid = kernel.grid;
    known.block = kernel.block;
    known.bytesMoved = kernel.bytesRead + kernel.bytesWritten;
    if (auto made = byName.find(kernel.instruction); made != byName.end())
      addWishes(*made->second, known);
  }
  return facts;
}

} // namespace hloc
