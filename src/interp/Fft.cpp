// fft: successive 1-D transforms along the innermost dimensions, in c128.

#include "interp/MatrixProduct.h"
#include "interp/Ops.h"
#include "interp/Strided.h"

#include <cmath>
#include <numbers>

namespace hloc::interp {

namespace {

using Complex = std::complex<double>;

/// Transforms rows of one length. Powers of two by halving, other lengths by the definition.
class Transform {
public:
  Transform(int64_t length, bool inverse) : length(length), inverse(inverse), roots(size_t(length)) {
    for (int64_t i = 0; i < length; ++i) {
      double angle = (inverse ? 2 : -2) * std::numbers::pi * double(i) / double(length);
      roots[size_t(i)] = {std::cos(angle), std::sin(angle)};
    }
  }
  void run(std::vector<Complex> &row) {
    if ((length & (length - 1)) == 0)
      halve(row);
    else
      define(row);
    if (inverse)
      for (Complex &value : row)
        value /= double(length);
  }

private:
  void define(std::vector<Complex> &row) {
    std::vector<Complex> sums(row.size());
    for (int64_t k = 0; k < length; ++k)
      for (int64_t j = 0; j < length; ++j)
        sums[size_t(k)] += row[size_t(j)] * roots[size_t(j * k % length)];
    row = std::move(sums);
  }
  void halve(std::vector<Complex> &row) {
    for (int64_t i = 1, j = 0; i < length; ++i) { // bit-reversed order
      int64_t bit = length >> 1;
      for (; j & bit; bit >>= 1)
        j ^= bit;
      j ^= bit;
      if (i < j)
        std::swap(row[size_t(i)], row[size_t(j)]);
    }
    for (int64_t size = 2; size <= length; size *= 2)
      for (int64_t start = 0; start < length; start += size)
        for (int64_t i = 0; i < size / 2; ++i) {
          Complex &even = row[size_t(start + i)], &odd = row[size_t(start + i + size / 2)];
          Complex turned = odd * roots[size_t(i * (length / size))];
          odd = even - turned;
          even += turned;
        }
  }
  int64_t length;
  bool inverse;
  std::vector<Complex> roots;
};

/// Transforms along `dim`: rows of `inLength` values are read, cut or completed by `adapt`, and give `outLength`
/// values.
template <typename Adapt>
Literal transformAlong(const Literal &from, unsigned dim, int64_t length, bool inverse, int64_t outLength,
                       Adapt adapt) {
  Index dims(from.shape().dims().begin(), from.shape().dims().end()), strides = rowMajorStrides(dims);
  int64_t inLength = dims[dim], inStride = strides[dim];
  Index outDims = dims;
  outDims[dim] = outLength;
  Literal to(Shape::array(ElementType::C128, outDims));
  Index outStrides = rowMajorStrides(outDims);
  if (to.numElements() == 0)
    return to;
  Transform transform(length, inverse);
  Index outer = dims, at(dims.size(), 0);
  outer[dim] = 1;
  auto source = from.data<Complex>();
  auto target = to.mutableData<Complex>();
  std::vector<Complex> row;
  do {
    row.assign(size_t(inLength), 0);
    int64_t base = linearIndex(at, strides), outBase = linearIndex(at, outStrides);
    for (int64_t i = 0; i < inLength; ++i)
      row[size_t(i)] = source[size_t(base + i * inStride)];
    adapt(row);
    transform.run(row);
    for (int64_t i = 0; i < outLength; ++i)
      target[size_t(outBase + i * outStrides[dim])] = row[size_t(i)];
  } while (increment(at, outer));
  return to;
}

void asIs(std::vector<Complex> &) {}

} // namespace

llvm::FailureOr<Value> evaluateFft(Step &step) {
  auto type = step.instr.enumOr(AttributeKey::FftType, FftType::Fft);
  llvm::ArrayRef<int64_t> lengths = step.instr.ints(AttributeKey::FftLength);
  if (!isProductDefined(step.array(0).shape().elementType(), ElementType::C128))
    return step.unsupported("this element type", DiagnosticKind::UnsupportedType);
  Literal values = widened(step.array(0), ElementType::C128);
  unsigned rank = values.shape().rank(), last = rank - 1;
  unsigned firstDim = rank - unsigned(lengths.size());
  bool inverse = type == FftType::Ifft || type == FftType::Irfft;
  int64_t lastLength = lengths.back();
  auto alongOthers = [&] {
    for (unsigned dim = firstDim; dim < last; ++dim)
      values = transformAlong(values, dim, lengths[dim - firstDim], inverse, lengths[dim - firstDim], asIs);
  };
  switch (type) {
  case FftType::Fft:
  case FftType::Ifft:
    alongOthers();
    values = transformAlong(values, last, lastLength, inverse, lastLength, asIs);
    break;
  case FftType::Rfft: // the other half of a real transform is the conjugate of this one
    values = transformAlong(values, last, lastLength, inverse, lastLength / 2 + 1, asIs);
    alongOthers();
    break;
  case FftType::Irfft:
    alongOthers();
    values = transformAlong(values, last, lastLength, inverse, lastLength, [&](std::vector<Complex> &row) {
      row.resize(size_t(lastLength));
      row[0].imag(0);
      if (lastLength % 2 == 0)
        row[size_t(lastLength / 2)].imag(0);
      for (int64_t i = lastLength / 2 + 1; i < lastLength; ++i)
        row[size_t(i)] = std::conj(row[size_t(lastLength - i)]);
    });
  }
  Literal result(step.shape());
  if (isComplex(step.shape().elementType())) {
    roundInto(values, result);
  } else {
    Literal real(Shape::array(ElementType::F64, values.shape().dims()));
    for (int64_t i = 0; i < values.numElements(); ++i)
      real.mutableData<double>()[size_t(i)] = values.data<Complex>()[size_t(i)].real();
    roundInto(real, result);
  }
  return Value(std::move(result));
}

} // namespace hloc::interp
