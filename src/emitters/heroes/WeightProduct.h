#pragma once
// The last dot of attention: weights, in the registers of the threads that have made them, by terms in shared memory.

#include "emitters/heroes/ScoreProduct.h"

namespace hloc {

/// A thread's weights of 16 rows and 16 keys, two to a register: by the pieces that they are multiplied in.
using WeightFragments = llvm::SmallVector<mlir::Value, 1>;

/// `weight`: of a thread's row, and of its neighbours among 16 keys, two of each eight.
WeightFragments weightFragments(CodeBuilder &b, const AttentionPlan &plan,
                                llvm::function_ref<mlir::Value(int64_t row, int64_t neighbour)> weight);

/// A weight of a type as it is multiplied, or before it is in pieces.
mlir::Value asWeight(CodeBuilder &b, const AttentionPlan &plan, mlir::Value weight, ElementType type);

struct TermTile {
  mlir::Value tiles, stage;
  mlir::Type element;
};

/// Adds the products of a piece's weights and its terms, the smallest pieces of weights first. `sums`: by row, two
/// neighbours of each eight columns; `weights`: of the 16 keys of that number, asked for when they are multiplied.
llvm::SmallVector<mlir::Value> multiplyTerms(const AttentionPlan &plan, KernelBuilder &kernel, const TermTile &terms,
                                             llvm::ArrayRef<mlir::Value> sums,
                                             llvm::function_ref<WeightFragments(int64_t number)> weights);
/// The same by warpgroups, of all fragments: starts to add them.
llvm::SmallVector<mlir::Value> startTerms(const AttentionPlan &plan, KernelBuilder &kernel, const TermTile &terms,
                                          llvm::ArrayRef<mlir::Value> sums, llvm::ArrayRef<WeightFragments> weights);

} // namespace hloc
