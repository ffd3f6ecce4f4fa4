#pragma once
// The steps of the LLVM stage, one file each. Private to codegen.

#include "hloc/codegen/LlvmStage.h"
#include "hloc/kernel/KernelSpec.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class PassBuilder; // its header takes a third of the time that a step takes to compile
class PassInstrumentationCallbacks;
class TargetMachine;
} // namespace llvm

namespace hloc {

/// A kernel of the module being compiled and, where the producer said so, how it is launched.
struct KernelEntry {
  std::string name;
  std::optional<Dim3> block;
  std::optional<Dim3> grid;
  std::optional<uint32_t> registers = std::nullopt; ///< that a thread may take, if that is planned
};

/// Says of what LLVM gives up on meanwhile, by ending the process, which kernel, or text, it is, and whether it was
/// given.
class CurrentKernelScope {
public:
  CurrentKernelScope(const std::string &name, bool given); ///< `name` must outlive it
  ~CurrentKernelScope();
};

/// Collects what LLVM reports through its context; a reported error must fail the compilation, not end the process.
class LlvmDiagnosticScope {
public:
  explicit LlvmDiagnosticScope(llvm::LLVMContext &context);
  ~LlvmDiagnosticScope();
  LlvmDiagnosticScope(const LlvmDiagnosticScope &) = delete;

  bool hasErrors() const { return !errors.empty(); }
  /// Moves what was collected into `diagnostics`; false if there was an error.
  bool flush(llvm::StringRef kernel, DiagnosticEngine &diagnostics);

private:
  llvm::LLVMContext &context;
  std::unique_ptr<llvm::DiagnosticHandler> previous;
  std::vector<std::string> errors;
};

/// Has `tell` called after each pass that runs with these callbacks. They and `tell` must outlive the run.
void tellOfPasses(llvm::PassInstrumentationCallbacks &callbacks, const llvm::Module &module,
                  const LlvmPassCallback &tell);
/// Passes that `disabled` names, by name or by which run it is, do not run with these callbacks, which have to outlive
/// the run, unless LLVM cannot do without them.
void leaveOutPasses(llvm::PassInstrumentationCallbacks &callbacks, const DisabledPasses &disabled);
std::string printLlvm(const llvm::Module &module);

/// The pipelines of an optimisation level as LLVM prints them, each with a remark on the kernels it is for.
std::vector<std::pair<std::string, std::string>> llvmPipelines(unsigned optimizationLevel);

/// Whether the IR has been through the step `id` of hloc's own when it came, so that it is not run.
bool isDone(llvm::StringRef id, const LlvmOptions &options);

/// Runs a step of hloc's own, and tells of it who wants to know.
template <typename Step>
void runStep(const char *name, const llvm::Module &module, const LlvmOptions &options, Step step) {
  if (isDone(name, options) || options.disabled.has("llvm", name))
    return;
  auto begin = std::chrono::steady_clock::now();
  step();
  if (options.pass)
    options.pass({name, name, begin, std::chrono::steady_clock::now(), [&] { return printLlvm(module); }});
}

/// Runs `passes` with all analyses that `builder` knows.
void runPasses(llvm::Module &module, llvm::PassBuilder &builder, llvm::ModulePassManager passes);

/// The kernels of an LLVM dialect module, in order. Malformed launch attributes are our bug and reported as such.
llvm::FailureOr<std::vector<KernelEntry>> findKernels(mlir::ModuleOp module, DiagnosticEngine &diagnostics);

/// Null on failure. The result lives in `context`.
std::unique_ptr<llvm::Module> translateToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context,
                                              const LlvmOptions &options, DiagnosticEngine &diagnostics);

/// Calling convention, exact block size, ranges of thread and block ids; helpers become internal.
void applyLaunch(llvm::Module &module, const std::vector<KernelEntry> &kernels);

/// Reports every intrinsic that NVPTX cannot select for `target`, with the HLO instruction it stems from. False if any.
bool auditIntrinsics(mlir::ModuleOp module, const TargetInfo &target, DiagnosticEngine &diagnostics);
/// The same on LLVM IR, plus calls of functions that nothing defines.
bool auditModule(const llvm::Module &module, const TargetInfo &target, DiagnosticEngine &diagnostics);

/// True if some `__nv_` function is declared and used but not defined.
bool needsLibdevice(const llvm::Module &module);
/// Links the parts of libdevice that are used and makes them internal.
bool linkLibdevice(llvm::Module &module, const Toolchain *toolchain, DiagnosticEngine &diagnostics);

/// The back end for the target and options; null, and reported, if this LLVM has none. A thread's: the tables of
/// instruction selection take as long to fill as a small kernel's selection does.
llvm::TargetMachine *targetMachine(const TargetInfo &target, const LlvmOptions &options, DiagnosticEngine &diagnostics);
void optimize(llvm::Module &module, llvm::TargetMachine &machine, const TargetInfo &target, const LlvmOptions &options);
/// One function, one block: what most fusions are once their loops are unrolled.
bool isStraightLine(const llvm::Module &module);
/// The passes over such a module, as dumps name them.
inline constexpr llvm::StringLiteral straightLinePasses[] = {"instcombine#1", "sccp#1", "early-cse#1", "instcombine#2"};
/// Neighbouring lanes that `target` computes two at a time become one operation on pairs. True if there were any.
bool packPairs(llvm::Module &module, const TargetInfo &target);
/// Signed bytes that become 16-bit floats beside each other do so in pairs. True if there were any.
bool packIntegers(llvm::Module &module, const TargetInfo &target);
/// Logic on truth values in bytes that are loaded and stored together goes by words. True if there was any.
bool packBytes(llvm::Module &module);
/// Indices that differ by a constant, and that LLVM no longer shows to, do so again.
void restoreOffsets(llvm::Module &module);
/// Indices that differ by a constant do so in 64 bits, where it does not fit the type that LLVM has narrowed them to.
void widenOffsets(llvm::Module &module);
/// Neighbouring loads and stores become vectors that touch nothing else.
void mergeAccesses(llvm::Module &module, llvm::TargetMachine &machine, const TargetInfo &target);
/// bf16 that are loaded side by side become f32 as halves of words.
void widenBrains(llvm::Module &module);
/// The code generator's own run of the vectorizer would complete vectors again. For the whole process, once.
void switchOffVectorizerInCodeGeneration();
/// Marks the f32 divisions that there are with `afn`: two units in the last place are good enough. Those that LLVM
/// makes of divisions of f64, as the result is the same, are not among them.
void allowFastDivisions(llvm::Module &module);
/// f32 divisions so marked to `div.full` and `rcp.approx`; see LlvmOptions::fastDivision. After optimisation, because
/// the intrinsics are opaque to it.
void lowerDivisions(llvm::Module &module);
/// Is it one of LLVM's functions that multiply fragments on tensor cores?
inline bool isProductOfFragments(const llvm::Function &function) {
  return function.getName().starts_with("llvm.nvvm.mma.");
}
/// On a kernel, until limitRegisters: how many registers its plan counts on.
inline constexpr llvm::StringLiteral plannedRegistersAttribute = "hloc-registers";
/// Kernels that certainly can do with as many registers as planned may not take more (`.maxnreg`).
void limitRegisters(llvm::Module &module);
/// Gives helpers and variables names that no other kernel has: `<kernel>__<name>`.
void prefixLocalNames(llvm::Module &module, llvm::StringRef kernel);
std::string printPtx(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace hloc
