// convert, reduce-precision and stochastic-convert: everything that changes precision.

#include "hloc/hlo/ElementType.h"
#include "interp/LaneOp.h"

#include <bit>
#include <cmath>
#include <limits>

namespace hloc::interp {

namespace {

/// Truncates toward zero and saturates to `bits`; NaN gives 0.
template <IntegerLane To, RealLane From> To saturate(unsigned bits, From x) {
  if (std::isnan(x))
    return 0;
  constexpr bool isSigned = std::same_as<To, int64_t>;
  unsigned magnitudeBits = isSigned ? bits - 1 : bits;
  From limit = std::ldexp(From(1), int(magnitudeBits)); // first value that is too large
  uint64_t largest = magnitudeBits >= 64 ? ~uint64_t(0) : (uint64_t(1) << magnitudeBits) - 1;
  x = std::trunc(x);
  if (x >= limit)
    return To(largest);
  if constexpr (isSigned)
    return x < -limit ? To(~largest) : To(x);
  return x <= 0 ? 0 : To(x);
}

template <typename To> struct ConvertTo {
  template <typename From> static To apply(unsigned bits, From x) {
    if constexpr (std::same_as<To, bool>)
      return x != From(0);
    else if constexpr (ComplexLane<From> && ComplexLane<To>)
      return To(x);
    else if constexpr (ComplexLane<To>)
      return To(typename To::value_type(x));
    else if constexpr (RealLane<From> && IntegerLane<To>)
      return saturate<To>(bits, x);
    else
      return To(x);
  }
};

/// f32 with the last bit set where bits were lost: rounded once more to fewer bits it gives what one rounding would.
float roundToOdd(double x) {
  auto nearest = float(x);
  if (!(double(nearest) != x) || x != x)
    return nearest;
  auto pattern = std::bit_cast<uint32_t>(nearest);
  if (pattern & 1)
    return nearest;
  return std::bit_cast<float>(pattern + (std::fabs(double(nearest)) < std::fabs(x) ? 1 : -1));
}
template <IntegerLane T> float roundToOdd(T x) {
  bool isNegative = std::same_as<T, int64_t> && x < T(0);
  uint64_t magnitude = isNegative ? 0 - uint64_t(x) : uint64_t(x);
  int excess = 64 - std::countl_zero(magnitude) - 24;
  if (excess > 0) {
    uint64_t lost = magnitude & ((uint64_t(1) << excess) - 1);
    magnitude = (magnitude >> excess | (lost != 0)) << excess;
  }
  return isNegative ? -float(magnitude) : float(magnitude);
}

/// To a format of at most 16 bits, in one rounding: the lanes are rounded to it when they are stored.
struct ConvertToNarrow {
  static float apply(double x) { return roundToOdd(x); }
  template <IntegerLane T> static float apply(T x) { return roundToOdd(x); }
};

Kernel convertToNarrowKernel(ComputeType from) { return unaryKernelOf<ConvertToNarrow>(from); }

/// The reduced format has no subnormals; NaN becomes infinity if there is no mantissa to hold it.
template <RealLane T> T reducePrecision(T x, unsigned exponentBits, unsigned mantissaBits) {
  using Pattern = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr unsigned mantissa = std::numeric_limits<T>::digits - 1;
  constexpr unsigned exponent = sizeof(T) * 8 - 1 - mantissa;
  auto pattern = std::bit_cast<Pattern>(x);
  Pattern sign = pattern & (Pattern(1) << (sizeof(T) * 8 - 1));
  if (std::isnan(x))
    return mantissaBits > 0 ? x : std::numeric_limits<T>::infinity();
  if (mantissaBits < mantissa) {
    unsigned dropped = mantissa - mantissaBits;
    Pattern lastKept = (pattern >> dropped) & 1;
    pattern += (Pattern(1) << (dropped - 1)) - 1 + lastKept;
    pattern &= ~((Pattern(1) << dropped) - 1);
  }
  if (exponentBits < exponent) {
    constexpr Pattern bias = (Pattern(1) << (exponent - 1)) - 1;
    Pattern reducedBias = (Pattern(1) << (exponentBits - 1)) - 1;
    Pattern field = (pattern & ~sign) >> mantissa;
    if (field > bias + reducedBias)
      return std::bit_cast<T>(Pattern(sign | (((Pattern(1) << exponent) - 1) << mantissa)));
    if (field <= bias - reducedBias)
      return std::bit_cast<T>(sign);
  }
  return std::bit_cast<T>(pattern);
}

template <RealLane T> void runReducePrecision(const Lanes &lanes) {
  auto *from = static_cast<const T *>(lanes.operands[0]);
  auto *to = static_cast<T *>(lanes.result);
  for (int64_t i = 0; i < lanes.count; ++i)
    to[i] = reducePrecision(from[i], lanes.exponentBits, lanes.mantissaBits);
}

/// Rounds the magnitude up iff the random number, out of 2^randomBits, is below the fraction; then saturates.
template <RealLane T> int64_t stochasticConvert(T x, uint64_t random, unsigned randomBits, unsigned resultBits) {
  if (std::isnan(x))
    return 0;
  T magnitude = std::fabs(x), whole = std::trunc(magnitude);
  if (std::isfinite(x) && random < uint64_t(std::ldexp(magnitude - whole, int(randomBits))))
    whole += 1;
  return saturate<int64_t>(resultBits, std::copysign(whole, x));
}

template <RealLane T> void runStochasticConvert(const Lanes &lanes) {
  auto *from = static_cast<const T *>(lanes.operands[0]);
  auto *random = static_cast<const uint64_t *>(lanes.operands[1]);
  auto *to = static_cast<int64_t *>(lanes.result);
  for (int64_t i = 0; i < lanes.count; ++i)
    to[i] = stochasticConvert(from[i], random[i], lanes.randomBits, lanes.bits);
}

} // namespace

Kernel convertKernel(ElementType from, ElementType to) {
  ComputeType source = computeType(from), target = computeType(to);
  if (isFloat(to) && bitWidth(to) <= 16 && source != ComputeType::Single && !isPred(from) && !isComplex(from))
    return convertToNarrowKernel(source);
  if (isComplex(from) && !isComplex(to) && !isPred(to))
    return nullptr; // `real` says which part is meant
  return withLaneType(target, [&](auto targetZero) {
    return withLaneType(source, [](auto sourceZero) -> Kernel {
      using To = decltype(targetZero);
      using From = decltype(sourceZero);
      if constexpr (ComplexLane<From> && !ComplexLane<To> && !std::same_as<To, bool>)
        return nullptr;
      else
        return kernelFor<ConvertTo<To>, From>();
    });
  });
}

Kernel reducePrecisionKernel(ComputeType type) {
  if (type == ComputeType::Single)
    return &runReducePrecision<float>;
  return type == ComputeType::Double ? &runReducePrecision<double> : nullptr;
}

Kernel stochasticConvertKernel(ComputeType type) {
  if (type == ComputeType::Single)
    return &runStochasticConvert<float>;
  return type == ComputeType::Double ? &runStochasticConvert<double> : nullptr;
}

} // namespace hloc::interp
