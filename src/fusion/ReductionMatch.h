#pragma once
// What row and column reductions have in common: finding the reductions of a fusion, and what its outputs are to them.
//
//   f32[7,100,128] reduced over 0 and 2: dims {7,100,128}, of which the first and the last are reduced: rows
//   f32[7,100,128] reduced over 0 and 1: dims {700,128}, of which the first is reduced: columns

#include "fusion/HeroMatch.h"

namespace hloc {

/// The reductions that outputs read elementwise, if they all are over one shape, by reducers that may be applied in any
/// order, and if every output is either made of their results or has as many elements as their operands.
std::variant<ReductionFrame, Rejection> matchReductions(const FusionGraph &graph);

/// The same of given reductions, operands before users, apart from what they depend on and what is made of them: the
/// frame has no roots.
std::variant<ReductionFrame, Rejection> frameOf(llvm::ArrayRef<const HloInstruction *> heroes);

/// What a thread keeps of each result.
int64_t accumulatorBytes(const ReductionFrame &frame);

/// Scratch memory for what `splits` blocks make of each result: one array [splits][results] an accumulator, in order.
std::vector<ScratchBuffer> partialResults(const ReductionFrame &frame, int64_t splits);

/// The kernel that combines partial results and computes the outputs from them: the last of a sequence, whichever kind
/// of reduction the first was.
FollowingKernel combinePartialResults(const ReductionFrame &frame, int64_t splits, const TargetInfo &target);

/// The same where there are many results, and lanes that have neighbours read them side by side.
FollowingKernel combinePartialColumns(const ReductionFrame &frame, int64_t splits, const TargetInfo &target);

/// What the first kernel of a sequence computes, or the only one: elements at all indices of the operand, and, unless
/// it leaves that to another, outputs at all indices of the result.
ComputedSpaces spacesOfReduction(const ReductionFrame &frame, ReductionStage stage, const FusionGraph &graph,
                                 mlir::MLIRContext *context);
KernelTraffic trafficOfReduction(const ReductionFrame &frame, ReductionStage stage, int64_t splits,
                                 const FusionGraph &graph);

} // namespace hloc
