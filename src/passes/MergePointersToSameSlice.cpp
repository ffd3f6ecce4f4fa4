// XLA aliases buffers exactly or not at all. So once arguments of the same slice are one value, every other pair of
// pointers is disjoint: llvm.noalias, which is what lets loads move past stores. Of the entry only: helpers load what
// is invariant or their own, and when LLVM pastes a helper it keeps books of every access by every such argument, which
// took a quarter of its time for 46 outputs that share helpers.
#include "passes/PassDetail.h"

namespace hloc {
#define GEN_PASS_DEF_MERGEPOINTERSTOSAMESLICE
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

void mergeArguments(func::FuncOp function) {
  llvm::SmallDenseMap<Attribute, unsigned> firstOf;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    Attribute slice = function.getArgAttr(i, attr::sliceIndex);
    if (!slice)
      continue;
    unsigned first = firstOf.try_emplace(slice, i).first->second;
    // The argument stays: it is part of the launch interface.
    if (first != i)
      function.getArgument(i).replaceAllUsesWith(function.getArgument(first));
  }
  // A pointer without a slice may be any of the others (shared memory or a constant handed to a helper).
  bool allKnown = llvm::all_of(function.getArguments(), [&](BlockArgument argument) {
    return !isa<LLVM::LLVMPointerType>(argument.getType()) ||
           function.getArgAttr(argument.getArgNumber(), attr::sliceIndex);
  });
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (!function.getArgAttr(i, attr::sliceIndex))
      continue;
    if (allKnown && function->hasAttr(attr::entry))
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), UnitAttr::get(function.getContext()));
    function.removeArgAttr(i, attr::sliceIndex);
  }
}

struct MergePointersToSameSlicePass : hloc::impl::MergePointersToSameSliceBase<MergePointersToSameSlicePass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        mergeArguments(function);
  }
};

} // namespace
