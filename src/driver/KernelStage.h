#pragma once
// One kernel from its fusion to PTX: emit, MLIR passes, LLVM. Independent of all other kernels.

#include "Compile.h"

#include "mlir/IR/MLIRContext.h"

namespace hloc {

/// What one worker needs; the context is reused for the kernels of one thread.
struct KernelStage {
  const CompileOptions &options;
  const Toolchain &toolchain;
  const TargetInfo &target;
  Timing &timing;
  DumpTrack &dumps;
  DiagnosticEngine &diagnostics;
  mlir::MLIRContext &context;

  /// False after an error was reported. `body` is the fused computation.
  bool run(const HloComputation &body, llvm::StringRef name, Stage stage, bool keepTexts, CompiledKernel &kernel);
};

/// A context with the dialects of kernels, single-threaded.
std::unique_ptr<mlir::MLIRContext> makeKernelContext();

} // namespace hloc
