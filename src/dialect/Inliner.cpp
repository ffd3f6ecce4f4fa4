#include "dialect/Inliner.h"

#include "hloc/dialect/XlaGpu.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace hloc::xla_gpu;

namespace {

/// A caller and what is pasted into it stay below this together: passes after inlining are linear, but not free.
constexpr unsigned maxOpsTogether = 4000;
/// Callees up to this size are pasted even when they stay alive for other calls.
constexpr unsigned smallCallee = 100;
/// Copies of a callee that one block calls several times may add up to this.
constexpr unsigned maxOpsOfCopies = 200;

/// Ops below `region`, counting stops at `limit`.
unsigned countOps(Region &region, unsigned limit) {
  unsigned count = 0;
  region.walk([&](Operation *) { return ++count > limit ? WalkResult::interrupt() : WalkResult::advance(); });
  return count;
}

llvm::SmallDenseSet<Attribute> calleesOf(Region &region) {
  llvm::SmallDenseSet<Attribute> callees;
  region.walk([&](PureCallOp call) { callees.insert(call.getCalleeAttr()); });
  return callees;
}

} // namespace

bool CallInliner::isLegalToInline(Operation *call, Operation *callable, bool wouldBeCloned) const {
  auto pureCall = dyn_cast<PureCallOp>(call);
  auto callee = dyn_cast<func::FuncOp>(callable);
  if (!pureCall || pureCall.getNoinline() || !callee || callee.isExternal())
    return false;
  if (callee->hasAttr(attr::noCompute))
    return true;

  auto caller = call->getParentOfType<func::FuncOp>();
  if (!caller)
    return false;
  unsigned calleeOps = countOps(callee.getBody(), maxOpsTogether);
  if (calleeOps + countOps(caller.getBody(), maxOpsTogether) > maxOpsTogether)
    return false;
  if (!wouldBeCloned)
    return true;

  // Equal calls were merged before, so several calls in a block differ in their arguments: pasting duplicates work.
  unsigned calls = llvm::count_if(call->getBlock()->getOps<PureCallOp>(),
                                  [&](PureCallOp other) { return other.getCalleeAttr() == pureCall.getCalleeAttr(); });
  if (calls > 1)
    return calls * calleeOps <= maxOpsOfCopies;
  if (calleeOps <= smallCallee)
    return true;
  // A callee shared by caller and callee becomes one call after merging.
  llvm::SmallDenseSet<Attribute> inner = calleesOf(callee.getBody());
  return !inner.empty() && llvm::any_of(caller.getBody().getOps<PureCallOp>(),
                                        [&](PureCallOp other) { return inner.contains(other.getCalleeAttr()); });
}
