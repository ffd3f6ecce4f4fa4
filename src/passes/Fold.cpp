// Folding, and nothing else: each op is looked at once, after its operands.
#include "passes/PassDetail.h"

namespace hloc {
#define GEN_PASS_DEF_FOLD
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;

namespace {

struct FoldPass : hloc::impl::FoldBase<FoldPass> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      SmallVector<Value> values;
      builder.setInsertionPoint(op);
      if (op->getNumResults() == 0 || failed(builder.tryFold(op, values)) || values.empty())
        return WalkResult::advance();
      op->replaceAllUsesWith(values);
      op->erase();
      return WalkResult::skip();
    });
  }
};

} // namespace
