#pragma once
// What the heroes would make of a group of instructions if it were a fusion: asked by the policy where opcodes do not
// tell, since only a plan knows whether one kernel can do it all.

#include "hloc/fusion/PlanCounts.h"
#include "hloc/hlo/HloInstruction.h"
#include "hloc/kernel/TargetInfo.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace hloc {

struct PlanAnswer {
  unsigned launches = 1;  ///< kernels, copies and fills
  double extraBytes = 0;  ///< that copies, fills and scratch memory move
  uint64_t blocks = 1;    ///< of the largest kernel
  uint32_t threads = 128; ///< of its blocks
  uint32_t registers = 32, sharedBytes = 0;
  unsigned passes = 1;        ///< how often operands are read
  bool inPlace = false;       ///< outputs are updated: only what changes moves
  bool besideColumns = false; ///< rows with columns beside them, which a second kernel may have to combine
  /// Instructions of which every element is computed once, by threads together.
  llvm::SmallVector<const HloInstruction *, 4> kept;
  PlanCounts counts;      ///< of all kernels
  Hero hero = Hero::Loop; ///< of the last kernel
};

/// Does a group with this in it need to be asked about?
bool decidesHero(const HloInstruction &instr);

/// `members`: operands before users; `roots` are among them. Outputs may take the place of what they update where
/// `mayUpdate` holds of it. Nothing if there is no such fusion.
std::optional<PlanAnswer> askForPlan(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots,
                                     llvm::function_ref<bool(const HloInstruction &)> mayUpdate,
                                     const TargetInfo &target);

} // namespace hloc
