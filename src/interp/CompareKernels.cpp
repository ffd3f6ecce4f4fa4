#include "interp/LaneOp.h"

#include <bit>
#include <functional>
#include <type_traits>

namespace hloc::interp {

namespace {

/// -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN: the pattern as a sign-magnitude number.
template <RealLane T> auto totalOrderKey(T x) {
  using Key = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  auto key = std::bit_cast<Key>(x);
  return key < 0 ? Key(key ^ std::numeric_limits<Key>::max()) : key;
}

template <typename Relation> struct Partial {
  template <typename T>
  static bool apply(T a, T b)
    requires requires { Relation()(a, b); }
  {
    return Relation()(a, b);
  }
};
template <typename Relation> struct Total {
  template <RealLane T> static bool apply(T a, T b) { return Relation()(totalOrderKey(a), totalOrderKey(b)); }
};

template <typename Relation> Kernel kernelOf(bool totalOrder, ComputeType type) {
  return totalOrder ? binaryKernelOf<Total<Relation>>(type) : binaryKernelOf<Partial<Relation>>(type);
}

} // namespace

Kernel compareKernel(ComparisonDirection direction, bool totalOrder, ComputeType type) {
  bool complex = type == ComputeType::ComplexSingle || type == ComputeType::ComplexDouble;
  if (complex && direction != ComparisonDirection::Eq && direction != ComparisonDirection::Ne)
    return nullptr;
  switch (direction) {
  case ComparisonDirection::Eq:
    return kernelOf<std::equal_to<>>(totalOrder, type);
  case ComparisonDirection::Ne:
    return kernelOf<std::not_equal_to<>>(totalOrder, type);
  case ComparisonDirection::Ge:
    return kernelOf<std::greater_equal<>>(totalOrder, type);
  case ComparisonDirection::Gt:
    return kernelOf<std::greater<>>(totalOrder, type);
  case ComparisonDirection::Le:
    return kernelOf<std::less_equal<>>(totalOrder, type);
  case ComparisonDirection::Lt:
    return kernelOf<std::less<>>(totalOrder, type);
  }
  return nullptr;
}

} // namespace hloc::interp
