#pragma once
// ReductionCode: what the kernels of row and column reductions are put together from: functions of the fusion, the
// values in which results are carried, and what is done to them.
//
//   sum of bf16[64,4096] over rows: one accumulator, f32. A thread calls `elements` for some indices of the operand,
//   `apply`s what it gets to accumulators that begin as `start`, `combine`s its own, `shuffle`s those of the warp,
//   `store`s what `results` makes of them.
//
// All kernels work on lists of values with one for each accumulator of the frame, in order.

#include "emitters/KernelBuilder.h"
#include "emitters/heroes/CollectedElements.h"

namespace hloc {

class ReductionCode {
public:
  ReductionCode(const ReductionFrame &frame, ReductionStage stage, KernelBuilder &kernel);

  using Values = llvm::SmallVector<mlir::Value>;

  /// Makes the functions that the stage needs. Everything below comes after it.
  llvm::LogicalResult emitFunctions();
  /// The same in two steps, for kernels of several reductions one after the other: what to ask for, and what it became.
  std::vector<FunctionRequest> requests() const;
  void setFunctions(llvm::ArrayRef<mlir::func::FuncOp> functions);
  /// What is reduced depends on these results of earlier reductions; `arguments` are theirs, in storage types.
  void readsResults(llvm::ArrayRef<InjectedValue> results) { earlier.assign(results.begin(), results.end()); }
  void setResults(mlir::ValueRange arguments) { earlierResults.assign(arguments.begin(), arguments.end()); }
  /// More of them, and parameters, which differ between the points of the loops in `elements`.
  template <typename... Lists> void setResultsOfPoints(const Lists &...lists) { earlierLists = {lists...}; }
  /// Did an emitter refuse part of a reducer since? It has said why.
  llvm::LogicalResult succeeded() const { return llvm::success(good); }

  /// Indices of an array that has as many elements as the operands and their memory order, at an index into each of the
  /// frame's dims.
  llvm::SmallVector<mlir::AffineExpr> indicesOf(const Shape &shape, llvm::ArrayRef<mlir::AffineExpr> merged) const;
  /// Those of the first hero's operand, then those of each side output: what `elements` wants of a map.
  llvm::SmallVector<mlir::AffineExpr> elementIndices(llvm::ArrayRef<mlir::AffineExpr> merged) const;
  /// Merged indices from the number of a result and that of one of its elements, both in the order of memory.
  llvm::SmallVector<mlir::AffineExpr> mergedIndices(mlir::AffineExpr result, mlir::AffineExpr element) const;
  /// The same of an element that is numbered within the minor dimension, the last of which is reduced.
  llvm::SmallVector<mlir::AffineExpr> mergedIndicesOfRun(mlir::AffineExpr result, mlir::AffineExpr run,
                                                         mlir::AffineExpr element) const;

  /// What threads begin with: numbers that change nothing. For accumulators that have none it is an element that is
  /// there, for more than one thread the same: choosing between equals changes nothing.
  Values start(llvm::function_ref<Values()> anyElement);
  /// The element at these indices of the first hero's operand.
  Values element(mlir::ValueRange indices);
  /// The reductions' elements at the points of `map`, which gives `elementIndices`: those of its loop variable, or the
  /// only one. Stores the side outputs there. One list for each point.
  llvm::SmallVector<Values> elements(const IndexingMap &map, mlir::ValueRange dims, Values &sideOutputs);
  /// The same of one element, whose indices these are.
  Values elementAt(mlir::ValueRange indices, Values &sideOutputs);
  /// The side outputs as they are now; and back again.
  Values sideOutputs();
  void setSideOutputs(mlir::ValueRange outputs);

  /// Accumulators after one more element. Of elements that a reducer chooses from, it must be a later one.
  Values apply(mlir::ValueRange accumulated, mlir::ValueRange element);
  /// Two lists as one.
  Values combine(mlir::ValueRange a, mlir::ValueRange b);
  /// Several lists as one; neighbours first.
  Values combineAll(llvm::ArrayRef<Values> lists);
  /// Lane 0 of each group of 2 * `maxDistance` lanes ends with what the group has, or all its lanes do. All threads
  /// must come here.
  Values shuffle(mlir::ValueRange values, int64_t maxDistance, bool toAll = false);
  /// What `values` are where `condition` holds, else numbers that change nothing: of accumulators that have such.
  Values where(mlir::Value condition, mlir::ValueRange values);
  /// The same where `values` are of elements that are reduced elsewhere, too, unless `condition` holds.
  Values whereNotRepeated(mlir::Value condition, mlir::ValueRange values);
  /// The results in storage types, initial values included.
  Values results(mlir::ValueRange values);
  /// One row of memory a `count`, for all accumulators, in shared memory.
  Values allocateShared(llvm::ArrayRef<int64_t> sizes);
  Values insert(mlir::ValueRange values, mlir::ValueRange tensors, mlir::ValueRange indices);
  Values extract(mlir::ValueRange tensors, mlir::ValueRange indices);

  /// Stores outputs, or partial results at [part][result], at the points of a map from the launch space that gives the
  /// number of the result, and, for partial results, of the part before it. Points are this thread's own; `values` is
  /// called once, with the map's loop variables.
  void store(const IndexingMap &where, llvm::function_ref<Values(mlir::ValueRange variables)> values);
  /// Stores the lists one after the other at the points of a map whose loop variable is the number of the
  /// list; it has none for one list.
  void storeLists(const IndexingMap &where, llvm::ArrayRef<Values> lists);

private:
  llvm::SmallVector<mlir::AffineExpr> mergedIndices(mlir::AffineExpr result,
                                                    llvm::ArrayRef<mlir::AffineExpr> reduced) const;
  FunctionRequest elementRequest() const;
  FunctionRequest initRequest() const;
  FunctionRequest outputRequest() const;
  void storeSides(mlir::ValueRange values, mlir::ValueRange indices, Values &sideOutputs);
  mlir::Value toCarried(mlir::Value stored, const Accumulator &accumulator);
  mlir::Value fromCarried(mlir::Value carried, const Accumulator &accumulator);
  mlir::Type carriedType(const Accumulator &accumulator) const;
  mlir::Value identity(const Accumulator &accumulator);
  mlir::Value combineNumbers(mlir::Value x, mlir::Value y, const Accumulator &accumulator);
  /// A reducer's results for all accumulators of a hero.
  Values callReducer(const ReductionHero &hero, mlir::ValueRange a, mlir::ValueRange b);
  template <typename Reducer> Values combineWith(mlir::ValueRange a, mlir::ValueRange b, Reducer reducer);
  mlir::func::FuncOp combiner();

  const ReductionFrame &frame;
  ReductionStage stage;
  KernelBuilder &kernel;
  CodeBuilder &b;
  mlir::MLIRContext *context;
  mlir::func::FuncOp elementFunction, initFunction, outputFunction, combinerFunction;
  llvm::SmallVector<InjectedValue> earlier;
  Values earlierResults;
  std::vector<CollectedLists> earlierLists;
  bool good = true;
};

} // namespace hloc
