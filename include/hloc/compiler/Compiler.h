#pragma once
// The compiler: HLO in, kernels and their manifest out. Everything that compiles a module goes through here: `hloc`,
// `hloc run`, golden files, tests.
//
//   DiagnosticEngine diagnostics;
//   CompileObserver nobody;
//   Compiler compiler(CompilerOptions(), Toolchain::discover({}), nobody, diagnostics);
//   std::unique_ptr<HloModule> module = compiler.parse(file);
//   std::optional<CompiledModule> compiled = module ? compiler.compileModule(*module, *findTarget("sm_90")) :
//   std::nullopt;
//
// Stages report to one engine and return nothing after an error. Same module, target and options: same bytes, whatever
// the number of jobs.

#include "hloc/codegen/Assemble.h"
#include "hloc/codegen/CubinCache.h"
#include "hloc/codegen/Toolchain.h"
#include "hloc/compiler/Observer.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/planner/ExecutionPlan.h"
#include "hloc/transforms/HloPass.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// How far to go; `All` includes machine code, which Compiler::assemble makes.
enum class Stage { Parse, Verify, Fuse, Plan, Emit, Mlir, Llvm, Ptx, All };

struct CompilerOptions {
  unsigned jobs = 0;                 ///< kernels at a time; 0: as many as there are cores
  unsigned optimizationLevel = 3;    ///< LLVM's, 0 to 3
  bool lineInfo = false;             ///< `.loc` directives that point into the HLO text
  bool keepGoing = false;            ///< compile what can be compiled, see compile()
  bool allowExternal = false;        ///< what no kernel does becomes a step that whoever runs the module supplies
  bool locations = false;            ///< MLIR texts say of each operation which line of the HLO it stems from
  std::vector<std::string> fastMath; ///< rules that may change the results of floats, by name
  DisabledPasses disabled;           ///< passes of all stages that are left out
  FusionMode fusion = FusionMode::Keep;
  F32Dots f32Dots = F32Dots::F32;
  SoftmaxChoice softmax = SoftmaxChoice::Strict;
  Multiplier dots = Multiplier::Own, convolutions = Multiplier::Own;
  /// That contractions are to have, and attention if it can; an error where they cannot, or where none has it.
  std::optional<TileSizes> tile;
  ForcedChoices forced;                     ///< that are made for it; an error where they cannot be had
  FusionExplanation *explanation = nullptr; ///< where fuse() says why it fused what; null: nobody asks
  CacheSettings cache;                      ///< of the PTX of kernels of large modules; without a folder: none
  bool prove = false;                       ///< properties of kernels (Proofs.h), as emitted
  std::optional<std::string> remarks;       ///< regular expression over the kinds of remarks to report; unset: none
};

/// One kernel through all its stages; texts are filled as far as compilation went and as far as they were asked for.
struct CompiledKernel {
  KernelSpec spec;
  std::string mlir; ///< as emitted, with its stage line
  std::string llvm; ///< LLVM IR after optimisation
  std::string ptx;
};

struct CompiledModule {
  std::vector<CompiledKernel> kernels;
  Manifest manifest;
  std::string ptx;                   ///< all kernels in one file; empty if compilation stopped earlier
  std::vector<ComputedValue> values; ///< where the manifest's steps leave what; by instructions of the fused module
};

class EqualKernels;
class KernelCache;
class Refusals;

class Compiler {
public:
  Compiler(const CompilerOptions &options, const Toolchain &toolchain, CompileObserver &observer,
           DiagnosticEngine &diagnostics)
      : options(options), toolchain(toolchain), observer(observer), diagnostics(diagnostics) {}

  /// Parses and, if asked to, verifies; `file` becomes the one that diagnostics point into.
  std::unique_ptr<HloModule> parse(std::shared_ptr<const SourceFile> file, bool verify = true);
  /// The HLO passes: calls inlined, entry layout applied, fusions formed. What is one kernel is decided for the target;
  /// any other can be compiled for as well, only less well.
  std::unique_ptr<HloModule> fuse(const HloModule &module, const TargetInfo &target);
  /// Some fusions of a fused module as a fused module, to be compiled without the rest: what they read become
  /// parameters, their values the results, and their kernels are those of the whole module, by name and text. `names`:
  /// of instructions, kernels or computations, with or without `%`; null, with a diagnostic, if one names nothing.
  std::unique_ptr<HloModule> only(const HloModule &fused, llvm::ArrayRef<std::string> names, const TargetInfo &target);
  /// Steps and buffers of a fused module. What any kernel lacks is reported at once, instead of after having compiled
  /// the others.
  std::optional<ExecutionPlan> plan(const HloModule &fused, const TargetInfo &target);
  /// Kernels of a fused module, up to `stage` (Emit, Mlir, Llvm or Ptx). The texts of earlier stages are kept if
  /// `keepTexts`. `trackSuffix` is added to the names of the kernels' tracks.
  ///
  /// With `keepGoing` the result consists of what could be compiled, and its manifest has steps that say what could not
  /// and why; that is summed up in errors. There is no result if nothing could be compiled.
  std::optional<CompiledModule> compile(const HloModule &fused, const TargetInfo &target, Stage stage,
                                        bool keepTexts = false, llvm::StringRef trackSuffix = "");
  /// From a verified module to PTX.
  std::optional<CompiledModule> compileModule(const HloModule &module, const TargetInfo &target);
  /// Machine code for all kernels, in one cubin. Registers and spills go into the manifest.
  llvm::FailureOr<std::string> assemble(CompiledModule &compiled, const TargetInfo &target,
                                        const AssembleOptions &assembleOptions);

private:
  struct KernelJob;
  struct KernelWork;
  void compileKernel(KernelJob &job, const KernelWork &work, EqualKernels *equal);
  static void findEqualPlans(std::vector<KernelJob> &jobs);
  void compileKernels(std::vector<KernelJob> &jobs, llvm::ArrayRef<size_t> which, const KernelWork &work,
                      EqualKernels *equal);
  std::optional<ExecutionPlan> plan(const HloModule &fused, const TargetInfo &target, Refusals &refusals);
  bool hasTile(const ExecutionPlan &plan, const TileSizes &tile);
  std::vector<KernelJob> makeJobs(const HloModule &fused, const ExecutionPlan &plan, llvm::StringRef trackSuffix);
  bool finishJobs(std::vector<KernelJob> &jobs, const Steps &steps, Refusals &refusals);
  void describe(const HloModule &fused, const TargetInfo &target, ExecutionPlan &plan, std::vector<KernelJob> &jobs,
                CompiledModule &compiled);
  void runJobs(std::vector<KernelJob> &jobs, const TargetInfo &target, Stage stage, bool keepTexts);
  static void checkUntouched(std::vector<KernelJob> &jobs);
  void remark(std::vector<KernelJob> &jobs, const TargetInfo &target);
  bool mergeTexts(CompiledModule &compiled, const TargetInfo &target);

  CompilerOptions options;
  const Toolchain &toolchain;
  CompileObserver &observer;
  DiagnosticEngine &diagnostics;
};

} // namespace hloc
