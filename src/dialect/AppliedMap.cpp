#include "hloc/dialect/AppliedMap.h"

#include "dialect/KnownMaps.h"
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

/// With an expression in place of each dimension, and `dims` the bounds; a null expression stands for its dimension.
void AppliedMap::replaceDims(MutableArrayRef<AffineExpr> replacements, ArrayRef<IndexingVariable> dims) {
  for (auto [i, replacement] : llvm::enumerate(replacements))
    if (!replacement)
      replacement = getAffineDimExpr(i, map.context());
  map = dimsOnly(map.affine().replaceDimsAndSymbols(replacements, {}, dims.size(), 0), dims,
                 substituteDims(map.constraints(), replacements));
}

bool AppliedMap::bindConstants() {
  SmallVector<AffineExpr> replacements(operands.size());
  SmallVector<IndexingVariable> dims;
  bool changed = false;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    APInt value;
    if (!matchPattern(operand, m_ConstantInt(&value)) || !map.dims()[i].bounds.contains(value.getSExtValue()))
      continue;
    if (dims.empty())
      dims.assign(map.dims().begin(), map.dims().end());
    replacements[i] = getAffineConstantExpr(value.getSExtValue(), map.context());
    dims[i].bounds = {value.getSExtValue(), value.getSExtValue()};
    changed |= map.affine().isFunctionOfDim(i);
  }
  if (changed)
    replaceDims(replacements, dims);
  return changed;
}

bool AppliedMap::mergeEqualOperands() {
  SmallVector<AffineExpr> replacements(operands.size());
  SmallVector<IndexingVariable> dims;
  bool changed = false;
  for (unsigned i = 1; i < operands.size(); ++i) {
    unsigned first = llvm::find(operands, operands[i]) - operands.begin();
    if (first == i)
      continue;
    replacements[i] = getAffineDimExpr(first, map.context());
    if (dims.empty())
      dims.assign(map.dims().begin(), map.dims().end());
    Interval both = dims[first].bounds.intersect(dims[i].bounds);
    if (both.isEmpty())
      continue;
    dims[first].bounds = both;
    changed |= map.affine().isFunctionOfDim(i);
  }
  if (changed)
    replaceDims(replacements, dims);
  return changed;
}

bool AppliedMap::tightenBounds() {
  SmallVector<IndexingVariable> dims;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    std::optional<Interval> known = rangeOf(operand);
    if (!known)
      continue;
    Interval before = map.dims()[i].bounds, both = before.intersect(*known);
    if (both.isEmpty() || both == before)
      continue;
    if (dims.empty())
      dims.assign(map.dims().begin(), map.dims().end());
    dims[i].bounds = both;
  }
  if (dims.empty())
    return false;
  map = dimsOnly(map.affine(), dims, map.constraints());
  return true;
}

bool AppliedMap::simplify() {
  AppliedMap before = *this;
  bool changed = bindConstants();
  changed |= mergeEqualOperands();
  changed |= tightenBounds();
  changed |= KnownMaps::simplify(map);
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
  SmallVector<unsigned> computedIndex;
  for (unsigned i = 0; i < map.numResults(); ++i) {
    AffineExpr result = map.result(i);
    if (auto constant = dyn_cast<AffineConstantExpr>(result)) {
      values[i] = arith::ConstantIndexOp::create(builder, loc, constant.getValue());
    } else if (auto dim = dyn_cast<AffineDimExpr>(result)) {
      values[i] = operands[dim.getPosition()];
    } else {
      computedIndex.push_back(i);
    }
  }
  if (computedIndex.empty())
    return values;
  // A map without constraints that is simplified stays so, and the op's is not simplified again.
  AppliedMap rest = {map.withResults(computedIndex), operands};
  if (!map.constraints().empty())
    rest.map = dimsOnly(rest.map.affine(), map.dims(), {});
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
