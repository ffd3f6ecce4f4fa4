#pragma once
// The mechanism of fusion: given which instructions form a group, make the fusion. What to group is policy
// (hloc/search/FusionPolicy.h) and not decided here.
//
//   group {name "f", members {log, add}, roots {add}}  of  %l = log(%p)  ROOT %a = add(%l, %p)
//   ->  ROOT %f = fusion(%p), calls=%body        body: %p = parameter(0)  %l = log(%p)  ROOT %a = add(%l, %p)
//
// Members are copied, so one instruction may be a member of several groups (it is computed in each); it is erased once
// nothing outside needs it. A side effect must not happen twice: it moves into its group. Several roots make a tuple,
// whose elements take the places of the roots; their shapes may differ. Groups may read each other's roots in any
// order, but not in a circle, and not through instructions between them in one (HLOC_CHECK).

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/search/FusionPolicy.h"

namespace hloc {

class GroupFuser {
public:
  /// The editor has not changed anything yet: ids are positions.
  explicit GroupFuser(HloEditor &editor) : editor(editor) {}

  HloInstruction *fuse(const FusionGroup &group);
  /// What stands for `instr` now: the result of its fusion, or the instruction itself.
  HloInstruction *formed(HloInstruction *instr) const;
  /// Instructions outside the groups read the fusions from here on; what was only fused goes; operands precede users.
  void finish();

private:
  HloComputation *makeBody(const FusionGroup &group, llvm::ArrayRef<HloInstruction *> outside);
  HloEditor &editor;
  llvm::SmallVector<std::pair<HloInstruction *, HloInstruction *>> formedRoots;
  llvm::SmallVector<HloInstruction *> movedEffects;
  llvm::DenseMap<const HloInstruction *, HloInstruction *> results;
};

/// A fusion of `operands` with this body, which must belong to it alone.
HloInstruction *addFusion(HloBuilder &builder, HloComputation *body, llvm::ArrayRef<HloInstruction *> operands,
                          FusionKind kind, llvm::StringRef name);

/// In how many places each computation that is called is called.
llvm::DenseMap<const HloComputation *, size_t> countCalls(const HloModule &module);

/// `base`, or `base.1`, `base.2`, ... : the first that names no computation of `module`.
std::string freshComputationName(const HloModule &module, llvm::StringRef base);

} // namespace hloc
