// After this pass equal calls are no longer merged: memory comes next, and with it effects.
#include "passes/PassDetail.h"

namespace hloc {
#define GEN_PASS_DEF_CONVERTPURECALL
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;

namespace {

struct ConvertPureCallPass : hloc::impl::ConvertPureCallBase<ConvertPureCallPass> {
  void runOnOperation() override {
    getOperation().walk([](xla_gpu::PureCallOp op) {
      OpBuilder builder(op);
      auto call = func::CallOp::create(builder, op.getLoc(), op.getCalleeAttr(), op.getResultTypes(), op.getOperands());
      call.setNoInline(op.getNoinline());
      op.replaceAllUsesWith(call.getResults());
      op.erase();
    });
  }
};

} // namespace
