#include "fusion/WindowIndexing.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace hloc {
namespace {

IndexingMap scalarMap(ArrayRef<int64_t> sizes, MLIRContext *context) {
  return IndexingMap::fromSizes(AffineMap::get(sizes.size(), 0, {}, context), sizes);
}

} // namespace

IndexingMap reduceMap(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  ArrayRef<int64_t> sizes = instr.resultShape().dims();
  if (operand >= instr.numOperands() / 2)
    return scalarMap(sizes, context);
  const Shape &input = instr.operand(operand)->shape();
  ArrayRef<int64_t> reduced = instr.ints(AttributeKey::Dimensions);
  SmallVector<AffineExpr> results;
  SmallVector<int64_t> ranges;
  unsigned kept = 0;
  for (unsigned i = 0; i < input.rank(); ++i) {
    if (llvm::is_contained(reduced, i)) {
      results.push_back(getAffineSymbolExpr(ranges.size(), context));
      ranges.push_back(input.dim(i));
    } else {
      results.push_back(getAffineDimExpr(kept++, context));
    }
  }
  return IndexingMap::fromSizes(AffineMap::get(sizes.size(), ranges.size(), results, context), sizes, ranges);
}

IndexingMap reduceWindowMap(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  ArrayRef<int64_t> sizes = instr.resultShape().dims();
  if (operand >= instr.numOperands() / 2)
    return scalarMap(sizes, context);
  const Shape &input = instr.operand(operand)->shape();
  Window window = instr.windowOr(input.rank());
  SmallVector<AffineExpr> results;
  SmallVector<int64_t> ranges;
  SmallVector<IndexingMap::Constraint> constraints;
  for (auto [i, dim] : llvm::enumerate(window.dims)) {
    AffineExpr element = getAffineSymbolExpr(i, context);
    if (dim.reversed)
      element = -element + (dim.size - 1);
    AffineExpr position = getAffineDimExpr(i, context) * dim.stride + element * dim.windowDilation - dim.padLow;
    constraints.push_back({position, Interval{0, (input.dim(i) - 1) * dim.baseDilation}});
    if (dim.baseDilation != 1)
      constraints.push_back({position % dim.baseDilation, Interval{0, 0}});
    results.push_back(position.floorDiv(dim.baseDilation));
    ranges.push_back(dim.size);
  }
  IndexingMap map =
      IndexingMap::fromSizes(AffineMap::get(sizes.size(), ranges.size(), results, context), sizes, ranges);
  for (auto &[expression, interval] : constraints)
    map.addConstraint(expression, interval);
  return map;
}

IndexingMap dotMap(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  bool left = operand == 0;
  const Shape &input = instr.operand(operand)->shape();
  ArrayRef<int64_t> batch = instr.ints(left ? AttributeKey::LhsBatchDims : AttributeKey::RhsBatchDims);
  ArrayRef<int64_t> contracted = instr.ints(left ? AttributeKey::LhsContractingDims : AttributeKey::RhsContractingDims);
  unsigned lhsFree = instr.operand(0)->shape().rank() - instr.ints(AttributeKey::LhsBatchDims).size() -
                     instr.ints(AttributeKey::LhsContractingDims).size();
  unsigned nextFree = batch.size() + (left ? 0 : lhsFree);
  SmallVector<AffineExpr> results(input.rank());
  SmallVector<int64_t> ranges;
  for (auto [i, dim] : llvm::enumerate(contracted)) {
    results[dim] = getAffineSymbolExpr(i, context);
    ranges.push_back(input.dim(dim));
  }
  for (auto [i, dim] : llvm::enumerate(batch))
    results[dim] = getAffineDimExpr(i, context);
  for (AffineExpr &result : results)
    if (!result)
      result = getAffineDimExpr(nextFree++, context);
  return IndexingMap::fromSizes(AffineMap::get(instr.shape().rank(), ranges.size(), results, context),
                                instr.shape().dims(), ranges);
}

} // namespace hloc
