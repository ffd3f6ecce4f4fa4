#pragma once
// StagedCode: what kernels of reductions in stages are put together from: the functions of the stages and of the
// outputs, and the storing of these.

#include "emitters/heroes/ReductionCode.h"

#include <vector>

namespace hloc {

class StagedCode {
public:
  StagedCode(llvm::ArrayRef<ReductionFrame> frames, llvm::ArrayRef<unsigned> roots,
             llvm::ArrayRef<unsigned> resultRoots, KernelBuilder &kernel)
      : frames(frames), roots(roots), resultRoots(resultRoots), kernel(kernel) {}

  /// Makes the functions. Everything below comes after it.
  llvm::LogicalResult emitFunctions();
  std::vector<ReductionCode> &stages() { return codes; }

  /// Of what is reduced, then of each output with as many elements: what `storeElements` wants of a map.
  llvm::SmallVector<mlir::AffineExpr> elementIndices(llvm::ArrayRef<mlir::AffineExpr> merged) const;
  /// Of result number `number` in the order of memory, then of each output with one element a result.
  llvm::SmallVector<mlir::AffineExpr> resultIndices(mlir::AffineExpr number) const;

  /// The results of all stages at the loop variables of a map.
  using Results = llvm::function_ref<ReductionCode::Values(mlir::ValueRange variables)>;
  /// Stores the outputs at the points of a map from `dims` and the loop variables of the map `exists` from the launch
  /// space, for all points that this has.
  void storeElements(const IndexingMap &exists, const IndexingMap &map, mlir::ValueRange dims, Results results);
  /// The same at the points of a map from the launch space.
  void storeResults(const IndexingMap &map, Results results);

private:
  using Values = llvm::SmallVector<mlir::Value>;
  FunctionRequest requestOf(llvm::ArrayRef<unsigned> outputs, const Shape &space,
                            llvm::ArrayRef<InjectedValue> injected) const;
  const Shape &elementSpace() const { return frames.front().operandShape(); }
  const Shape &resultSpace() const { return frames.front().heroes.front().kept; }
  Values outputsOf(llvm::ArrayRef<unsigned> numbers);
  void setOutputs(llvm::ArrayRef<unsigned> numbers, mlir::ValueRange stored);
  Values insertAll(llvm::ArrayRef<unsigned> numbers, mlir::ValueRange values, mlir::ValueRange indices,
                   mlir::ValueRange outputs);

  llvm::ArrayRef<ReductionFrame> frames;
  llvm::ArrayRef<unsigned> roots, resultRoots;
  KernelBuilder &kernel;
  std::vector<ReductionCode> codes;
  mlir::func::FuncOp elementFunction, resultFunction;
};

} // namespace hloc
