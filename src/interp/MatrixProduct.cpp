#include "interp/MatrixProduct.h"

#include "interp/LaneOp.h"

#include "hloc/support/Check.h"

#include <algorithm>

namespace hloc::interp {

namespace {

/// Sums are held in blocks of this many columns, which stay in the first-level cache.
constexpr int64_t columnBlock = 512;

template <typename T> void multiply(const MatrixProduct &product, const T *left, const T *right, T *sums) {
  // Four rows at a time, so that a row of `right` is read once for four of `left`.
  for (int64_t row = 0; row < product.rows; row += 4) {
    int64_t height = std::min<int64_t>(4, product.rows - row);
    for (int64_t column = 0; column < product.columns; column += columnBlock) {
      int64_t width = std::min(columnBlock, product.columns - column);
      for (int64_t k = 0; k < product.depth; ++k) {
        const T *from = right + k * product.columns + column;
        for (int64_t r = 0; r < height; ++r) {
          T factor = left[(row + r) * product.depth + k];
          T *__restrict to = sums + (row + r) * product.columns + column;
          for (int64_t c = 0; c < width; ++c)
            to[c] += factor * from[c];
        }
      }
    }
  }
}

template <typename T>
void runAs(const MatrixProduct &product, const uint8_t *left, const uint8_t *right, uint8_t *sums) {
  multiply(product, reinterpret_cast<const T *>(left), reinterpret_cast<const T *>(right), reinterpret_cast<T *>(sums));
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
