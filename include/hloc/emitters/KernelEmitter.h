#pragma once
// KernelEmitter: a planned kernel of a fusion becomes an MLIR module with one entry function.
//
//   func.func @gelu(%in: tensor<6x512x4096xbf16> {xla_gpu.slice_index = 0 : index, xla_gpu.invariant, ...},
//                   %out: tensor<6x512x4096xbf16> {xla_gpu.slice_index = 1 : index, ...}) -> tensor<6x512x4096xbf16>
//       attributes {xla_gpu.entry, xla_gpu.block = array<i32: 128, 1, 1>, xla_gpu.grid = array<i32: 12288, 1, 1>}
//
// What it does is decided before, by its KernelPlan (hloc/fusion/FusionPlan.h); the code of each hero is in
// src/emitters/heroes.

#include "hloc/fusion/FusionPlan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace hloc {

/// The graph of a fusion for whose opcodes and types there are emitters. All that is missing is reported: ask before
/// anything is planned, one kernel that is refused makes all others useless.
llvm::FailureOr<FusionGraph> supportedGraph(const HloComputation &fusionBody, DiagnosticEngine &diagnostics);

/// Code for one kernel of the plan of `graph`. Locations of ops are `"hlo name"("file":line:column)`. Fails with
/// diagnostics where an op is used in a way that no emitter knows. Loads the dialects it needs into `context`.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernel(const FusionGraph &graph, const KernelPlan &plan,
                                                              llvm::StringRef kernelName, mlir::MLIRContext &context,
                                                              DiagnosticEngine &diagnostics);

/// The dialects that emitted modules consist of.
void loadEmitterDialects(mlir::MLIRContext &context);

} // namespace hloc
