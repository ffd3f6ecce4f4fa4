#include "interp/MatrixProduct.h"

#include "interp/LaneOp.h"

#include <algorithm>
#include <vector>

namespace hloc::interp {

namespace {

/// Sums are held in a block of this many columns, which stays in the first-level cache.
constexpr int64_t columnBlock = 512;

template <typename T>
void multiply(const T *left, const T *right, int64_t rows, int64_t columns, int64_t depth, T *sums) {
  // Four rows at a time, so that a row of `right` is read once for four of `left`.
  for (int64_t row = 0; row < rows; row += 4) {
    int64_t height = std::min<int64_t>(4, rows - row);
    for (int64_t column = 0; column < columns; column += columnBlock) {
      int64_t width = std::min(columnBlock, columns - column);
      for (int64_t k = 0; k < depth; ++k) {
        const T *from = right + k * columns + column;
        for (int64_t r = 0; r < height; ++r) {
          T factor = left[(row + r) * depth + k];
          T *__restrict to = sums + (row + r) * columns + column;
          for (int64_t c = 0; c < width; ++c)
            to[c] += factor * from[c];
        }
      }
    }
  }
}

template <typename T>
void runAs(const MatrixProduct &product, llvm::ArrayRef<uint8_t> left, llvm::ArrayRef<uint8_t> right, Literal &result,
           int64_t resultStart) {
  std::vector<T> sums(size_t(product.rows * product.columns));
  multiply(reinterpret_cast<const T *>(left.data()), reinterpret_cast<const T *>(right.data()), product.rows,
           product.columns, product.depth, sums.data());
  ElementType sum = sumType(product.type);
  Kernel convert = convertKernel(sum, product.type);
  LaneBuffer converted;
  for (int64_t start = 0; start < int64_t(sums.size()); start += maxLanes) {
    Lanes lanes;
    lanes.operands[0] = sums.data() + start;
    lanes.result = converted.bytes;
    lanes.count = std::min<int64_t>(maxLanes, int64_t(sums.size()) - start);
    lanes.bits = 64; // integers wrap when stored
    convert(lanes);
    storeFunction(product.type)(
        converted.bytes, result.mutableBytes().data() + (resultStart + start) * hostBytes(product.type), lanes.count);
  }
}

} // namespace

ElementType sumType(ElementType result) {
  switch (computeType(result)) {
  case ComputeType::Bool:
  case ComputeType::Signed:
  case ComputeType::Unsigned:
    return ElementType::U64; // wraps the same way
  case ComputeType::Single:
  case ComputeType::Double:
    return ElementType::F64;
  case ComputeType::ComplexSingle:
  case ComputeType::ComplexDouble:
    return ElementType::C128;
  }
  __builtin_unreachable();
}

bool MatrixProduct::supports(ElementType operand, ElementType result) {
  return isArrayType(operand) && isArrayType(result) && (operand == result || convertKernel(operand, result));
}

std::vector<uint8_t> factors(const Literal &literal, int64_t start, int64_t count, ElementType result) {
  ElementType from = literal.shape().elementType(), to = sumType(result);
  unsigned width = hostBytes(to);
  std::vector<uint8_t> made(size_t(count) * width);
  Kernel first = from == result ? nullptr : convertKernel(from, result), second = convertKernel(result, to);
  Round round = roundFunction(result);
  LaneBuffer loaded, typed;
  for (int64_t done = 0; done < count; done += maxLanes) {
    Lanes lanes;
    lanes.count = std::min(maxLanes, count - done);
    lanes.bits = bitWidth(result);
    loadFunction(from)(literal.bytes().data() + (start + done) * hostBytes(from), loaded.bytes, lanes.count);
    lanes.operands[0] = loaded.bytes;
    if (first) {
      lanes.result = typed.bytes;
      first(lanes);
      if (round)
        round(typed.bytes, lanes.count);
      lanes.operands[0] = typed.bytes;
    }
    lanes.bits = 64;
    lanes.result = made.data() + size_t(done) * width; // sum types are native: lanes are elements
    second(lanes);
  }
  return made;
}

void MatrixProduct::run(const Literal &left, int64_t leftStart, const Literal &right, int64_t rightStart,
                        Literal &result, int64_t resultStart) const {
  std::vector<uint8_t> a = factors(left, leftStart, rows * depth, type);
  std::vector<uint8_t> b = factors(right, rightStart, depth * columns, type);
  if (sumType(type) == ElementType::U64)
    runAs<uint64_t>(*this, a, b, result, resultStart);
  else if (sumType(type) == ElementType::F64)
    runAs<double>(*this, a, b, result, resultStart);
  else
    runAs<std::complex<double>>(*this, a, b, result, resultStart);
}

} // namespace hloc::interp
