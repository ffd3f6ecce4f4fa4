#include "hloc/hlo/EqualComputations.h"

#include "hloc/hlo/InstructionKey.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <unordered_map>

namespace hloc {

namespace {

uint64_t hashOf(const HloComputation &computation) {
  llvm::hash_code hash = llvm::hash_value(computation.root()->id());
  for (const HloInstruction *instr : computation.instructions()) {
    hash = llvm::hash_combine(hash, hashOfWork(*instr));
    for (const HloInstruction *operand : instr->operands())
      hash = llvm::hash_combine(hash, operand->id());
  }
  return hash;
}

} // namespace

EqualComputations::EqualComputations(const HloModule &module) {
  std::unordered_map<uint64_t, llvm::SmallVector<const HloComputation *, 1>> byHash;
  for (const auto &owned : module.computations()) { // callees before callers
    const HloComputation &computation = *owned;
    llvm::SmallVector<const HloComputation *, 1> &candidates = byHash[hashOf(computation)];
    auto known = llvm::find_if(candidates, [&](const HloComputation *one) { return equal(*one, computation); });
    if (known == candidates.end())
      known = candidates.insert(candidates.end(), &computation);
    firsts[&computation] = *known;
  }
}

bool EqualComputations::equal(const HloComputation &a, const HloComputation &b) const {
  if (a.instructions().size() != b.instructions().size() || a.root()->id() != b.root()->id() ||
      a.executionThread() != b.executionThread())
    return false;
  auto sameComputation = [&](const HloComputation *x, const HloComputation *y) { return &first(*x) == &first(*y); };
  auto sameId = [](const HloInstruction *x, const HloInstruction *y) { return x->id() == y->id(); };
  for (auto [x, y] : llvm::zip_equal(a.instructions(), b.instructions()))
    if (!llvm::equal(x->operands(), y->operands(), sameId) || !doSameWork(*x, *y, sameComputation))
      return false;
  return true;
}

} // namespace hloc
