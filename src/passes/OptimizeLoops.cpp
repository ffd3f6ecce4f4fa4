// Unrolling. Loops with few iterations disappear, others are unrolled until their body has a few hundred operations.
#include "passes/PassDetail.h"

#include "hloc/dialect/AppliedMap.h"

#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/Matchers.h"

namespace hloc {
#define GEN_PASS_DEF_OPTIMIZELOOPS
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

/// The rule of XLA's pass of this name: a body is unrolled min(trips, 400 / size) times, where its size counts 1 for an
/// op and 20 for a math function that is not one instruction.
constexpr int64_t maxUnrolledSize = 400;
constexpr int64_t costlyMathSize = 20;
/// No body grows beyond this by unrolling a loop whose iterations are not tied together by a vector; with a vector
/// there is no choice, its lanes must have constant indices. Chosen so that compile time stays bounded, not tuned.
constexpr int64_t maxFullyUnrolledSize = 2000;

bool isCheapMath(Operation &op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::FloorOp, math::FmaOp, math::RoundOp,
             math::RoundEvenOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

struct BodyFacts {
  int64_t size = 0;
  bool hasVectorLane = false; ///< an element of a vector is addressed by the induction variable
  bool hasLoopOrCall = false;
};

BodyFacts factsOf(scf::ForOp loop) {
  BodyFacts facts;
  loop.getBody()->walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>())
      return;
    bool isLane = isa<vector::ExtractOp, vector::InsertOp>(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
                    auto apply = operand.getDefiningOp<ApplyIndexingOp>();
                    return operand == loop.getInductionVar() ||
                           (apply && llvm::is_contained(apply.getOperands(), loop.getInductionVar()));
                  });
    facts.hasVectorLane |= isLane;
    facts.hasLoopOrCall |= isa<scf::ForOp, scf::WhileOp, CallOpInterface>(op);
    facts.size += isa<math::MathDialect>(op->getDialect()) && !isCheapMath(*op) ? costlyMathSize : 1;
  });
  return facts;
}

/// Clones the body once per iteration, with index computations folded as they are made.
void unrollFully(scf::ForOp loop, int64_t lower, int64_t step, int64_t trips) {
  IRRewriter rewriter(loop);
  Location loc = loop.getLoc();
  SmallVector<Value> carried(loop.getInitArgs());
  for (int64_t trip = 0; trip < trips; ++trip) {
    IRMapping mapping;
    int64_t iteration = lower + trip * step;
    Value variable = arith::ConstantIndexOp::create(rewriter, loc, iteration);
    mapping.map(loop.getInductionVar(), variable);
    mapping.map(loop.getRegionIterArgs(), carried);
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (auto apply = dyn_cast<ApplyIndexingOp>(op)) {
        AppliedMap applied = AppliedMap::of(apply);
        for (Value &operand : applied.operands)
          operand = mapping.lookupOrDefault(operand);
        applied.simplify();
        mapping.map(apply.getResults(), applied.materialize(rewriter, op.getLoc()));
        continue;
      }
      auto extract = dyn_cast<vector::ExtractOp>(op);
      auto insert = dyn_cast<vector::InsertOp>(op);
      if (extract && extract.getDynamicPosition() == ValueRange(loop.getInductionVar())) {
        Value vector = mapping.lookupOrDefault(extract->getOperand(0));
        mapping.map(extract.getResult(),
                    vector::ExtractOp::create(rewriter, op.getLoc(), vector, iteration).getResult());
        continue;
      }
      if (insert && insert.getDynamicPosition() == ValueRange(loop.getInductionVar())) {
        Value value = mapping.lookupOrDefault(insert->getOperand(0)),
              vector = mapping.lookupOrDefault(insert->getOperand(1));
        mapping.map(insert.getResult(),
                    vector::InsertOp::create(rewriter, op.getLoc(), value, vector, iteration).getResult());
        continue;
      }
      rewriter.clone(op, mapping);
    }
    for (auto [value, yielded] : llvm::zip_equal(carried, loop.getBody()->getTerminator()->getOperands()))
      value = mapping.lookupOrDefault(yielded);
  }
  rewriter.replaceOp(loop, carried);
}

struct OptimizeLoopsPass : hloc::impl::OptimizeLoopsBase<OptimizeLoopsPass> {
  using Base::Base;
  void runOnOperation() override {
    getOperation().walk([&](scf::ForOp loop) { optimize(loop); }); // inner loops first
  }

  void optimize(scf::ForOp loop) {
    APInt lower, upper, step;
    if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
        !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
        !matchPattern(loop.getStep(), m_ConstantInt(&step)))
      return;
    int64_t stride = step.getSExtValue();
    int64_t trips = std::max<int64_t>(0, llvm::divideCeil(upper.getSExtValue() - lower.getSExtValue(), stride));
    BodyFacts facts = factsOf(loop);
    if (trips <= 1 || facts.hasVectorLane) {
      unrollFully(loop, lower.getSExtValue(), stride, trips);
      return;
    }
    if (facts.hasLoopOrCall)
      return;
    if (trips <= maxUnrollFactor && facts.size * trips <= maxFullyUnrolledSize) {
      unrollFully(loop, lower.getSExtValue(), stride, trips);
      return;
    }
    int64_t factor = std::min(trips, std::max<int64_t>(1, maxUnrolledSize / facts.size));
    while (trips % factor != 0)
      --factor;
    if (factor == trips)
      unrollFully(loop, lower.getSExtValue(), stride, trips);
    else if (factor > 1)
      (void)loopUnrollByFactor(loop, factor);
  }
};

} // namespace
