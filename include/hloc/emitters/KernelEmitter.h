#pragma once
// KernelEmitter: a fusion body becomes an MLIR module with one entry function, and the description of its launch.
//
//   func.func @gelu(%in: tensor<6x512x4096xbf16> {xla_gpu.slice_index = 0 : index, xla_gpu.invariant, ...},
//                   %out: tensor<6x512x4096xbf16> {xla_gpu.slice_index = 1 : index, ...}) -> tensor<6x512x4096xbf16>
//       attributes {xla_gpu.entry, xla_gpu.block = array<i32: 128, 1, 1>, xla_gpu.grid = array<i32: 12288, 1, 1>}
//
// The hero that matches decides how (hloc/fusion/KernelPlan.h); its code is in src/emitters/heroes.

#include "hloc/fusion/KernelPlan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace hloc {

struct EmittedKernel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// `grid.x` is 0 if there is nothing to compute: then do not launch.
  KernelSpec spec;
};

/// Locations of ops are `"hlo name"("file":line:column)`. Fails with diagnostics (unsupported opcodes, types,
/// features). Loads the dialects it needs into `context`.
llvm::FailureOr<EmittedKernel> emitKernel(const HloComputation &fusionBody, llvm::StringRef kernelName,
                                          const TargetInfo &target, mlir::MLIRContext &context,
                                          DiagnosticEngine &diagnostics);

/// Whether there are emitters for all opcodes and types of the body; what is missing is reported. `emitKernel` asks
/// this, too: ask before, if one kernel that is refused makes all others useless.
bool checkKernelSupport(const HloComputation &fusionBody, DiagnosticEngine &diagnostics);

/// The dialects that emitted modules consist of.
void loadEmitterDialects(mlir::MLIRContext &context);

} // namespace hloc
