#pragma once
// What a planned kernel does beside computing its instructions and reading each of their operands once: rounds, shared
// memory, barriers, and operands that its tiles read again. Said once by each hero; what it costs, the device model
// says (hloc/kernel/Estimate.h).
//
//   contraction f32[512,256] by f32[256,1024], tiles of 128x128, 16 steps:
//     operand 0 is read 8 times (1,048,576 elements), 32 blocks of 8 warps issue 16 steps of 16 terms, each of which is
//     64 products and 4 loads of 16 bytes from shared memory

#include "hloc/fusion/FusionPlan.h"
#include "hloc/kernel/Estimate.h"

namespace hloc {

struct PlanCounts {
  /// Elements of operand `operand` of `instr` that all blocks together read.
  struct OperandRead {
    const HloInstruction *instr;
    unsigned operand;
    double elements;
    double spread = 1; ///< bytes of the sectors that are read, of each byte
  };
  llvm::SmallVector<OperandRead, 2> reads; ///< where that is not once each
  // All warps together.
  double instructions = 0, sharedPasses = 0;
  double products = 0, doubleProducts = 0, groupProducts = 0; ///< of tensor cores (KernelCounts)
  // The longest chain of one warp (KernelCounts).
  double memoryRoundTrips = 1, sharedRoundTrips = 0, chainInstructions = 0;
  bool inTurns = false;    ///< (KernelCounts)
  double tilesOfBlock = 1; ///< (KernelCounts)
  /// A thread's loop over what it has of a reduction's operand: with few operations for an element it is unrolled, as
  /// the above has it.
  double rounds = 1, elementsOfRound = 1;
};

PlanCounts countsOf(const KernelPlan &kernel);
/// The part of a kernel's counts that a plan says, as if it were all; sectors, blocks and their size aside.
KernelCounts kernelCounts(const PlanCounts &own);

// Of candidates.
PlanCounts countsOf(const ContractionPlan &plan);
PlanCounts countsOf(const AttentionPlan &plan);

} // namespace hloc
