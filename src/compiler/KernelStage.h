#pragma once
// One kernel from its fusion to PTX: emit, MLIR passes, LLVM. Independent of all other kernels.

#include "hloc/codegen/LlvmStage.h"
#include "hloc/codegen/Pipeline.h"
#include "hloc/compiler/Compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <functional>

namespace mlir {
class Diagnostic;
}

namespace hloc {

class KernelCache;

/// Pipelines of a context, made once: what canonicalization knows of all ops takes as long as a small pass.
class KernelPipelines {
public:
  explicit KernelPipelines(mlir::MLIRContext &context) : context(context) {}
  mlir::PassManager &of(const PipelineOptions &options);

private:
  mlir::MLIRContext &context;
  std::vector<std::pair<PipelineOptions, std::unique_ptr<mlir::PassManager>>> made;
};

/// What one worker needs; the context is reused for the kernels of one thread.
struct KernelStage {
  const CompilerOptions &options;
  const Toolchain &toolchain;
  const TargetInfo &target;
  CompileObserver &observer;
  DiagnosticEngine &diagnostics;
  mlir::MLIRContext &context;
  bool given = false;                 ///< the IR is the user's: what is wrong with it is no bug of ours
  const KernelCache *cache = nullptr; ///< null: none
  /// Of a kernel as emitted: whether another one's PTX will do, so that it need not be compiled. Null: never.
  std::function<bool(mlir::ModuleOp, llvm::StringRef text)> isKnown = nullptr;
  KernelPipelines *pipelines = nullptr; ///< of the context; null: they are made anew
  std::vector<unsigned> untouched = {}; ///< parameters that the kernel returns as they are (KernelProof); set by run

  /// False after an error was reported.
  bool run(const PlannedKernel &planned, llvm::StringRef name, llvm::StringRef track, Stage stage, bool keepTexts,
           CompiledKernel &kernel);
  /// The same from MLIR that the first `numPassesDone` passes of the pipeline have seen.
  bool lower(mlir::ModuleOp module, size_t numPassesDone, llvm::StringRef name, llvm::StringRef track, Stage stage,
             bool keepTexts, CompiledKernel &kernel);
  /// From LLVM IR that has been through the steps up to `startAfter`.
  bool compileLlvm(llvm::Module &module, const std::string &startAfter, llvm::StringRef track, bool keepTexts,
                   CompiledKernel &kernel);
  /// Reports what MLIR says about what it cannot parse or lower.
  mlir::LogicalResult forward(mlir::Diagnostic &message) const;

private:
  bool lowerEmitted(mlir::ModuleOp module, llvm::StringRef name, llvm::StringRef track, Stage stage, bool keepTexts,
                    CompiledKernel &kernel);
  std::string stageLine(llvm::StringRef pass, llvm::StringRef comment) const;
  LlvmOptions llvmOptions(llvm::StringRef track, bool keepTexts, CompiledKernel &kernel) const;
  mlir::LogicalResult runPasses(mlir::ModuleOp module, PassRange range);
  mlir::LogicalResult runPassesOneByOne(mlir::ModuleOp module, size_t first, llvm::StringRef track);
};

/// One PTX text of all kernels.
bool mergeKernels(CompiledModule &compiled, DiagnosticEngine &diagnostics);

/// A context with the dialects of kernels, single-threaded.
std::unique_ptr<mlir::MLIRContext> makeKernelContext();

} // namespace hloc
