// Eigenvalues and eigenvectors of Hermitian matrices by Jacobi's method: rotations that make pairs of columns
// orthogonal, in sweeps over all pairs, until nothing is left beside the diagonal.

#include "Jacobi.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

using Value = Expansion::Value;
using Values = Expansion::Values;

namespace {

/// Convergence is quadratic at the end: six to ten sweeps do. NaN ends it at once.
constexpr int64_t maxSweeps = 30;

/// The whole matrices of which one triangle is given.
Value hermitian(Expansion &x, Value a, bool lower) {
  llvm::ArrayRef<int64_t> dims = a->shape().dims();
  const ElementType type = a->shape().elementType();
  using enum ComparisonDirection;
  Value whole = x.select(positions(x, lower ? Ge : Le, dims), a, adjoint(x, a));
  if (isComplex(type))
    whole = x.select(positions(x, Eq, dims), asType(x, realPart(x, a), type), whole);
  return whole;
}

/// pred[]: is there something beside the diagonals?
Value isFull(Expansion &x, Value a, double tolerance) {
  Value squares = squared(x, a);
  Value beside = x.select(positions(x, ComparisonDirection::Eq, a->shape().dims()), x.like(squares, 0), squares);
  Value rest = reduced(x, Opcode::Add, beside, {1, 2}), all = reduced(x, Opcode::Add, squares, {1, 2});
  Value isMore =
      x.builder().compare(ComparisonDirection::Gt, rest, x.multiply(all, x.like(all, tolerance * tolerance)));
  return reduced(x, Opcode::Or, isMore, {0});
}

/// One round: rotations of all pairs, and the next pairs. The vectors follow as rows.
Values turn(Expansion &x, Value a, Value vectors) {
  const int64_t size = a->shape().dim(1), half = size / 2;
  Value p = realPart(x, diagonal(x, a, 0, half)), q = realPart(x, diagonal(x, a, half * (size + 1), half));
  Rotation by = rotation(x, p, q, diagonal(x, a, half, half));
  Value next = rotated(x, rotated(x, a, 1, by, /*conjugated=*/true), 2, by, /*conjugated=*/false);
  Values made = {next};
  if (vectors)
    made.push_back(rotated(x, vectors, 1, by, /*conjugated=*/false));
  return made;
}

} // namespace

Spectrum eigenvalues(Expansion &x, Value a, bool lower, bool wantsVectors, bool isNarrow) {
  const ElementType type = a->shape().elementType();
  const int64_t batch = a->shape().dim(0), n = a->shape().dim(1), size = evenSize(n);
  const double tolerance = isNarrow ? 1e-12 : 0x1p-53;
  Value given = hermitian(x, a, lower), isNumber = areFinite(x, given);
  Scaled start = scaled(x, given, !isNarrow);
  Value matrix = padded(x, padded(x, start.matrices, 1, size), 2, size);
  Values state = {isFull(x, matrix, tolerance), matrix};
  if (wantsVectors)
    state.push_back(identities(x, type, {batch, size, size}));
  auto sweep = [&](Expansion &x, Value, llvm::ArrayRef<Value> state) -> Values {
    Values made = x.repeat(size - 1, state.drop_front(), "rotations",
                           [&](Expansion &x, Value, llvm::ArrayRef<Value> state) -> Values {
                             return turn(x, state[0], wantsVectors ? state[1] : nullptr);
                           });
    made.insert(made.begin(), isFull(x, made[0], tolerance));
    return made;
  };
  Values last = x.repeatWhile(maxSweeps, state, "sweeps", sweep);
  Value values = x.range(realPart(x, diagonal(x, last[1], 0, size)), 1, 0, n);
  values = unscaled(x, values, start);
  HloBuilder &b = x.builder();
  Value sorted = b.add(Opcode::TopK, Shape::tuple({values->shape(), values->shape().withElementType(ElementType::S32)}),
                       {values}, {{AttributeKey::K, n}, {AttributeKey::Largest, false}});
  Value vectors = nullptr;
  if (wantsVectors) {
    Value rows = x.range(x.range(last[2], 1, 0, n), 2, 0, n);
    vectors = transposed(x, ordered(x, rows, b.tupleElement(sorted, 1)));
  }
  Value one = x.filled(ElementType::S32, {batch}, 1);
  return {b.tupleElement(sorted, 0), vectors, x.select(isNumber, x.like(one, 0), one)};
}

} // namespace hloc
