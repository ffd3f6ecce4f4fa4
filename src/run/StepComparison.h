#pragma once
// Comparison by steps (`hloc run --compare=steps`, and by default): is each step of a program right, given what the
// steps before it have made?
//
// The bounds of the whole module grow with every step, until the reference knows nothing of a model's results. Here
// each fusion is interpreted on the very values that the device has computed before, and its results are fetched as
// soon as it has been carried out. What a fusion reads are the values as they were when they were made: memory that has
// been overwritten too early shows as a wrong result of whoever reads it, and so does what loops and conditionals hand
// on wrongly. The module's results have to be, bit for bit, what was computed last.

#include "Comparison.h"

#include "hloc/kernel/Device.h"
#include "hloc/planner/ExecutionPlan.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace hloc {

/// Are the steps those of this module, by their names, and is it known where each leaves what it computes? Steps may be
/// missing.
bool canCompareSteps(const HloModule &module, llvm::ArrayRef<ComputedValue> values, const Steps &steps);

/// One run of a program. The module, in normal form, where its values lie (CompiledModule::values) and the arguments
/// outlive it.
class StepComparison : public StepListener {
public:
  /// What all runs of a program share.
  struct Shared {
    size_t numSteps = 0;                                                ///< compared so far in this run
    std::map<const HloInstruction *, std::unique_ptr<HloModule>> parts; ///< each fusion as a module of its own
  };

  StepComparison(const HloModule &module, llvm::ArrayRef<ComputedValue> values, const DeviceProgram &program,
                 Device &device, llvm::ArrayRef<Literal> arguments, Comparison &comparison, Regime regime,
                 Shared &shared, DiagnosticEngine &diagnostics);

  bool enter(const Step &step, size_t part) override;
  bool leave(const Step &step, size_t part) override;
  bool done(const Step &step) override;
  /// All steps have been carried out, with this result.
  bool finish(const Literal &result);

private:
  using Leaf = std::shared_ptr<const Literal>;
  using Leaves = std::vector<Leaf>; ///< one for each array leaf of a shape

  const HloInstruction *find(const Step &step);
  Leaves valueOf(const HloInstruction *instr);
  Leaves withoutSteps(const HloInstruction &instr);
  void begin(const HloComputation &computation);
  std::optional<Leaves> fetch(const HloInstruction &instr);
  bool isCompared(const HloInstruction &fusion);
  bool compareFusion(const HloInstruction &fusion);
  HloModule &partOf(const HloInstruction &fusion);
  std::vector<Literal> argumentsOf(const HloInstruction &fusion, const HloModule &part);
  bool isRightly(bool goesOn, bool should, const HloInstruction &loop);
  bool countsRightly(bool goesOn, const HloInstruction &loop);
  bool goesOnRightly(const WhileStep &loop, const HloInstruction &instr, const HloComputation &condition);
  bool isDone(const HloComputation &computation);
  bool misses(const HloInstruction &instr);
  bool differ(const std::string &what, const HloInstruction *instr = nullptr);

  const HloModule &module;
  Device &device;
  Comparison &comparison;
  Regime regime;
  Shared &shared;
  DiagnosticEngine &diagnostics;
  std::map<const HloInstruction *, const ComputedValue *> places;
  llvm::DenseSet<const Step *> lastSteps; ///< of each fusion
  std::vector<const HloComputation *> running;
  std::map<const HloComputation *, llvm::StringMap<const HloInstruction *>> names;
  std::map<const HloInstruction *, Leaves> computed; ///< by fusions, loops and conditionals, the last time
  std::map<const HloInstruction *, Leaves> given;    ///< to parameters
  std::map<const HloInstruction *, uint64_t> rounds; ///< in which a fusion was carried out
  llvm::DenseSet<const HloInstruction *> looping;
  bool isComplete = true; ///< nothing was read that no step has computed
};

} // namespace hloc
