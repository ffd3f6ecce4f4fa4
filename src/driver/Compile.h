#pragma once
// The compiler as a sequence of stages: text -> HloModule -> normal form -> plan -> kernels -> PTX.

#include "Options.h"
#include "Timing.h"

#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/planner/ExecutionPlan.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// One kernel through all its stages; texts are filled as far as compilation went and as far as they were asked for.
struct CompiledKernel {
  KernelSpec spec;
  std::string mlir; ///< as emitted
  std::string llvm; ///< LLVM IR after optimisation
  std::string ptx;
};

struct CompiledModule {
  std::vector<CompiledKernel> kernels;
  Manifest manifest;
  std::string ptx; ///< all kernels in one file; empty if compilation stopped earlier
};

/// Compiles one input. Stages report to one DiagnosticEngine and return nothing after an error.
class Compiler {
public:
  Compiler(const CompileOptions &options, const Toolchain &toolchain, Timing &timing, DiagnosticEngine &diagnostics);
  ~Compiler();

  /// Reads, parses and verifies (`verify` false: parses only).
  std::unique_ptr<HloModule> load(bool verify = true);
  /// The HLO passes: calls inlined, entry layout applied, fusions formed.
  std::unique_ptr<HloModule> fuse(const HloModule &module);
  /// Kernels of a fused module for one target, up to `stage` (Emit, Mlir, Llvm or Ptx/All). The texts of earlier stages
  /// are kept if `keepTexts`.
  std::optional<CompiledModule> compile(const HloModule &fused, const TargetInfo &target, Stage stage,
                                        bool keepTexts = false);
  /// Writes dump indexes and held-back dumps.
  void finishDumps();

private:
  struct KernelJob;
  void compileKernel(KernelJob &job, const TargetInfo &target, Stage stage, bool keepTexts);
  /// Refuses at once what one of the kernels will refuse, instead of after having compiled the others.
  bool checkKernels(const ExecutionPlan &plan);
  std::vector<KernelJob> makeJobs(const ExecutionPlan &plan, const TargetInfo &target);
  Manifest makeManifest(const HloModule &fused, const TargetInfo &target, ExecutionPlan plan,
                        std::vector<KernelJob> &jobs);

  const CompileOptions &options;
  const Toolchain &toolchain;
  Timing &timing;
  DiagnosticEngine &diagnostics;
  std::unique_ptr<DumpTrack> moduleDumps;
};

/// `hloc` and `hloc compile`.
int runCompile(const CompileOptions &options);

} // namespace hloc
