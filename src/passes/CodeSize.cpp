#include "passes/CodeSize.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace hloc {

static bool isCheapMath(Operation &op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::FloorOp, math::FmaOp, math::RoundOp,
             math::RoundEvenOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

/// Of single precision; counted in the PTX of a kernel of nothing else.
static int64_t sizeOfFunction(Operation &op) {
  if (isa<math::PowFOp>(op))
    return 100;
  if (isa<math::SinOp, math::CosOp, math::TanOp>(op))
    return 80;
  return isa<math::Atan2Op>(op) ? 40 : 20;
}

int64_t codeSize(Operation &op) {
  if (isa<arith::RemFOp>(op))
    return 60;
  if (!isa<math::MathDialect>(op.getDialect()) || isCheapMath(op))
    return 1;
  return getElementTypeOrSelf(op.getResult(0)).isF64() ? 200 : sizeOfFunction(op);
}

} // namespace hloc
