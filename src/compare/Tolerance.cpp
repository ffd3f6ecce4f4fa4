// Comparing by a tolerance given by hand.

#include "compare/Distance.h"
#include "compare/Report.h"

#include <cmath>

namespace hloc {

namespace {

/// Whether two floats, which are that far apart, may be. `scale`: what relative errors refer to.
bool passes(const Distance &apart, const Tolerance &tolerance, double largest, double scale) {
  return apart.ulps <= tolerance.ulps || apart.difference <= tolerance.relative * scale ||
         apart.difference <= tolerance.absolute || apart.difference <= tolerance.ofLargest * largest;
}

/// Compares one array and collects what differs.
class ArrayComparison {
public:
  explicit ArrayComparison(LeafReport &leaf)
      : expected(leaf.expected), actual(leaf.actual), tolerance(*leaf.tolerance), leaf(leaf),
        type(expected.shape().elementType()) {}

  void run() {
    if (expected.bytes() == actual.bytes())
      return;
    const bool floating = isFloat(type) || isComplex(type);
    if (floating)
      largest = largestMagnitude(expected);
    const size_t width = hostBytes(type);
    const uint8_t *wanted = expected.bytes().data(), *got = actual.bytes().data();
    for (int64_t i = 0; i < expected.numElements(); ++i, wanted += width, got += width) {
      if (std::equal(wanted, wanted + width, got))
        continue;
      const Distance apart = distance(expected, i, actual, i);
      const bool good = !floating ? apart.difference <= double(tolerance.integers) : isGood(i);
      leaf.note(i, apart, [] { return std::string(); }, good, bothAreNan(i));
    }
  }

private:
  bool isGood(int64_t i) const {
    if (isFloat(type))
      return isGoodPart(expected.getDouble(i), actual.getDouble(i), std::fabs(expected.getDouble(i)));
    std::complex<double> a = expected.getComplex(i), b = actual.getComplex(i);
    const double larger = std::max(std::fabs(a.real()), std::fabs(a.imag()));
    auto scaleOf = [&](double part) { return std::isfinite(larger) && larger > 0 ? larger : std::fabs(part); };
    return isGoodPart(a.real(), b.real(), scaleOf(a.real())) && isGoodPart(a.imag(), b.imag(), scaleOf(a.imag()));
  }
  /// An infinity is no number, however large.
  bool isGoodPart(double a, double b, double scale) const {
    const Distance apart = floatDistance(a, b, isComplex(type) ? componentType(type) : type, scale);
    return std::isfinite(apart.difference) && passes(apart, tolerance, largest, std::isfinite(scale) ? scale : 0);
  }
  bool bothAreNan(int64_t i) const {
    return isFloat(type) && std::isnan(expected.getDouble(i)) && std::isnan(actual.getDouble(i));
  }

  const Literal &expected, &actual;
  const Tolerance &tolerance;
  LeafReport &leaf;
  ElementType type;
  double largest = 0;
};

} // namespace

CompareResult compareLiterals(const Literal &expected, const Literal &actual, llvm::ArrayRef<Tolerance> tolerances) {
  if (std::optional<CompareResult> different = differentShapes(expected, actual))
    return *different;
  CompareResult result;
  std::vector<LeafReport> leaves;
  for (const Shape::Leaf &leaf : expected.shape().leaves()) {
    if (!leaf.shape.isArray())
      continue;
    LeafReport report(leaf.index, leafOf(expected, leaf.index), leafOf(actual, leaf.index));
    report.tolerance = &(tolerances.size() > 1 ? tolerances[leaves.size()] : tolerances.front());
    ArrayComparison(report).run();
    leaves.push_back(std::move(report));
  }
  summarise(leaves, result);
  return result;
}

CompareResult compareLiterals(const Literal &expected, const Literal &actual, const Tolerance &tolerance) {
  return compareLiterals(expected, actual, llvm::ArrayRef(tolerance));
}

std::optional<Tolerance> parseTolerance(llvm::StringRef text) {
  Tolerance tolerance;
  if (text == "exact")
    return tolerance;
  double both = 0;
  if (!text.getAsDouble(both) && both >= 0) {
    tolerance.absolute = tolerance.relative = both;
    return tolerance;
  }
  llvm::SmallVector<llvm::StringRef, 4> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [key, value] = part.split('=');
    double *bound = key == "abs" || key == "absolute"   ? &tolerance.absolute
                    : key == "rel" || key == "relative" ? &tolerance.relative
                    : key == "ulps"                     ? &tolerance.ulps
                    : key == "largest"                  ? &tolerance.ofLargest
                                                        : nullptr;
    bool bad = key == "int" ? value.getAsInteger(10, tolerance.integers) || tolerance.integers < 0
                            : !bound || value.getAsDouble(*bound) || *bound < 0;
    if (bad)
      return std::nullopt;
  }
  return tolerance;
}

} // namespace hloc
