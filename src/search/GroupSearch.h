#pragma once
// The search for groups: which instructions of a computation one kernel makes, by what kernels cost (FusionCost.h).
//
// It begins with a kernel for each instruction, or for each group of rows, and takes the step that saves most time as
// long as there is one: a kernel goes into all that read its result, be it that each of them computes it again or that
// they all become one; then kernels that read the same, or each other, or are merely small, become one with several
// results. Kernels never wait for each other in a circle.
//
//   e = exp(p)  s = add(e, p)  d = multiply(e, p)  ->  one kernel of s and d, since exp is worth more than a launch
//
// Why a step was not taken is remembered for each value that stays in memory (FusionDecision).

#include "search/FusionCost.h"
#include "search/RowGroups.h"

#include "llvm/ADT/BitVector.h"

namespace hloc {

struct FoundGroup {
  llvm::SmallVector<HloInstruction *> members; ///< operands before users
  llvm::SmallVector<HloInstruction *> roots;   ///< by id
  KernelCost cost;
};

struct FoundGroups {
  double seconds = 0;             ///< that all of them take
  std::vector<FoundGroup> groups; ///< by their last roots' ids
  /// Reshapes and bitcasts that stay between kernels: they only rename what one has made.
  llvm::SmallVector<HloInstruction *> renamings;
  std::vector<std::string> refusals; ///< why the edges that were asked for are not as they should be; empty: they are
};

/// `needed`: by id. Groups of one of the `seeds` are where the search begins, at least of the last one. `edges` are as
/// they are asked for wherever they can be, whatever it costs.
FoundGroups searchGroups(const HloComputation &computation, const llvm::BitVector &needed,
                         llvm::ArrayRef<std::vector<RowGroup>> seeds, const TargetInfo &target,
                         std::vector<FusionDecision> *decisions, llvm::ArrayRef<AskedEdge> edges = {});

} // namespace hloc
