#include "hloc/fusion/ContractionSpace.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace mlir;

namespace hloc {
namespace {

/// Positions along a dilated dimension between which the taps that meet elements, and not the holes between them, are
/// the same; 1 if they are for all. (Where dilations have a common divisor, taps are tested one by one.)
int64_t periodOf(const WindowDim &window) {
  if (window.baseDilation <= 1 || std::gcd(window.windowDilation, window.baseDilation) != 1)
    return 1;
  return window.baseDilation / std::gcd(window.stride, window.baseDilation);
}

/// Of each dimension of a convolution's result, the size of the part within; 0: it is whole.
llvm::SmallVector<int64_t> innerSizes(const HloInstruction &convolution) {
  const Shape &result = convolution.shape();
  const auto &labels = *convolution.get<const ConvolutionLabels *>(AttributeKey::DimLabels);
  llvm::SmallVector<int64_t> sizes(result.rank(), 0);
  const int64_t groups = std::max(convolution.intOr(AttributeKey::FeatureGroupCount, 1),
                                  convolution.intOr(AttributeKey::BatchGroupCount, 1));
  const int64_t features = result.dim(unsigned(labels.outFeature));
  if (groups > 1 && features > groups)
    sizes[size_t(labels.outFeature)] = features / groups;
  // Neighbours in memory stay neighbours.
  const auto *minor = llvm::find_if(result.minorToMajor(), [&](int64_t dim) { return result.dim(unsigned(dim)) > 1; });
  const Window window = convolution.windowOr(unsigned(labels.outSpatial.size()));
  for (auto [dim, along] : llvm::zip_equal(labels.outSpatial, window.dims)) {
    const int64_t size = result.dim(unsigned(dim)), period = periodOf(along);
    if (period > 1 && size > period && size % period == 0 && (minor == result.minorToMajor().end() || *minor != dim))
      sizes[size_t(dim)] = period;
  }
  return sizes;
}

} // namespace

ContractionSpace::ContractionSpace(const HloInstruction &contraction) {
  const Shape &result = contraction.shape();
  llvm::SmallVector<int64_t> inner(result.rank(), 0);
  if (contraction.opcode() == Opcode::Convolution)
    inner = innerSizes(contraction);
  llvm::SmallVector<int64_t> dims, layout;
  llvm::SmallVector<llvm::SmallVector<int64_t, 2>> partsOf(result.rank());
  for (auto [dim, size] : llvm::enumerate(result.dims())) {
    auto add = [&, dim = unsigned(dim)](int64_t part) {
      partsOf[dim].push_back(int64_t(dims.size()));
      dims.push_back(part);
      ofResult.push_back(dim);
    };
    add(inner[dim] ? size / inner[dim] : size);
    if (inner[dim])
      add(inner[dim]);
  }
  for (int64_t dim : result.minorToMajor())
    llvm::append_range(layout, llvm::reverse(partsOf[size_t(dim)]));
  parts = Shape::array(result.elementType(), dims).withLayout(layout);
}

llvm::SmallVector<AffineExpr> ContractionSpace::resultIndices(llvm::ArrayRef<AffineExpr> indices) const {
  llvm::SmallVector<AffineExpr> made;
  for (auto [number, index] : llvm::enumerate(indices)) {
    const bool isInner = number > 0 && ofResult[number] == ofResult[number - 1];
    if (isInner)
      made.back() = made.back() * parts.dim(unsigned(number)) + index;
    else
      made.push_back(index);
  }
  return made;
}

IndexingMap ContractionSpace::toResult(MLIRContext *context) const {
  llvm::SmallVector<AffineExpr> indices;
  for (unsigned number = 0; number < rank(); ++number)
    indices.push_back(getAffineDimExpr(number, context));
  return IndexingMap::fromSizes(AffineMap::get(rank(), 0, resultIndices(indices), context), parts.dims());
}

} // namespace hloc
