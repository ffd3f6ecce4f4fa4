// Householder's QR, a column a round, and products with its Q. With LAPACK's signs: the diagonal of R is real and has
// the sign that the column's head has not.

#include "Matrices.h"

namespace hloc {

using Value = Expansion::Value;
using Values = Expansion::Values;

namespace {

/// One reflector, of column j.
struct Reflector {
  Value below;     ///< [batch, m]: the column behind row j, zero elsewhere
  Value scale;     ///< [batch]: what `below` is multiplied by
  Value tau, beta; ///< [batch]; R's element, real
};

/// LAPACK's larfg. `rest` is the sum of squares of what is below the head.
Reflector reflector(Expansion &x, Value below, Value head, Value rest) {
  const ElementType type = head->shape().elementType();
  Value real = realPart(x, head);
  Value norm = x.unary(Opcode::Sqrt, x.add(squared(x, head), rest));
  Value isNegative = compared(x, ComparisonDirection::Lt, real, 0);
  Value isFlat = compared(x, ComparisonDirection::Eq, rest, 0);
  Value imaginary = isComplex(type) ? x.unary(Opcode::Imag, head) : nullptr;
  if (imaginary)
    isFlat = x.binary(Opcode::And, isFlat, compared(x, ComparisonDirection::Eq, imaginary, 0));
  Value beta = x.select(isNegative, norm, x.unary(Opcode::Negate, norm));
  Value divisor = x.select(isFlat, x.like(beta, 1), beta);
  Value tau = x.divide(x.subtract(beta, real), divisor);
  if (imaginary)
    tau = x.binary(Opcode::Complex, tau, x.divide(x.unary(Opcode::Negate, imaginary), divisor));
  Value difference = x.subtract(head, asType(x, beta, type));
  Value scale = x.divide(x.like(head, 1), x.select(isFlat, x.like(head, 1), difference));
  return {below, x.select(isFlat, x.like(scale, 0), scale), x.select(isFlat, x.like(tau, 0), tau),
          x.select(isFlat, real, beta)};
}

/// pred of `dims`: has the dimension's number this relation to j?
Value isAt(Expansion &x, ComparisonDirection direction, llvm::ArrayRef<int64_t> dims, int64_t dimension, Value j) {
  return x.builder().compare(direction, x.iota(ElementType::S32, dims, dimension), x.spread(j, dims));
}

} // namespace

Reflectors qrFactors(Expansion &x, Value a) {
  llvm::SmallVector<int64_t, 3> dims(a->shape().dims());
  const int64_t batch = dims[0], m = dims[1], n = dims[2], count = std::min(m, n);
  const ElementType type = a->shape().elementType();
  using enum ComparisonDirection;
  auto round = [&](Expansion &x, Value j, llvm::ArrayRef<Value> state) -> Values {
    Value a = state[0], taus = state[1];
    Value column = x.reshape(x.at(a, 2, j), {batch, m});
    Value below = x.select(isAt(x, Gt, {batch, m}, 1, j), column, x.like(column, 0));
    // What is below the head times all columns: its own square, and what the reflector takes from the others.
    Value products = x.dot(x.conjugate(below), a, 0, 0, 1, 1);
    Value head = x.reshape(x.at(column, 1, j), {batch});
    Reflector r = reflector(x, below, head, realPart(x, x.reshape(x.at(products, 1, j), {batch})));
    Value row = x.reshape(x.at(a, 1, j), {batch, n});
    Value taken = x.add(row, x.multiply(along(x, x.conjugate(r.scale), {batch, n}, {0}), products));
    taken = x.multiply(along(x, x.conjugate(r.tau), {batch, n}, {0}), taken);
    Value vector = x.multiply(below, along(x, r.scale, {batch, m}, {0}));
    Value isHead = isAt(x, Eq, {batch, m}, 1, j);
    Value whole = x.select(isHead, x.like(vector, 1), vector);
    Value made = x.select(isHead, along(x, asType(x, r.beta, type), {batch, m}, {0}), vector);
    Value rest = x.subtract(a, x.multiply(along(x, whole, dims, {0, 1}), along(x, taken, dims, {0, 2})));
    Value own = x.select(isAt(x, Ge, dims, 1, j), along(x, made, dims, {0, 1}), a);
    Value next = x.select(isAt(x, Gt, dims, 2, j), rest, x.select(isAt(x, Eq, dims, 2, j), own, a));
    return {next, x.withAt(taus, x.reshape(r.tau, {batch, 1}), 1, j)};
  };
  Values made = {a, x.filled(type, {batch, count}, 0)};
  if (count > 0)
    made = x.repeat(count, made, "qr", round);
  return {made[0], made[1]};
}

Value reflected(Expansion &x, const Reflectors &q, Value c, ReflectorOrder order) {
  const int64_t batch = c->shape().dim(0), m = c->shape().dim(1), count = q.taus->shape().dim(1);
  llvm::SmallVector<int64_t, 3> dims(c->shape().dims());
  const bool isAdjoint = order == ReflectorOrder::Adjoint;
  using enum ComparisonDirection;
  auto round = [&](Expansion &x, Value counter, llvm::ArrayRef<Value> state) -> Values {
    Value c = state[0], factors = state[1], taus = state[2];
    Value j = isAdjoint ? counter : x.subtract(x.scalar(ElementType::S32, double(count - 1)), counter);
    Value column = x.reshape(x.at(factors, 2, j), {batch, m});
    Value vector = x.select(isAt(x, Gt, {batch, m}, 1, j), column, x.like(column, 0));
    vector = x.select(isAt(x, Eq, {batch, m}, 1, j), x.like(vector, 1), vector);
    Value tau = x.reshape(x.at(taus, 1, j), {batch});
    Value products = x.dot(x.conjugate(vector), c, 0, 0, 1, 1);
    Value taken = x.multiply(along(x, isAdjoint ? x.conjugate(tau) : tau, products->shape().dims(), {0}), products);
    Value next = x.subtract(c, x.multiply(along(x, vector, dims, {0, 1}), along(x, taken, dims, {0, 2})));
    return {next, factors, taus};
  };
  return count == 0 ? c : x.repeat(count, {c, q.factors, q.taus}, "reflect", round)[0];
}

} // namespace hloc
