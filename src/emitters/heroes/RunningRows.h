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
  RunningRows(KernelBuilder &kernel, const AttentionPlan &plan, ReductionCode &maximum, ReductionCode &sum, size_t rows,
              int64_t lanes)
      : kernel(kernel), b(kernel.code()), ofMaximum(maximum), ofSum(sum), rows(rows), lanes(lanes),
        scaleOfLogits(plan.scale > 0 ? plan.scale : 1), areSumsRead(!plan.resultRoots.empty()) {}

  void begin();
  Values carried() const;
  void setCarried(mlir::ValueRange values);
  size_t numCarried() const { return rows.size() * valuesOfRow; }

  /// The greatest of a row's logits in a thread's piece, for all lanes that share the row.
  void meet(size_t row, mlir::Value greatest);
  /// Where a row of the warp has outgrown what its exponents are less by, all have their greatest instead. `products`:
  /// sums of products, by row, which are scaled then.
  void outgrow(Values &products);
  /// The same of rows alone; their products follow when they are known.
  struct Growth {
    mlir::Value any; ///< row of the warp
    Values factors;  ///< by row
  };
  Growth outgrow();
  void scale(const Growth &growth, Values &products);
  /// The exponentials of logits, over `scale`, by row, which are added to the rows'.
  Values take(mlir::ValueRange logits);

  /// Behind the last piece: the sums of all lanes.
  void meetSums();
  /// `count` more keys of one logit, which may be the greatest, where `isAny`; their exponential, else 0.
  mlir::Value takeAlike(size_t row, mlir::Value logit, mlir::Value count, mlir::Value isAny, Values &products);
  /// The results of both reductions.
  Values results(size_t row);
  /// One over the sum that products are divided by.
  mlir::Value share(size_t row);

  /// Does a condition hold for any thread of the warp, or of the warps of a block, each of which has one of the
  /// `flags`?
  mlir::Value anyOfWarp(mlir::Value condition);
  mlir::Value anyOfBlock(mlir::Value condition, mlir::Value flags,
                         llvm::function_ref<mlir::Value(mlir::Value flags)> synchronized);
  /// For so many warps, in shared memory; and is any of them set?
  static mlir::Value allocateFlags(CodeBuilder &b, int64_t warps);
  static mlir::Value anyOf(CodeBuilder &b, mlir::Value flags);

private:
  struct Row {
    mlir::Value maximum, base, sum;
  };
  static constexpr size_t valuesOfRow = 3;

  /// Of e^(scale x - base): the exponent of 2.
  mlir::Value exponent(mlir::Value x, double scale, mlir::Value base);
  mlir::Value lessBase(mlir::Value x, double scale, mlir::Value base); ///< not times log2(e)
  mlir::Value foldedExponent(mlir::Value x, double scale, mlir::Value base);
  mlir::Value isLarge(mlir::Value base);
  mlir::Value power(mlir::Value x, mlir::Value base, bool folds);
  Values takeAll(mlir::ValueRange logits, bool folds);
  mlir::Value anyRow(llvm::function_ref<mlir::Value(const Row &row)> holds);
  mlir::Value anyGrown();
  /// A row's exponents are less by `base` from now on; returns what its sums are scaled by.
  mlir::Value rebase(size_t row, mlir::Value base);
  Values rebaseAll();
  /// Products by row, as many of each as of the others, times the row's factor.
  void multiply(llvm::ArrayRef<mlir::Value> factors, llvm::MutableArrayRef<mlir::Value> products) const;
  mlir::Value orNan(size_t row, mlir::Value value);

  KernelBuilder &kernel;
  CodeBuilder &b;
  ReductionCode &ofMaximum, &ofSum;
  std::vector<Row> rows;
  const int64_t lanes;
  const double scaleOfLogits; ///< times this they are logits
  const bool areSumsRead;     ///< by outputs; or is nothing made of them but quotients?
  mlir::func::FuncOp either;
};

} // namespace hloc
