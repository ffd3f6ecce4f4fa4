#pragma once
// What an online softmax knows of a thread's rows while pieces of keys go by: the greatest logit so far, what exponents
// are less by, and the sum of its own exponentials. Products of exponentials are scaled with that sum.

#include "emitters/heroes/ReductionCode.h"
#include "hloc/fusion/AttentionPlan.h"

namespace hloc {

class RunningRows {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  /// `lanes` neighbouring ones share a row.
  RunningRows(KernelBuilder &kernel, ReductionCode &maximum, ReductionCode &sum, size_t rows, int64_t lanes)
      : kernel(kernel), b(kernel.code()), ofMaximum(maximum), ofSum(sum), rows(rows), lanes(lanes) {}

  void begin();
  Values carried() const;
  void setCarried(mlir::ValueRange values);
  size_t numCarried() const { return rows.size() * valuesOfRow; }

  /// The greatest of a row's logits in a thread's piece, for all lanes that share the row.
  void meet(size_t row, mlir::Value greatest);
  /// Where a row of the warp has outgrown what its exponents are less by, all have their greatest instead. `products`:
  /// sums of products, by row.
  void outgrow(Values &products);
  /// The exponential of a logit, which is added to the row's.
  mlir::Value take(size_t row, mlir::Value logit);

  /// Behind the last piece: the sums of all lanes.
  void meetSums();
  /// `count` more keys of one logit, which may be the greatest, where `isAny`; their exponential, else 0.
  mlir::Value takeAlike(size_t row, mlir::Value logit, mlir::Value count, mlir::Value isAny, Values &products);
  /// The results of both reductions.
  Values results(size_t row);
  /// One over the sum that products are divided by.
  mlir::Value share(size_t row);

  /// Does a condition hold for any thread of the warp, or of the block of so many warps?
  mlir::Value anyOfWarp(mlir::Value condition);
  mlir::Value anyOfBlock(mlir::Value condition, int64_t warps);

private:
  struct Row {
    mlir::Value maximum, base, sum;
  };
  static constexpr size_t valuesOfRow = 3;

  /// Scales a row's sums, whose exponents are less by `base` then.
  void rebase(size_t row, mlir::Value base, Values &products);
  mlir::Value orNan(size_t row, mlir::Value value);

  KernelBuilder &kernel;
  CodeBuilder &b;
  ReductionCode &ofMaximum, &ofSum;
  std::vector<Row> rows;
  const int64_t lanes;
  mlir::func::FuncOp either;
};

} // namespace hloc
