// LU with partial pivoting, a column a round: the largest element on or below the diagonal is found, its row changes
// places with the diagonal's, and what the column has in the others is taken from them.

#include "Matrices.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

using Value = Expansion::Value;
using Values = Expansion::Values;

namespace {

/// Of (size, position) pairs the one of greater size; of equal ones the first. A NaN is never chosen.
HloComputation *largestOf(HloModule &module) {
  const char *name = "largest_with_position";
  if (HloComputation *known = module.findComputation(name))
    return known;
  HloComputation *made = module.addComputationBefore(*module.computations().front(), name);
  HloBuilder b(*made);
  const Shape size = Shape::scalar(ElementType::F64), position = Shape::scalar(ElementType::S32);
  Value x = b.parameter(0, size, "x"), i = b.parameter(1, position, "i");
  Value y = b.parameter(2, size, "y"), j = b.parameter(3, position, "j");
  Value isGreater = b.compare(ComparisonDirection::Gt, y, x);
  Value isEarlier =
      b.infer(Opcode::And, {b.compare(ComparisonDirection::Eq, y, x), b.compare(ComparisonDirection::Lt, j, i)});
  Value takes = b.infer(Opcode::Or, {isGreater, isEarlier});
  made->setRoot(b.tuple({b.infer(Opcode::Select, {takes, y, x}), b.infer(Opcode::Select, {takes, j, i})}));
  return made;
}

/// s32[batch]: the row of the largest element of each column from row `first` on.
Value pivotRow(Expansion &x, Value column, Value first, HloModule &module) {
  HloBuilder &b = x.builder();
  llvm::ArrayRef<int64_t> dims = column->shape().dims();
  Value row = x.iota(ElementType::S32, dims, 1), start = x.spread(first, dims);
  Value size = sizeOf(x, column);
  Value candidate = x.select(b.compare(ComparisonDirection::Ge, row, start), size, x.like(size, -1));
  const Shape sizes = Shape::array(ElementType::F64, {dims[0]}), rows = sizes.withElementType(ElementType::S32);
  Value found = b.add(Opcode::Reduce, Shape::tuple({sizes, rows}),
                      {candidate, row, x.scalar(ElementType::F64, -1), x.scalar(ElementType::S32, 0)},
                      {b.ints(AttributeKey::Dimensions, {1}), Attribute{AttributeKey::ToApply, largestOf(module)}});
  return x.binary(Opcode::Maximum, b.tupleElement(found, 1), x.spread(first, {dims[0]}));
}

} // namespace

Value sizeOf(Expansion &x, Value value) {
  Value size = x.unary(Opcode::Abs, realPart(x, value));
  if (isComplex(value->shape().elementType()))
    size = x.add(size, x.unary(Opcode::Abs, x.unary(Opcode::Imag, value)));
  return size;
}

LuFactors luFactors(Expansion &x, Value a) {
  llvm::SmallVector<int64_t, 3> dims(a->shape().dims());
  const int64_t batch = dims[0], m = dims[1], n = dims[2], count = std::min(m, n);
  HloModule &module = a->parent()->module();
  auto round = [&](Expansion &x, Value j, llvm::ArrayRef<Value> state) -> Values {
    HloBuilder &b = x.builder();
    Value a = state[0], pivots = state[1], failed = state[2];
    Value column = x.reshape(x.at(a, 2, j), {batch, m});
    Value pivot = pivotRow(x, column, j, module);
    Value upper = picked(x, a, pivot), lower = x.reshape(x.at(a, 1, j), {batch, n}); // rows that change places
    Value head = x.reshape(x.at(upper, 1, j), {batch});
    // The column as it is then, divided by its head.
    Value isHead = b.compare(ComparisonDirection::Eq, x.iota(ElementType::S32, {batch, m}, 1), x.spread(j, {batch, m}));
    Value isOther =
        b.compare(ComparisonDirection::Eq, x.iota(ElementType::S32, {batch, m}, 1), along(x, pivot, {batch, m}, {0}));
    Value swapped = x.select(isOther, along(x, x.reshape(x.at(lower, 1, j), {batch}), {batch, m}, {0}), column);
    Value isZero = b.compare(ComparisonDirection::Eq, head, x.like(head, 0));
    Value divisor = x.select(isZero, x.like(head, 1), head);
    Value factors = x.divide(swapped, along(x, divisor, {batch, m}, {0}));
    // All of the matrix.
    auto rowsAre = [&](Value which) { return along(x, which, dims, {0, 1}); };
    auto ofRow = [&](Value row) { return along(x, row, dims, {0, 2}); };
    Value exchanged = x.select(rowsAre(isHead), ofRow(upper), x.select(rowsAre(isOther), ofRow(lower), a));
    Value row = x.iota(ElementType::S32, dims, 1), columns = x.iota(ElementType::S32, dims, 2), at = x.spread(j, dims);
    Value l = along(x, factors, dims, {0, 1});
    Value rest = x.subtract(exchanged, x.multiply(l, ofRow(upper)));
    Value isBelow = b.compare(ComparisonDirection::Gt, row, at);
    Value below = x.select(b.compare(ComparisonDirection::Gt, columns, at), rest,
                           x.select(b.compare(ComparisonDirection::Eq, columns, at), l, exchanged));
    Value number = x.spread(x.add(j, x.scalar(ElementType::S32, 1)), {batch});
    Value isFirst = x.binary(Opcode::And, isZero, b.compare(ComparisonDirection::Eq, failed, x.like(failed, 0)));
    return {x.select(isBelow, below, exchanged), x.withAt(pivots, x.reshape(pivot, {batch, 1}), 1, j),
            x.select(isFirst, number, failed)};
  };
  Value pivots = x.filled(ElementType::S32, {batch, count}, 0), failed = x.filled(ElementType::S32, {batch}, 0);
  Values made = {a, pivots, failed};
  if (count > 0)
    made = x.repeat(count, made, "lu", round);
  return {made[0], made[1], made[2]};
}

Value permutation(Expansion &x, Value pivots, int64_t size) {
  const int64_t batch = pivots->shape().dim(0), count = pivots->shape().dim(1);
  auto round = [&](Expansion &x, Value j, llvm::ArrayRef<Value> state) -> Values {
    HloBuilder &b = x.builder();
    Value order = state[0], pivots = state[1];
    Value other = x.reshape(x.at(pivots, 1, j), {batch});
    auto spread = [&](Value value) { return along(x, value, {batch, size}, {0}); };
    Value row = x.iota(ElementType::S32, {batch, size}, 1);
    Value one = spread(x.reshape(x.at(order, 1, j), {batch})), two = spread(picked(x, order, other));
    Value isOther = b.compare(ComparisonDirection::Eq, row, spread(other));
    Value isThis = b.compare(ComparisonDirection::Eq, row, x.spread(j, {batch, size}));
    return {x.select(isThis, two, x.select(isOther, one, order)), pivots};
  };
  Value order = x.iota(ElementType::S32, {batch, size}, 1);
  return count == 0 ? order : x.repeat(count, {order, pivots}, "permutation", round)[0];
}

} // namespace hloc
