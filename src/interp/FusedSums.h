#pragma once
// Sums of products as fused multiply-adds give them: what most kernels do, in all elements alike. That no run by chance
// does, and it matters where all have to: `any(|x * y - 1| > eps)`, by which a series ends.

#include "interp/BoundedValue.h"

#include "hloc/hlo/HloInstruction.h"

#include "llvm/ADT/DenseMap.h"

namespace hloc::interp {

class FusedSums {
public:
  /// `takesLast`: of two products it is the last that is not rounded.
  explicit FusedSums(bool takesLast) : takesLast(takesLast) {}

  /// Remembers the factors of a product of f32 or f64: returns how many bytes these take, 0 of other ops.
  uint64_t keep(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands);
  void forget(const HloInstruction &product) { factors.erase(&product); }
  /// Replaces a sum or difference one of whose operands is such a product by x * y + z, rounded once.
  void apply(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result) const;

private:
  bool takesLast;
  llvm::DenseMap<const HloInstruction *, std::pair<Value, Value>> factors;
};

} // namespace hloc::interp
