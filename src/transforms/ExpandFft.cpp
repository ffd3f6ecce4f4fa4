// fft -> contractions with small matrices of roots of one, in c128, rounded once. A transform of length n = r m l,
// where transforms of length l have been made and r is the next factor of n, is (Stockham's order, which sorts as it
// goes):
//
//   y[q, s, k] = sum over t < r of w^((s l + k) t) x[t, q, k]     w = e^(-2 pi i / (r l)), q < m, s < r, k < l
//
// so that each factor is a contraction, in all r operations for each element. Factors up to 16 are taken together; a
// large prime factor costs what the definition does.

#include "Expansion.h"
#include "Rewriter.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <numbers>

namespace hloc {

namespace {

using Value = Expansion::Value;
using Dims = llvm::SmallVector<int64_t>;

/// Roots of one kept as a constant: 16 bytes each, in every kernel that reads them.
constexpr int64_t maxTable = 1024;

/// e^(sign 2 pi i numerator / denominator)
std::complex<double> root(int64_t numerator, int64_t denominator, int sign) {
  long double angle = 2 * std::numbers::pi_v<long double> * (long double)(numerator) / (long double)(denominator);
  return {double(std::cos(angle)), double(sign * std::sin(angle))};
}

/// The factors of n: primes, of which small ones are multiplied up to 16.
Dims radices(int64_t n) {
  Dims factors;
  int64_t small = 1;
  auto take = [&](int64_t prime) {
    if (small * prime > 16) {
      if (small > 1)
        factors.push_back(small);
      small = 1;
    }
    small *= prime;
  };
  for (int64_t prime = 2; prime * prime <= n; ++prime)
    for (; n % prime == 0; n /= prime)
      take(prime);
  if (n > 1)
    take(n);
  if (small > 1)
    factors.push_back(small);
  return factors;
}

class Transform {
public:
  Transform(Expansion &x, bool inverse) : x(x), sign(inverse ? 1 : -1) {}

  /// Of c128[before, n, after] along the middle; an inverse one is not divided by n.
  Value along(Value values) {
    Dims dims(values->shape().dims());
    int64_t n = dims[1], done = 1;
    for (int64_t radix : radices(n)) {
      int64_t rest = n / done / radix;
      Value split = x.reshape(values, {dims[0], radix, rest, done, dims[2]});
      Value sums = x.dot(roots(radix, done), split, int64_t(0), int64_t(3), 2, 1); // [k, s, before, q, after]
      values = x.reshape(x.builder().transpose(sums, {2, 3, 1, 0, 4}), dims);
      done *= radix;
    }
    return values;
  }

private:
  /// w^((s l + k) t) as [k, s, t].
  Value roots(int64_t radix, int64_t done) {
    int64_t order = radix * done;
    Dims dims = {done, radix, radix};
    if (order * radix <= maxTable)
      return constant(dims, [&](int64_t i) {
        int64_t t = i % radix, s = i / radix % radix, k = i / (radix * radix);
        return root((s * done + k) * t % order, order, sign);
      });
    HloBuilder &b = x.builder();
    auto index = [&](int64_t dim) { return x.iota(ElementType::S64, dims, dim); };
    Value place = x.add(x.multiply(index(1), filled(dims, done)), index(0));
    Value power = x.binary(Opcode::Remainder, x.multiply(place, index(2)), filled(dims, order));
    if (order <= maxTable)
      return gathered(constant(order, [&](int64_t i) { return root(i, order, sign); }), power);
    // i = high * fine + low
    int64_t fine = maxTable;
    while (fine * fine < order)
      fine *= 2;
    Value high = gathered(constant((order + fine - 1) / fine, [&](int64_t i) { return root(i * fine, order, sign); }),
                          x.divide(power, filled(dims, fine)));
    Value low = gathered(constant(fine, [&](int64_t i) { return root(i, order, sign); }),
                         x.binary(Opcode::Remainder, power, filled(dims, fine)));
    return b.infer(Opcode::Multiply, {high, low});
  }

  Value filled(llvm::ArrayRef<int64_t> dims, int64_t value) { return x.filled(ElementType::S64, dims, double(value)); }

  Value constant(llvm::ArrayRef<int64_t> dims, llvm::function_ref<std::complex<double>(int64_t)> value) {
    Literal literal(Shape::array(ElementType::C128, dims));
    for (int64_t i = 0; i < literal.numElements(); ++i)
      literal.setComplex(i, value(i));
    return x.builder().constant(std::move(literal));
  }

  Value gathered(Value table, Value indices) {
    HloBuilder &b = x.builder();
    return b.infer(Opcode::Gather, {table, indices},
                   {b.ints(AttributeKey::OffsetDims, {}), b.ints(AttributeKey::CollapsedSliceDims, int64_t(0)),
                    b.ints(AttributeKey::StartIndexMap, int64_t(0)),
                    Attribute{AttributeKey::IndexVectorDim, int64_t(indices->shape().rank())},
                    b.ints(AttributeKey::SliceSizes, int64_t(1))});
  }

  Expansion &x;
  int sign;
};

/// As [before, dimension, after].
Value aroundDimension(Expansion &x, Value values, unsigned dim) {
  llvm::ArrayRef<int64_t> dims = values->shape().dims();
  int64_t before = 1, after = 1;
  for (auto [i, size] : llvm::enumerate(dims))
    (i < dim ? before : after) *= i == dim ? 1 : size;
  return x.reshape(values, {before, dims[dim], after});
}

/// All n of [before, n / 2 + 1, after]: the others are the conjugates of those; those that are their own are real.
Value completed(Expansion &x, Value half, int64_t n) {
  HloBuilder &b = x.builder();
  llvm::ArrayRef<int64_t> dims = half->shape().dims();
  Value imaginary = x.unary(Opcode::Imag, half), index = x.iota(ElementType::S64, dims, 1);
  auto isAt = [&](int64_t place) { return b.compare(ComparisonDirection::Eq, index, x.like(index, double(place))); };
  Value isReal = n % 2 == 0 ? x.binary(Opcode::Or, isAt(0), isAt(n / 2)) : isAt(0);
  half = x.binary(Opcode::Complex, x.unary(Opcode::Real, half), x.select(isReal, x.like(imaginary, 0), imaginary));
  int64_t mirrored = n - (n / 2 + 1);
  if (mirrored <= 0)
    return x.range(half, 1, 0, n);
  Value rest =
      b.infer(Opcode::Reverse, {x.range(half, 1, 1, 1 + mirrored)}, {b.ints(AttributeKey::Dimensions, int64_t(1))});
  return b.concatenate({half, x.conjugate(rest)}, 1);
}

HloInstruction *expandFft(HloInstruction &instr, HloRewriter &rewriter) {
  Expansion x(rewriter.builder(), instr);
  if (instr.shape().numElements() == 0 || instr.operand(0)->shape().numElements() == 0)
    return x.zeros(instr.shape());
  auto type = instr.enumOr(AttributeKey::FftType, FftType::Fft);
  llvm::ArrayRef<int64_t> lengths = instr.ints(AttributeKey::FftLength);
  bool inverse = type == FftType::Ifft || type == FftType::Irfft;
  Value values = x.builder().convert(x.plain(instr.operand(0)), ElementType::C128);
  Dims dims(values->shape().dims());
  unsigned last = unsigned(dims.size()) - 1, first = unsigned(dims.size() - lengths.size());
  Transform transform(x, inverse);
  auto transformAlong = [&](unsigned dim) {
    Value parts = aroundDimension(x, values, dim);
    if (type == FftType::Irfft && dim == last)
      parts = completed(x, parts, lengths.back());
    parts = transform.along(parts);
    if (type == FftType::Rfft && dim == last)
      parts = x.range(parts, 1, 0, lengths.back() / 2 + 1);
    dims[dim] = parts->shape().dim(1);
    values = x.reshape(parts, dims);
  };
  if (type == FftType::Rfft) // the other half of a real transform is the conjugate of this one
    transformAlong(last);
  for (unsigned dim = first; dim < last; ++dim)
    transformAlong(dim);
  if (type != FftType::Rfft)
    transformAlong(last);
  double count = 1;
  for (int64_t length : lengths)
    count *= double(length);
  if (type == FftType::Irfft)
    values = x.unary(Opcode::Real, values);
  if (inverse)
    values = x.divide(values, x.like(values, count));
  return x.result(values, instr.shape());
}

constexpr RewriteRule rules[] = {{"expand-ffts", Opcode::Fft, expandFft}};

} // namespace

PassResult expandFfts(HloModule &module, HloPassContext &context) { return rewriteModule(module, rules, context); }

} // namespace hloc
