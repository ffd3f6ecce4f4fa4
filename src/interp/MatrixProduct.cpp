#include "interp/MatrixProduct.h"

#include "interp/LaneOp.h"

#include "hloc/support/Check.h"
#include "hloc/support/WideHosts.h"

#include <algorithm>

namespace hloc::interp {

namespace {

/// Sums are held in blocks of this many columns, which stay in the first-level cache.
constexpr int64_t columnBlock = 512;

/// Adds `steps` products to each sum of four rows, one after the other. A row of `right` is read once for four of
/// `left`, and a sum once for four of its products.
template <unsigned steps, typename T>
[[gnu::always_inline]] inline void addProducts(const MatrixProduct &product, const T *left, const T *right, T *sums,
                                               int64_t height, int64_t width) {
  for (int64_t r = 0; r < height; ++r) {
    T factors[steps];
    for (unsigned s = 0; s < steps; ++s)
      factors[s] = left[r * product.depth + s];
    T *__restrict to = sums + r * product.columns;
    for (int64_t c = 0; c < width; ++c) {
      T sum = to[c];
      for (unsigned s = 0; s < steps; ++s)
        sum += factors[s] * right[s * product.columns + c];
      to[c] = sum;
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline void multiply(const MatrixProduct &product, const T *left, const T *right, T *sums) {
  constexpr int64_t rowsAtOnce = 4, stepsAtOnce = 4;
  for (int64_t row = 0; row < product.rows; row += rowsAtOnce) {
    const int64_t height = std::min(rowsAtOnce, product.rows - row);
    for (int64_t column = 0; column < product.columns; column += columnBlock) {
      const int64_t width = std::min(columnBlock, product.columns - column);
      const T *factors = left + row * product.depth, *from = right + column;
      T *to = sums + row * product.columns + column;
      int64_t k = 0;
      for (; k + stepsAtOnce <= product.depth; k += stepsAtOnce)
        addProducts<stepsAtOnce>(product, factors + k, from + k * product.columns, to, height, width);
      for (; k < product.depth; ++k)
        addProducts<1>(product, factors + k, from + k * product.columns, to, height, width);
    }
  }
}

/// Products and sums are rounded by themselves on every host: this layer is compiled without contraction.
HLOC_FOR_WIDE_HOSTS void multiplyDoubles(const MatrixProduct &product, const double *left, const double *right,
                                         double *sums) {
  multiply(product, left, right, sums);
}

template <typename T>
void runAs(const MatrixProduct &product, const uint8_t *left, const uint8_t *right, uint8_t *sums) {
  auto *a = reinterpret_cast<const T *>(left), *b = reinterpret_cast<const T *>(right);
  auto *c = reinterpret_cast<T *>(sums);
  if constexpr (std::is_same_v<T, double>)
    multiplyDoubles(product, a, b, c);
  else
    multiply(product, a, b, c);
}

/// Null if nothing is to be done.
Kernel conversion(ElementType from, ElementType to) { return from == to ? nullptr : convertKernel(from, to); }

/// Leaves numbers as they are.
struct FinishSum {
  template <RealLane T> static T apply(T x) { return x; }
  template <ComplexLane T> static T apply(T x) { return x; }
};

} // namespace

ElementType sumType(ElementType result) {
  switch (computeType(result)) {
  case ComputeType::Bool:
  case ComputeType::Signed:
  case ComputeType::Unsigned:
    return ElementType::U64; // signed sums wrap the same way
  case ComputeType::Single:
  case ComputeType::Double:
    return ElementType::F64;
  case ComputeType::ComplexSingle:
  case ComputeType::ComplexDouble:
    return ElementType::C128;
  }
  HLOC_UNREACHABLE("compute type out of range");
}

bool isProductDefined(ElementType operand, ElementType result) {
  return isArrayType(operand) && isArrayType(result) && (operand == result || convertKernel(operand, result));
}

Literal widened(const Literal &operand, ElementType result) {
  ElementType from = operand.shape().elementType(), to = sumType(result);
  Literal made(Shape::array(to, operand.shape().dims()));
  Kernel first = conversion(from, result), second = conversion(result, to);
  Round round = roundFunction(result);
  LaneBuffer loaded, typed;
  for (int64_t start = 0; start < operand.numElements(); start += maxLanes) {
    Lanes lanes;
    lanes.count = std::min(maxLanes, operand.numElements() - start);
    lanes.bits = bitWidth(result);
    loadFunction(from)(operand.bytes().data() + start * hostBytes(from), loaded.bytes, lanes.count);
    lanes.operands[0] = loaded.bytes;
    if (first) {
      lanes.result = typed.bytes;
      first(lanes);
      if (round)
        round(typed.bytes, lanes.count);
      lanes.operands[0] = typed.bytes;
    }
    // Sum types are native: their lanes are their elements.
    uint8_t *target = made.mutableBytes().data() + start * hostBytes(to);
    lanes.result = target;
    lanes.bits = 64;
    if (second)
      second(lanes);
    else
      storeFunction(to)(lanes.operands[0], target, lanes.count);
  }
  return made;
}

void roundInto(const Literal &sums, Literal &result, int64_t start) {
  ElementType from = sums.shape().elementType(), to = result.shape().elementType();
  Kernel convert = from == to ? unaryKernelOf<FinishSum>(computeType(to)) : convertKernel(from, to);
  LaneBuffer converted;
  for (int64_t done = 0; done < sums.numElements(); done += maxLanes) {
    Lanes lanes;
    lanes.count = std::min(maxLanes, sums.numElements() - done);
    lanes.operands[0] = sums.bytes().data() + done * hostBytes(from);
    lanes.bits = 64; // integers wrap when stored
    lanes.result = converted.bytes;
    if (convert)
      convert(lanes);
    storeFunction(to)(convert ? converted.bytes : lanes.operands[0],
                      result.mutableBytes().data() + (start + done) * hostBytes(to), lanes.count);
  }
}

void MatrixProduct::run(ElementType sumType, const uint8_t *left, const uint8_t *right, uint8_t *sums) const {
  if (sumType == ElementType::U64)
    runAs<uint64_t>(*this, left, right, sums);
  else if (sumType == ElementType::F64)
    runAs<double>(*this, left, right, sums);
  else
    runAs<std::complex<double>>(*this, left, right, sums);
}

} // namespace hloc::interp
