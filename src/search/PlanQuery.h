#pragma once
// What the heroes would make of a group of instructions if it were a fusion: asked by the policy where opcodes do not
// tell, since only a plan knows whether one kernel can do it all.

#include "hloc/fusion/PlanContext.h"
#include "hloc/fusion/PlanSummary.h"
#include "hloc/hlo/HloInstruction.h"
#include "hloc/kernel/TargetInfo.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace hloc {

/// Does a group with this in it need to be asked about?
bool decidesHero(const HloInstruction &instr);

/// `members`: operands before users; `roots` are among them. Outputs may take the place of what they update where
/// `mayUpdate` holds of it. Nothing if there is no such fusion.
std::optional<PlanSummary> askForPlan(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots,
                                      llvm::function_ref<bool(const HloInstruction &)> mayUpdate,
                                      const TargetInfo &target, PlanContext &plans);

} // namespace hloc
