// Elementwise ops with one operand. Floats: the C library's value; one overload per kind of lane an op is defined on.

#include "interp/ComplexMath.h"
#include "interp/LaneOp.h"

#include "hloc/support/Check.h"

#include <bit>
#include <cmath>

namespace hloc::interp {

namespace {

uint64_t widthMask(unsigned bits) { return bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }

struct Abs {
  static constexpr bool keepsNan = true;
  static int64_t apply(int64_t x) { return x < 0 ? int64_t(0 - uint64_t(x)) : x; } // abs(MIN) = MIN
  static uint64_t apply(uint64_t x) { return x; }
  template <RealLane T> static T apply(T x) { return std::fabs(x); }
  template <typename T> static T apply(std::complex<T> z) {
    T modulus = T(std::abs(widened(z)));
    return modulus == modulus ? modulus : arithmeticNan(T());
  }
};
struct Negate {
  static constexpr bool keepsNan = true;
  template <IntegerLane T> static T apply(T x) { return T(0 - uint64_t(x)); }
  template <RealLane T> static T apply(T x) { return -x; }
  template <ComplexLane T> static T apply(T z) { return -z; }
};
struct Sign {
  static int64_t apply(int64_t x) { return (x > 0) - (x < 0); }
  static uint64_t apply(uint64_t x) { return x != 0; }
  template <RealLane T> static T apply(T x) { return std::isnan(x) || x == 0 ? x : std::copysign(T(1), x); }
  template <ComplexLane T> static T apply(T z) {
    auto wide = widened(z);
    return z == T(0) ? T(0) : rounded<typename T::value_type>(wide / std::abs(wide));
  }
};
struct Not {
  static bool apply(bool x) { return !x; }
  template <IntegerLane T> static T apply(T x) { return ~x; }
};
struct CountLeadingZeros {
  template <IntegerLane T> static T apply(unsigned bits, T x) {
    return T(std::countl_zero(uint64_t(x) & widthMask(bits)) - int(64 - bits));
  }
};
struct PopulationCount {
  template <IntegerLane T> static T apply(unsigned bits, T x) {
    return T(std::popcount(uint64_t(x) & widthMask(bits)));
  }
};
struct IsFinite {
  template <RealLane T> static bool apply(T x) { return std::isfinite(x); }
};
struct Real {
  static constexpr bool keepsNan = true;
  template <RealLane T> static T apply(T x) { return x; }
  template <typename T> static T apply(std::complex<T> z) { return z.real(); }
};
struct Imag {
  static constexpr bool keepsNan = true;
  template <RealLane T> static T apply(T) { return 0; }
  template <typename T> static T apply(std::complex<T> z) { return z.imag(); }
};
struct RoundNearestEven {
  template <RealLane T> static T apply(T x) { return std::nearbyint(x); }
};
/// What functions of doubles are evaluated in where glibc's own err by one to two units, as much as kernels do or more:
/// the reference would be off to the other side.
template <RealLane T> auto inDigitsToSpare(T x) {
  if constexpr (std::is_same_v<T, double>)
    return static_cast<long double>(x);
  else
    return x;
}
struct Rsqrt {
  template <RealLane T> static T apply(T x) { return T(1 / std::sqrt(inDigitsToSpare(x))); }
  template <ComplexLane T> static T apply(T z) {
    return inMoreDigits([](auto wide) { return complexRsqrt(wide); }, z);
  }
};
struct Logistic {
  template <RealLane T> static T apply(T x) { return T(1) / (T(1) + std::exp(-x)); }
  template <ComplexLane T> static T apply(T z) {
    return inMoreDigits(
        [](auto wide) {
          constexpr decltype(wide) one(1);
          return one / (one + std::exp(-wide));
        },
        z);
  }
};
struct ExponentialMinusOne {
  template <RealLane T> static T apply(T x) { return std::expm1(x); }
  template <ComplexLane T> static T apply(T z) {
    return inMoreDigits([](auto wide) { return complexExpm1(wide); }, z);
  }
};
struct LogPlusOne {
  template <RealLane T> static T apply(T x) { return std::log1p(x); }
  template <ComplexLane T> static T apply(T z) {
    return inMoreDigits([](auto wide) { return complexLog1p(wide); }, z);
  }
};

// Ops that are a function of the C library, on reals alone or on reals and complex numbers.
#define HLOC_REAL_FUNCTION(Name, function)                                                                             \
  struct Name {                                                                                                        \
    template <RealLane T> static T apply(T x) { return std::function(x); }                                             \
  };
#define HLOC_FUNCTION(Name, function)                                                                                  \
  struct Name {                                                                                                        \
    template <RealLane T> static T apply(T x) { return std::function(x); }                                             \
    template <ComplexLane T> static T apply(T z) {                                                                     \
      return inMoreDigits([](auto wide) { return std::function(wide); }, z);                                           \
    }                                                                                                                  \
  };
#define HLOC_FUNCTION_WITH_DIGITS_TO_SPARE(Name, function)                                                             \
  struct Name {                                                                                                        \
    template <RealLane T> static T apply(T x) { return T(std::function(inDigitsToSpare(x))); }                         \
    template <ComplexLane T> static T apply(T z) {                                                                     \
      return inMoreDigits([](auto wide) { return std::function(wide); }, z);                                           \
    }                                                                                                                  \
  };
HLOC_REAL_FUNCTION(Ceil, ceil)
HLOC_REAL_FUNCTION(Floor, floor)
HLOC_REAL_FUNCTION(RoundNearestAfz, round)
/// In more digits: glibc's of a double errs by up to 3.2 units, kernels by half a unit.
struct Cbrt {
  template <RealLane T> static T apply(T x) { return T(std::cbrt((long double)x)); }
};
HLOC_REAL_FUNCTION(Erf, erf)
HLOC_FUNCTION(Acos, acos)
HLOC_FUNCTION_WITH_DIGITS_TO_SPARE(Acosh, acosh)
HLOC_FUNCTION(Asin, asin)
HLOC_FUNCTION_WITH_DIGITS_TO_SPARE(Asinh, asinh)
HLOC_FUNCTION_WITH_DIGITS_TO_SPARE(Atanh, atanh)
HLOC_FUNCTION(Cosine, cos)
HLOC_FUNCTION_WITH_DIGITS_TO_SPARE(Cosh, cosh)
HLOC_FUNCTION(Exponential, exp)
HLOC_FUNCTION(Log, log)
HLOC_FUNCTION(Sine, sin)
HLOC_FUNCTION_WITH_DIGITS_TO_SPARE(Sinh, sinh)
HLOC_FUNCTION(Sqrt, sqrt)
HLOC_FUNCTION(Tan, tan)
HLOC_FUNCTION_WITH_DIGITS_TO_SPARE(Tanh, tanh)
#undef HLOC_FUNCTION
#undef HLOC_FUNCTION_WITH_DIGITS_TO_SPARE
#undef HLOC_REAL_FUNCTION

struct ReducePrecision {}; // needs its attributes: reducePrecisionKernel

} // namespace

Kernel unaryKernel(Opcode opcode, ComputeType type) {
  switch (opcode) {
#define HLOC_KERNEL_Unary(Name)                                                                                        \
  case Opcode::Name:                                                                                                   \
    return unaryKernelOf<Name>(type);
#define HLOC_KERNEL_Binary(Name)
#define HLOC_OPCODE(...)
#define HLOC_ELEMENTWISE(name, text, operands, family, ...) HLOC_KERNEL_##family(name)
#include "hloc/hlo/Opcodes.def"
#undef HLOC_KERNEL_Unary
#undef HLOC_KERNEL_Binary
  default:
    HLOC_UNREACHABLE("an op of another family");
  }
}

} // namespace hloc::interp
