#include "hloc/dialect/AppliedMap.h"

#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

constexpr Interval everything = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};

/// `map` with the results of `affine` over `dims`, keeping `constraints`; no range variables.
IndexingMap dimsOnly(AffineMap affine, ArrayRef<IndexingVariable> dims, ArrayRef<IndexingMap::Constraint> constraints) {
  return IndexingMap(affine, dims, {}, {}, constraints);
}

SmallVector<IndexingMap::Constraint> substituteDims(ArrayRef<IndexingMap::Constraint> constraints,
                                                    ArrayRef<AffineExpr> replacements) {
  SmallVector<IndexingMap::Constraint> result;
  for (const auto &[expression, interval] : constraints)
    result.push_back({expression.replaceDims(replacements), interval});
  return result;
}

unsigned mapSize(const IndexingMap &map) {
  unsigned size = 0;
  for (AffineExpr result : map.affine().getResults())
    size += expressionSize(result);
  return size;
}

} // namespace

unsigned xla_gpu::expressionSize(AffineExpr expression) {
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expression))
    return 1 + expressionSize(binary.getLHS()) + expressionSize(binary.getRHS());
  return 1;
}

AppliedMap AppliedMap::of(ApplyIndexingOp op) {
  return {op.indexingMap().symbolsToDims(), SmallVector<Value>(op.getOperands())};
}

AppliedMap AppliedMap::identity(ValueRange indices, MLIRContext *context) {
  SmallVector<IndexingVariable> dims;
  for (Value index : indices)
    dims.push_back({rangeOf(index).value_or(everything), ""});
  auto affine = AffineMap::getMultiDimIdentityMap(indices.size(), context);
  return {dimsOnly(affine, dims, {}), SmallVector<Value>(indices)};
}

bool AppliedMap::bindConstants() {
  SmallVector<AffineExpr> replacements;
  SmallVector<IndexingVariable> dims(map.dims());
  bool changed = false;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    replacements.push_back(getAffineDimExpr(i, map.context()));
    APInt value;
    if (!matchPattern(operand, m_ConstantInt(&value)) || !dims[i].bounds.contains(value.getSExtValue()))
      continue;
    bool mentioned = map.affine().isFunctionOfDim(i);
    replacements.back() = getAffineConstantExpr(value.getSExtValue(), map.context());
    dims[i].bounds = {value.getSExtValue(), value.getSExtValue()};
    changed |= mentioned;
  }
  if (changed)
    map = dimsOnly(map.affine().replaceDimsAndSymbols(replacements, {}, map.dims().size(), 0), dims,
                   substituteDims(map.constraints(), replacements));
  return changed;
}

bool AppliedMap::mergeEqualOperands() {
  SmallVector<AffineExpr> replacements;
  SmallVector<IndexingVariable> dims(map.dims());
  llvm::SmallDenseMap<Value, unsigned> firstOf;
  bool changed = false;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    unsigned first = firstOf.try_emplace(operand, i).first->second;
    replacements.push_back(getAffineDimExpr(first, map.context()));
    Interval both = dims[first].bounds.intersect(dims[i].bounds);
    if (first == i || both.isEmpty())
      continue;
    dims[first].bounds = both;
    changed |= map.affine().isFunctionOfDim(i);
  }
  if (changed)
    map = dimsOnly(map.affine().replaceDimsAndSymbols(replacements, {}, map.dims().size(), 0), dims,
                   substituteDims(map.constraints(), replacements));
  return changed;
}

bool AppliedMap::tightenBounds() {
  SmallVector<IndexingVariable> dims(map.dims());
  bool changed = false;
  for (auto [dim, operand] : llvm::zip_equal(dims, operands)) {
    std::optional<Interval> known = rangeOf(operand);
    if (!known)
      continue;
    Interval both = dim.bounds.intersect(*known);
    if (both.isEmpty() || both == dim.bounds)
      continue;
    dim.bounds = both;
    changed = true;
  }
  if (changed)
    map = dimsOnly(map.affine(), dims, map.constraints());
  return changed;
}

bool AppliedMap::simplify() {
  AppliedMap before = *this;
  bool changed = bindConstants();
  changed |= mergeEqualOperands();
  changed |= tightenBounds();
  changed |= map.simplify();
  if (map.isKnownEmpty()) {
    *this = std::move(before);
    return false;
  }
  SmallVector<bool> dropped = map.removeUnusedDims();
  SmallVector<Value> kept;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (i < dropped.size() && dropped[i])
      changed = true;
    else
      kept.push_back(operand);
  }
  operands = std::move(kept);
  return changed;
}

bool AppliedMap::composeOne(unsigned dim, ApplyIndexingOp producer, unsigned result, When when) {
  AppliedMap inner = of(producer);
  unsigned numDims = map.dims().size();
  // Inner dimensions follow the outer ones; the replaced dimension stays until simplify drops it.
  AffineExpr replacement = inner.map.result(result).shiftDims(inner.map.dims().size(), numDims);
  SmallVector<AffineExpr> replacements;
  for (unsigned i = 0; i < numDims; ++i)
    replacements.push_back(i == dim ? replacement : getAffineDimExpr(i, map.context()));

  AppliedMap composed = *this;
  SmallVector<IndexingVariable> dims(map.dims());
  llvm::append_range(dims, inner.map.dims());
  llvm::append_range(composed.operands, inner.operands);
  SmallVector<IndexingMap::Constraint> constraints = substituteDims(map.constraints(), replacements);
  constraints.push_back({replacement, map.dims()[dim].bounds});
  composed.map = dimsOnly(map.affine().replaceDimsAndSymbols(replacements, {}, dims.size(), 0), dims, constraints);
  if (composed.map.isKnownEmpty() || mapSize(composed.map) > 4 * maxExpressionSize)
    return false;
  composed.simplify();
  unsigned size = mapSize(composed.map);
  bool onlyUser = producer->hasOneUse();
  if (size > maxExpressionSize || (when == When::Profitable && !onlyUser && size >= mapSize(map) + mapSize(inner.map)))
    return false;
  *this = std::move(composed);
  return true;
}

bool AppliedMap::composeProducers(When when) {
  bool changed = false;
  for (bool progress = true; progress;) {
    progress = false;
    for (unsigned i = 0; i < operands.size() && !progress; ++i) {
      auto producer = operands[i].getDefiningOp<ApplyIndexingOp>();
      if (producer && map.affine().isFunctionOfDim(i))
        progress = composeOne(i, producer, cast<OpResult>(operands[i]).getResultNumber(), when);
    }
    changed |= progress;
  }
  return changed;
}

void AppliedMap::linearize(ArrayRef<int64_t> sizes) {
  AffineExpr linear = hloc::linearize(map.affine().getResults(), sizes, map.context());
  map = dimsOnly(AffineMap::get(map.dims().size(), 0, linear, map.context()), map.dims(), map.constraints());
}

void AppliedMap::then(const IndexingMap &second) { map = compose(map, second); }

SmallVector<Value> AppliedMap::materialize(OpBuilder &builder, Location loc) const {
  SmallVector<Value> values(map.numResults());
  SmallVector<AffineExpr> computed;
  SmallVector<unsigned> computedIndex;
  for (unsigned i = 0; i < map.numResults(); ++i) {
    AffineExpr result = map.result(i);
    if (auto constant = dyn_cast<AffineConstantExpr>(result)) {
      values[i] = arith::ConstantIndexOp::create(builder, loc, constant.getValue());
    } else if (auto dim = dyn_cast<AffineDimExpr>(result)) {
      values[i] = operands[dim.getPosition()];
    } else {
      computed.push_back(result);
      computedIndex.push_back(i);
    }
  }
  if (computed.empty())
    return values;
  auto affine = AffineMap::get(map.dims().size(), 0, computed, map.context());
  AppliedMap rest = {dimsOnly(affine, map.dims(), {}), operands};
  SmallVector<bool> dropped = rest.map.removeUnusedDims();
  SmallVector<Value> kept;
  for (auto [i, operand] : llvm::enumerate(operands))
    if (i >= dropped.size() || !dropped[i])
      kept.push_back(operand);
  auto op = ApplyIndexingOp::create(builder, loc, kept, rest.map);
  for (auto [i, value] : llvm::zip_equal(computedIndex, op.getResults()))
    values[i] = value;
  return values;
}
