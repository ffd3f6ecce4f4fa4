#include "dialect/Inliner.h"

#include "hloc/dialect/XlaGpu.h"

using namespace mlir;
using namespace hloc::xla_gpu;

bool CallInliner::isLegalToInline(Operation *call, Operation *callable, bool wouldBeCloned) const {
  auto pureCall = dyn_cast<PureCallOp>(call);
  auto callee = dyn_cast<func::FuncOp>(callable);
  return pureCall && !pureCall.getNoinline() && callee && !callee.isExternal();
}
