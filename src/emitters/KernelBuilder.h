#pragma once
// KernelBuilder: what the heroes' emitters share: the module, the entry function with its buffers, the functions of the
// partitioned fusion, thread and block ids.

#include "emitters/FunctionEmitter.h"
#include "hloc/fusion/FusionPlan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace hloc {

class KernelBuilder {
public:
  KernelBuilder(const FusionGraph &graph, const KernelPlan &plan, llvm::StringRef name, mlir::MLIRContext *context,
                DiagnosticEngine &diagnostics);

  const FusionGraph &graph() const { return fusion; }
  const LaunchGeometry &launch() const { return plan.launch; }
  mlir::MLIRContext *context() const { return b.getContext(); }
  /// At the end of the entry function.
  CodeBuilder &code() { return b; }

  /// Partitions the fusion and emits all its functions. One per request is returned, in order.
  llvm::FailureOr<std::vector<mlir::func::FuncOp>> emitFunctions(llvm::ArrayRef<FunctionRequest> requests);

  /// Calls a requested function from the entry.
  mlir::ValueRange call(mlir::func::FuncOp function, mlir::ValueRange indices, mlir::ValueRange injected = {});

  /// The results of a computation of scalars, in value types, where code() is.
  llvm::FailureOr<llvm::SmallVector<mlir::Value, 1>> applyScalars(const HloComputation &computation,
                                                                  mlir::ValueRange arguments);

  // The launch space: maps from threads have these variables as their first dims, with their ranges: th_x, bl_x, bl_y
  // if the grid has more than one row, and what a hero adds.
  llvm::ArrayRef<mlir::Value> ids() const { return idValues; }
  llvm::ArrayRef<IndexingVariable> idVariables() const { return idBounds; }
  /// A value, an index of this range that code() makes here, as one more variable; before maps are made.
  mlir::AffineExpr addVariable(mlir::Value value, IndexingVariable variable);
  /// From here on, the thread is `value`, one of the first `count`: where only these come.
  void setThread(mlir::Value value, int64_t count) {
    idValues.front() = value;
    idBounds.front().bounds = Interval{0, count - 1};
  }
  /// Of a grid of one row: while `make` runs, the block is `value`, one of the first `count`.
  void asBlock(mlir::Value value, int64_t count, llvm::function_ref<void()> make);
  mlir::AffineExpr thread() const;
  mlir::AffineExpr lane() const { return thread() % 32; }
  mlir::AffineExpr warp() const { return thread().floorDiv(32); }
  /// Number of the block, counted over all rows of the grid.
  mlir::AffineExpr block() const;
  /// A map from the launch space and loop variables with these ranges.
  IndexingMap mapOf(llvm::ArrayRef<mlir::AffineExpr> results, llvm::ArrayRef<int64_t> loopSizes) const;
  /// Where a thread begins if each has `perThread` neighbours of some order.
  mlir::AffineExpr firstPosition(int64_t perThread) const;
  /// From the launch space, and one loop variable if `perThread` is not 1, to the indices of a thread's elements in the
  /// memory order of `shape`: `elements`, a multiple of `perThread`, from the first on. Whether a thread has any
  /// depends on the thread alone.
  IndexingMap mapOfGroups(const Shape &shape, int64_t perThread, int64_t elements) const;

  /// What a loop's body is given: the loop variables, the map's results at them, what was carried so far.
  using LoopBody =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange, mlir::ValueRange, mlir::ValueRange)>;
  /// A loop over the points of `map` that are this thread's; `code()` is inside while `body` runs. What the body
  /// returns is carried on, and returned after the last point.
  llvm::SmallVector<mlir::Value> loop(const IndexingMap &map, mlir::ValueRange carried, LoopBody body);
  /// The same with other values for the map's dims than the launch space.
  llvm::SmallVector<mlir::Value> loop(const IndexingMap &map, mlir::ValueRange dims, mlir::ValueRange carried,
                                      LoopBody body);

  /// The fusion's parameter of this number, which is read.
  mlir::Value parameter(unsigned number) { return entry.getArgument(number); }
  /// The tensor map of this number, of those that the plan's hero has.
  mlir::Value tensorMap(unsigned number) { return entry.getArgument(entry.getNumArguments() - numTensorMaps + number); }
  /// The output buffers as they are now, by root; a hero replaces those it wrote.
  std::vector<mlir::Value> &outputs() { return outputValues; }
  /// The same for scratch buffers.
  std::vector<mlir::Value> &scratch() { return scratchValues; }

  /// Where functions are that `emitFunctions` does not make.
  mlir::ModuleOp moduleOp() { return *module; }
  DiagnosticEngine &diagnosticEngine() { return diagnostics; }

  /// Ends the entry function, drops functions that nothing calls.
  mlir::OwningOpRef<mlir::ModuleOp> finish();

private:
  void makeEntry(llvm::StringRef name);
  void makeIds();
  mlir::func::FuncOp declare(const Subgraph &subgraph);

  const FusionGraph &fusion;
  const KernelPlan &plan;
  DiagnosticEngine &diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
  unsigned numTensorMaps = 0; ///< the last arguments of the entry
  CodeBuilder b;
  llvm::SmallVector<mlir::Value> idValues;
  llvm::SmallVector<IndexingVariable> idBounds;
  std::vector<mlir::Value> outputValues, scratchValues;
};

} // namespace hloc
