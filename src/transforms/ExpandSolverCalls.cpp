// Calls of LAPACK, cuSOLVER and cuSPARSE (hlo/SolverCall.h) -> ops: triangular-solve, dots, and loops over columns,
// rows or rotations (LuFactors.cpp, Reflectors.cpp, Eigenvalues.cpp, SingularValues.cpp, Tridiagonal.cpp). potrf is in
// ExpandLinearAlgebra.cpp.

#include "Matrices.h"
#include "Rewriter.h"
#include "hloc/hlo/SolverCall.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Value = Expansion::Value;
using Values = Expansion::Values;

/// One call being expanded.
class Call {
public:
  Call(HloInstruction &instr, const SolverCall &call, HloBuilder &builder)
      : instr(instr), call(call), x(builder, instr), shape(instr.shape()) {}

  /// Null: left to another pass.
  HloInstruction *expand() {
    if (call.routine == SolverRoutine::Cholesky || call.routine == SolverRoutine::General)
      return nullptr;
    if (llvm::all_of(shape.leaves(), [](const Shape::Leaf &leaf) { return leaf.shape.numElements() == 0; }))
      return nothing();
    switch (call.routine) {
    case SolverRoutine::Lu:
    case SolverRoutine::LuPermutation:
      return lu();
    case SolverRoutine::Qr:
      return qr();
    case SolverRoutine::ReflectorProduct:
      return reflectorProduct();
    case SolverRoutine::ReflectorMultiply:
      return reflectorMultiply();
    case SolverRoutine::TriangularSolve:
      return triangularSolve();
    case SolverRoutine::Hermitian:
      return hermitian();
    case SolverRoutine::SingularValues:
      return singular();
    case SolverRoutine::PivotsToPermutation:
      return pack({permutation(x, pivotsOf(), shape.dims().back())});
    case SolverRoutine::SymmetricProduct:
      return symmetricProduct();
    case SolverRoutine::TridiagonalSolve:
      return tridiagonalSolve();
    case SolverRoutine::Cholesky:
    case SolverRoutine::General:
      break;
    }
    return nullptr;
  }

private:
  Value operand(unsigned i) { return matrices(x, instr.operand(i)); }
  ElementType type() const { return instr.operand(0)->shape().elementType(); }
  bool isNarrow() const { return bitWidth(realType(type())) < 64; }
  int64_t batch() const { return call.numMatrices(); }

  /// An array of any rank as [batch, length], in the wide type.
  Value vectors(unsigned i) {
    const Shape &given = instr.operand(i)->shape();
    Value wide = x.builder().convert(x.plain(instr.operand(i)), wideType(given.elementType()));
    return x.reshape(wide, {batch(), given.dims().back()});
  }
  Value taus() { return vectors(1); } ///< the factors of reflectors
  Value pivotsOf() { return x.reshape(x.plain(instr.operand(0)), {batch(), call.columns}); }

  HloInstruction *nothing() {
    if (!shape.isTuple())
      return x.zeros(shape);
    Values zeros;
    for (const Shape &element : shape.elements())
      zeros.push_back(x.zeros(element));
    return x.builder().tuple(zeros);
  }

  /// In the shapes of the call. Null: zeros.
  HloInstruction *pack(llvm::ArrayRef<Value> results) {
    auto as = [&](Value value, const Shape &wanted) -> Value {
      return value ? x.result(x.reshape(value, wanted.dims()), wanted) : x.zeros(wanted);
    };
    if (!shape.isTuple())
      return as(results.front(), shape);
    Values packed;
    for (auto [value, wanted] : llvm::zip_equal(results, shape.elements()))
      packed.push_back(as(value, wanted));
    return x.builder().tuple(packed);
  }

  HloInstruction *lu() {
    LuFactors made = luFactors(x, operand(0));
    if (call.routine == SolverRoutine::LuPermutation)
      return pack({made.factors, made.pivots, permutation(x, made.pivots, call.rows)});
    return pack({made.factors, x.add(made.pivots, x.like(made.pivots, 1)), made.failed}); // LAPACK counts from 1
  }

  HloInstruction *qr() {
    Scaled given = scaled(x, operand(0), !isNarrow());
    Reflectors made = qrFactors(x, given.matrices);
    if (given.scale)
      made.factors = x.select(positions(x, ComparisonDirection::Le, made.factors->shape().dims()),
                              unscaled(x, made.factors, given), made.factors);
    return pack({made.factors, made.taus});
  }

  HloInstruction *reflectorProduct() {
    Value factors = operand(0);
    Value one = identities(x, factors->shape().elementType(), factors->shape().dims());
    return pack({reflected(x, {factors, taus()}, one, ReflectorOrder::Q)});
  }

  /// C Q is (Q^H C^H)^H.
  HloInstruction *reflectorMultiply() {
    Value c = operand(2);
    const bool isAdjoint = call.transpose != Transpose::None;
    if (!call.left)
      c = adjoint(x, c);
    Value made =
        reflected(x, {operand(0), taus()}, c, isAdjoint == call.left ? ReflectorOrder::Adjoint : ReflectorOrder::Q);
    return pack({call.left ? made : adjoint(x, made)});
  }

  HloInstruction *triangularSolve() {
    HloBuilder &b = x.builder();
    const Shape &wanted = shape.isTuple() ? shape.element(0) : shape;
    Value solved = b.add(Opcode::TriangularSolve, wanted.withDefaultLayout(),
                         {x.plain(instr.operand(0)), x.plain(instr.operand(1))},
                         {{AttributeKey::LeftSide, call.left},
                          {AttributeKey::Lower, call.lower},
                          {AttributeKey::UnitDiagonal, call.unitDiagonal},
                          {AttributeKey::TransposeA, int64_t(call.transpose)}});
    return shape.isTuple() ? b.tuple({x.result(solved, wanted), x.zeros(shape.element(1))}) : x.result(solved, shape);
  }

  HloInstruction *hermitian() {
    if (call.columns == 0)
      return nothing();
    Spectrum made = eigenvalues(x, operand(0), call.lower, call.wantsVectors, isNarrow());
    Values results = {made.vectors, made.values};
    if (shape.elements().size() == 3)
      results.push_back(made.failed);
    return pack(results);
  }

  HloInstruction *singular() {
    if (call.rows == 0 || call.columns == 0)
      return nothing();
    Value a = operand(0);
    if (call.isTurned)
      a = transposed(x, a);
    const bool isTall = a->shape().dim(1) >= a->shape().dim(2);
    // As many vectors as there is room for: on the longer side that may be fewer than it has.
    const Shape &longer = shape.element(isTall ? 2 : 3);
    const int64_t m = std::max(a->shape().dim(1), a->shape().dim(2)),
                  n = std::min(a->shape().dim(1), a->shape().dim(2));
    const bool isFull = call.wantsVectors && longer.numElements() == batch() * m * m;
    SingularValues made = singularValues(x, a, call.wantsVectors, isFull ? m : n, isNarrow());
    if (!call.wantsVectors)
      return pack({a, made.values, nullptr, nullptr, made.failed});
    Value left = made.left, right = made.right;
    // V^H is adjoint(V) as a matrix; of transposes that lie in rows all matrices are transposed.
    right = call.rightIsPlain ? right : adjoint(x, right);
    if (call.isTurned) {
      a = transposed(x, a);
      left = transposed(x, left);
      right = transposed(x, right);
    }
    return pack({a, made.values, left, right, made.failed});
  }

  HloInstruction *symmetricProduct() {
    Value a = operand(0), c = operand(1);
    if (call.transpose != Transpose::None)
      a = transposed(x, a);
    auto factor = [&](unsigned i, Value like) {
      return x.spread(x.builder().convert(instr.operand(i), wideType(type())), like->shape().dims());
    };
    Value product = x.dot(a, a, 0, 0, 2, 2);
    return pack({x.add(x.multiply(factor(2, product), product), x.multiply(factor(3, c), c))});
  }

  HloInstruction *tridiagonalSolve() {
    const Tridiagonal a = {vectors(0), vectors(1), vectors(2)};
    TridiagonalSolution made = tridiagonalSolution(x, a, operand(3));
    // (What LAPACK leaves in the diagonals nobody asks for.)
    return shape.isTuple() ? pack({a.lower, a.diagonal, a.upper, made.solution, made.failed}) : pack({made.solution});
  }

  HloInstruction &instr;
  const SolverCall &call;
  Expansion x;
  const Shape shape;
};

HloInstruction *expandCall(HloInstruction &instr, HloRewriter &rewriter) {
  std::optional<SolverCall> call = SolverCall::of(instr);
  return call ? Call(instr, *call, rewriter.builder()).expand() : nullptr;
}

constexpr RewriteRule rules[] = {{"expand-solver-calls", Opcode::CustomCall, expandCall}};

} // namespace

PassResult expandSolverCalls(HloModule &module, HloPassContext &context) {
  return rewriteModule(module, rules, context);
}

} // namespace hloc
