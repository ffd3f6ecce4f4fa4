#pragma once
// Batches of matrices, [batch, rows, columns] in the widest type of their kind, and the factorisations that are loops
// over them. Everything is rounded to the type of the text once, at the end.

#include "Expansion.h"

namespace hloc {

/// f64 or c128.
ElementType wideType(ElementType type);
/// Of a type or its complex numbers: the reals.
ElementType realType(ElementType type);

/// An array of any rank as [batch, rows, columns], in the wide type.
Expansion::Value matrices(Expansion &x, Expansion::Value value);
/// Rows and columns change places; also conjugates.
Expansion::Value transposed(Expansion &x, Expansion::Value value);
Expansion::Value adjoint(Expansion &x, Expansion::Value value);

/// Row numbers of [batch, m, n] against column numbers.
Expansion::Value positions(Expansion &x, ComparisonDirection direction, llvm::ArrayRef<int64_t> dims);
/// Ones where row and column have the same number, zeros elsewhere.
Expansion::Value identities(Expansion &x, ElementType type, llvm::ArrayRef<int64_t> dims);
/// What is at (i, i + offset), i < count, of each matrix: [batch, count].
Expansion::Value diagonal(Expansion &x, Expansion::Value matrices, int64_t first, int64_t count);

Expansion::Value realPart(Expansion &x, Expansion::Value value);
/// |z|^2, real.
Expansion::Value squared(Expansion &x, Expansion::Value value);
/// A real array as one of `type`.
Expansion::Value asType(Expansion &x, Expansion::Value real, ElementType type);
/// [batch] or another prefix of the dimensions, in these dimensions of an array.
Expansion::Value along(Expansion &x, Expansion::Value value, llvm::ArrayRef<int64_t> dims,
                       llvm::ArrayRef<int64_t> places);
/// One of the ops that reduce: sums, maxima, ors.
Expansion::Value reduced(Expansion &x, Opcode opcode, Expansion::Value value, llvm::ArrayRef<int64_t> dims);
Expansion::Value compared(Expansion &x, ComparisonDirection direction, Expansion::Value value, double number);
/// Columns of zeros (dimension 2) or rows (1) behind those that are there.
Expansion::Value padded(Expansion &x, Expansion::Value value, unsigned dimension, int64_t size);
/// array[b, index[b], ...]: of each batch the part that its own index says, without that dimension.
Expansion::Value picked(Expansion &x, Expansion::Value array, Expansion::Value index);
/// rows[b, order[b, i], :]
Expansion::Value ordered(Expansion &x, Expansion::Value rows, Expansion::Value order);

/// A power of [batch] by which matrices of f64 are divided, so that squares of their elements are numbers.
struct Scaled {
  Expansion::Value matrices;
  Expansion::Value scale; ///< [batch], real; null: 1
};
Scaled scaled(Expansion &x, Expansion::Value matrices, bool mayOverflow);
/// Of a result that is in proportion to the matrices.
Expansion::Value unscaled(Expansion &x, Expansion::Value value, const Scaled &by);
/// pred[batch]: are all elements numbers?
Expansion::Value areFinite(Expansion &x, Expansion::Value matrices);

// --- factorisations

struct LuFactors {
  Expansion::Value factors; ///< L below the diagonal, U from it on
  Expansion::Value pivots;  ///< s32[batch, min(m, n)]: row that was exchanged with this one, from 0
  Expansion::Value failed;  ///< s32[batch]: the number of the first pivot that is 0, from 1; 0 if there is none
};
LuFactors luFactors(Expansion &x, Expansion::Value a);
/// s32[batch, size]: where each row comes from once these exchanges have been made in order.
Expansion::Value permutation(Expansion &x, Expansion::Value pivots, int64_t size);

/// LAPACK's size of a complex number: the sum of those of its parts.
Expansion::Value sizeOf(Expansion &x, Expansion::Value value);

/// Diagonals of square matrices, [batch, n]: element i of each is in row i. The first of the lower and the last of the
/// upper one are not read.
struct Tridiagonal {
  Expansion::Value lower, diagonal, upper;
};
struct TridiagonalSolution {
  Expansion::Value solution; ///< [batch, n, r]
  Expansion::Value failed;   ///< s32[batch]: the number of the first head that is 0, from 1; 0 if there is none
};
/// Of right sides [batch, n, r], n > 0.
TridiagonalSolution tridiagonalSolution(Expansion &x, const Tridiagonal &a, Expansion::Value right);

struct Reflectors {
  Expansion::Value factors; ///< R from the diagonal on, the reflectors' vectors below it, without their leading 1
  Expansion::Value taus;    ///< [batch, min(m, n)]
};
Reflectors qrFactors(Expansion &x, Expansion::Value a);
enum class ReflectorOrder { Q, Adjoint };
/// Q c or Q^H c, where Q = H_0 H_1 ..., H_j = 1 - tau_j v_j v_j^H.
Expansion::Value reflected(Expansion &x, const Reflectors &q, Expansion::Value c, ReflectorOrder order);

struct Spectrum {
  Expansion::Value values;  ///< real [batch, k]
  Expansion::Value vectors; ///< columns; null if not wanted
  Expansion::Value failed;  ///< s32[batch]: not 0 where there is no result
};
/// Ascending eigenvalues of Hermitian matrices, of which one triangle is read.
Spectrum eigenvalues(Expansion &x, Expansion::Value a, bool lower, bool wantsVectors, bool isNarrow);

struct SingularValues {
  Expansion::Value values;      ///< real [batch, k], descending
  Expansion::Value left, right; ///< U and V as columns, as many as asked for; null if not wanted
  Expansion::Value failed;      ///< s32[batch]
};
/// `numVectors`: on the longer side of the matrices, from the shorter side's number to its own.
SingularValues singularValues(Expansion &x, Expansion::Value a, bool wantsVectors, int64_t numVectors, bool isNarrow);

} // namespace hloc
