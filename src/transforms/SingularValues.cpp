// Singular values by one-sided Jacobi: rotations make the columns of A V orthogonal, whose lengths then are the
// singular values, and whose directions are U. QR of these columns, which are in descending order, gives directions
// also to those that have vanished, and the columns of U that belong to none.

#include "Jacobi.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace hloc {

using Value = Expansion::Value;
using Values = Expansion::Values;

namespace {

constexpr int64_t maxSweeps = 30;

/// One round on columns that lie as rows: {columns, worst[, V]}. `worst` is the largest squared cosine between two that
/// have met in this sweep. Columns of less than `least`, squared, are noise, and no angle is asked of them; pairs that
/// are as good as orthogonal do not turn, since the direction of what is left is noise as well.
Values turn(Expansion &x, Value columns, Value worst, Value vectors, Value least, double tolerance) {
  const int64_t size = columns->shape().dim(1), half = size / 2;
  Value p = x.range(columns, 1, 0, half), q = x.range(columns, 1, half, size);
  Value lengthP = reduced(x, Opcode::Add, squared(x, p), 2), lengthQ = reduced(x, Opcode::Add, squared(x, q), 2);
  Value meeting = x.dot(x.conjugate(p), q, {0, 1}, {0, 1}, 2, 2);
  Value square = squared(x, meeting), product = x.multiply(lengthP, lengthQ);
  Value shorter = x.binary(Opcode::Minimum, lengthP, lengthQ);
  Value counts = x.builder().compare(ComparisonDirection::Gt, shorter, along(x, least, shorter->shape().dims(), {0}));
  Value angle = x.divide(square, x.select(counts, product, x.like(product, 1)));
  counts = x.binary(Opcode::And, counts, compared(x, ComparisonDirection::Gt, angle, tolerance * tolerance));
  Value next = x.binary(Opcode::Maximum, worst, x.select(counts, angle, x.like(angle, 0)));
  meeting = x.select(counts, meeting, x.like(meeting, 0));
  Rotation by = rotation(x, lengthP, lengthQ, meeting);
  Values made = {rotated(x, columns, 1, by, /*conjugated=*/false), next};
  if (vectors)
    made.push_back(rotated(x, vectors, 1, by, /*conjugated=*/false));
  return made;
}

/// Columns that have been sorted, as rows -> orthogonal columns in their directions, `count` of them.
Value directions(Expansion &x, Value sorted, int64_t count) {
  Reflectors q = qrFactors(x, transposed(x, sorted));
  const int64_t batch = sorted->shape().dim(0), n = sorted->shape().dim(1), m = sorted->shape().dim(2);
  const ElementType type = sorted->shape().elementType();
  Value made = reflected(x, q, identities(x, type, {batch, m, count}), ReflectorOrder::Q);
  if (std::min(n, count) == 0)
    return made;
  Value heads = realPart(x, diagonal(x, q.factors, 0, std::min(n, count)));
  Value isNegative = compared(x, ComparisonDirection::Lt, heads, 0);
  Value signs = x.select(isNegative, x.like(heads, -1), x.like(heads, 1));
  if (count > n)
    signs = x.builder().concatenate({signs, x.filled(signs->shape().elementType(), {batch, count - n}, 1)}, 1);
  return x.multiply(made, along(x, asType(x, signs, type), made->shape().dims(), {0, 2}));
}

/// Of matrices that have no fewer rows than columns.
SingularValues ofTall(Expansion &x, Value a, bool wantsVectors, int64_t numLeft, bool isNarrow) {
  HloBuilder &b = x.builder();
  const ElementType type = a->shape().elementType(), real = realType(type);
  const int64_t batch = a->shape().dim(0), m = a->shape().dim(1), n = a->shape().dim(2), size = evenSize(n);
  const double tolerance = isNarrow ? 1e-12 : 0x1p-49 * std::sqrt(double(m));
  Value isNumber = areFinite(x, a);
  Scaled start = scaled(x, a, !isNarrow);
  Value columns = padded(x, transposed(x, start.matrices), 1, size);
  Value all = reduced(x, Opcode::Add, squared(x, columns), {1, 2});
  Value least = x.multiply(all, x.like(all, 1e-40));
  Values state = {x.scalar(ElementType::Pred, 1), least, columns};
  if (wantsVectors)
    state.push_back(identities(x, type, {batch, size, size}));
  auto sweep = [&](Expansion &x, Value, llvm::ArrayRef<Value> state) -> Values {
    Values first(state.drop_front());
    first.insert(first.begin() + 2, x.filled(real, {batch, size / 2}, 0));
    Values made = x.repeat(size - 1, first, "rotations", [&](Expansion &x, Value, llvm::ArrayRef<Value> s) -> Values {
      Values next = turn(x, s[1], s[2], wantsVectors ? s[3] : nullptr, s[0], tolerance);
      next.insert(next.begin(), s[0]);
      return next;
    });
    Value isAskew = compared(x, ComparisonDirection::Gt, made[2], tolerance * tolerance);
    made.erase(made.begin() + 2);
    made.insert(made.begin(), reduced(x, Opcode::Or, isAskew, {0, 1}));
    return made;
  };
  Values last = x.repeatWhile(maxSweeps, state, "sweeps", sweep);
  columns = x.range(last[2], 1, 0, n);
  Value lengths = x.unary(Opcode::Sqrt, reduced(x, Opcode::Add, squared(x, columns), 2));
  Value sorted =
      b.add(Opcode::TopK, Shape::tuple({lengths->shape(), lengths->shape().withElementType(ElementType::S32)}),
            {lengths}, {{AttributeKey::K, n}, {AttributeKey::Largest, true}});
  Value one = x.filled(ElementType::S32, {batch}, 1);
  SingularValues made{unscaled(x, b.tupleElement(sorted, 0), start), nullptr, nullptr,
                      x.select(isNumber, x.like(one, 0), one)};
  if (wantsVectors) {
    Value order = b.tupleElement(sorted, 1);
    made.left = directions(x, ordered(x, columns, order), numLeft);
    made.right = transposed(x, ordered(x, x.range(x.range(last[3], 1, 0, n), 2, 0, n), order));
  }
  return made;
}

} // namespace

SingularValues singularValues(Expansion &x, Value a, bool wantsVectors, int64_t numVectors, bool isNarrow) {
  if (a->shape().dim(1) >= a->shape().dim(2))
    return ofTall(x, a, wantsVectors, numVectors, isNarrow);
  SingularValues turned = ofTall(x, adjoint(x, a), wantsVectors, numVectors, isNarrow);
  std::swap(turned.left, turned.right);
  return turned;
}

} // namespace hloc
