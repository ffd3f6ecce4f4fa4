#pragma once
// StagedCode: what kernels of reductions in stages are put together from: the functions of the stages and of the
// outputs, and the storing of these.

#include "emitters/heroes/ReductionCode.h"

#include <optional>
#include <vector>

namespace hloc {

class StagedCode {
public:
  using Values = ReductionCode::Values;

  /// `holds`: threads have their elements in registers. `shares`: then what is the same in all rows is in shared
  /// memory.
  /// `columnStage`: what is made of columns beside rows.
  StagedCode(const StagedReductions &reductions, bool holds, bool shares, ReductionStage columnStage,
             KernelBuilder &kernel)
      : reductions(reductions), holds(holds), shares(shares), columnStage(columnStage), kernel(kernel) {}

  /// Makes the functions. Everything below comes after it.
  llvm::LogicalResult emitFunctions();
  std::vector<ReductionCode> &stages() { return stageCodes; }
  /// Of the reductions of columns beside rows, where there are such.
  ReductionCode &columns() { return *columnCode; }
  /// Did an emitter refuse part of a reducer since? It has said why.
  llvm::LogicalResult succeeded() const;

  /// Of what is reduced: what `load` wants of a map.
  llvm::SmallVector<mlir::AffineExpr> indicesToLoad(llvm::ArrayRef<mlir::AffineExpr> merged) const {
    return stageCodes.front().indicesOf(elementSpace(), merged);
  }
  /// Adds to the lists of the points of a map what is held from a stage on, of which number `stages().size()` is the
  /// outputs. After the results of stages, such lists are what the functions of this stage and the later ones get.
  void load(size_t stage, const IndexingMap &map, mlir::ValueRange dims, CollectedLists &held);

  /// Memory for what is the same in all rows, an element each for so many columns.
  Values allocateSameInRows(int64_t columns);
  /// Stores there the elements at the points of a map, which gives columns, and where in the memory they go.
  Values fillSameInRows(const IndexingMap &map, mlir::ValueRange dims, mlir::ValueRange memory);
  /// Adds to the lists of the points of a map, which gives columns, what the memory has of them: from the first stage
  /// that reads it on, functions get that after what is held.
  void readSameInRows(mlir::ValueRange memory, const IndexingMap &map, mlir::ValueRange dims, CollectedLists &same);

  /// ReductionCode::mergedIndices of any of the stages: their operands have one order.
  llvm::SmallVector<mlir::AffineExpr> mergedIndices(mlir::AffineExpr result, mlir::AffineExpr element) const {
    return stageCodes.front().mergedIndices(result, element);
  }
  /// Of what is reduced, then of each output with as many elements: what `storeElements` wants of a map. Elements are
  /// computed at one place, and stored as those of another, which is the same where they are stored at all.
  llvm::SmallVector<mlir::AffineExpr> elementIndices(llvm::ArrayRef<mlir::AffineExpr> computed,
                                                     llvm::ArrayRef<mlir::AffineExpr> stored) const;
  /// Of result number `number` in the order of memory, then of each output with one element a result.
  llvm::SmallVector<mlir::AffineExpr> resultIndices(mlir::AffineExpr number) const;

  /// A map and values of its dims.
  struct Points {
    IndexingMap map;
    Values dims;
  };
  /// The results of all stages at the loop variables of a map, and what is held there.
  using Results = llvm::function_ref<Values(mlir::ValueRange variables)>;
  /// Stores the outputs with as many elements at the points of `elements`, whose map has for its last dims the loop
  /// variables of `exists`, for all points that this has.
  void storeElements(const Points &exists, const Points &elements, Results results);
  /// Stores the outputs with one element a result.
  void storeResults(const Points &points, Results results);

private:
  llvm::SmallVector<FusionRoot> rootsOf(llvm::ArrayRef<unsigned> outputs) const;
  FunctionRequest requestOf(llvm::ArrayRef<FusionRoot> values, const Shape &space,
                            llvm::ArrayRef<InjectedValue> injected) const;
  FunctionRequest requestOfSameInRows() const;
  const Shape &elementSpace() const { return reductions.stages.front().operandShape(); }
  const Shape &resultSpace() const { return reductions.stages.front().heroes.front().kept; }
  Values outputsOf(llvm::ArrayRef<unsigned> numbers);
  void setOutputs(llvm::ArrayRef<unsigned> numbers, mlir::ValueRange stored);
  Values insertAll(llvm::ArrayRef<unsigned> numbers, mlir::ValueRange values, mlir::ValueRange indices,
                   mlir::ValueRange outputs);

  /// What is held from a stage on.
  llvm::SmallVector<InjectedValue> heldFrom(size_t stage) const;
  void setFunctions(llvm::ArrayRef<mlir::func::FuncOp> functions, size_t ofStage);

  const StagedReductions &reductions;
  const bool holds, shares;
  const ReductionStage columnStage;
  KernelBuilder &kernel;
  std::vector<ReductionCode> stageCodes;
  std::optional<ReductionCode> columnCode;
  mlir::func::FuncOp elementFunction, resultFunction, sameFunction;
  std::vector<mlir::func::FuncOp> loads; ///< by stage, then of the outputs; none where nothing is held from there on
};

} // namespace hloc
