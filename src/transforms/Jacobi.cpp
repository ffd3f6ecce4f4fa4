#include "Jacobi.h"

namespace hloc {

using Value = Expansion::Value;

Rotation rotation(Expansion &x, Value p, Value q, Value meeting) {
  const ElementType type = meeting->shape().elementType();
  Value size = isComplex(type) ? x.unary(Opcode::Sqrt, squared(x, meeting)) : meeting;
  // The smaller root t of t^2 + 2 theta t = 1. Where nothing meets, nothing turns.
  Value isNone = compared(x, ComparisonDirection::Eq, size, 0);
  Value divisor = x.select(isNone, x.like(size, 1), size);
  Value theta = x.divide(x.multiply(x.subtract(q, p), x.like(p, 0.5)), divisor);
  Value square = x.add(x.multiply(theta, theta), x.like(theta, 1));
  Value slope = x.divide(x.like(theta, 1), x.add(x.unary(Opcode::Abs, theta), x.unary(Opcode::Sqrt, square)));
  slope = x.select(compared(x, ComparisonDirection::Lt, theta, 0), x.unary(Opcode::Negate, slope), slope);
  slope = x.select(isNone, x.like(slope, 0), slope);
  Value one = x.like(slope, 1);
  Value cosine = x.divide(one, x.unary(Opcode::Sqrt, x.add(x.multiply(slope, slope), one)));
  Value sine = x.multiply(slope, cosine);
  if (isComplex(type)) {
    Value part = x.divide(sine, divisor);
    sine = x.binary(Opcode::Complex, x.multiply(part, x.unary(Opcode::Real, meeting)),
                    x.multiply(part, x.unary(Opcode::Imag, meeting)));
  }
  return {cosine, sine};
}

Value rotated(Expansion &x, Value matrices, unsigned dimension, const Rotation &by, bool conjugated) {
  const ElementType type = matrices->shape().elementType();
  const int64_t size = matrices->shape().dim(dimension), half = size / 2;
  Value p = x.range(matrices, dimension, 0, half), q = x.range(matrices, dimension, half, size);
  llvm::SmallVector<int64_t, 3> dims(p->shape().dims());
  auto everywhere = [&](Value value) { return along(x, value, dims, {0, dimension}); };
  Value cosine = everywhere(asType(x, by.cosine, type));
  Value sine = everywhere(conjugated ? x.conjugate(by.sine) : by.sine);
  Value opposite = everywhere(conjugated ? by.sine : x.conjugate(by.sine));
  Value first = x.subtract(x.multiply(cosine, p), x.multiply(opposite, q));
  Value second = x.add(x.multiply(sine, p), x.multiply(cosine, q));
  llvm::SmallVector<Value> parts = {first, second};
  if (half > 1) {
    parts = {x.range(first, dimension, 0, 1), x.range(second, dimension, 0, 1)};
    if (half > 2)
      parts.push_back(x.range(first, dimension, 1, half - 1));
    parts.push_back(x.range(second, dimension, 1, half));
    parts.push_back(x.range(first, dimension, half - 1, half));
  }
  return x.builder().concatenate(parts, dimension);
}

} // namespace hloc
