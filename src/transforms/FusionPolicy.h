#pragma once
// The policy of fusion: which instructions of an entry form which groups, and where. It only reads; FuseGroups.h makes
// the fusions. Why these rules: src/decisions/0001-plain-entries-are-fused-by-result-shape.md.

#include "FuseGroups.h"

namespace hloc {

/// Ops that cost nothing between kernels: they only name buffers.
bool isStructure(const HloInstruction &instr);

/// For an entry that calls fusions: every other op a group of its own, where it stands. Constants and what is made of
/// nothing else (iota) are members of the groups that read them; one of its own has only what must be in a buffer: the
/// root, or what structure reads.
std::vector<FusionGroup> groupEachPlainOp(const HloComputation &entry);
/// Is it computed where it is read, inside the fusions that read it, and nowhere else?
bool belongsToReaders(const HloInstruction &instr, const HloUsers &users);

/// For an entry without fusions: the results (leaves of the root's tuple) of one shape and layout are one group, each
/// with all it needs. Where fusing through ops that combine many elements would compute them again and again, each of
/// these is the root of a group before that. What a loop or conditional is given is grouped likewise. Side effects that
/// no result reads are groups as well. `prefix` names the groups of results.
std::vector<FusionGroup> groupByResultShape(const HloComputation &entry, llvm::StringRef prefix);

/// The values behind a (nested) tuple built by `tuple` instructions, in order.
void tupleLeaves(HloInstruction *value, llvm::SmallVectorImpl<HloInstruction *> &leaves);

} // namespace hloc
