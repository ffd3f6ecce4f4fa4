// convolution as matrix products: for a run of output positions, the input patch of each becomes a row.

#include "interp/Convolution.h"
#include "interp/MatrixProduct.h"
#include "interp/Ops.h"
#include "interp/Strided.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>

namespace hloc::interp {

namespace {

/// Rows of patches made at a time.
constexpr int64_t patchRows = 256;

Index order(std::optional<int64_t> first, llvm::ArrayRef<int64_t> spatial, llvm::ArrayRef<int64_t> last) {
  Index all;
  if (first)
    all.push_back(*first);
  all.append(spatial.begin(), spatial.end());
  all.append(last.begin(), last.end());
  return all;
}

/// Operands widened, in the order input [batch, spatial..., feature], kernel [spatial..., in feature, out feature],
/// output [batch, spatial..., feature].
class Convolution {
public:
  Convolution(const ConvolutionGeometry &geometry, const Literal &lhs, const Literal &rhs, const Shape &shape)
      : labels(geometry.labels), window(geometry.window), featureGroups(geometry.featureGroups),
        batchGroups(geometry.batchGroups) {
    ElementType type = shape.elementType();
    input = transposed(widened(lhs, type), order(labels.lhsBatch, labels.lhsSpatial, {labels.lhsFeature}));
    kernel = transposed(widened(rhs, type), order({}, labels.rhsSpatial, {labels.rhsInput, labels.rhsOutput}));
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
  const Window &window;
  int64_t featureGroups, batchGroups;
  Literal input, kernel, output;
};

Literal reshaped(const Literal &operand, llvm::ArrayRef<int64_t> dims) {
  Literal result(Shape::array(operand.shape().elementType(), dims));
  llvm::copy(operand.bytes(), result.mutableBytes().begin());
  return result;
}

/// The kernel [spatial..., in feature, out feature] of a gradient: what was an output feature is now an input feature,
/// and of `groups` each still has its own.
Literal turnedKernel(const Literal &kernel, const ConvolutionLabels &labels, int64_t groups) {
  Literal ordered = transposed(kernel, order({}, labels.rhsSpatial, {labels.rhsInput, labels.rhsOutput}));
  Index dims(ordered.shape().dims().begin(), ordered.shape().dims().end());
  int64_t outFeatures = dims.pop_back_val(), inFeatures = dims.pop_back_val(), spatial = int64_t(dims.size());
  Index split = dims, turned = dims, permutation;
  split.append({inFeatures, groups, outFeatures / groups});
  turned.append({outFeatures / groups, groups * inFeatures});
  for (int64_t i = 0; i < spatial; ++i)
    permutation.push_back(i);
  permutation.append({spatial + 2, spatial + 1, spatial});
  return reshaped(transposed(reshaped(ordered, split), permutation), turned);
}

} // namespace

ConvolutionGeometry ConvolutionGeometry::of(const HloInstruction &instr) {
  return {*instr.get<const ConvolutionLabels *>(AttributeKey::DimLabels), instr.windowOr(0),
          instr.intOr(AttributeKey::FeatureGroupCount, 1), instr.intOr(AttributeKey::BatchGroupCount, 1)};
}

Literal convolutionSums(const ConvolutionGeometry &geometry, const Literal &input, const Literal &kernel,
                        const Shape &result) {
  return Convolution(geometry, input, kernel, result).run();
}

// dx[p] is the sum over the kernel of dy[q] kernel[k] where q * stride + k * dilation - padLow = p: dy with holes,
// under the kernel back to front.
Literal inputGradientSums(const ConvolutionGeometry &forward, const Literal &dy, const Literal &kernel,
                          const Shape &result) {
  const ConvolutionLabels &labels = forward.labels;
  ConvolutionGeometry backward = forward;
  backward.labels.lhsBatch = labels.outBatch, backward.labels.lhsFeature = labels.outFeature;
  backward.labels.lhsSpatial = labels.outSpatial;
  backward.labels.outBatch = labels.lhsBatch, backward.labels.outFeature = labels.lhsFeature;
  backward.labels.outSpatial = labels.lhsSpatial;
  int64_t spatial = int64_t(labels.rhsSpatial.size());
  for (int64_t i = 0; i < spatial; ++i)
    backward.labels.rhsSpatial[size_t(i)] = i;
  backward.labels.rhsInput = spatial, backward.labels.rhsOutput = spatial + 1;
  for (WindowDim &dim : backward.window.dims) {
    dim.baseDilation = std::exchange(dim.stride, 1);
    dim.padLow = (dim.size - 1) * dim.windowDilation - dim.padLow;
    dim.reversed = !dim.reversed;
  }
  return convolutionSums(backward, dy, turnedKernel(kernel, labels, forward.featureGroups), result);
}

// dkernel[k] is the sum over y's positions q of x[q * stride + k * dilation - padLow] dy[q]: dy is the kernel, features
// of x are the batch, and what was a stride is now a dilation.
Literal kernelGradientSums(const ConvolutionGeometry &forward, const Literal &input, const Literal &dy,
                           const Shape &result) {
  const ConvolutionLabels &labels = forward.labels;
  ConvolutionGeometry backward = forward;
  std::swap(backward.labels.lhsBatch, backward.labels.lhsFeature);
  backward.labels.rhsInput = labels.outBatch, backward.labels.rhsOutput = labels.outFeature;
  backward.labels.rhsSpatial = labels.outSpatial;
  backward.labels.outBatch = labels.rhsInput, backward.labels.outFeature = labels.rhsOutput;
  backward.labels.outSpatial = labels.rhsSpatial;
  std::swap(backward.featureGroups, backward.batchGroups);
  for (size_t i = 0; i < backward.window.dims.size(); ++i) {
    WindowDim &dim = backward.window.dims[i];
    std::swap(dim.stride, dim.windowDilation);
    if (dim.reversed) { // k counts from the other end
      dim.padLow -= (dim.size - 1) * dim.stride;
      dim.stride = -dim.stride;
    }
    dim.reversed = false;
    dim.size = dy.shape().dim(unsigned(labels.outSpatial[i]));
  }
  return convolutionSums(backward, input, dy, result);
}

std::vector<bool> paddedSpecials(const HloInstruction &convolution, const Literal &kernel) {
  const ConvolutionGeometry geometry = ConvolutionGeometry::of(convolution);
  if (!isFloat(kernel.shape().elementType()))
    return {};
  Literal special(Shape::array(ElementType::F32, kernel.shape().dims()));
  const int64_t channelDim = geometry.labels.rhsOutput, channels = kernel.shape().dim(unsigned(channelDim));
  std::vector<float> all(size_t(channels), 0);
  int64_t inner = 1; // elements of the kernel between neighbours along its output features
  for (int64_t i = channelDim + 1; i < int64_t(kernel.shape().rank()); ++i)
    inner *= kernel.shape().dim(unsigned(i));
  bool any = false;
  for (int64_t i = 0, n = kernel.numElements(); i < n; ++i)
    if (!std::isfinite(kernel.getDouble(i))) {
      special.mutableData<float>()[size_t(i)] = 1;
      all[size_t(i / inner % channels)] += 1;
      any = true;
    }
  if (!any)
    return {};
  const Shape &shape = convolution.shape();
  Literal ones(Shape::array(ElementType::F32, convolution.operand(0)->shape().dims()));
  llvm::fill(ones.mutableData<float>(), 1.0F);
  const Literal met = convolutionSums(geometry, ones, special, shape.withElementType(ElementType::F32));
  std::vector<bool> padded(size_t(shape.numElements()));
  inner = 1;
  for (int64_t i = geometry.labels.outFeature + 1; i < int64_t(shape.rank()); ++i)
    inner *= shape.dim(unsigned(i));
  for (size_t i = 0; i < padded.size(); ++i)
    padded[i] = met.getDouble(int64_t(i)) < all[size_t(int64_t(i) / inner % channels)];
  return padded;
}

llvm::FailureOr<Value> evaluateConvolution(Step &step) {
  if (step.operands.size() != 2)
    return step.unsupported("sparse operands");
  for (unsigned i = 0; i < 2; ++i)
    if (!isProductDefined(step.array(i).shape().elementType(), step.shape().elementType()))
      return step.unsupported("products of these types are not defined", DiagnosticKind::UnsupportedType);
  Literal result(step.shape());
  roundInto(convolutionSums(ConvolutionGeometry::of(step.instr), step.array(0), step.array(1), step.shape()), result);
  return Value(std::move(result));
}

} // namespace hloc::interp
