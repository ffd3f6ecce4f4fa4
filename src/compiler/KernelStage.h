#pragma once
// One kernel from its fusion to PTX: emit, MLIR passes, LLVM. Independent of all other kernels.

#include "hloc/compiler/Compiler.h"

#include "mlir/IR/MLIRContext.h"

namespace hloc {

/// What one worker needs; the context is reused for the kernels of one thread.
struct KernelStage {
  const CompilerOptions &options;
  const Toolchain &toolchain;
  const TargetInfo &target;
  CompileObserver &observer;
  DiagnosticEngine &diagnostics;
  mlir::MLIRContext &context;

  /// False after an error was reported.
  bool run(const PlannedKernel &planned, llvm::StringRef name, llvm::StringRef track, Stage stage, bool keepTexts,
           CompiledKernel &kernel);
};

/// A context with the dialects of kernels, single-threaded.
std::unique_ptr<mlir::MLIRContext> makeKernelContext();

} // namespace hloc
