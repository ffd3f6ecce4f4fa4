#include "fusion/WindowIndexing.h"

#include "hloc/fusion/HloIndexing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <optional>
#include <utility>

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

namespace {

/// Of an operand of a product whose result's batch dimensions begin at `firstDim`. `group`: the dimension, if any,
/// whose index is a runtime variable.
IndexingMap productMap(const HloInstruction &instr, unsigned operand, unsigned firstDim, std::optional<int64_t> group,
                       MLIRContext *context) {
  bool left = operand == 0;
  const Shape &input = instr.operand(operand)->shape();
  ArrayRef<int64_t> batch = instr.ints(left ? AttributeKey::LhsBatchDims : AttributeKey::RhsBatchDims);
  ArrayRef<int64_t> contracted = instr.ints(left ? AttributeKey::LhsContractingDims : AttributeKey::RhsContractingDims);
  unsigned lhsFree = instr.operand(0)->shape().rank() - instr.ints(AttributeKey::LhsBatchDims).size() -
                     instr.ints(AttributeKey::LhsContractingDims).size();
  unsigned nextFree = firstDim + batch.size() + (left ? 0 : lhsFree);
  SmallVector<AffineExpr> results(input.rank());
  SmallVector<IndexingVariable> ranges, groups;
  for (auto [i, dim] : llvm::enumerate(contracted)) {
    results[dim] = getAffineSymbolExpr(i, context);
    ranges.push_back({Interval{0, input.dim(dim) - 1}, {}});
  }
  for (auto [i, dim] : llvm::enumerate(batch))
    results[dim] = getAffineDimExpr(firstDim + i, context);
  if (group) {
    results[*group] = getAffineSymbolExpr(ranges.size(), context);
    groups.push_back({Interval{0, input.dim(*group) - 1}, {}});
  }
  for (AffineExpr &result : results)
    if (!result)
      result = getAffineDimExpr(nextFree++, context);
  SmallVector<IndexingVariable> dims;
  for (int64_t size : instr.shape().dims())
    dims.push_back({Interval{0, size - 1}, {}});
  return IndexingMap(AffineMap::get(dims.size(), ranges.size() + groups.size(), results, context), dims, ranges,
                     groups);
}

} // namespace

IndexingMap dotMap(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  return productMap(instr, operand, 0, std::nullopt, context);
}

RaggedDims raggedDims(const HloInstruction &instr) {
  int64_t ragged = instr.ints(AttributeKey::LhsRaggedDims).front();
  auto positionIn = [&](AttributeKey key) -> std::optional<unsigned> {
    ArrayRef<int64_t> dims = instr.ints(key);
    const int64_t *found = llvm::find(dims, ragged);
    return found == dims.end() ? std::nullopt : std::optional(unsigned(found - dims.begin()));
  };
  if (std::optional<unsigned> depth = positionIn(AttributeKey::LhsContractingDims))
    return {RaggedDims::Kind::Contracted, *depth};
  if (std::optional<unsigned> batch = positionIn(AttributeKey::LhsBatchDims))
    return {RaggedDims::Kind::Batch, *batch};
  unsigned position = instr.ints(AttributeKey::LhsBatchDims).size();
  for (int64_t dim = 0; dim < ragged; ++dim)
    position += !llvm::is_contained(instr.ints(AttributeKey::LhsBatchDims), dim) &&
                !llvm::is_contained(instr.ints(AttributeKey::LhsContractingDims), dim);
  return {RaggedDims::Kind::Free, position};
}

IndexingMap raggedDotMap(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  bool contracted = raggedDims(instr).kind == RaggedDims::Kind::Contracted;
  std::optional<int64_t> group;
  if (operand == 1 && !instr.ints(AttributeKey::RhsGroupDims).empty())
    group = instr.ints(AttributeKey::RhsGroupDims).front();
  return productMap(instr, operand, contracted ? 1 : 0, group, context);
}

IndexingMap scaleMap(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  IndexingMap scaled = dotMap(instr, operand - 2, context);
  const Shape &values = instr.operand(operand - 2)->shape(), &scales = instr.operand(operand)->shape();
  SmallVector<AffineExpr> results;
  for (unsigned i = 0; i < scales.rank(); ++i)
    results.push_back(
        scaled.result(i).floorDiv(std::max<int64_t>(values.dim(i) / std::max<int64_t>(scales.dim(i), 1), 1)));
  AffineMap affine = scaled.affine();
  return IndexingMap(AffineMap::get(affine.getNumDims(), affine.getNumSymbols(), results, context), scaled.dims(),
                     scaled.ranges(), {});
}

namespace {

/// What a convolution's window does along one spatial dimension, for output index `out` and loop variable `loop`.
struct Taps {
  int64_t count = 0;        ///< of the loop
  AffineExpr input, kernel; ///< indices
  SmallVector<IndexingMap::Constraint, 2> constraints;
};

/// x with a * x = 1 modulo m, for a and m without a common divisor.
int64_t inverseModulo(int64_t a, int64_t m) {
  int64_t r = m, next = a % m, x = 0, nextX = 1;
  while (next != 0) {
    int64_t quotient = r / next;
    r = std::exchange(next, r - quotient * next);
    x = std::exchange(nextX, x - quotient * nextX);
  }
  return (x % m + m) % m;
}

/// The kernel's tap t meets position out * stride + t * windowDilation - padLow of the input with its holes. Holes are
/// stepped over: of `baseDilation` taps one meets an element.
Taps tapsOf(const WindowDim &dim, int64_t inputSize, AffineExpr out, AffineExpr loop) {
  Taps taps;
  AffineExpr tap = loop, start = out * dim.stride - dim.padLow;
  taps.count = dim.size;
  if (dim.baseDilation == 1) {
    taps.input = loop * dim.windowDilation + start;
  } else if (std::gcd(dim.windowDilation, dim.baseDilation) == 1) {
    AffineExpr first = (start * -inverseModulo(dim.windowDilation, dim.baseDilation)) % dim.baseDilation;
    tap = loop * dim.baseDilation + first;
    taps.count = int64_t(llvm::divideCeil(uint64_t(dim.size), uint64_t(dim.baseDilation)));
    taps.input = loop * dim.windowDilation + (start + first * dim.windowDilation).floorDiv(dim.baseDilation);
    taps.constraints.push_back({tap, Interval{0, dim.size - 1}});
  } else {
    AffineExpr position = loop * dim.windowDilation + start;
    taps.input = position.floorDiv(dim.baseDilation);
    taps.constraints.push_back({position % dim.baseDilation, Interval{0, 0}});
  }
  taps.constraints.push_back({taps.input, Interval{0, inputSize - 1}});
  taps.kernel = dim.reversed ? -tap + (dim.size - 1) : tap;
  return taps;
}

} // namespace

IndexingMap convolutionMap(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  const ConvolutionLabels &labels = *instr.get<const ConvolutionLabels *>(AttributeKey::DimLabels);
  const Shape &input = instr.operand(0)->shape(), &kernel = instr.operand(1)->shape(), &result = instr.shape();
  Window window = instr.windowOr(labels.lhsSpatial.size());
  int64_t features = kernel.dim(labels.rhsInput), outFeatures = result.dim(labels.outFeature);
  AffineExpr outFeature = getAffineDimExpr(labels.outFeature, context);
  AffineExpr feature = getAffineSymbolExpr(window.dims.size(), context);
  SmallVector<AffineExpr> results(operand == 0 ? input.rank() : kernel.rank(), getAffineConstantExpr(0, context));
  SmallVector<int64_t> ranges;
  SmallVector<IndexingMap::Constraint> constraints;
  for (auto [i, dim] : llvm::enumerate(window.dims)) {
    Taps taps = tapsOf(dim, input.dim(labels.lhsSpatial[i]), getAffineDimExpr(labels.outSpatial[i], context),
                       getAffineSymbolExpr(i, context));
    ranges.push_back(taps.count);
    if (operand == 0)
      llvm::append_range(constraints, taps.constraints);
    else
      constraints.push_back({taps.kernel, Interval{0, dim.size - 1}}); // of the taps that meet no holes
    results[operand == 0 ? labels.lhsSpatial[i] : labels.rhsSpatial[i]] = operand == 0 ? taps.input : taps.kernel;
  }
  ranges.push_back(features);
  if (operand == 0) {
    auto groupOf = [&](int64_t groups) {
      return groups > 1 ? outFeature.floorDiv(std::max<int64_t>(outFeatures / groups, 1))
                        : getAffineConstantExpr(0, context);
    };
    results[labels.lhsBatch] = getAffineDimExpr(labels.outBatch, context) +
                               groupOf(instr.intOr(AttributeKey::BatchGroupCount, 1)) * result.dim(labels.outBatch);
    results[labels.lhsFeature] = feature + groupOf(instr.intOr(AttributeKey::FeatureGroupCount, 1)) * features;
  } else {
    results[labels.rhsInput] = feature;
    results[labels.rhsOutput] = outFeature;
  }
  IndexingMap map =
      IndexingMap::fromSizes(AffineMap::get(result.rank(), ranges.size(), results, context), result.dims(), ranges);
  for (auto &[expression, interval] : constraints)
    map.addConstraint(expression, interval);
  return map;
}

IndexingMap sourcesOfElement(const HloInstruction &instr, MLIRContext *context) {
  const Shape &operand = instr.shape(), &source = instr.operand(1)->shape();
  SmallVector<AffineExpr> results;
  SmallVector<int64_t> ranges;
  SmallVector<IndexingMap::Constraint> constraints;
  for (auto [i, dim] : llvm::enumerate(instr.windowOr(operand.rank()).dims)) {
    AffineExpr tap = -getAffineSymbolExpr(i, context) + (dim.size - 1);
    AffineExpr first = getAffineDimExpr(i, context) + dim.padLow - tap * dim.windowDilation;
    if (dim.stride != 1)
      constraints.push_back({first % dim.stride, Interval{0, 0}});
    results.push_back(first.floorDiv(dim.stride));
    constraints.push_back({results.back(), Interval{0, source.dim(i) - 1}});
    ranges.push_back(dim.size);
  }
  IndexingMap map =
      IndexingMap::fromSizes(AffineMap::get(operand.rank(), ranges.size(), results, context), operand.dims(), ranges);
  for (auto &[expression, interval] : constraints)
    map.addConstraint(expression, interval);
  map.simplify();
  return map;
}

IndexingMap elementsOfSource(const HloInstruction &instr, MLIRContext *context) {
  const Shape &operand = instr.shape(), &source = instr.operand(1)->shape();
  SmallVector<AffineExpr> results;
  SmallVector<int64_t> ranges;
  for (auto [i, dim] : llvm::enumerate(instr.windowOr(operand.rank()).dims)) {
    AffineExpr tap = getAffineSymbolExpr(i, context) * dim.windowDilation;
    results.push_back(getAffineDimExpr(i, context) * dim.stride + tap - dim.padLow);
    ranges.push_back(dim.size);
  }
  IndexingMap map =
      IndexingMap::fromSizes(AffineMap::get(source.rank(), ranges.size(), results, context), source.dims(), ranges);
  for (auto [i, result] : llvm::enumerate(results))
    map.addConstraint(result, Interval{0, operand.dim(i) - 1});
  map.simplify();
  return map;
}

} // namespace hloc
