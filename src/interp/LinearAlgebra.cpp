// cholesky and triangular-solve, in f64 or c128, matrix by matrix.

#include "interp/MatrixProduct.h"
#include "interp/Ops.h"

#include <cmath>
#include <limits>

namespace hloc::interp {

namespace {

double conjugate(double x) { return x; }
std::complex<double> conjugate(std::complex<double> x) { return std::conj(x); }
double realPart(double x) { return x; }
double realPart(std::complex<double> x) { return x.real(); }

/// A = L L^H from the lower triangle, in place; 0, or the order of the first leading minor that is not positive.
template <typename T> int64_t factorise(T *a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double diagonal = realPart(a[j * n + j]);
    for (int64_t k = 0; k < j; ++k)
      diagonal -= std::norm(a[j * n + k]);
    if (!(diagonal > 0))
      return j + 1;
    double pivot = std::sqrt(diagonal);
    a[j * n + j] = pivot;
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k)
        sum -= a[i * n + k] * conjugate(a[j * n + k]);
      a[i * n + j] = sum / pivot;
    }
  }
  return 0;
}

/// Conjugate transpose in place.
template <typename T> void adjoin(T *a, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      T upper = a[j * n + i];
      a[j * n + i] = conjugate(a[i * n + j]);
      a[i * n + j] = conjugate(upper);
    }
}

/// Only the wanted triangle is read; the other one of the result is zero. Returns what `factorise` does.
template <typename T> int64_t choleskyOne(T *a, int64_t n, bool lower) {
  if (!lower)
    adjoin(a, n); // the upper triangle of A is the lower one of A^H = A
  int64_t failed = factorise(a, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (failed != 0)
        a[i * n + j] = std::numeric_limits<double>::quiet_NaN();
      else if (j > i)
        a[i * n + j] = 0;
  if (!lower)
    adjoin(a, n);
  return failed;
}

struct Solve {
  int64_t n, columns; ///< op(A) is n x n, X is n x columns
  bool lower, unitDiagonal;
  Transpose transpose;

  template <typename T> T at(const T *a, int64_t row, int64_t column) const {
    switch (transpose) {
    case Transpose::None:
      return a[row * n + column];
    case Transpose::Transpose:
      return a[column * n + row];
    case Transpose::Adjoint:
      return conjugate(a[column * n + row]);
    }
    return a[row * n + column];
  }

  /// op(A) X = B in place, by substitution from the end that is known.
  template <typename T> void run(const T *a, T *x) const {
    bool forward = lower == (transpose == Transpose::None);
    for (int64_t done = 0; done < n; ++done) {
      int64_t row = forward ? done : n - 1 - done;
      for (int64_t c = 0; c < columns; ++c) {
        T sum = x[row * columns + c];
        for (int64_t k = forward ? 0 : row + 1, end = forward ? row : n; k < end; ++k)
          sum -= at(a, row, k) * x[k * columns + c];
        x[row * columns + c] = unitDiagonal ? sum : sum / at(a, row, row);
      }
    }
  }
};

template <typename T> void transposeInto(const T *from, int64_t rows, int64_t columns, T *to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      to[j * rows + i] = from[i * columns + j];
}

/// X op(A) = B is op(A)^T X^T = B^T.
template <typename T> void solveAll(const Literal &a, Literal &b, const HloInstruction &instr) {
  unsigned rank = b.shape().rank();
  int64_t rows = b.shape().dim(rank - 2), columns = b.shape().dim(rank - 1);
  bool left = instr.flag(AttributeKey::LeftSide);
  auto transpose = instr.enumOr(AttributeKey::TransposeA, Transpose::None);
  Solve solve{left ? rows : columns, left ? columns : rows, instr.flag(AttributeKey::Lower),
              instr.flag(AttributeKey::UnitDiagonal), transpose};
  std::vector<T> matrix(size_t(solve.n * solve.n)), turned(size_t(rows * columns));
  int64_t batches = rows * columns == 0 ? 0 : b.numElements() / (rows * columns);
  for (int64_t batch = 0; batch < batches; ++batch) {
    auto source = a.data<T>().slice(size_t(batch * solve.n * solve.n), size_t(solve.n * solve.n));
    T *x = b.mutableData<T>().data() + batch * rows * columns;
    if (left) {
      solve.run(source.data(), x);
      continue;
    }
    // With op(A)^T in hand as a plain matrix, the triangle it fills is known.
    for (int64_t i = 0; i < solve.n; ++i)
      for (int64_t j = 0; j < solve.n; ++j)
        matrix[size_t(i * solve.n + j)] = solve.at(source.data(), j, i);
    Solve plain = solve;
    plain.transpose = Transpose::None;
    plain.lower = solve.lower != (transpose == Transpose::None);
    transposeInto(x, rows, columns, turned.data());
    plain.run(matrix.data(), turned.data());
    transposeInto(turned.data(), columns, rows, x);
  }
}

} // namespace

Literal cholesky(const Literal &matrices, bool lower, Literal *info) {
  ElementType type = matrices.shape().elementType();
  Literal sums = widened(matrices, type);
  int64_t n = sums.shape().dim(sums.shape().rank() - 1);
  for (int64_t start = 0; n != 0 && start < sums.numElements(); start += n * n) {
    int64_t failed = isComplex(type) ? choleskyOne(sums.mutableData<std::complex<double>>().data() + start, n, lower)
                                     : choleskyOne(sums.mutableData<double>().data() + start, n, lower);
    if (info)
      info->setInt(start / (n * n), failed);
  }
  Literal result(matrices.shape());
  roundInto(sums, result);
  return result;
}

llvm::FailureOr<Value> evaluateCholesky(Step &step) {
  return Value(cholesky(step.array(0), step.instr.flag(AttributeKey::Lower), /*info=*/nullptr));
}

llvm::FailureOr<Value> evaluateTriangularSolve(Step &step) {
  ElementType type = step.shape().elementType();
  Literal a = widened(step.array(0), type), b = widened(step.array(1), type);
  if (isComplex(type))
    solveAll<std::complex<double>>(a, b, step.instr);
  else
    solveAll<double>(a, b, step.instr);
  Literal result(step.shape());
  roundInto(b, result);
  return Value(std::move(result));
}

} // namespace hloc::interp
