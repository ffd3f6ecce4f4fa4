#pragma once
// KernelBuilder: what the heroes' emitters share: the module, the entry function with its buffers, the functions of the
// partitioned fusion, thread and block ids.

#include "emitters/FunctionEmitter.h"
#include "hloc/fusion/KernelPlan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace hloc {

class KernelBuilder {
public:
  KernelBuilder(const FusionGraph &graph, llvm::StringRef name, Dim3 grid, Dim3 block, mlir::MLIRContext *context,
                DiagnosticEngine &diagnostics);

  const FusionGraph &graph() const { return fusion; }
  mlir::MLIRContext *context() const { return b.getContext(); }
  /// At the end of the entry function.
  CodeBuilder &code() { return b; }

  /// Partitions the fusion and emits all its functions. One per request is returned, in order.
  llvm::FailureOr<std::vector<mlir::func::FuncOp>> emitFunctions(llvm::ArrayRef<FunctionRequest> requests);

  /// Calls a requested function from the entry.
  mlir::ValueRange call(mlir::func::FuncOp function, mlir::ValueRange indices, mlir::ValueRange injected = {});

  /// Thread and block ids with their ranges: th_x, bl_x, and bl_y if the grid has more than one row.
  llvm::ArrayRef<mlir::Value> ids() const { return idValues; }
  llvm::ArrayRef<IndexingVariable> idVariables() const { return idBounds; }

  /// The output buffers as they are now, by root; a hero replaces those it wrote.
  std::vector<mlir::Value> &outputs() { return outputValues; }

  /// Ends the entry function, drops functions that nothing calls.
  mlir::OwningOpRef<mlir::ModuleOp> finish();

private:
  void makeEntry(llvm::StringRef name, Dim3 grid, Dim3 block);
  void makeIds(Dim3 grid, Dim3 block);
  mlir::func::FuncOp declare(const Subgraph &subgraph);

  const FusionGraph &fusion;
  DiagnosticEngine &diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
  CodeBuilder b;
  llvm::SmallVector<mlir::Value> idValues;
  llvm::SmallVector<IndexingVariable> idBounds;
  std::vector<mlir::Value> outputValues;
};

} // namespace hloc
