// Ranges of index values, from what each op says about itself: constant time, no fixpoint.
#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

std::optional<Interval> fromAttribute(Attribute attribute) {
  auto bounds = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!bounds || bounds.size() != 2)
    return std::nullopt;
  return Interval{cast<IntegerAttr>(bounds[0]).getInt(), cast<IntegerAttr>(bounds[1]).getInt()};
}

std::optional<Interval> rangeOfArgument(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber();
  if (auto function = dyn_cast<func::FuncOp>(owner); function && argument.getOwner()->isEntryBlock())
    return fromAttribute(function.getArgAttr(number, attr::range));
  if (auto loop = dyn_cast<scf::ForOp>(owner); loop && number == 0) {
    APInt lower, upper, step;
    if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
        !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
        !matchPattern(loop.getStep(), m_ConstantInt(&step)) || upper.sle(lower))
      return std::nullopt;
    int64_t trips = (upper.getSExtValue() - lower.getSExtValue() - 1) / step.getSExtValue();
    return Interval{lower.getSExtValue(), lower.getSExtValue() + trips * step.getSExtValue()};
  }
  if (auto loop = dyn_cast<LoopOp>(owner)) {
    const IndexingMap &map = loop.indexingMap();
    unsigned numRanges = map.ranges().size();
    if (number < numRanges)
      return map.ranges()[number].bounds;
    if (number < numRanges + map.numResults())
      return map.range(map.result(number - numRanges));
  }
  return std::nullopt;
}

} // namespace

std::optional<Interval> xla_gpu::rangeOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return rangeOfArgument(argument);
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return Interval{constant.getSExtValue(), constant.getSExtValue()};
  Operation *op = value.getDefiningOp();
  if (auto apply = dyn_cast<ApplyIndexingOp>(op)) {
    const IndexingMap &map = apply.indexingMap();
    return map.range(map.result(cast<OpResult>(value).getResultNumber()));
  }
  return fromAttribute(op->getAttr(attr::range));
}

ArrayAttr xla_gpu::rangeAttr(MLIRContext *context, Interval interval) {
  auto index = IndexType::get(context);
  return ArrayAttr::get(context, {IntegerAttr::get(index, interval.lower), IntegerAttr::get(index, interval.upper)});
}
