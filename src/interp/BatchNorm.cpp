// batch-norm-*: computed in f64 from the operands' values and rounded once.

#include "interp/MatrixProduct.h"
#include "interp/Ops.h"
#include "interp/Strided.h"

#include <cmath>

namespace hloc::interp {

namespace {

/// The operands as f64, with the feature dimension last; per-feature sums and maps.
struct Batch {
  Step &step;
  double epsilon;
  Index toLast, back;
  int64_t features, rows;

  explicit Batch(Step &step)
      : step(step), epsilon(float(step.instr.get<double>(AttributeKey::Epsilon))) { // HLO keeps it in f32
    const Shape &shape = step.array(0).shape();
    int64_t feature = step.instr.intOr(AttributeKey::FeatureIndex, 0);
    for (unsigned i = 0; i < shape.rank(); ++i)
      if (int64_t(i) != feature)
        toLast.push_back(i);
    toLast.push_back(feature);
    back.resize(shape.rank());
    for (size_t i = 0; i < toLast.size(); ++i)
      back[size_t(toLast[i])] = int64_t(i);
    features = shape.dim(unsigned(feature));
    rows = features == 0 ? 0 : shape.numElements() / features;
  }

  Literal full(unsigned operand) const { return transposed(widened(step.array(operand), ElementType::F64), toLast); }
  std::vector<double> perFeature(unsigned operand) const {
    return widened(step.array(operand), ElementType::F64).data<double>().vec();
  }
  /// sum over rows of term(x, feature) for each feature, x = linear index
  template <typename Term> std::vector<double> sum(Term term) const {
    std::vector<double> sums(size_t(features), 0);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t f = 0; f < features; ++f)
        sums[size_t(f)] += term(size_t(row * features + f), size_t(f));
    return sums;
  }
  template <typename Term> Value map(const Shape &shape, Term term) const {
    Index dims;
    for (int64_t dim : toLast)
      dims.push_back(shape.dim(unsigned(dim)));
    Literal made(Shape::array(ElementType::F64, dims));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t f = 0; f < features; ++f)
        made.mutableData<double>()[size_t(row * features + f)] = term(size_t(row * features + f), size_t(f));
    Literal result(shape);
    roundInto(transposed(made, back), result);
    return Value(std::move(result));
  }
  static Value vector(const Shape &shape, llvm::ArrayRef<double> values) {
    Literal made(Shape::array(ElementType::F64, shape.dims())), result(shape);
    llvm::copy(values, made.mutableData<double>().begin());
    roundInto(made, result);
    return Value(std::move(result));
  }
};

} // namespace

llvm::FailureOr<Value> evaluateBatchNormTraining(Step &step) {
  Batch batch(step);
  Literal full = batch.full(0);
  auto x = full.data<double>();
  std::vector<double> scale = batch.perFeature(1), offset = batch.perFeature(2);
  auto count = double(batch.rows);
  std::vector<double> mean = batch.sum([&](size_t i, size_t) { return x[i]; });
  for (double &value : mean)
    value /= count;
  // The biased variance, from the deviations: the same value as E[x²] - E[x]² without its cancellation.
  std::vector<double> variance = batch.sum([&](size_t i, size_t f) { return (x[i] - mean[f]) * (x[i] - mean[f]); });
  for (double &value : variance)
    value /= count;
  Value y = batch.map(step.shape().element(0), [&](size_t i, size_t f) {
    return (x[i] - mean[f]) / std::sqrt(variance[f] + batch.epsilon) * scale[f] + offset[f];
  });
  return Value::tuple(
      {std::move(y), Batch::vector(step.shape().element(1), mean), Batch::vector(step.shape().element(2), variance)});
}

llvm::FailureOr<Value> evaluateBatchNormInference(Step &step) {
  Batch batch(step);
  Literal full = batch.full(0);
  auto x = full.data<double>();
  std::vector<double> scale = batch.perFeature(1), offset = batch.perFeature(2), mean = batch.perFeature(3),
                      variance = batch.perFeature(4);
  return batch.map(step.shape(), [&](size_t i, size_t f) {
    return (x[i] - mean[f]) / std::sqrt(variance[f] + batch.epsilon) * scale[f] + offset[f];
  });
}

llvm::FailureOr<Value> evaluateBatchNormGrad(Step &step) {
  Batch batch(step);
  Literal full = batch.full(0), gradient = batch.full(4);
  auto x = full.data<double>(), g = gradient.data<double>();
  std::vector<double> scale = batch.perFeature(1), mean = batch.perFeature(2), variance = batch.perFeature(3);
  std::vector<double> sum = batch.sum([&](size_t i, size_t) { return g[i]; });
  std::vector<double> weighted = batch.sum([&](size_t i, size_t f) { return g[i] * (x[i] - mean[f]); });
  auto count = double(batch.rows);
  Value gx = batch.map(step.shape().element(0), [&](size_t i, size_t f) {
    double spread = variance[f] + batch.epsilon;
    return scale[f] / std::sqrt(spread) / count * (count * g[i] - sum[f] - (x[i] - mean[f]) * weighted[f] / spread);
  });
  std::vector<double> gscale = weighted;
  for (size_t f = 0; f < gscale.size(); ++f)
    gscale[f] /= std::sqrt(variance[f] + batch.epsilon);
  return Value::tuple(
      {std::move(gx), Batch::vector(step.shape().element(1), gscale), Batch::vector(step.shape().element(2), sum)});
}

} // namespace hloc::interp
