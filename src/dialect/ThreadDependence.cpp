#include "dialect/ThreadDependence.h"

#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace hloc::xla_gpu {
namespace {

/// Walks from a value to what it is computed from. Runs in verifiers: terminators may be missing.
class Dependence {
public:
  bool any(ValueRange values) {
    add(values);
    while (!pending.empty())
      if (visit(pending.pop_back_val()))
        return true;
    return false;
  }

private:
  /// Tensors are handles of memory, the same in all threads.
  void add(ValueRange values) {
    for (Value value : values)
      if (!isa<TensorType>(value.getType()) && seen.insert(value).second)
        pending.push_back(value);
  }

  void addYielded(Operation *op, unsigned number) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (!block.empty() && block.back().hasTrait<OpTrait::IsTerminator>() && number < block.back().getNumOperands())
          add(block.back().getOperand(number));
  }

  /// True if `value` depends by itself; otherwise what it is made of is pending.
  bool visit(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      visitArgument(argument);
      return false;
    }
    Operation *op = value.getDefiningOp();
    if (isa<gpu::ThreadIdOp, gpu::LaneIdOp, gpu::SubgroupIdOp, gpu::ShuffleOp, ShuffleReduceOp, LoadFragmentsOp,
            MultiplyFragmentsOp, MultiplyTilesOp, MultiplyHeldOp, AwaitProductsOp>(op))
      return true;
    const unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto applied = dyn_cast<ApplyIndexingOp>(op)) {
      addArguments(applied, number);
    } else {
      add(op->getOperands());
      addYielded(op, number);
    }
    return false;
  }

  /// Those that a result of a map is made of.
  void addArguments(ApplyIndexingOp op, unsigned number) {
    AffineExpr result = op.indexingMap().affine().getResult(number);
    for (auto [i, dim] : llvm::enumerate(op.dimOperands()))
      if (result.isFunctionOfDim(i))
        add(dim);
    for (auto [i, range] : llvm::enumerate(op.rangeOperands()))
      if (result.isFunctionOfSymbol(i))
        add(range);
  }

  void visitArgument(BlockArgument argument) {
    Operation *owner = argument.getOwner()->getParentOp();
    unsigned number = argument.getArgNumber();
    if (auto loop = dyn_cast<scf::ForOp>(owner)) {
      if (number == 0)
        return add({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
      add(loop.getInitArgs()[number - 1]);
      return addYielded(owner, number - 1);
    }
    if (auto loop = dyn_cast<LoopOp>(owner))
      return visitLoopArgument(loop, number);
    if (!isa<FunctionOpInterface>(owner))
      add(owner->getOperands());
  }

  void visitLoopArgument(LoopOp loop, unsigned number) {
    const IndexingMap &map = loop.indexingMap();
    unsigned numRanges = map.ranges().size(), firstIter = numRanges + map.numResults();
    if (number >= firstIter) {
      add(loop.getInits()[number - firstIter]);
      addYielded(loop, number - firstIter);
    } else if (number >= numRanges) {
      AffineExpr result = map.affine().getResult(number - numRanges);
      for (auto [i, dim] : llvm::enumerate(loop.getDims()))
        if (result.isFunctionOfDim(i))
          add(dim);
    }
  }

  llvm::DenseSet<Value> seen;
  SmallVector<Value> pending;
};

bool isWithin(Interval inner, Interval outer) { return outer.lower <= inner.lower && inner.upper <= outer.upper; }

/// Are the threads whose number is in `interval` whole warps?
bool isOfWholeWarps(Value dim, Interval interval) {
  constexpr int64_t warp = 32;
  return dim.getDefiningOp<gpu::ThreadIdOp>() && interval.lower % warp == 0 && (interval.upper + 1) % warp == 0;
}

/// Values that decide whether the body of the loop runs, other than by the ranges, which are the same for all threads;
/// of `warps`, those that decide it for a part of a warp.
SmallVector<Value> guards(LoopOp loop, bool warps) {
  const IndexingMap &map = loop.indexingMap();
  SmallVector<Value> values;
  IndexingMap unconstrained(map.affine(), map.dims(), map.ranges(), {}, {});
  for (auto [i, dim] : llvm::enumerate(loop.getDims())) {
    std::optional<Interval> known = rangeOf(dim);
    auto isUniform = [&](Interval interval) { return warps && isOfWholeWarps(dim, interval); };
    bool decides = (!known || !isWithin(*known, map.dims()[i].bounds)) && !isUniform(map.dims()[i].bounds);
    for (const auto &[expression, interval] : map.constraints())
      decides |= expression.isFunctionOfDim(i) && !isWithin(unconstrained.range(expression), interval) &&
                 !(isa<AffineDimExpr>(expression) && isUniform(interval));
    if (decides)
      values.push_back(dim);
  }
  return values;
}

/// Is it whether a thread is among the first, which are whole warps?
bool isTestOfWholeWarps(Value condition) {
  auto test = condition.getDefiningOp<arith::CmpIOp>();
  if (!test || !llvm::is_contained({arith::CmpIPredicate::slt, arith::CmpIPredicate::ult}, test.getPredicate()))
    return false;
  const std::optional<int64_t> number = getConstantIntValue(test.getRhs());
  return number && isOfWholeWarps(test.getLhs(), Interval{0, *number - 1});
}

/// Values that decide whether, and how often, the regions of `op` are entered.
SmallVector<Value> deciders(Operation *op, bool warps) {
  if (auto loop = dyn_cast<LoopOp>(op))
    return guards(loop, warps);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (warps && isTestOfWholeWarps(branch.getCondition()))
      return {};
    return {branch.getCondition()};
  }
  SmallVector<Value> all(op->getOperands());
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    for (Block &block : loop.getBefore())
      if (!block.empty())
        llvm::append_range(all, block.back().getOperands());
  return all;
}

} // namespace

Operation *threadDependentAncestor(Operation *op, bool warps) {
  for (Operation *around = op->getParentOp(); around && !isa<FunctionOpInterface>(around);
       around = around->getParentOp())
    if (Dependence().any(deciders(around, warps)))
      return around;
  return nullptr;
}

} // namespace hloc::xla_gpu
