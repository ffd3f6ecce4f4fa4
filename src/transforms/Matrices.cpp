#include "Matrices.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace hloc {

using Value = Expansion::Value;

ElementType wideType(ElementType type) { return isComplex(type) ? ElementType::C128 : ElementType::F64; }
ElementType realType(ElementType type) { return isComplex(type) ? componentType(type) : type; }

Value matrices(Expansion &x, Value value) {
  llvm::ArrayRef<int64_t> dims = value->shape().dims();
  int64_t rows = dims[dims.size() - 2], columns = dims.back(), batch = 1;
  for (int64_t size : dims.drop_back(2))
    batch *= size;
  Value wide = x.builder().convert(x.plain(value), wideType(value->shape().elementType()));
  return x.reshape(wide, {batch, rows, columns});
}

Value transposed(Expansion &x, Value value) { return x.plain(x.builder().transpose(value, {0, 2, 1})); }
Value adjoint(Expansion &x, Value value) { return x.conjugate(transposed(x, value)); }

Value positions(Expansion &x, ComparisonDirection direction, llvm::ArrayRef<int64_t> dims) {
  return x.builder().compare(direction, x.iota(ElementType::S32, dims, 1), x.iota(ElementType::S32, dims, 2));
}

Value identities(Expansion &x, ElementType type, llvm::ArrayRef<int64_t> dims) {
  return x.select(positions(x, ComparisonDirection::Eq, dims), x.filled(type, dims, 1), x.filled(type, dims, 0));
}

Value diagonal(Expansion &x, Value matrices, int64_t first, int64_t count) {
  llvm::ArrayRef<int64_t> dims = matrices->shape().dims();
  const int64_t batch = dims[0], columns = dims[2];
  Value flat = x.reshape(matrices, {batch, dims[1] * columns});
  return x.builder().slice(
      flat, {SliceDim{0, batch, 1}, SliceDim{first, first + (count - 1) * (columns + 1) + 1, columns + 1}});
}

Value realPart(Expansion &x, Value value) {
  return isComplex(value->shape().elementType()) ? x.unary(Opcode::Real, value) : value;
}

Value squared(Expansion &x, Value value) {
  if (!isComplex(value->shape().elementType()))
    return x.multiply(value, value);
  Value real = x.unary(Opcode::Real, value), imaginary = x.unary(Opcode::Imag, value);
  return x.add(x.multiply(real, real), x.multiply(imaginary, imaginary));
}

Value asType(Expansion &x, Value real, ElementType type) {
  return isComplex(type) ? x.binary(Opcode::Complex, real, x.like(real, 0)) : real;
}

Value along(Expansion &x, Value value, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> places) {
  return x.builder().broadcast(value, Shape::array(value->shape().elementType(), dims), places);
}

Value reduced(Expansion &x, Opcode opcode, Value value, llvm::ArrayRef<int64_t> dims) {
  const ElementType type = value->shape().elementType();
  const double first = opcode == Opcode::Maximum ? -std::numeric_limits<double>::infinity() : 0;
  return x.builder().reduce(value, x.scalar(type, first), dims, x.reducer(opcode, type));
}

Value compared(Expansion &x, ComparisonDirection direction, Value value, double number) {
  return x.builder().compare(direction, value, x.like(value, number));
}

Value padded(Expansion &x, Value value, unsigned dimension, int64_t size) {
  llvm::SmallVector<int64_t> dims(value->shape().dims());
  if (dims[dimension] == size)
    return value;
  dims[dimension] = size - dims[dimension];
  return x.builder().concatenate({value, x.filled(value->shape().elementType(), dims, 0)}, dimension);
}

Value picked(Expansion &x, Value array, Value index) {
  llvm::SmallVector<int64_t> sizes(array->shape().dims());
  const int64_t batch = sizes[0];
  llvm::SmallVector<int64_t> rest(llvm::ArrayRef(sizes).drop_front(2)), offsets;
  rest.insert(rest.begin(), batch);
  if (batch == 1)
    return x.reshape(x.at(array, 1, x.reshape(index, {})), rest);
  HloBuilder &b = x.builder();
  Value number = x.iota(ElementType::S32, {batch, 1}, 0);
  Value starts = b.concatenate({number, x.reshape(index, {batch, 1})}, 1);
  sizes[0] = sizes[1] = 1;
  for (size_t i = 1; i < rest.size(); ++i)
    offsets.push_back(int64_t(i));
  return b.infer(Opcode::Gather, {array, starts},
                 {b.ints(AttributeKey::OffsetDims, offsets), b.ints(AttributeKey::CollapsedSliceDims, {0, 1}),
                  b.ints(AttributeKey::StartIndexMap, {0, 1}), Attribute{AttributeKey::IndexVectorDim, int64_t(1)},
                  b.ints(AttributeKey::SliceSizes, sizes)});
}

Value ordered(Expansion &x, Value rows, Value order) {
  HloBuilder &b = x.builder();
  llvm::ArrayRef<int64_t> dims = rows->shape().dims();
  const int64_t batch = dims[0], count = order->shape().dim(1);
  Value number = x.iota(ElementType::S32, {batch, count, 1}, 0);
  Value starts = b.concatenate({number, x.reshape(order, {batch, count, 1})}, 2);
  return b.infer(Opcode::Gather, {rows, starts},
                 {b.ints(AttributeKey::OffsetDims, {2}), b.ints(AttributeKey::CollapsedSliceDims, {0, 1}),
                  b.ints(AttributeKey::StartIndexMap, {0, 1}), Attribute{AttributeKey::IndexVectorDim, int64_t(2)},
                  b.ints(AttributeKey::SliceSizes, {1, 1, dims[2]})});
}

Scaled scaled(Expansion &x, Value matrices, bool mayOverflow) {
  if (!mayOverflow)
    return {matrices, nullptr};
  Value size = x.unary(Opcode::Abs, realPart(x, matrices));
  if (isComplex(matrices->shape().elementType()))
    size = x.binary(Opcode::Maximum, size, x.unary(Opcode::Abs, x.unary(Opcode::Imag, matrices)));
  Value largest = reduced(x, Opcode::Maximum, size, {1, 2});
  Value isFar = x.binary(Opcode::Or, compared(x, ComparisonDirection::Gt, largest, 1e100),
                         x.binary(Opcode::And, compared(x, ComparisonDirection::Lt, largest, 1e-100),
                                  compared(x, ComparisonDirection::Gt, largest, 0)));
  isFar = x.binary(Opcode::And, isFar,
                   compared(x, ComparisonDirection::Lt, largest, std::numeric_limits<double>::infinity()));
  Value scale = x.select(isFar, largest, x.like(largest, 1));
  Value divisor = along(x, asType(x, scale, matrices->shape().elementType()), matrices->shape().dims(), {0});
  return {x.divide(matrices, divisor), scale};
}

Value unscaled(Expansion &x, Value value, const Scaled &by) {
  if (!by.scale)
    return value;
  Value factor = asType(x, by.scale, value->shape().elementType());
  return x.multiply(value, along(x, factor, value->shape().dims(), {0}));
}

Value areFinite(Expansion &x, Value matrices) {
  const double infinity = std::numeric_limits<double>::infinity();
  auto below = [&](Value part) { return compared(x, ComparisonDirection::Lt, x.unary(Opcode::Abs, part), infinity); };
  Value isNumber = below(realPart(x, matrices));
  if (isComplex(matrices->shape().elementType()))
    isNumber = x.binary(Opcode::And, isNumber, below(x.unary(Opcode::Imag, matrices)));
  return x.unary(Opcode::Not, reduced(x, Opcode::Or, x.unary(Opcode::Not, isNumber), {1, 2}));
}

} // namespace hloc
