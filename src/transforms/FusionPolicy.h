#pragma once
// The policy of fusion: which instructions of an entry form which groups, and where. It only reads; FuseGroups.h makes
// the fusions. Why these rules: src/decisions/0008-groups-are-found-by-cost.md.

#include "FuseGroups.h"
#include "hloc/transforms/HloPass.h"

namespace hloc {

/// Ops that cost nothing between kernels: they only name buffers.
bool isStructure(const HloInstruction &instr);

/// Is it a step of its own between kernels: control flow, or external?
bool isStep(const HloInstruction &instr);

/// Can it be a part of a larger kernel?
bool isFusible(const HloInstruction &instr);

/// For an entry that calls fusions: every other op a group of its own, where it stands. Constants and what is made of
/// nothing else (iota) are members of the groups that read them; one of its own has only what must be in a buffer: the
/// root, or what structure reads.
std::vector<FusionGroup> groupEachPlainOp(const HloComputation &entry);
/// Is it computed where it is read, inside the fusions that read it, and nowhere else?
bool belongsToReaders(const HloInstruction &instr, const HloUsers &users);

struct GroupedByCost {
  std::vector<FusionGroup> groups;
  llvm::SmallVector<HloInstruction *> renamings; ///< FoundGroups::renamings
};
/// For a computation without fusions: the groups that GroupSearch.h finds. `prefix` names those that make nothing but
/// results.
GroupedByCost groupByCost(const HloComputation &entry, llvm::StringRef prefix, const TargetInfo &target,
                          std::vector<FusionDecision> *decisions);

/// The values behind a (nested) tuple built by `tuple` instructions, in order.
void tupleLeaves(HloInstruction *value, llvm::SmallVectorImpl<HloInstruction *> &leaves);

} // namespace hloc
