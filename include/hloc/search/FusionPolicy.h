#pragma once
// The policy of fusion: which instructions of an entry form which groups, and where. It only reads; FuseGroups.h makes
// the fusions. Why these rules: src/decisions/0008-groups-are-found-by-cost.md.

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloInstruction.h"
#include "hloc/kernel/TargetInfo.h"

#include <string>
#include <vector>

namespace hloc {

struct FusionGroup {
  std::string fusionName, bodyName; ///< the body's is made unique in the module
  FusionKind kind = FusionKind::Loop;
  llvm::SmallVector<HloInstruction *> members; ///< operands before users
  llvm::SmallVector<HloInstruction *> roots;   ///< members whose values are needed outside, each in one group only
  HloInstruction *before = nullptr;            ///< where the fusion goes; null: the end of the computation
};

/// Whether what one instruction makes is read inside the kernel of another, and why: for `--explain`.
struct FusionDecision {
  std::string producer, user; ///< names
  bool fused = false;
  std::string reason;
  double bytes = 0, seconds = 0; ///< that the step which decided saves, or would
};

/// A kernel that the search ended with, and what it takes by the model that it searched with; or a call of a library,
/// with its function as hero.
struct FormedKernel {
  std::string fusion; ///< name of the instruction
  llvm::StringRef hero;
  double seconds = 0, bytes = 0;
  bool isLibrary = false;
};

/// Why fusions are what they are: for `--explain`.
struct FusionExplanation {
  std::vector<FusionDecision> decisions;
  std::vector<FormedKernel> kernels;
};

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

/// An edge of a computation that is asked for (ForcedEdge): both in one kernel, or in none.
struct AskedEdge {
  const HloInstruction *producer, *user;
  bool fused;
};

struct GroupedByCost {
  std::vector<FusionGroup> groups;
  llvm::SmallVector<HloInstruction *> renamings; ///< FoundGroups::renamings
  std::vector<std::string> refusals;             ///< of each edge that was asked for; empty: it is as asked
};
/// For a computation without fusions: the groups that GroupSearch.h finds. `prefix` names those that make nothing but
/// results.
GroupedByCost groupByCost(const HloComputation &entry, llvm::StringRef prefix, const TargetInfo &target,
                          FusionExplanation *explanation, llvm::ArrayRef<AskedEdge> edges = {});

/// A dot or convolution of a computation, in seconds by the model of the search.
struct ContractionCost {
  HloInstruction *instr;
  bool isAlone = true; ///< no other is in its kernel
  double own = 0;      ///< the kernel that makes it, with all that is fused with it
  double around = 0;   ///< what is fused with it, in kernels of its own
};
/// Of those that are no part of a fusion. `fuses`: ops are fused by cost, else each of them is a kernel.
std::vector<ContractionCost> costsOfContractions(const HloComputation &computation, const TargetInfo &target,
                                                 bool fuses);

/// The values behind a (nested) tuple built by `tuple` instructions, in order.
void tupleLeaves(HloInstruction *value, llvm::SmallVectorImpl<HloInstruction *> &leaves);

} // namespace hloc
