// Systems of equations of three diagonals, by elimination with partial pivoting, a row a round. What is left of a row
// has at most two elements of the matrix when the next one comes; of these two the one with the larger head becomes a
// row of the triangle, of three diagonals, and its multiple is taken from the other.

#include "Matrices.h"

namespace hloc {

using Value = Expansion::Value;
using Values = Expansion::Values;

namespace {

/// The head of a row, the two elements behind it, and its right sides.
struct Row {
  Value head, second, third; ///< [batch]
  Value right;               ///< [batch, r]
};

/// [batch] at every right side.
Value atAll(Expansion &x, Value value, Value right) { return along(x, value, right->shape().dims(), {0}); }

Row select(Expansion &x, Value which, const Row &a, const Row &b) {
  return {x.select(which, a.head, b.head), x.select(which, a.second, b.second), x.select(which, a.third, b.third),
          x.select(atAll(x, which, a.right), a.right, b.right)};
}

/// Of the triangle: [batch].
Value firstZero(Expansion &x, Value heads) {
  llvm::ArrayRef<int64_t> dims = heads->shape().dims();
  Value behind = x.subtract(x.filled(ElementType::S32, dims, double(dims[1])), x.iota(ElementType::S32, dims, 1));
  Value isZero = compared(x, ComparisonDirection::Eq, heads, 0);
  Value most = x.builder().reduce(x.select(isZero, behind, x.like(behind, 0)), x.scalar(ElementType::S32, 0), {1},
                                  x.reducer(Opcode::Maximum, ElementType::S32));
  Value number = x.subtract(x.like(most, double(dims[1] + 1)), most);
  return x.select(compared(x, ComparisonDirection::Gt, most, 0), number, x.like(most, 0));
}

} // namespace

TridiagonalSolution tridiagonalSolution(Expansion &x, const Tridiagonal &a, Value right) {
  const int64_t batch = right->shape().dim(0), n = right->shape().dim(1), sides = right->shape().dim(2);
  auto one = [](Expansion &x, int64_t number) { return x.scalar(ElementType::S32, double(number)); };
  auto element = [&](Expansion &x, Value vector, Value i) { return x.reshape(x.at(vector, 1, i), {batch}); };
  auto sidesOf = [&](Expansion &x, Value all, Value i) { return x.reshape(x.at(all, 1, i), {batch, sides}); };
  auto put = [&](Expansion &x, Value vector, Value i, Value value) {
    return x.withAt(vector, x.reshape(value, {batch, 1}), 1, i);
  };
  auto putSides = [&](Expansion &x, Value all, Value i, Value value) {
    return x.withAt(all, x.reshape(value, {batch, 1, sides}), 1, i);
  };
  Value first = one(x, 0);
  // What is left of a row, the matrix and its right sides, and those of the triangle.
  auto eliminate = [&](Expansion &x, Value i, llvm::ArrayRef<Value> s) -> Values {
    Value next = x.add(i, one(x, 1));
    Row left = {s[0], s[1], x.like(s[0], 0), s[2]};
    Row other = {element(x, s[3], next), element(x, s[4], next), element(x, s[5], next), sidesOf(x, s[6], next)};
    Value isOther = x.builder().compare(ComparisonDirection::Gt, sizeOf(x, other.head), sizeOf(x, left.head));
    const Row pivot = select(x, isOther, other, left), rest = select(x, isOther, left, other);
    Value factor = x.divide(rest.head, pivot.head);
    auto without = [&](Value of, Value by) { return x.subtract(of, x.multiply(factor, by)); };
    Value sidesLeft = x.subtract(rest.right, x.multiply(atAll(x, factor, pivot.right), pivot.right));
    return {without(rest.second, pivot.second),
            without(rest.third, pivot.third),
            sidesLeft,
            s[3],
            s[4],
            s[5],
            s[6],
            put(x, s[7], i, pivot.head),
            put(x, s[8], i, pivot.second),
            put(x, s[9], i, pivot.third),
            putSides(x, s[10], i, pivot.right)};
  };
  Value none = x.like(a.diagonal, 0), noSides = x.like(right, 0);
  Values state = {element(x, a.diagonal, first),
                  element(x, a.upper, first),
                  sidesOf(x, right, first),
                  a.lower,
                  a.diagonal,
                  a.upper,
                  right,
                  none,
                  none,
                  none,
                  noSides};
  if (n > 1)
    state = x.repeat(n - 1, state, "tridiagonal", eliminate);
  // (Behind the last row's head there is nothing, nor is there anything in the triangle.)
  Value last = one(x, n - 1), heads = put(x, state[7], last, state[0]), rights = putSides(x, state[10], last, state[2]);
  // From the last row on: what the two behind it are, all that are solved, and the triangle.
  auto substitute = [&](Expansion &x, Value counter, llvm::ArrayRef<Value> s) -> Values {
    Value i = x.subtract(one(x, n - 1), counter);
    auto times = [&](Value vector, Value solution) {
      return x.multiply(atAll(x, element(x, vector, i), solution), solution);
    };
    Value rest = x.subtract(x.subtract(sidesOf(x, s[3], i), times(s[5], s[0])), times(s[6], s[1]));
    Value solved = x.divide(rest, atAll(x, element(x, s[4], i), rest));
    return {solved, s[0], putSides(x, s[2], i, solved), s[3], s[4], s[5], s[6]};
  };
  Value nothing = x.filled(right->shape().elementType(), {batch, sides}, 0);
  state = x.repeat(n, {nothing, nothing, noSides, rights, heads, state[8], state[9]}, "substitution", substitute);
  return {state[2], firstZero(x, heads)};
}

} // namespace hloc
