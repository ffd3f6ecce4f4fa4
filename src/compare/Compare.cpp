#include "hloc/compare/Compare.h"

#include "compare/Report.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hloc {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Distance of the expected value to its neighbour in its own format.
double unitInLastPlace(ElementType type, double value) {
  const FloatFormat &format = floatFormat(type);
  int smallest = 1 - format.bias;
  int exponent = value == 0 ? smallest : std::max(std::ilogb(value), smallest);
  return std::ldexp(1.0, exponent - format.mantissaBits);
}

/// The largest finite magnitude among real (and imaginary) parts.
double largestMagnitude(const Literal &literal) {
  ElementType type = literal.shape().elementType();
  double largest = 0;
  auto consider = [&](double value) {
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  };
  for (int64_t i = 0; i < literal.numElements(); ++i)
    if (isComplex(type)) {
      std::complex<double> value = literal.getComplex(i);
      consider(value.real());
      consider(value.imag());
    } else {
      consider(literal.getDouble(i));
    }
  return largest;
}

/// How far two floats are apart, and whether that is allowed.
struct FloatVerdict {
  bool passes;
  double difference, ulps;
};

/// `scale`: the magnitude that relative errors refer to; that of the expected value or, for a part of a complex number,
/// of the larger part.
FloatVerdict judge(double expected, double actual, ElementType type, const Tolerance &tolerance, double largest,
                   double scale) {
  if (std::isnan(expected) || std::isnan(actual)) {
    bool both = std::isnan(expected) && std::isnan(actual);
    return {both, both ? 0 : infinity, both ? 0 : infinity};
  }
  if (expected == actual)
    return {true, 0, 0};
  if (std::isinf(expected) || std::isinf(actual)) {
    double finite = std::isinf(expected) ? actual : expected;
    bool nearOverflow = !std::isinf(finite) && std::signbit(expected) == std::signbit(actual) &&
                        std::fabs(finite) >= largestFinite(floatFormat(type)) / 2;
    return {tolerance.overflowMayDiffer && nearOverflow, infinity, infinity};
  }
  double difference = std::fabs(expected - actual);
  double ulps = difference / unitInLastPlace(type, scale);
  bool passes = ulps <= tolerance.ulps || difference <= tolerance.relative * scale ||
                difference <= tolerance.absolute || difference <= tolerance.ofLargest * largest;
  return {passes, difference, ulps};
}

/// Compares one array and collects what differs.
class ArrayComparison {
public:
  ArrayComparison(const Literal &expected, const Literal &actual, const Tolerance &tolerance,
                  llvm::ArrayRef<double> allowances, LeafReport &leaf)
      : expected(expected), actual(actual), tolerance(tolerance), allowances(allowances), leaf(leaf),
        type(expected.shape().elementType()) {}

  void run() {
    leaf.numElements = expected.numElements();
    if (expected.bytes() == actual.bytes())
      return;
    if (isFloat(type) || isComplex(type))
      largest = largestMagnitude(expected);
    for (int64_t i = 0; i < expected.numElements(); ++i)
      if (isComplex(type))
        compareComplex(i);
      else if (isFloat(type))
        note(i, judge(expected.getDouble(i), actual.getDouble(i), type, tolerance, largest,
                      std::fabs(expected.getDouble(i))));
      else
        compareInteger(i);
  }

private:
  void compareComplex(int64_t i) {
    std::complex<double> a = expected.getComplex(i), b = actual.getComplex(i);
    double scale = std::max(std::fabs(a.real()), std::fabs(a.imag()));
    if (!std::isfinite(scale)) // the parts have nothing in common
      scale = 0;
    double realScale = scale ? scale : std::fabs(a.real()), imagScale = scale ? scale : std::fabs(a.imag());
    FloatVerdict real = judge(a.real(), b.real(), componentType(type), tolerance, largest, realScale);
    FloatVerdict imag = judge(a.imag(), b.imag(), componentType(type), tolerance, largest, imagScale);
    note(i, {real.passes && imag.passes, std::max(real.difference, imag.difference), std::max(real.ulps, imag.ulps)});
  }
  void compareInteger(int64_t i) {
    int64_t a = expected.getInt(i), b = actual.getInt(i);
    if (isPred(type)) // any non-zero byte is true
      a = a != 0, b = b != 0;
    bool less = type == ElementType::U64 ? uint64_t(a) < uint64_t(b) : a < b;
    uint64_t difference = less ? uint64_t(b) - uint64_t(a) : uint64_t(a) - uint64_t(b);
    note(i, {difference <= uint64_t(tolerance.integers), double(difference), double(difference)});
  }
  void note(int64_t i, const FloatVerdict &verdict) {
    if (std::isfinite(verdict.ulps))
      leaf.largestUlps = std::max(leaf.largestUlps, verdict.ulps);
    bool isAllowed = !allowances.empty() && verdict.difference <= allowances[size_t(i)];
    if (!verdict.passes && !isAllowed)
      leaf.add(i, verdict.difference, verdict.ulps);
  }

  const Literal &expected, &actual;
  const Tolerance &tolerance;
  llvm::ArrayRef<double> allowances;
  LeafReport &leaf;
  ElementType type;
  double largest = 0;
};

const Literal &leafOf(const Literal &literal, llvm::ArrayRef<int64_t> path) {
  const Literal *at = &literal;
  for (int64_t index : path)
    at = &at->element(unsigned(index));
  return *at;
}

} // namespace

CompareResult compareLiterals(const Literal &expected, const Literal &actual, llvm::ArrayRef<Tolerance> tolerances,
                              const Allowances &allowances) {
  CompareResult result;
  if (!expected.shape().compatible(actual.shape())) {
    result.numMismatches = result.numElements = 1;
    result.report = "the results have different shapes: expected " + expected.shape().toString(false) + ", got " +
                    actual.shape().toString(false) + "\n";
    return result;
  }
  std::vector<LeafReport> leaves;
  for (const Shape::Leaf &leaf : expected.shape().leaves()) {
    if (!leaf.shape.isArray())
      continue;
    LeafReport report(leaf.index, leafOf(expected, leaf.index), leafOf(actual, leaf.index),
                      tolerances.size() > 1 ? tolerances[leaves.size()] : tolerances.front());
    llvm::ArrayRef<double> allowed;
    if (!allowances.empty())
      allowed = allowances[leaves.size()];
    ArrayComparison(report.expected, report.actual, report.tolerance, allowed, report).run();
    leaves.push_back(std::move(report));
  }
  summarise(leaves, result);
  return result;
}

CompareResult compareLiterals(const Literal &expected, const Literal &actual, const Tolerance &tolerance) {
  return compareLiterals(expected, actual, llvm::ArrayRef(tolerance));
}

} // namespace hloc
