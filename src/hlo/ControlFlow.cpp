#include "hloc/hlo/ControlFlow.h"

#include "llvm/ADT/DenseSet.h"

namespace hloc {

std::vector<HloComputation *> controlComputations(const HloModule &module) {
  llvm::DenseSet<const HloComputation *> seen{module.entry()};
  std::vector<HloComputation *> pending{module.entry()};
  while (!pending.empty()) {
    HloComputation *computation = pending.back();
    pending.pop_back();
    for (HloInstruction *instr : computation->instructions())
      if (isControlFlow(*instr))
        for (HloComputation *called : instr->calledComputations())
          if (seen.insert(called).second)
            pending.push_back(called);
  }
  std::vector<HloComputation *> found;
  for (const auto &computation : module.computations())
    if (computation.get() != module.entry() && seen.contains(computation.get()))
      found.push_back(computation.get());
  found.push_back(module.entry());
  return found;
}

} // namespace hloc
