// cholesky and triangular-solve -> loops over columns and rows, in the widest type of their kind, rounded once. What a
// round reads of the loop's state is either a sum over what earlier rounds have made, which is a kernel of its own, or
// handed on; so the column or row that it makes is written in place.

#include "Matrices.h"
#include "Rewriter.h"
#include "hloc/hlo/SolverCall.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace hloc {

namespace {

using Value = Expansion::Value;
using Values = Expansion::Values;

struct Factors {
  Value matrices; ///< all NaN where there are none
  Value made;     ///< s32[batch]: columns that were made
};

/// The lower factor of [batch, n, n], whose lower triangles are read. Column j of L is (a_j - L conj(L_j)^T) / pivot.
Factors factorised(Expansion &x, Value a) {
  llvm::SmallVector<int64_t, 3> dims(a->shape().dims());
  ElementType type = a->shape().elementType();
  int64_t batch = dims[0], n = dims[1];
  auto round = [&](Expansion &x, Value j, llvm::ArrayRef<Value> state) -> Values {
    Value factor = state[0], given = state[1];
    HloBuilder &b = x.builder();
    auto made = [&](Value array) { // of columns that come later nothing is taken, not even 0 * infinity
      llvm::ArrayRef<int64_t> sizes = array->shape().dims();
      Value earlier = b.compare(ComparisonDirection::Lt, x.iota(ElementType::S32, sizes, int64_t(sizes.size()) - 1),
                                x.spread(j, sizes));
      return x.select(earlier, array, x.like(array, 0));
    };
    Value row = x.conjugate(made(x.reshape(x.at(factor, 1, j), {batch, n})));
    Value sums = x.dot(made(factor), row, 0, 0, 2, 1);
    Value rest = x.subtract(x.reshape(x.at(given, 2, j), {batch, n}), sums);
    Value diagonal = x.at(rest, 1, j);
    Value real = isComplex(type) ? x.unary(Opcode::Real, diagonal) : diagonal;
    Value positive = b.compare(ComparisonDirection::Gt, real, x.like(real, 0));
    Value root =
        x.select(positive, x.unary(Opcode::Sqrt, real), x.like(real, std::numeric_limits<double>::quiet_NaN()));
    Value pivot = b.broadcast(x.reshape(b.convert(root, type), {batch}), Shape::array(type, {batch, n}), {0});
    Value i = x.iota(ElementType::S32, {batch, n}, 1), at = x.spread(j, {batch, n});
    Value column = x.select(b.compare(ComparisonDirection::Eq, i, at), pivot, x.divide(rest, pivot));
    column = x.select(b.compare(ComparisonDirection::Lt, i, at), x.like(column, 0), column);
    return {x.withAt(factor, x.reshape(column, {batch, n, 1}), 2, j), given};
  };
  Value factor = x.repeat(n, {x.filled(type, dims, 0), a}, "cholesky", round)[0];
  // A pivot that is not a number makes all later ones so.
  HloBuilder &b = x.builder();
  Value real = isComplex(type) ? x.unary(Opcode::Real, factor) : factor;
  Value isMade = x.binary(Opcode::And, positions(x, ComparisonDirection::Eq, dims),
                          b.compare(ComparisonDirection::Eq, real, real));
  Value made = b.reduce(b.convert(isMade, ElementType::S32), x.scalar(ElementType::S32, 0), {1, 2},
                        x.reducer(Opcode::Add, ElementType::S32));
  Value all = b.compare(ComparisonDirection::Eq, made, x.like(made, double(n)));
  Value spread = b.broadcast(all, Shape::array(ElementType::Pred, dims), {0});
  return {x.select(spread, factor, x.like(factor, std::numeric_limits<double>::quiet_NaN())), made};
}

Factors choleskyOf(Expansion &x, Value operand, bool lower) {
  Value a = matrices(x, operand);
  if (!lower) // the upper triangle of A is the lower one of A^H = A
    a = x.conjugate(transposed(x, a));
  Factors factors = factorised(x, a);
  if (!lower)
    factors.matrices = x.conjugate(transposed(x, factors.matrices));
  factors.matrices = x.reshape(factors.matrices, operand->shape().dims());
  return factors;
}

HloInstruction *expandCholesky(HloInstruction &instr, HloRewriter &rewriter) {
  Expansion x(rewriter.builder(), instr);
  if (instr.shape().numElements() == 0)
    return x.zeros(instr.shape());
  return x.result(choleskyOf(x, instr.operand(0), instr.flag(AttributeKey::Lower)).matrices, instr.shape());
}

/// potrf: (factors, the order of the first leading minor that is not positive, or 0).
HloInstruction *expandPotrf(HloInstruction &instr, HloRewriter &rewriter) {
  std::optional<SolverCall> call = SolverCall::of(instr);
  if (!call || call->routine != SolverRoutine::Cholesky)
    return nullptr;
  const Shape &factor = instr.shape().element(0), &info = instr.shape().element(1);
  if (factor.numElements() == 0) {
    Expansion x(rewriter.builder(), instr);
    return x.builder().tuple({x.zeros(factor), x.zeros(info)});
  }
  Expansion x(rewriter.builder(), instr);
  Factors factors = choleskyOf(x, instr.operand(0), call->lower);
  Value made = factors.made, n = x.like(made, double(factor.dims().back()));
  Value failed =
      x.select(x.builder().compare(ComparisonDirection::Eq, made, n), x.like(made, 0), x.add(made, x.like(made, 1)));
  return x.builder().tuple({x.result(factors.matrices, factor), x.result(x.reshape(failed, info.dims()), info)});
}

/// op(A) X = B, with the triangle that op(A) fills; X op(A) = B is op(A)^T X^T = B^T.
HloInstruction *expandTriangularSolve(HloInstruction &instr, HloRewriter &rewriter) {
  Expansion x(rewriter.builder(), instr);
  if (instr.shape().numElements() == 0)
    return x.zeros(instr.shape());
  bool left = instr.flag(AttributeKey::LeftSide);
  auto transpose = instr.enumOr(AttributeKey::TransposeA, Transpose::None);
  Value a = matrices(x, instr.operand(0)), right = matrices(x, instr.operand(1));
  if (transpose == Transpose::Adjoint)
    a = x.conjugate(a);
  if (left != (transpose == Transpose::None))
    a = transposed(x, a);
  if (!left)
    right = transposed(x, right);
  bool forward = instr.flag(AttributeKey::Lower) == (left == (transpose == Transpose::None));
  bool unit = instr.flag(AttributeKey::UnitDiagonal);
  int64_t batch = right->shape().dim(0), n = right->shape().dim(1), columns = right->shape().dim(2);
  ElementType type = right->shape().elementType();
  auto round = [&](Expansion &x, Value counter, llvm::ArrayRef<Value> state) -> Values {
    HloBuilder &b = x.builder();
    Value solved = state[0], a = state[1], right = state[2];
    Value i = forward ? counter : x.subtract(x.scalar(ElementType::S32, double(n - 1)), counter);
    Value row = x.reshape(x.at(a, 1, i), {batch, n});
    Value isKnown = b.compare(forward ? ComparisonDirection::Lt : ComparisonDirection::Gt,
                              x.iota(ElementType::S32, {batch, n}, 1), x.spread(i, {batch, n}));
    Value sums = x.dot(x.select(isKnown, row, x.like(row, 0)), solved, 0, 0, 1, 1);
    Value rest = x.subtract(x.reshape(x.at(right, 1, i), {batch, columns}), sums);
    if (!unit)
      rest = x.divide(rest, b.broadcast(x.reshape(x.at(row, 1, i), {batch}), rest->shape(), {0}));
    return {x.withAt(solved, x.reshape(rest, {batch, 1, columns}), 1, i), a, right};
  };
  Value solved = x.repeat(n, {x.filled(type, right->shape().dims(), 0), a, right}, "triangular_solve", round)[0];
  if (!left)
    solved = transposed(x, solved);
  return x.result(x.reshape(solved, instr.shape().dims()), instr.shape());
}

constexpr RewriteRule rules[] = {
    {"expand-linear-algebra.cholesky", Opcode::Cholesky, expandCholesky},
    {"expand-linear-algebra.potrf", Opcode::CustomCall, expandPotrf},
    {"expand-linear-algebra.triangular-solve", Opcode::TriangularSolve, expandTriangularSolve},
};

} // namespace

PassResult expandLinearAlgebra(HloModule &module, HloPassContext &context) {
  return rewriteModule(module, rules, context);
}

} // namespace hloc
