// The dot family and convolution (hlo-text 6.5). Their element type is the author's choice.
#include "ShapeInferenceContext.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace hloc {

namespace {

/// The type an omitted shape gets: complex over float over integer, then the wider.
ElementType higherType(ElementType a, ElementType b) {
  auto order = [](ElementType type) {
    unsigned kind = isComplex(type) ? 3 : isFloat(type) ? 2 : isPred(type) ? 0 : 1;
    return std::pair(kind, bitWidth(type));
  };
  return order(a) < order(b) ? b : a;
}

ElementType resultType(const InferenceContext &c) {
  return c.declaresArray() ? c.declared().elementType()
                           : higherType(c.operand(0).elementType(), c.operand(1).elementType());
}

// dot_c4
bool checkTypes(InferenceContext &c) {
  bool anyComplex = isComplex(c.operand(0).elementType()) || isComplex(c.operand(1).elementType());
  if (!anyComplex || isComplex(resultType(c)))
    return true;
  c.fail(VerifierRule::dot_c4, "the result of complex operands " + show(c.operand(0)) + " and " + show(c.operand(1)) +
                                   " cannot be " + show(c.declared()));
  return false;
}

struct DotSide {
  const Shape &shape;
  Dims batch, contracting;
  /// Dimensions that are neither.
  DimVector free() const {
    DimVector dims;
    for (int64_t i = 0; i < shape.rank(); ++i)
      if (!llvm::is_contained(batch, i) && !llvm::is_contained(contracting, i))
        dims.push_back(i);
    return dims;
  }
};

DotSide lhsOf(const InferenceContext &c) {
  return {c.operand(0), c.ints(AttributeKey::LhsBatchDims), c.ints(AttributeKey::LhsContractingDims)};
}
DotSide rhsOf(const InferenceContext &c) {
  return {c.operand(1), c.ints(AttributeKey::RhsBatchDims), c.ints(AttributeKey::RhsContractingDims)};
}

// dot_c1, dot_c2, dot_c3, dot_c4
bool checkDot(InferenceContext &c, const DotSide &lhs, const DotSide &rhs) {
  for (const DotSide *side : {&lhs, &rhs}) {
    DimVector all(side->batch);
    llvm::append_range(all, side->contracting);
    if (!distinctInRange(all, side->shape.rank())) {
      c.fail(VerifierRule::dot_c1, "batch " + show(side->batch) + " and contracting " + show(side->contracting) +
                                       " are not distinct dimensions of " + show(side->shape));
      return false;
    }
  }
  if (lhs.batch.size() != rhs.batch.size() || lhs.contracting.size() != rhs.contracting.size()) {
    c.fail(VerifierRule::dot_c2, "batch " + show(lhs.batch) + " and " + show(rhs.batch) + ", contracting " +
                                     show(lhs.contracting) + " and " + show(rhs.contracting) + " differ in number");
    return false;
  }
  auto sameSizes = [&](Dims left, Dims right) {
    for (auto [l, r] : llvm::zip(left, right))
      if (lhs.shape.dim(l) != rhs.shape.dim(r)) {
        c.fail(VerifierRule::dot_c3, "dimension " + llvm::Twine(l) + " of " + show(lhs.shape) + " and dimension " +
                                         llvm::Twine(r) + " of " + show(rhs.shape) + " differ in size");
        return false;
      }
    return true;
  };
  return sameSizes(lhs.batch, rhs.batch) && sameSizes(lhs.contracting, rhs.contracting) && checkTypes(c);
}

/// Batch, free dimensions of the left side, free dimensions of the right side.
DimVector dotDims(const DotSide &lhs, const DotSide &rhs) {
  DimVector dims;
  for (int64_t dim : lhs.batch)
    dims.push_back(lhs.shape.dim(dim));
  for (const DotSide *side : {&lhs, &rhs})
    for (int64_t dim : side->free())
      dims.push_back(side->shape.dim(dim));
  return dims;
}

// convolution_c1
bool checkLabels(InferenceContext &c, const ConvolutionLabels &labels) {
  size_t rank = labels.outSpatial.size() + 2;
  auto covers = [&](int64_t a, int64_t b, Dims spatial, size_t arrayRank) {
    DimVector all{a, b};
    llvm::append_range(all, spatial);
    return all.size() == arrayRank && distinctInRange(all, arrayRank);
  };
  bool fits = covers(labels.lhsBatch, labels.lhsFeature, labels.lhsSpatial, c.operand(0).rank()) &&
              covers(labels.rhsInput, labels.rhsOutput, labels.rhsSpatial, c.operand(1).rank()) &&
              covers(labels.outBatch, labels.outFeature, labels.outSpatial, rank) && c.operand(0).rank() == rank &&
              c.operand(1).rank() == rank;
  if (!fits)
    c.fail(VerifierRule::convolution_c1,
           "dim_labels=" + labels.spelling + " do not label " + show(c.operand(0)) + " and " + show(c.operand(1)));
  return fits;
}

// convolution_c3 to convolution_c6
bool checkFeatures(InferenceContext &c, const ConvolutionLabels &labels, int64_t features, int64_t batches) {
  const Shape &lhs = c.operand(0), &rhs = c.operand(1);
  if (features < 1 || batches < 1 || (features > 1 && batches > 1)) {
    c.fail(VerifierRule::convolution_c3, "feature_group_count=" + llvm::Twine(features) +
                                             " and batch_group_count=" + llvm::Twine(batches) + " do not go together");
    return false;
  }
  int64_t expected = 0;
  if (llvm::MulOverflow(rhs.dim(labels.rhsInput), features, expected) || lhs.dim(labels.lhsFeature) != expected) {
    c.fail(VerifierRule::convolution_c4, "input features of " + show(lhs) + " are not " + llvm::Twine(features) +
                                             " times those of the kernel " + show(rhs));
    return false;
  }
  if (rhs.dim(labels.rhsOutput) % features || rhs.dim(labels.rhsOutput) % batches) {
    c.fail(VerifierRule::convolution_c5, "output features of the kernel " + show(rhs) + " are no multiple of " +
                                             llvm::Twine(std::max(features, batches)) + " groups");
    return false;
  }
  if (lhs.dim(labels.lhsBatch) % batches) {
    c.fail(VerifierRule::convolution_c6,
           "the batch of " + show(lhs) + " is no multiple of " + llvm::Twine(batches) + " groups");
    return false;
  }
  return true;
}

} // namespace

std::optional<Shape> inferDot(InferenceContext &c) {
  DotSide lhs = lhsOf(c), rhs = rhsOf(c);
  if (!checkDot(c, lhs, rhs))
    return std::nullopt;
  return c.array(resultType(c), dotDims(lhs, rhs));
}

std::optional<Shape> inferScaledDot(InferenceContext &c) {
  for (unsigned i : {0u, 1u}) {
    const Shape &x = c.operand(i), &scale = c.operand(i + 2);
    bool fits = scale.isScalar() || scale.rank() == x.rank();
    for (unsigned d = 0; fits && !scale.isScalar() && d < x.rank(); ++d)
      fits = scale.dim(d) == x.dim(d) || (scale.dim(d) > 0 && x.dim(d) % scale.dim(d) == 0);
    if (!fits)
      return c.fail(VerifierRule::scaled_dot_c1, "the scale " + show(scale) + " does not divide " + show(x));
  }
  if (c.operand(2).isScalar() && c.operand(3).isScalar())
    return c.fail(VerifierRule::scaled_dot_c2, "both scales are scalars");
  return inferDot(c);
}

std::optional<Shape> inferRaggedDot(InferenceContext &c) {
  DotSide lhs = lhsOf(c), rhs = rhsOf(c);
  const Shape &groups = c.operand(2);
  Dims ragged = c.ints(AttributeKey::LhsRaggedDims), groupDims = c.ints(AttributeKey::RhsGroupDims);
  if (ragged.size() != 1 || ragged[0] < 0 || ragged[0] >= lhs.shape.rank())
    return c.fail(VerifierRule::ragged_dot_c1,
                  "lhs_ragged_dims " + show(ragged) + " must name one dimension of " + show(lhs.shape));
  if (!checkDot(c, lhs, rhs))
    return std::nullopt;
  if (!isInteger(groups.elementType()) || groups.rank() == 0)
    return c.fail(VerifierRule::ragged_dot_c3, "group sizes are " + show(groups));
  bool contracting = llvm::is_contained(lhs.contracting, ragged[0]), batch = llvm::is_contained(lhs.batch, ragged[0]);
  int64_t count = groups.dims().back();
  DimVector freeRhs = rhs.free();
  bool groupsFit =
      contracting || batch ? groupDims.empty() : groupDims.size() == 1 && llvm::is_contained(freeRhs, groupDims[0]);
  if (!groupsFit)
    return c.fail(VerifierRule::ragged_dot_c2,
                  "rhs_group_dims " + show(groupDims) + " do not suit ragged dimension " + llvm::Twine(ragged[0]));
  if (!groupDims.empty() && rhs.shape.dim(groupDims[0]) != count)
    return c.fail(VerifierRule::ragged_dot_c3,
                  "group sizes " + show(groups) + " do not count the groups of " + show(rhs.shape));
  DimVector dims;
  if (contracting)
    dims.push_back(count);
  for (int64_t dim : lhs.batch)
    dims.push_back(lhs.shape.dim(dim));
  for (int64_t dim : lhs.free())
    dims.push_back(lhs.shape.dim(dim));
  for (int64_t dim : freeRhs)
    if (!llvm::is_contained(groupDims, dim))
      dims.push_back(rhs.shape.dim(dim));
  return c.array(resultType(c), dims);
}

std::optional<Shape> inferConvolution(InferenceContext &c) {
  const auto *labels = c.get<const ConvolutionLabels *>(AttributeKey::DimLabels);
  if (!labels || !*labels)
    return c.fail(VerifierRule::instruction_c2, "attribute `dim_labels` is missing");
  if (c.has(AttributeKey::SparsityConfig) && c.declaresArray())
    return c.declared(); // what a sparse kernel stands for is not known here
  const ConvolutionLabels &at = **labels;
  int64_t features = c.integer(AttributeKey::FeatureGroupCount, 1),
          batches = c.integer(AttributeKey::BatchGroupCount, 1);
  if (!checkLabels(c, at) || !checkFeatures(c, at, features, batches) || !checkTypes(c))
    return std::nullopt;
  const Shape &lhs = c.operand(0), &rhs = c.operand(1);
  const Window *window = c.window();
  bool windowFits = (window ? window->dims.size() : 0) == at.lhsSpatial.size();
  for (unsigned i = 0; windowFits && i < at.rhsSpatial.size(); ++i)
    windowFits = window->dims[i].size == rhs.dim(at.rhsSpatial[i]);
  if (!windowFits)
    return c.fail(VerifierRule::convolution_c2,
                  "the window does not have the spatial sizes of the kernel " + show(rhs));
  DimVector spatial;
  for (int64_t dim : at.lhsSpatial)
    spatial.push_back(lhs.dim(dim));
  std::optional<DimVector> windowed = windowedSizes(c, spatial, window);
  if (!windowed)
    return std::nullopt;
  DimVector dims(lhs.rank());
  dims[at.outBatch] = lhs.dim(at.lhsBatch) / batches;
  dims[at.outFeature] = rhs.dim(at.rhsOutput);
  for (unsigned i = 0; i < at.outSpatial.size(); ++i)
    dims[at.outSpatial[i]] = (*windowed)[i];
  return c.array(resultType(c), dims);
}

} // namespace hloc
