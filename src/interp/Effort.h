#pragma once
// What evaluating costs, roughly: for the progress that is shown of it.

#include "hloc/hlo/HloModule.h"
#include "hloc/support/WorkProgress.h"

#include "llvm/ADT/DenseSet.h"

namespace hloc::interp {

/// Operations on elements: one for each element of the result, or as many as combine to one. Not those of a callee.
uint64_t effortOf(const HloInstruction &instr);

/// Counts the effort of a computation and of the fusions and calls in it. Loops and branches are not looked into: how
/// often they run is not known before.
class EffortMeter {
public:
  explicit EffortMeter(WorkProgress *progress) : progress(progress) {}

  void begin(const HloComputation &entry);
  /// Whether done() is to be told of the instructions of `computation`.
  bool counts(const HloComputation &computation) const { return progress && counted.contains(&computation); }
  void done(const HloInstruction &instr) { progress->advance(effortOf(instr)); }

private:
  WorkProgress *progress;
  llvm::DenseSet<const HloComputation *> counted;
};

} // namespace hloc::interp
