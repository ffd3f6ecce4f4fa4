#pragma once
// ScalarFunction: a computation over scalars (a reducer, a comparator, the body of a map) compiled to a flat list of
// lane ops, so that it can be applied to many values at once.
//
//   max(a, b): run({a lanes, b lanes}, {result lanes}, count)

#include "interp/LaneOp.h"
#include "interp/Machine.h"

#include <memory>

namespace hloc::interp {

class ScalarFunction {
public:
  /// Fails, with a report at `step`, if the computation contains something that is not scalar arithmetic.
  static llvm::FailureOr<ScalarFunction> compile(const HloComputation &computation, Step &step);

  unsigned numParameters() const { return parameterTypes.size(); }
  unsigned numResults() const { return resultSlots.size(); }
  ElementType parameterType(unsigned i) const { return parameterTypes[i]; }
  ElementType resultType(unsigned i) const { return slotTypes[resultSlots[i]]; }

  /// At most maxLanes lanes of the compute types of the parameters and results. Results may be where parameters are.
  void run(llvm::ArrayRef<const void *> parameters, llvm::ArrayRef<void *> results, int64_t count);

  /// The opcode if the function is one commutative binary op on its two parameters, all of one type.
  std::optional<Opcode> commutativeOp() const { return commutative; }
  /// True for f(a, b) = b and f(a, b) = a.
  bool returnsParameter(unsigned i) const { return numResults() == 1 && resultSlots[0] == i; }

private:
  /// One lane op, or (without kernel) a bitcast through memory.
  struct Instruction {
    LaneOp op;
    unsigned operands[3] = {};
    unsigned result = 0;
  };
  struct Constant {
    unsigned slot;
    alignas(16) std::byte value[16];
  };
  struct Compiler;

  const void *slotData(unsigned slot, llvm::ArrayRef<const void *> parameters);
  void *slotBuffer(unsigned slot) { return buffers[slot - parameterTypes.size()].bytes; }
  void fillConstants(int64_t count);

  std::vector<ElementType> parameterTypes;
  std::vector<ElementType> slotTypes; ///< parameters first
  std::vector<unsigned> resultSlots;
  std::vector<Instruction> code;
  std::vector<Constant> constants;
  std::vector<LaneBuffer> buffers; ///< of the slots after the parameters
  int64_t constantLanes = 0;       ///< lanes for which the constants are filled in
  std::optional<Opcode> commutative;
};

} // namespace hloc::interp
