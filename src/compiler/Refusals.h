#pragma once
// What cannot be compiled of a module, and why: all of it, or summed up where the rest is compiled all the same.
//
//   m.hlo:12:3: error: 53 x opcode `custom-call` is not supported in a kernel: code of a library [unsupported-opcode]

#include "hloc/planner/ExecutionPlan.h"

namespace hloc {

class Refusals {
public:
  /// What `found`, whose errors are all about lacking support, says about `instr`; it is not done `times` times.
  void add(const HloInstruction &instr, const DiagnosticEngine &found, size_t times = 1);

  bool empty() const { return all.empty(); }
  /// For the planner: the first reason of each.
  UnplannedWork reasons() const;
  /// Each, as it was found; what several share is said once.
  void report(DiagnosticEngine &diagnostics) const;
  /// How often each reason holds, with one place where it does, the most frequent first. `numCompiled`: kernels.
  void summarize(size_t numCompiled, DiagnosticEngine &diagnostics) const;

private:
  struct Refusal {
    const HloInstruction *instr;
    std::vector<Diagnostic> reasons;
    size_t times;
  };
  std::vector<Refusal> all;
};

/// What can be said about the steps of a fused module before anything is compiled. With
/// `plansFusions` the fusions are also planned, each by itself. External steps are refused unless they are allowed.
Refusals findRefusals(const HloModule &fused, const TargetInfo &target, bool plansFusions, bool allowExternal);

/// Whether there are errors, and all of them say that something is not supported.
bool isRefusal(const DiagnosticEngine &found);

/// Launches of kernels with a reason are replaced by steps that say so; the other kernels are numbered anew.
void markUncompiled(Steps &steps, llvm::ArrayRef<KernelSpec> kernels, llvm::ArrayRef<std::string> reasons);

} // namespace hloc
