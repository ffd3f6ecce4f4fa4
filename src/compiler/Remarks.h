#pragma once
// `--remarks`: what a kernel's plan says about its speed, at its place in the HLO text.

#include "hloc/hlo/HloComputation.h"
#include "hloc/kernel/KernelSpec.h"
#include "hloc/planner/ExecutionPlan.h"
#include "hloc/support/Diagnostics.h"

namespace hloc {

/// `kinds`: regular expression over kinds of remarks.
bool isWanted(DiagnosticKind kind, const std::string &kinds);

/// Adds what tf32 would gain (Tf32Gain.h) of a kernel of products of f32. It plans the kernel twice, and is for those
/// who ask for it.
void remarkOnPrecision(const PlannedKernel &planned, const TargetInfo &target, PlanContext &plans, KernelSpec &kernel);

/// The kernel's remarks whose kind matches the regular expression. `fusion`: the computation it was made of. What was
/// said before, of the same computation for another GPU or another call, is not said again.
void reportRemarks(const KernelSpec &kernel, const HloComputation &fusion, const std::string &kinds,
                   DiagnosticEngine &diagnostics);

} // namespace hloc
