// convolution as matrix products: for a run of output positions, the input patch of each becomes a row.

#include "interp/MatrixProduct.h"
#include "interp/Ops.h"
#include "interp/Strided.h"

#include <algorithm>
#include <cstring>

namespace hloc::interp {

namespace {

/// Rows of patches made at a time.
constexpr int64_t patchRows = 256;

/// Operands widened, in the order input [batch, spatial..., feature], kernel [spatial..., in feature, out feature],
/// output [batch, spatial..., feature].
class Convolution {
public:
  Convolution(Step &step, const Shape &shape, const ConvolutionLabels &labels)
      : labels(labels), window(step.instr.windowOr(0)),
        featureGroups(step.instr.intOr(AttributeKey::FeatureGroupCount, 1)),
        batchGroups(step.instr.intOr(AttributeKey::BatchGroupCount, 1)) {
    ElementType type = shape.elementType();
    input = transposed(widened(step.array(0), type), order(labels.lhsBatch, labels.lhsSpatial, {labels.lhsFeature}));
    kernel =
        transposed(widened(step.array(1), type), order({}, labels.rhsSpatial, {labels.rhsInput, labels.rhsOutput}));
    Index outOrder = outputOrder(), dims;
    for (int64_t dim : outOrder)
      dims.push_back(shape.dim(unsigned(dim)));
    output = Literal(Shape::array(input.shape().elementType(), dims));
  }

  /// Sums in the result's own order of dimensions.
  Literal run() {
    Index toResult(output.shape().rank());
    Index outOrder = outputOrder();
    for (size_t i = 0; i < outOrder.size(); ++i)
      toResult[size_t(outOrder[i])] = int64_t(i);
    if (output.numElements() != 0)
      for (int64_t group = 0; group < std::max(featureGroups, batchGroups); ++group)
        runGroup(group);
    return transposed(output, toResult);
  }

private:
  static Index order(std::optional<int64_t> first, llvm::ArrayRef<int64_t> spatial, llvm::ArrayRef<int64_t> last) {
    Index all;
    if (first)
      all.push_back(*first);
    all.append(spatial.begin(), spatial.end());
    all.append(last.begin(), last.end());
    return all;
  }
  Index outputOrder() const { return order(labels.outBatch, labels.outSpatial, {labels.outFeature}); }

  /// One group: its own input features (or batches), kernel columns and output features.
  void runGroup(int64_t group) {
    int64_t groups = std::max(featureGroups, batchGroups);
    int64_t outFeatures = output.shape().dims().back() / groups, allOut = output.shape().dims().back();
    int64_t width = hostBytes(input.shape().elementType());
    Index kernelDims(kernel.shape().dims().begin(), kernel.shape().dims().end());
    kernelDims.back() = outFeatures;
    Index start(kernelDims.size(), 0);
    start.back() = group * outFeatures;
    Literal columns(Shape::array(kernel.shape().elementType(), kernelDims));
    if (columns.numElements() == 0)
      return;
    copyStrided(kernelDims, unsigned(width), targetAt(columns, {}), sourceAt(kernel, start));

    int64_t depth = columns.numElements() / outFeatures, positions = output.numElements() / allOut;
    std::vector<uint8_t> patches(size_t(patchRows * depth * width)), sums(size_t(patchRows * outFeatures * width));
    Index at(output.shape().rank() - 1, 0);
    for (int64_t done = 0; done < positions; done += patchRows) {
      int64_t rows = std::min(patchRows, positions - done);
      for (int64_t row = 0; row < rows; ++row) {
        fillPatch(group, at, patches.data() + row * depth * width);
        increment(at, output.shape().dims().drop_back());
      }
      std::fill(sums.begin(), sums.end(), 0);
      MatrixProduct{rows, outFeatures, depth}.run(input.shape().elementType(), patches.data(), columns.bytes().data(),
                                                  sums.data());
      for (int64_t row = 0; row < rows; ++row)
        std::memcpy(output.mutableBytes().data() + ((done + row) * allOut + group * outFeatures) * width,
                    sums.data() + row * outFeatures * width, size_t(outFeatures * width));
    }
  }

  /// Everything one output position reads: for each window position all features of the group, or zeros.
  void fillPatch(int64_t group, llvm::ArrayRef<int64_t> at, uint8_t *patch) {
    int64_t width = hostBytes(input.shape().elementType());
    int64_t features = kernel.shape().dim(kernel.shape().rank() - 2), allFeatures = input.shape().dims().back();
    int64_t batch = at[0] + (batchGroups > 1 ? group * output.shape().dim(0) : 0);
    Index sizes(kernel.shape().dims().begin(), kernel.shape().dims().end() - 2), position(sizes.size(), 0);
    if (product(sizes) == 0)
      return;
    do {
      int64_t linear = batch;
      bool inside = true;
      for (size_t i = 0; i < sizes.size() && inside; ++i) {
        const WindowDim &dim = window.dims[i];
        int64_t tap = dim.reversed ? sizes[i] - 1 - position[i] : position[i];
        // The kernel element at `position` meets the padded input at `tap`.
        int64_t padded = at[i + 1] * dim.stride + tap * dim.windowDilation - dim.padLow;
        int64_t size = input.shape().dim(unsigned(i + 1));
        inside = padded >= 0 && padded % dim.baseDilation == 0 && padded / dim.baseDilation < size;
        linear = linear * size + padded / dim.baseDilation;
      }
      if (inside)
        std::memcpy(patch,
                    input.bytes().data() + (linear * allFeatures + (featureGroups > 1 ? group * features : 0)) * width,
                    size_t(features * width));
      else
        std::memset(patch, 0, size_t(features * width));
      patch += features * width;
    } while (increment(position, sizes));
  }

  const ConvolutionLabels &labels;
  Window window;
  int64_t featureGroups, batchGroups;
  Literal input, kernel, output;
};

} // namespace

llvm::FailureOr<Value> convolution(Step &step, const Shape &shape) {
  if (step.operands.size() != 2)
    return step.unsupported("sparse operands");
  for (unsigned i = 0; i < 2; ++i)
    if (!isProductDefined(step.array(i).shape().elementType(), shape.elementType()))
      return step.unsupported("products of these types are not defined", DiagnosticKind::UnsupportedType);
  Literal result(shape);
  roundInto(Convolution(step, shape, *step.instr.get<const ConvolutionLabels *>(AttributeKey::DimLabels)).run(),
            result);
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateConvolution(Step &step) { return convolution(step, step.shape()); }

} // namespace hloc::interp
