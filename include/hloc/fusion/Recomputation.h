#pragma once
// What a planned kernel computes more often than once for each element, and what one thread does that many could share.
//
//   softmax of f32[256,2048] along columns, as one loop over its result: the sum of a column is computed for each of
//   its 256 elements, in a loop of 256 steps:  {%sum, 524288 evaluations, 256 steps} dot of f32[64,64] by f32[64,64]:
//   {%dot, 4096 evaluations, 64 steps}, {%tanh of an operand, 262144, 1 step}
//
// Counted as the emitted code does it: values read at equal indices are computed once, and what does not depend on a
// loop's variables is computed outside it. Neighbouring elements that one thread computes share nothing.

#include "hloc/fusion/FusionPlan.h"

namespace mlir {
class MLIRContext;
}

namespace hloc {

/// How often a kernel computes elements of an instruction.
struct Evaluation {
  const HloInstruction *instr;
  double count = 0;  ///< of all elements together; at most 2^53, which is exact
  int64_t steps = 1; ///< of the loop that makes one element
  /// Evaluations for each element.
  double factor() const { return count / double(instr->resultShape().numElements()); }
};

/// Every instruction that the kernel evaluates, operands before users; parameters, constants and iotas are not in it.
std::vector<Evaluation> evaluations(const FusionGraph &graph, const KernelPlan &kernel, mlir::MLIRContext *context);

/// What of it is worth a remark, in the same order: work that outweighs the memory the kernel has to move, and
/// reductions of more elements than a warp has threads that one thread makes alone.
std::vector<KernelRemark> remarksOn(const FusionGraph &graph, const KernelPlan &kernel, mlir::MLIRContext *context);

} // namespace hloc
