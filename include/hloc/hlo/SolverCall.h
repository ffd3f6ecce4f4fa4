#pragma once
// What the text of a call of LAPACK, cuSOLVER or cuSPARSE says, as jax prints it for a CPU or a GPU (and for a TPU,
// whose compiler knows four such names). The routine is the one of LAPACK that does the same; leading dimensions count
// matrices.
//
//   (f32[2,3,4]{1,2,0}, s32[2,3], s32[2]) custom-call(f32[2,3,4] a), custom_call_target="lapack_sgetrf_ffi"
//       routine Lu, batch {2}, rows 3, columns 4
//
// Matrices are stored by columns, which `operand_layout_constraints` says; a text without them says nothing of storage.

#include "hloc/hlo/HloInstruction.h"

#include <optional>
#include <string>

namespace hloc {

enum class SolverRoutine {
  Lu,                  ///< getrf(a): (factors, pivots, info)
  LuPermutation,       ///< LuDecomposition(a): (factors, pivots from 0, permutation)
  Qr,                  ///< geqrf(a): (factors, taus)
  ReflectorProduct,    ///< orgqr(a, taus): the first columns of Q
  ReflectorMultiply,   ///< ormqr(a, taus, c): Q c and the like
  Cholesky,            ///< potrf(a): (factor, info)
  TriangularSolve,     ///< trsm(a, b): x, or (x, scratch)
  Hermitian,           ///< syevd(a): (eigenvectors, ascending eigenvalues[, info])
  SingularValues,      ///< gesdd(a): (a, descending singular values, U, V^H or V, info)
  General,             ///< geev(a): (eigenvalues, left, right eigenvectors, info), with real and imaginary parts apart
  PivotsToPermutation, ///< (pivots from 0): permutation
  SymmetricProduct,    ///< syrk(a, c, alpha, beta): alpha a a^T + beta c
  TridiagonalSolve     ///< gtsv2(lower, diagonal, upper, b): x; gtsv: (lower, diagonal, upper, x, info)
};

struct SolverCall {
  SolverRoutine routine;
  llvm::SmallVector<int64_t, 4> batch;
  int64_t rows = 0, columns = 0; ///< of the first operand, or of a matrix of three diagonals
  bool lower = true;             ///< the triangle that is read
  bool left = true;              ///< of a product or solution: whether the matrix stands there
  bool unitDiagonal = false;
  Transpose transpose = Transpose::None;
  bool isTurned = false;     ///< gesvd is told that it is given transposes, in rows
  bool wantsVectors = true;  ///< Hermitian, SingularValues, General (right ones)
  bool wantsLeft = false;    ///< General: left eigenvectors
  bool rightIsPlain = false; ///< SingularValues: V, not V^H
  int64_t numMatrices() const;

  /// nullopt: the target is none of these, and `why` stays as it was, or the call does not fit it, and `why` says what
  /// is wrong.
  static std::optional<SolverCall> of(const HloInstruction &call, std::string &why);
  static std::optional<SolverCall> of(const HloInstruction &call);
};

} // namespace hloc
