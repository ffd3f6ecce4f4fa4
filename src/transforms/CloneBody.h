#pragma once
// Copying computations between modules on one arena: the piece every transform here is made of.

#include "hloc/hlo/HloBuilder.h"

#include <memory>
#include <string>

namespace hloc {

using ComputationMap = llvm::DenseMap<const HloComputation *, HloComputation *>;
using InstructionMap = llvm::DenseMap<const HloInstruction *, HloInstruction *>;

/// Bit per instruction id: is it needed by the root, or does it have a side effect (or feed one)?
std::vector<bool> liveInstructions(const HloComputation &computation);

/// Copies the live instructions of `from` that `mapped` does not already hold, in order, and records them in `mapped`.
/// Returns the copy of the root.
HloInstruction *cloneLive(const HloComputation &from, HloBuilder &into, InstructionMap &mapped,
                          const ComputationMap &computations);

/// `value` in the layout of `wanted`; tuples are taken apart and put together again only where a leaf differs.
HloInstruction *withLayout(HloInstruction *value, const Shape &wanted, HloBuilder &builder);

/// Copies `from` into `module` under `name`.
HloComputation *cloneComputation(const HloComputation &from, HloModule &module, llvm::StringRef name,
                                 const ComputationMap &computations);

/// A module with the name, header and text of `module`, on its arena, without computations.
std::unique_ptr<HloModule> emptyLike(const HloModule &module);

/// Computations reachable from the entry, in module order (callees first), entry last.
std::vector<HloComputation *> reachableComputations(const HloModule &module);

/// `base`, or `base.1`, `base.2`, ... : the first that names no computation of `module`.
std::string freshComputationName(const HloModule &module, llvm::StringRef base);

} // namespace hloc
