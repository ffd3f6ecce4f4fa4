#include "compare/Distance.h"

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hloc {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The larger of the magnitudes of an element's parts.
double magnitude(const Literal &array, int64_t i) {
  ElementType type = array.shape().elementType();
  if (isComplex(type)) {
    std::complex<double> value = array.getComplex(i);
    return std::max(std::fabs(value.real()), std::fabs(value.imag()));
  }
  if (isFloat(type))
    return std::fabs(array.getDouble(i));
  return type == ElementType::U64 ? double(array.getBits(i)) : std::fabs(double(array.getInt(i)));
}

template <typename T> double largestOf(llvm::ArrayRef<T> values) {
  T largest = 0;
  for (T value : values)
    if (T size = std::fabs(value); size > largest && std::isfinite(size))
      largest = size;
  return double(largest);
}

} // namespace

double unitInLastPlace(ElementType type, double value) {
  const FloatFormat &format = floatFormat(type);
  int smallest = 1 - format.bias;
  int exponent = value == 0 ? smallest : std::max(std::ilogb(value), smallest);
  return std::ldexp(1.0, exponent - format.mantissaBits);
}

Distance floatDistance(double a, double b, ElementType type, double scale) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return {};
  if (!std::isfinite(a) || !std::isfinite(b))
    return {infinity, infinity};
  const double difference = std::fabs(a - b);
  return {difference, difference / unitInLastPlace(type, scale)};
}

Distance distance(const Literal &a, int64_t i, const Literal &b, int64_t k) {
  ElementType type = a.shape().elementType();
  if (isComplex(type)) {
    std::complex<double> x = a.getComplex(i), y = b.getComplex(k);
    const double larger = magnitude(a, i);
    auto part = [&](double from, double to) {
      return floatDistance(from, to, componentType(type), std::isfinite(larger) ? larger : from);
    };
    Distance real = part(x.real(), y.real()), imag = part(x.imag(), y.imag());
    return {std::max(real.difference, imag.difference), std::max(real.ulps, imag.ulps)};
  }
  if (isFloat(type))
    return floatDistance(a.getDouble(i), b.getDouble(k), type, a.getDouble(i));
  int64_t x = a.getInt(i), y = b.getInt(k);
  if (isPred(type)) {
    x = x != 0;
    y = y != 0;
  }
  bool less = type == ElementType::U64 ? uint64_t(x) < uint64_t(y) : x < y;
  return {double(less ? uint64_t(y) - uint64_t(x) : uint64_t(x) - uint64_t(y)), 0};
}

double largestMagnitude(const Literal &array) {
  ElementType part =
      isComplex(array.shape().elementType()) ? componentType(array.shape().elementType()) : array.shape().elementType();
  if (part == ElementType::F32)
    return largestOf(array.data<float>());
  if (part == ElementType::F64)
    return largestOf(array.data<double>());
  double largest = 0;
  for (int64_t i = 0; i < array.numElements(); ++i)
    if (double size = magnitude(array, i); std::isfinite(size))
      largest = std::max(largest, size);
  return largest;
}

double typicalMagnitude(const Literal &array) {
  constexpr int64_t enough = 4096;
  const int64_t count = array.numElements(), stride = std::max<int64_t>(1, count / enough);
  std::vector<double> sizes;
  for (int64_t i = 0; i < count; i += stride)
    if (double size = magnitude(array, i); std::isfinite(size) && size > 0)
      sizes.push_back(size);
  if (sizes.empty())
    return 0;
  auto middle = sizes.begin() + int64_t(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

} // namespace hloc
