// What calls of LAPACK promise, of what they are expanded into: decompositions whose product is the matrix, and columns
// that are orthogonal. Both sides of `hloc run` execute the expansion, so nothing else would see an error in it.
#include "RunPasses.h"
#include "SameResults.h"

#include "fmt/format.h"

#include <cmath>
#include <complex>
#include <limits>

using namespace hloc;
using namespace hloc::test;

namespace {

using Number = std::complex<double>;

/// A matrix, or what one of a batch is.
struct Matrix {
  int64_t rows, columns;
  std::vector<Number> elements;
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), elements(size_t(rows * columns)) {}
  Number &at(int64_t r, int64_t c) { return elements[size_t(r * columns + c)]; }
  Number at(int64_t r, int64_t c) const { return elements[size_t(r * columns + c)]; }
  Matrix adjoint() const {
    Matrix result(columns, rows);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        result.at(c, r) = std::conj(at(r, c));
    return result;
  }
};

Matrix operator*(const Matrix &a, const Matrix &b) {
  REQUIRE(a.columns == b.rows);
  Matrix result(a.rows, b.columns);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t c = 0; c < b.columns; ++c)
      for (int64_t k = 0; k < a.columns; ++k)
        result.at(r, c) += a.at(r, k) * b.at(k, c);
  return result;
}

Matrix identity(int64_t n) {
  Matrix result(n, n);
  for (int64_t i = 0; i < n; ++i)
    result.at(i, i) = 1;
  return result;
}

double distance(const Matrix &a, const Matrix &b) {
  REQUIRE(a.elements.size() == b.elements.size());
  double most = 0;
  for (size_t i = 0; i < a.elements.size(); ++i) {
    const double part = std::abs(a.elements[i] - b.elements[i]);
    if (!(part <= most))
      most = std::isnan(part) ? std::numeric_limits<double>::infinity() : part;
  }
  return most;
}

/// The `number`th matrix of a literal, of its upper (lower) triangle alone if that is asked for.
Matrix matrixOf(const Literal &literal, int64_t number, char part = 'a') {
  const auto sizes = literal.shape().dims();
  Matrix result(sizes[sizes.size() - 2], sizes.back());
  for (int64_t r = 0; r < result.rows; ++r)
    for (int64_t c = 0; c < result.columns; ++c) {
      const int64_t i = (number * result.rows + r) * result.columns + c;
      if ((part == 'u' && r > c) || (part == 'l' && r < c))
        continue;
      result.at(r, c) = isComplex(literal.shape().elementType()) ? literal.getComplex(i) : literal.getDouble(i);
    }
  return result;
}

Matrix firstRows(const Matrix &a, int64_t rows) {
  Matrix result(rows, a.columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < a.columns; ++c)
      result.at(r, c) = a.at(r, c);
  return result;
}

struct Type {
  char letter;
  const char *name, *real;
  double tolerance; ///< for matrices of a few dozen rows with elements of size one
};
const Type types[] = {
    {'s', "f32", "f32", 1e-4}, {'d', "f64", "f64", 1e-12}, {'c', "c64", "f32", 1e-4}, {'z', "c128", "f64", 1e-12}};

struct Decomposed {
  Literal matrices, results;
};

/// `body` has `a`, matrices of two in a batch.
Decomposed decompose(const Type &type, int64_t rows, int64_t columns, const std::string &body) {
  PassRun p(
      fmt::format("HloModule m\nENTRY e {{\n a = {}[2,{},{}] parameter(0)\n{}\n}}\n", type.name, rows, columns, body));
  REQUIRE(p.run(expandSolverCalls) == PassResult::Changed);
  auto arguments = makeArguments(*p.module, p.diagnostics, 1);
  REQUIRE(succeeded(arguments));
  auto result = interpret(*p.module, *arguments, p.diagnostics);
  REQUIRE(succeeded(result));
  return {arguments->front(), std::move(*result)};
}

std::string call(const std::string &shape, const std::string &operands, char letter, const std::string &routine,
                 const std::string &config) {
  return fmt::format("{} custom-call({}), custom_call_target=\"lapack_{}{}_ffi\", api_version=API_VERSION_TYPED_FFI, "
                     "backend_config={{{}}}\n",
                     shape, operands, letter, routine, config);
}

const int64_t sizes[][2] = {{1, 1}, {2, 3}, {5, 2}, {7, 7}, {17, 17}};

} // namespace

TEST_CASE("QR: an orthogonal matrix times a triangle is the matrix") {
  for (const Type &type : types)
    for (auto [rows, columns] : sizes) {
      const int64_t least = std::min(rows, columns);
      const bool complex = type.letter == 'c' || type.letter == 'z';
      INFO(type.name << " " << rows << " " << columns);
      Decomposed d = decompose(
          type, rows, columns,
          "f = " +
              call(fmt::format("({0}[2,{1},{2}], {0}[2,{3}])", type.name, rows, columns, least), "a", type.letter,
                   "geqrf", "") +
              fmt::format(
                  "h = {0}[2,{1},{2}] get-tuple-element(f), index=0\n t = {0}[2,{3}] get-tuple-element(f), index=1\n"
                  "s = {0}[2,{1},{3}] slice(h), slice={{[0:2], [0:{1}], [0:{3}]}}\n q = ",
                  type.name, rows, columns, least) +
              call(fmt::format("{}[2,{},{}]", type.name, rows, least), "s, t", type.letter, complex ? "ungqr" : "orgqr",
                   "") +
              fmt::format("ROOT r = ({0}[2,{1},{3}], {0}[2,{1},{2}]) tuple(q, h)", type.name, rows, columns, least));
      for (int64_t b = 0; b < 2; ++b) {
        const Matrix q = matrixOf(d.results.element(0), b);
        CHECK(distance(q * firstRows(matrixOf(d.results.element(1), b, 'u'), least), matrixOf(d.matrices, b)) <
              type.tolerance);
        CHECK(distance(q.adjoint() * q, identity(least)) < type.tolerance);
      }
    }
}

TEST_CASE("LU: rows change places as the pivots say") {
  for (const Type &type : types)
    for (auto [rows, columns] : sizes) {
      const int64_t least = std::min(rows, columns);
      INFO(type.name << " " << rows << " " << columns);
      Decomposed d = decompose(
          type, rows, columns,
          "ROOT f = " + call(fmt::format("({0}[2,{1},{2}], s32[2,{3}], s32[2])", type.name, rows, columns, least), "a",
                             type.letter, "getrf", ""));
      for (int64_t b = 0; b < 2; ++b) {
        Matrix packed = matrixOf(d.results.element(0), b), l(rows, least), u(least, columns);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t k = 0; k < least; ++k)
            l.at(r, k) = r == k ? 1 : r > k ? packed.at(r, k) : 0;
        for (int64_t k = 0; k < least; ++k)
          for (int64_t c = k; c < columns; ++c)
            u.at(k, c) = packed.at(k, c);
        Matrix moved = matrixOf(d.matrices, b);
        for (int64_t k = 0; k < least; ++k) {
          const int64_t pivot = d.results.element(1).getInt(b * least + k) - 1;
          REQUIRE((pivot >= k && pivot < rows));
          for (int64_t c = 0; c < columns; ++c)
            std::swap(moved.elements[size_t(k * columns + c)], moved.elements[size_t(pivot * columns + c)]);
        }
        CHECK(distance(l * u, moved) < type.tolerance);
        for (Number x : l.elements)
          CHECK(std::abs(x) < (type.letter == 'c' || type.letter == 'z' ? 1.5 : 1.001));
        CHECK(d.results.element(2).getInt(b) == 0);
      }
    }
}

TEST_CASE("eigenvectors of a Hermitian matrix are orthogonal, and only get longer") {
  for (const Type &type : types)
    for (int64_t n : {1, 2, 5, 16, 17}) {
      const bool complex = type.letter == 'c' || type.letter == 'z';
      INFO(type.name << " " << n);
      Decomposed d = decompose(
          type, n, n,
          "ROOT f = " + call(fmt::format("({0}[2,{1},{1}], {2}[2,{1}], s32[2])", type.name, n, type.real), "a",
                             type.letter, complex ? "heevd" : "syevd", "mode = 86 : ui8, uplo = 76 : ui8"));
      for (int64_t b = 0; b < 2; ++b) {
        Matrix whole = matrixOf(d.matrices, b, 'l'), v = matrixOf(d.results.element(0), b), scaled = v;
        for (int64_t r = 0; r < n; ++r) {
          whole.at(r, r) = whole.at(r, r).real();
          for (int64_t c = r + 1; c < n; ++c)
            whole.at(r, c) = std::conj(whole.at(c, r));
        }
        for (int64_t c = 0; c < n; ++c)
          for (int64_t r = 0; r < n; ++r)
            scaled.at(r, c) *= d.results.element(1).getDouble(b * n + c);
        CHECK(distance(whole * v, scaled) < type.tolerance);
        CHECK(distance(v.adjoint() * v, identity(n)) < type.tolerance);
        for (int64_t c = 1; c < n; ++c)
          CHECK(d.results.element(1).getDouble(b * n + c) >= d.results.element(1).getDouble(b * n + c - 1));
      }
    }
}

TEST_CASE("three diagonals times what solves their equations are the right sides") {
  constexpr int64_t batch = 2, sides = 3;
  for (const Type &type : types)
    for (int64_t n : {1, 2, 3, 8, 17, 40})
      for (bool isEmpty : {false, true}) { // are there zeros on the diagonal, so that rows have to change places?
        if (isEmpty && n % 2 != 0)
          continue; // singular
        INFO(type.name << " " << n << " " << isEmpty);
        PassRun p(
            fmt::format("HloModule m\nENTRY e {{\n l = {0}[2,{1}] parameter(0)\n d0 = {0}[2,{1}] parameter(1)\n"
                        " u = {0}[2,{1}] parameter(2)\n b = {0}[2,{1},3] parameter(3)\n d = {0}[2,{1}] {2}(d0, d0)\n"
                        " x = {0}[2,{1},3] custom-call(l, d, u, b), custom_call_target=\"cusparse_gtsv2_ffi\", "
                        "api_version=API_VERSION_TYPED_FFI, backend_config={{}}\n"
                        " ROOT r = ({0}[2,{1},3], {0}[2,{1}]) tuple(x, d)\n}}\n",
                        type.name, n, isEmpty ? "subtract" : "add"));
        REQUIRE(p.run(expandSolverCalls) == PassResult::Changed);
        auto arguments = makeArguments(*p.module, p.diagnostics, 1);
        REQUIRE(succeeded(arguments));
        auto made = interpret(*p.module, *arguments, p.diagnostics);
        REQUIRE(succeeded(made));
        auto element = [&](const Literal &vectors, int64_t i) {
          return isComplex(vectors.shape().elementType()) ? vectors.getComplex(i) : vectors.getDouble(i);
        };
        for (int64_t number = 0; number < batch; ++number) {
          Matrix a(n, n);
          for (int64_t i = 0; i < n; ++i) {
            a.at(i, i) = element(made->element(1), number * n + i);
            // What stands outside the matrix is not read.
            if (i > 0)
              a.at(i, i - 1) = element((*arguments)[0], number * n + i);
            if (i + 1 < n)
              a.at(i, i + 1) = element((*arguments)[2], number * n + i);
          }
          const Matrix x = matrixOf(made->element(0), number);
          REQUIRE(x.columns == sides);
          // (Some systems are near to singular: what is left is small beside the solution.)
          CHECK(distance(a * x, matrixOf((*arguments)[3], number)) <
                type.tolerance * (1 + distance(x, Matrix(n, sides))));
        }
      }
}

TEST_CASE("calls with more rows than 32 bits count stay") {
  for (const char *body :
       {"ROOT x = f32[4294967296,1] custom-call(l, l, l, b), custom_call_target=\"cusparse_gtsv2_ffi\"",
        "ROOT x = (f32[4294967296,1], f32[1]) custom-call(b), custom_call_target=\"lapack_sgeqrf_ffi\""}) {
    PassRun p(fmt::format(
        "HloModule m\nENTRY e {{\n l = f32[4294967296] parameter(0)\n b = f32[4294967296,1] parameter(1)\n {}\n}}\n",
        body));
    CHECK(p.run(expandSolverCalls) == PassResult::Unchanged);
  }
}

TEST_CASE("LAPACK says which head of three diagonals is zero") {
  auto infoOf = [](std::vector<float> lower, std::vector<float> diagonal, std::vector<float> upper) {
    const size_t n = diagonal.size();
    PassRun p(fmt::format(
        "HloModule m\nENTRY e {{\n l = f32[{0}] parameter(0)\n d = f32[{0}] parameter(1)\n u = f32[{0}] "
        "parameter(2)\n b = f32[{0},1] parameter(3)\n ROOT r = (f32[{0}], f32[{0}], f32[{0}], f32[{0},1], "
        "s32[]) custom-call(l, d, u, b), custom_call_target=\"lapack_sgtsv_ffi\", backend_config={{}}\n}}\n",
        n));
    REQUIRE(p.run(expandSolverCalls) == PassResult::Changed);
    auto arguments = makeArguments(*p.module, p.diagnostics, 1);
    REQUIRE(succeeded(arguments));
    for (auto [i, values] : llvm::enumerate(std::vector<std::vector<float>>{lower, diagonal, upper}))
      llvm::copy(values, (*arguments)[i].mutableData<float>().begin());
    auto made = interpret(*p.module, *arguments, p.diagnostics);
    REQUIRE(succeeded(made));
    return int64_t(made->element(4).getDouble(0));
  };
  CHECK(infoOf({0, 1, 1}, {4, 4, 4}, {1, 1, 0}) == 0);
  CHECK(infoOf({0, 1, 1}, {0, 4, 4}, {1, 1, 0}) == 0); // rows change places
  CHECK(infoOf({0, 0, 1}, {0, 4, 4}, {1, 1, 0}) == 1);
  CHECK(infoOf({0, 0, 0}, {4, 4, 0}, {1, 1, 0}) == 3);
  CHECK(infoOf({0}, {0}, {0}) == 1);
}

TEST_CASE("singular vectors on both sides of singular values are the matrix") {
  for (const Type &type : types)
    for (auto [rows, columns] : sizes) {
      const int64_t least = std::min(rows, columns);
      INFO(type.name << " " << rows << " " << columns);
      Decomposed d = decompose(
          type, rows, columns,
          "ROOT f = " + call(fmt::format("({0}[2,{1},{2}], {4}[2,{3}], {0}[2,{1},{3}], {0}[2,{3},{2}], s32[2])",
                                         type.name, rows, columns, least, type.real),
                             "a", type.letter, "gesdd", "mode = 83 : ui8"));
      for (int64_t b = 0; b < 2; ++b) {
        const Matrix u = matrixOf(d.results.element(2), b), v = matrixOf(d.results.element(3), b);
        Matrix scaled = u;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < least; ++c)
            scaled.at(r, c) *= d.results.element(1).getDouble(b * least + c);
        CHECK(distance(scaled * v, matrixOf(d.matrices, b)) < type.tolerance);
        CHECK(distance(u.adjoint() * u, identity(least)) < type.tolerance);
        CHECK(distance(v * v.adjoint(), identity(least)) < type.tolerance);
        for (int64_t c = 1; c < least; ++c)
          CHECK(d.results.element(1).getDouble(b * least + c) <= d.results.element(1).getDouble(b * least + c - 1));
      }
    }
}
