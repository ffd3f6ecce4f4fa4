#include "passes/CodeSize.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace hloc {

static bool isCheapMath(Operation &op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::FloorOp, math::FmaOp, math::RoundOp,
             math::RoundEvenOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

int64_t codeSize(Operation &op) {
  if (!isa<math::MathDialect>(op.getDialect()) || isCheapMath(op))
    return 1;
  return getElementTypeOrSelf(op.getResult(0)).isF64() ? 200 : 20;
}

} // namespace hloc
