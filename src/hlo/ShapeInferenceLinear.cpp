// Batch normalization, Fourier transforms and matrix decompositions (hlo-text 6.5).
#include "ShapeInferenceContext.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

std::optional<Shape> inferBatchNorm(InferenceContext &c) {
  const Shape &x = c.operand(0);
  int64_t feature = c.integer(AttributeKey::FeatureIndex, -1);
  if (feature < 0 || feature >= x.rank())
    return c.fail(VerifierRule::batch_norm_c1,
                  "feature_index=" + llvm::Twine(feature) + " is no dimension of " + show(x));
  bool isGrad = c.opcode() == Opcode::BatchNormGrad;
  for (unsigned i = 0; i < c.numOperands(); ++i) {
    const Shape &operand = c.operand(i);
    if (!isFloat(operand.elementType()))
      return c.fail(VerifierRule::batch_norm_c2,
                    "operand " + llvm::Twine(i) + " is " + show(operand) + ", not of floats");
    if (i == 0)
      continue;
    if (isGrad && i == 4) {
      if (!operand.sameDims(x))
        return c.fail(VerifierRule::batch_norm_c4,
                      "the gradient " + show(operand) + " differs in dimensions from " + show(x));
    } else if (operand.rank() != 1 || operand.dim(0) != x.dim(feature)) {
      return c.fail(VerifierRule::batch_norm_c3, "operand " + llvm::Twine(i) + " is " + show(operand) +
                                                     ", not a vector of the " + llvm::Twine(x.dim(feature)) +
                                                     " features");
    }
  }
  if (c.opcode() == Opcode::BatchNormInference)
    return x;
  Shape statistics = c.operand(1).withDims({x.dim(feature)});
  return Shape::tuple({x, statistics, statistics});
}

std::optional<Shape> inferFft(InferenceContext &c) {
  const Shape &x = c.operand(0);
  Dims lengths = c.ints(AttributeKey::FftLength);
  if (lengths.empty() || lengths.size() > 3 || lengths.size() > x.rank())
    return c.fail(VerifierRule::fft_c1, "fft_length " + show(lengths) + " does not fit " + show(x));
  auto type = static_cast<FftType>(c.integer(AttributeKey::FftType, 0));
  bool fromReal = type == FftType::Rfft, toReal = type == FftType::Irfft;
  ElementType element = x.elementType();
  if (fromReal ? element != ElementType::F32 && element != ElementType::F64 : !isComplex(element))
    return c.fail(VerifierRule::fft_c2,
                  "`fft_type=" + enumText(EnumType::FftType, type) + "` does not take " + show(x));
  DimVector dims(x.dims());
  unsigned outer = x.rank() - lengths.size();
  for (unsigned i = 0; i < lengths.size(); ++i) {
    bool last = i + 1 == lengths.size();
    int64_t expected = toReal && last && lengths[i] != 0 ? lengths[i] / 2 + 1 : lengths[i];
    bool fits = lengths[i] >= 0 && (x.dim(outer + i) == expected || x.numElements() == 0);
    if (!fits && !fromReal && !toReal)
      return c.fail(VerifierRule::fft_c4,
                    "fft_length " + show(lengths) + " is not the size of " + show(x) + ", which is not supported");
    if (!fits)
      return c.fail(VerifierRule::fft_c3, "fft_length " + show(lengths) + " does not fit dimension " +
                                              llvm::Twine(outer + i) + " of " + show(x));
  }
  if (fromReal && lengths.back() != 0)
    dims.back() = lengths.back() / 2 + 1;
  if (toReal)
    dims.back() = lengths.back();
  if (fromReal)
    element = element == ElementType::F32 ? ElementType::C64 : ElementType::C128;
  return c.array(toReal ? componentType(element) : element, dims);
}

std::optional<Shape> inferCholesky(InferenceContext &c) {
  const Shape &x = c.operand(0);
  if (!isFloat(x.elementType()) && !isComplex(x.elementType()))
    return c.fail(VerifierRule::cholesky_c1, "is defined on floats and complex numbers, not on " + show(x));
  if (x.rank() < 2 || x.dim(x.rank() - 1) != x.dim(x.rank() - 2))
    return c.fail(VerifierRule::cholesky_c2, "the minor dimensions of " + show(x) + " are not equal");
  return x;
}

std::optional<Shape> inferTriangularSolve(InferenceContext &c) {
  const Shape &a = c.operand(0), &b = c.operand(1);
  if ((!isFloat(a.elementType()) && !isComplex(a.elementType())) || a.elementType() != b.elementType())
    return c.fail(VerifierRule::triangular_solve_c1, "cannot solve with " + show(a) + " and " + show(b));
  unsigned rank = a.rank();
  if (rank < 2 || a.dim(rank - 1) != a.dim(rank - 2))
    return c.fail(VerifierRule::triangular_solve_c2, "the minor dimensions of " + show(a) + " are not equal");
  bool left = c.flag(AttributeKey::LeftSide, false);
  bool fits = b.rank() == rank && a.dims().drop_back(2) == b.dims().drop_back(2) &&
              b.dim(left ? rank - 2 : rank - 1) == a.dim(rank - 1);
  if (!fits)
    return c.fail(VerifierRule::triangular_solve_c3, "the matrix " + show(a) + " does not fit " + show(b));
  return b;
}

} // namespace hloc
