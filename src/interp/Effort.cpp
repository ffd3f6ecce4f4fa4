#include "interp/Effort.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

namespace hloc::interp {

namespace {

/// What a fusion or call evaluates; null of other instructions.
const HloComputation *calledOnce(const HloInstruction &instr) {
  bool calls = instr.opcode() == Opcode::Fusion || instr.opcode() == Opcode::Call;
  return calls ? instr.calledComputations()[0] : nullptr;
}

uint64_t elementsOf(const Shape &shape) {
  uint64_t sum = 0;
  for (const Shape::Leaf &leaf : shape.leaves())
    if (leaf.shape.isArray())
      sum = llvm::SaturatingAdd(sum, uint64_t(leaf.shape.numElements()));
  return sum;
}

/// How many elements are combined to one, as far as it is simple to tell.
uint64_t combinedElements(const HloInstruction &instr) {
  uint64_t count = 1;
  const Shape &first = instr.operand(0)->shape();
  if (const AttributeValue *dims = instr.find(AttributeKey::LhsContractingDims))
    for (int64_t dim : std::get<llvm::ArrayRef<int64_t>>(*dims))
      count = llvm::SaturatingMultiply(count, uint64_t(first.dim(dim)));
  if (const AttributeValue *window = instr.find(AttributeKey::Window))
    for (const WindowDim &dim : std::get<const Window *>(*window)->dims)
      count = llvm::SaturatingMultiply(count, uint64_t(dim.size));
  return count;
}

} // namespace

uint64_t effortOf(const HloInstruction &instr) {
  if (instr.opcode() == Opcode::Parameter || calledOnce(instr) || hasTrait(instr.opcode(), OpcodeTrait::NamesBuffers))
    return 0;
  uint64_t effort = elementsOf(instr.shape());
  if (!hasTrait(instr.opcode(), OpcodeTrait::Contracts) || instr.numOperands() == 0)
    return effort;
  return std::max(llvm::SaturatingMultiply(effort, combinedElements(instr)), elementsOf(instr.operand(0)->shape()));
}

void EffortMeter::begin(const HloComputation &entry) {
  if (!progress)
    return;
  counted = {&entry};
  std::vector<const HloComputation *> pending{&entry};
  while (!pending.empty()) {
    const HloComputation *computation = pending.back();
    pending.pop_back();
    for (const HloInstruction *instr : computation->instructions())
      if (const HloComputation *callee = calledOnce(*instr); callee && counted.insert(callee).second)
        pending.push_back(callee);
  }
  llvm::DenseMap<const HloComputation *, uint64_t> efforts;
  for (const auto &computation : entry.module().computations()) { // callees first
    if (!counted.contains(computation.get()))
      continue;
    uint64_t sum = 0;
    for (const HloInstruction *instr : computation->instructions()) {
      const HloComputation *callee = calledOnce(*instr);
      sum = llvm::SaturatingAdd(sum, callee ? efforts.lookup(callee) : effortOf(*instr));
    }
    efforts[computation.get()] = sum;
  }
  progress->begin(efforts.lookup(&entry));
}

} // namespace hloc::interp
