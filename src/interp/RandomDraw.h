#pragma once
// One of the admissible values of each element, at random.

#include "hloc/interp/Disturbed.h"
#include "interp/BoundedValue.h"

#include "hloc/hlo/HloInstruction.h"

#include "llvm/ADT/DenseMap.h"

namespace hloc::interp {

class RandomDraw {
public:
  RandomDraw(Disturbance disturbance, Backend backend);

  bool isPerUse() const { return disturbance.isPerUse; }

  /// Replaces the values of an op, which were made of known operands, by others that its bounds admit, and forgets the
  /// bounds. What is kept of products (`Bounded::unrounded`) stays: it is for the op that adds them.
  void apply(const HloInstruction &instr, Bounded &value);

  /// Was there an op whose bounds say nothing, though its operands are known?
  bool hasMetUnknown() const { return metUnknown; }

private:
  /// Between 0 and 1.
  double next();
  double pick(double value, double low, double high);
  double nearby(double value);
  void applyTo(Bounded &value);
  void replace(Bounded &array);
  void unround(Bounded &array);

  Disturbance disturbance;
  Backend backend;
  bool metUnknown = false;
  const HloInstruction *instruction = nullptr; ///< at hand
  uint64_t state;
  llvm::DenseMap<const HloInstruction *, double> biases; ///< between 0 and 1
  const double *bias = nullptr;                          ///< of the instruction at hand, if disturbed that way
};

} // namespace hloc::interp
