#pragma once
// ExecutionPlan: what happens, in order, over which buffers, to compute the entry of a module in normal form.
//
//   ENTRY e { p = f32[8] parameter(0); f = (f32[8], f32[8]) fusion(p), ...; ROOT g = f32[8] get-tuple-element(f),
//   index=1 } buffers: 0 parameter p, 1 and 2 outputs of f;  steps: launch f(0; 1, 2);  results: {} is buffer 2
//
// Constants between kernels lie in one buffer, which nobody writes; the steps name slices of it.
//
// A buffer is written by one fusion, and temporaries that are not needed at the same time have places that overlap in
// the memory that they share (ModuleBuffer::offset). No buffer is reused but what an output takes from an operand that
// nobody reads any more: where the module's `input_output_alias` gives it a parameter's buffer, the fusion's
// `output_to_operand_aliasing` says that it works in place, or the output is a dynamic-update-slice of the operand.
//
//   w = (s32[], f32[8]) while((s32[], f32[8]) tuple(i, x)), condition=c, body=b
//   buffers: one for each leaf of the state, those of i and x if nobody else needs them; steps: copies of i and x there
//   if somebody does, and a loop {condition: launch c's fusion(i; p)  body: launch b's fusions(i, x; i, x), copies of
//   what cannot be computed where the old value lies}. What the body hands on stays where it is.

#include "hloc/fusion/ForcedChoices.h"
#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/DenseMap.h"

#include <memory>
#include <optional>
#include <vector>

namespace hloc {

struct PlannedFusion {
  FusionGraph graph;
  FusionPlan plan;
};

/// A kernel to be compiled: step `step` of a planned fusion. Fusions whose computations are equal (EqualComputations.h)
/// and which may work in place in the same way share their kernels.
struct PlannedKernel {
  const HloInstruction *fusion; ///< the first that needs it
  std::shared_ptr<const PlannedFusion> planned;
  unsigned step;

  const KernelPlan &plan() const { return std::get<KernelPlan>(planned->plan.steps[step]); }
};

/// Where a fusion, loop or conditional of a control computation leaves what it computes, each time it is carried out.
struct ComputedValue {
  const HloInstruction *instr;
  std::vector<BufferSlice> leaves; ///< one for each array leaf of its shape
};

struct ExecutionPlan {
  std::vector<ModuleBuffer> buffers;
  std::vector<PlannedKernel> kernels;
  Steps steps;                       ///< launches name one of `kernels`; fusions that write no bytes have none
  std::vector<ModuleResult> results; ///< one per array leaf of the root
  std::vector<InPlaceOutput> inPlace;
  std::vector<ComputedValue> values; ///< of all that has steps of its own
  /// Of fusions that are computed by kernels made for another: that other.
  llvm::DenseMap<const HloInstruction *, const HloInstruction *> servedBy;
};

/// What makes empty arrays and tokens alone is no work, unless it has a side effect: nothing is planned or compiled for
/// it.
bool isWork(const HloInstruction &instr);

/// Reports what is not in normal form: instructions of the entry, or of what control flow in it runs, that are neither
/// fusions nor constants nor control flow nor external nor structure; values that cannot be in memory. All of it, as
/// unsupported. Tokens take no bytes: steps are done in the order in which they stand.
bool checkNormalForm(const HloModule &module, DiagnosticEngine &diagnostics);
/// The same of one instruction of such a computation.
bool checkNormalForm(const HloInstruction &instr, DiagnosticEngine &diagnostics);

/// Instructions of the entry and of what control flow in it runs that cannot be compiled, and why.
using UnplannedWork = llvm::DenseMap<const HloInstruction *, std::string>;

/// Plans a module that passes checkNormalForm and whose fusions, as far as they are work, pass supportedGraph; but for
/// those in `unplanned`, which become steps that say why they are not. `tile`: that contractions are to have. `forced`:
/// what else is asked for; it is an error if no kernel has it.
std::optional<ExecutionPlan> planModule(const HloModule &module, const TargetInfo &target,
                                        DiagnosticEngine &diagnostics, const UnplannedWork &unplanned = UnplannedWork(),
                                        const std::optional<TileSizes> &tile = std::nullopt,
                                        llvm::ArrayRef<ForcedKernel> forced = {});

} // namespace hloc
