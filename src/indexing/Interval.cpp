#include "hloc/indexing/IndexingMap.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace hloc;

namespace {

constexpr int64_t minValue = std::numeric_limits<int64_t>::min();
constexpr int64_t maxValue = std::numeric_limits<int64_t>::max();

int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (!llvm::AddOverflow(a, b, sum))
    return sum;
  return a < 0 ? minValue : maxValue;
}

/// An endpoint at either end of int64 stands for "at least that far", so its product and its negation stay at an end.
int64_t saturatingMul(int64_t a, int64_t b) {
  if (a == 0 || b == 0)
    return 0;
  bool negative = (a < 0) != (b < 0);
  auto isEnd = [](int64_t value) { return value == minValue || value == maxValue; };
  int64_t product;
  if (!isEnd(a) && !isEnd(b) && !llvm::MulOverflow(a, b, product))
    return product;
  return negative ? minValue : maxValue;
}

} // namespace

int64_t Interval::size() const {
  if (isEmpty())
    return 0;
  int64_t difference;
  if (llvm::SubOverflow(upper, lower, difference) || difference == maxValue)
    return maxValue;
  return difference + 1;
}

Interval Interval::intersect(const Interval &other) const {
  return {std::max(lower, other.lower), std::min(upper, other.upper)};
}

Interval Interval::unite(const Interval &other) const {
  if (isEmpty())
    return other;
  if (other.isEmpty())
    return *this;
  return {std::min(lower, other.lower), std::max(upper, other.upper)};
}

Interval Interval::operator+(const Interval &other) const {
  if (isEmpty() || other.isEmpty())
    return {};
  // A saturated end stays saturated, whatever is added: the true value may lie further out.
  int64_t low = lower == minValue || other.lower == minValue ? minValue : saturatingAdd(lower, other.lower);
  int64_t high = upper == maxValue || other.upper == maxValue ? maxValue : saturatingAdd(upper, other.upper);
  return {low, high};
}

Interval Interval::operator*(const Interval &other) const {
  if (isEmpty() || other.isEmpty())
    return {};
  auto [low, high] = std::minmax({saturatingMul(lower, other.lower), saturatingMul(lower, other.upper),
                                  saturatingMul(upper, other.lower), saturatingMul(upper, other.upper)});
  return {low, high};
}

Interval Interval::operator-() const {
  if (isEmpty())
    return {};
  return {saturatingMul(upper, -1), saturatingMul(lower, -1)};
}
