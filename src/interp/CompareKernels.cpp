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

/// For formats whose only NaN has the pattern that is -0 elsewhere, and its place in the order.
template <typename Relation> struct TotalFnuz {
  template <RealLane T> static auto key(T x) { return totalOrderKey(x == x ? x : T(-0.0)); }
  template <RealLane T> static bool apply(T a, T b) { return Relation()(key(a), key(b)); }
};

template <typename Relation> Kernel kernelOf(FloatOrder order, ComputeType type) {
  switch (order) {
  case FloatOrder::Partial:
    return binaryKernelOf<Partial<Relation>>(type);
  case FloatOrder::Total:
    return binaryKernelOf<Total<Relation>>(type);
  case FloatOrder::TotalFnuz:
    return binaryKernelOf<TotalFnuz<Relation>>(type);
  }
  return nullptr;
}

} // namespace

FloatOrder totalOrderOf(ElementType type) {
  bool isFnuz = isFloat(type) && floatFormat(type).specials == FloatFormat::Specials::NanNegativeZero;
  return isFnuz ? FloatOrder::TotalFnuz : FloatOrder::Total;
}

Kernel compareKernel(ComparisonDirection direction, FloatOrder order, ComputeType type) {
  bool complex = type == ComputeType::ComplexSingle || type == ComputeType::ComplexDouble;
  if (complex && direction != ComparisonDirection::Eq && direction != ComparisonDirection::Ne)
    return nullptr;
  switch (direction) {
  case ComparisonDirection::Eq:
    return kernelOf<std::equal_to<>>(order, type);
  case ComparisonDirection::Ne:
    return kernelOf<std::not_equal_to<>>(order, type);
  case ComparisonDirection::Ge:
    return kernelOf<std::greater_equal<>>(order, type);
  case ComparisonDirection::Gt:
    return kernelOf<std::greater<>>(order, type);
  case ComparisonDirection::Le:
    return kernelOf<std::less_equal<>>(order, type);
  case ComparisonDirection::Lt:
    return kernelOf<std::less<>>(order, type);
  }
  return nullptr;
}

} // namespace hloc::interp
