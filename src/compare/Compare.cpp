#include "hloc/compare/Compare.h"

#include "compare/Report.h"

#include <algorithm>
#include <cmath>
#include <cstring>
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
  if (std::isinf(expected) || std::isinf(actual))
    return {false, infinity, infinity};
  double difference = std::fabs(expected - actual);
  double ulps = difference / unitInLastPlace(type, scale);
  bool passes = ulps <= tolerance.ulps || difference <= tolerance.relative * scale ||
                difference <= tolerance.absolute || difference <= tolerance.ofLargest * largest;
  return {passes, difference, ulps};
}

/// Compares one array and collects what differs.
class ArrayComparison {
public:
  ArrayComparison(const Literal &expected, const Literal &actual, const Tolerance &tolerance, LeafReport &leaf)
      : expected(expected), actual(actual), tolerance(tolerance), leaf(leaf), type(expected.shape().elementType()) {}

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
    if (!verdict.passes)
      leaf.add(i, verdict.difference, verdict.ulps);
  }

  const Literal &expected, &actual;
  const Tolerance &tolerance;
  LeafReport &leaf;
  ElementType type;
  double largest = 0;
};

/// How far an element is from another, as a difference and in ULPs of the first; of complex numbers the further part,
/// in ULPs of the larger one. Infinite where only one is a number.
std::pair<double, double> distance(const Literal &a, const Literal &b, int64_t i) {
  ElementType type = a.shape().elementType();
  if (isComplex(type)) {
    std::complex<double> x = a.getComplex(i), y = b.getComplex(i);
    double scale = std::max(std::fabs(x.real()), std::fabs(x.imag()));
    FloatVerdict real = judge(x.real(), y.real(), componentType(type), {}, 0, std::isfinite(scale) ? scale : 0);
    FloatVerdict imag = judge(x.imag(), y.imag(), componentType(type), {}, 0, std::isfinite(scale) ? scale : 0);
    return {std::max(real.difference, imag.difference), std::max(real.ulps, imag.ulps)};
  }
  if (isFloat(type)) {
    FloatVerdict verdict = judge(a.getDouble(i), b.getDouble(i), type, {}, 0, std::fabs(a.getDouble(i)));
    return {verdict.difference, verdict.ulps};
  }
  int64_t x = a.getInt(i), y = b.getInt(i);
  bool less = type == ElementType::U64 ? uint64_t(x) < uint64_t(y) : x < y;
  auto difference = double(less ? uint64_t(y) - uint64_t(x) : uint64_t(x) - uint64_t(y));
  return {difference, difference};
}

/// The further end of what is admissible, in ULPs of the expected value.
double boundOf(const AdmissibleArray &bounds, int64_t i) {
  double largest = 0;
  for (const Literal *end : {&bounds.low, &bounds.high}) {
    ElementType type = bounds.value.shape().elementType();
    double ulps;
    if (isFloat(type))
      ulps =
          judge(bounds.value.getDouble(i), end->getDouble(i), type, {}, 0, std::fabs(bounds.value.getDouble(i))).ulps;
    else
      ulps = distance(bounds.value, *end, i).second;
    largest = std::isfinite(ulps) ? std::max(largest, ulps) : largest;
  }
  return largest;
}

void compareWithBounds(LeafReport &leaf) {
  leaf.numElements = leaf.expected.numElements();
  unsigned width = hostBytes(leaf.expected.shape().elementType());
  const uint8_t *wanted = leaf.expected.bytes().data(), *got = leaf.actual.bytes().data();
  for (int64_t at = 0, count = leaf.bounds->value.numElements(); at < count; ++at) {
    int64_t i = leaf.elements.empty() ? at : leaf.elements[size_t(at)];
    bool isUndecided = leaf.bounds->isUndecided(at);
    if (leaf.bounds->isBranched(at)) {
      ++leaf.numBranched;
      if (!isUndecided)
        leaf.widestBound = std::max(leaf.widestBound, boundOf(*leaf.bounds, at));
    }
    if (isUndecided && leaf.numUndecided++ == 0)
      leaf.firstUndecided = i;
    if (std::equal(wanted + i * width, wanted + (i + 1) * width, got + i * width))
      continue;
    auto [difference, ulps] = distance(leaf.expected, leaf.actual, i);
    if (std::isfinite(ulps)) {
      leaf.largestUlps = std::max(leaf.largestUlps, ulps);
      if (ulps > leaf.furthest.ulps && !isUndecided)
        leaf.furthest = {i, difference, ulps};
    }
    if (!leaf.bounds->admits(at, leaf.actual, i))
      leaf.add(i, difference, ulps);
  }
}

const Literal &leafOf(const Literal &literal, llvm::ArrayRef<int64_t> path) {
  const Literal *at = &literal;
  for (int64_t index : path)
    at = &at->element(unsigned(index));
  return *at;
}

} // namespace

/// Nothing if the shapes agree.
static std::optional<CompareResult> differentShapes(const Literal &expected, const Literal &actual) {
  if (expected.shape().compatible(actual.shape()))
    return std::nullopt;
  CompareResult result;
  result.numMismatches = result.numElements = 1;
  result.report = "the results have different shapes: expected " + expected.shape().toString(false) + ", got " +
                  actual.shape().toString(false) + "\n";
  return result;
}

/// Linear indices at which any of the arrays, which all have the same dimensions, differ in their bytes.
static std::vector<int64_t> differingElements(const Literal &expected, const Literal &actual) {
  std::vector<bool> differs;
  for (const Shape::Leaf &leaf : expected.shape().leaves()) {
    const Literal &wanted = leafOf(expected, leaf.index), &got = leafOf(actual, leaf.index);
    size_t width = hostBytes(leaf.shape.elementType());
    differs.resize(size_t(wanted.numElements()));
    const uint8_t *a = wanted.bytes().data(), *b = got.bytes().data();
    for (size_t i = 0; i < differs.size(); ++i, a += width, b += width)
      if (std::memcmp(a, b, width) != 0)
        differs[i] = true;
  }
  std::vector<int64_t> elements;
  for (size_t i = 0; i < differs.size(); ++i)
    if (differs[i])
      elements.push_back(int64_t(i));
  return elements;
}

llvm::FailureOr<CompareResult> compareRun(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                          const Literal &expected, const Literal &actual, Backend backend,
                                          DiagnosticEngine &diagnostics, const InterpreterOptions &options) {
  if (std::optional<CompareResult> different = differentShapes(expected, actual))
    return *different;
  CompareResult result;
  if (expected == actual) {
    for (const Shape::Leaf &leaf : expected.shape().leaves())
      result.numElements += leaf.shape.isArray() ? leaf.shape.numElements() : 0;
    return result;
  }
  // Of elements that each depend on their own arguments alone, only those that differ are looked at.
  std::vector<int64_t> elements;
  if (isElementwise(module))
    elements = differingElements(expected, actual);
  llvm::FailureOr<BoundedResult> bounded = elements.empty()
                                               ? interpretBounds(module, arguments, backend, diagnostics, options)
                                               : interpretBoundsAt(module, arguments, elements, backend, diagnostics);
  if (failed(bounded))
    return llvm::failure();
  std::vector<LeafReport> leaves;
  for (const AdmissibleArray &leaf : bounded->leaves) {
    leaves.emplace_back(leaf, leafOf(expected, leaf.path), leafOf(actual, leaf.path));
    leaves.back().elements = elements;
    compareWithBounds(leaves.back());
  }
  summarise(leaves, result);
  return result;
}

CompareResult compareLiterals(const Literal &expected, const Literal &actual, llvm::ArrayRef<Tolerance> tolerances) {
  if (std::optional<CompareResult> different = differentShapes(expected, actual))
    return *different;
  CompareResult result;
  std::vector<LeafReport> leaves;
  for (const Shape::Leaf &leaf : expected.shape().leaves()) {
    if (!leaf.shape.isArray())
      continue;
    LeafReport report(leaf.index, leafOf(expected, leaf.index), leafOf(actual, leaf.index),
                      tolerances.size() > 1 ? tolerances[leaves.size()] : tolerances.front());
    ArrayComparison(report.expected, report.actual, *report.tolerance, report).run();
    leaves.push_back(std::move(report));
  }
  summarise(leaves, result);
  return result;
}

CompareResult compareLiterals(const Literal &expected, const Literal &actual, const Tolerance &tolerance) {
  return compareLiterals(expected, actual, llvm::ArrayRef(tolerance));
}

} // namespace hloc
