// Elementwise ops with two and three operands of one type, except compare and convert.

#include "interp/ComplexMath.h"
#include "interp/LaneOp.h"

#include "hloc/support/Check.h"

#include <cmath>
#include <limits>

namespace hloc::interp {

namespace {

// Integers: computed in 64 bits, wrapped to their width when rounded.
struct Add {
  static bool apply(bool a, bool b) { return a || b; }
  template <IntegerLane T> static T apply(T a, T b) { return T(uint64_t(a) + uint64_t(b)); }
  template <RealLane T> static T apply(T a, T b) { return a + b; }
  template <ComplexLane T> static T apply(T a, T b) { return a + b; }
};
struct Subtract {
  template <IntegerLane T> static T apply(T a, T b) { return T(uint64_t(a) - uint64_t(b)); }
  template <RealLane T> static T apply(T a, T b) { return a - b; }
  template <ComplexLane T> static T apply(T a, T b) { return a - b; }
};
struct Multiply {
  static bool apply(bool a, bool b) { return a && b; }
  template <IntegerLane T> static T apply(T a, T b) { return T(uint64_t(a) * uint64_t(b)); }
  template <RealLane T> static T apply(T a, T b) { return a * b; }
  /// As it is written: C's recovery of infinities from NaNs is not what generated code does.
  template <typename T> static std::complex<T> apply(std::complex<T> a, std::complex<T> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};
struct Divide {
  static int64_t apply(int64_t a, int64_t b) {
    if (b == 0)
      return -1;
    return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
  }
  static uint64_t apply(uint64_t a, uint64_t b) { return b == 0 ? ~uint64_t(0) : a / b; }
  template <RealLane T> static T apply(T a, T b) { return a / b; }
  template <ComplexLane T> static T apply(T a, T b) { return complexDivide(a, b); }
};
struct Remainder {
  static int64_t apply(int64_t a, int64_t b) {
    if (b == 0)
      return a;
    return b == -1 ? 0 : a % b;
  }
  static uint64_t apply(uint64_t a, uint64_t b) { return b == 0 ? a : a % b; }
  template <RealLane T> static T apply(T a, T b) { return std::fmod(a, b); }
};
struct Maximum {
  static bool apply(bool a, bool b) { return a || b; }
  template <IntegerLane T> static T apply(T a, T b) { return a < b ? b : a; }
  /// NaN wins, and +0 is more than -0.
  template <RealLane T> static T apply(T a, T b) {
    if (a == b)
      return std::signbit(a) ? b : a;
    return std::isnan(a) || a > b ? a : b; // NaN b: a > b is false
  }
};
struct Minimum {
  static bool apply(bool a, bool b) { return a && b; }
  template <IntegerLane T> static T apply(T a, T b) { return b < a ? b : a; }
  template <RealLane T> static T apply(T a, T b) {
    if (a == b)
      return std::signbit(a) ? a : b;
    return std::isnan(a) || a < b ? a : b;
  }
};
/// Of complex numbers, as XLA:CPU has it: the real parts decide, and the first of equals is taken.
struct GreaterReal {
  static constexpr bool keepsNan = true;
  template <ComplexLane T> static T apply(T a, T b) { return a.real() >= b.real() ? a : b; }
};
struct LesserReal {
  static constexpr bool keepsNan = true;
  template <ComplexLane T> static T apply(T a, T b) { return a.real() <= b.real() ? a : b; }
};
struct MultiplyHigh {
  static int64_t apply(unsigned bits, int64_t a, int64_t b) { return int64_t((__int128(a) * b) >> bits); }
  static uint64_t apply(unsigned bits, uint64_t a, uint64_t b) {
    return uint64_t((static_cast<unsigned __int128>(a) * b) >> bits);
  }
};
struct And {
  static bool apply(bool a, bool b) { return a && b; }
  template <IntegerLane T> static T apply(T a, T b) { return a & b; }
};
struct Or {
  static bool apply(bool a, bool b) { return a || b; }
  template <IntegerLane T> static T apply(T a, T b) { return a | b; }
};
struct Xor {
  static bool apply(bool a, bool b) { return a != b; }
  template <IntegerLane T> static T apply(T a, T b) { return a ^ b; }
};

/// The shift amount, read as unsigned in its width; `bits` or more means "everything is shifted out".
uint64_t shiftAmount(unsigned bits, uint64_t amount) {
  return bits >= 64 ? amount : amount & ((uint64_t(1) << bits) - 1);
}
struct ShiftLeft {
  template <IntegerLane T> static T apply(unsigned bits, T x, T amount) {
    uint64_t by = shiftAmount(bits, uint64_t(amount));
    return by >= bits ? 0 : T(uint64_t(x) << by);
  }
};
struct ShiftRightLogical {
  template <IntegerLane T> static T apply(unsigned bits, T x, T amount) {
    uint64_t by = shiftAmount(bits, uint64_t(amount));
    return by >= bits ? 0 : T(shiftAmount(bits, uint64_t(x)) >> by);
  }
};
struct ShiftRightArithmetic {
  // The top bit is a sign also for unsigned types.
  template <IntegerLane T> static T apply(unsigned bits, T x, T amount) {
    uint64_t by = shiftAmount(bits, uint64_t(amount));
    int64_t extended = int64_t(uint64_t(x) << (64 - bits)) >> (64 - bits);
    return T(extended >> (by >= bits ? bits - 1 : by));
  }
};

struct Power {
  template <IntegerLane T> static T apply(T base, T exponent) {
    if constexpr (std::same_as<T, int64_t>)
      if (exponent < 0)
        return base == 1 ? 1 : 0;
    uint64_t result = 1, square = uint64_t(base);
    for (uint64_t left = uint64_t(exponent); left != 0; left >>= 1, square *= square)
      if (left & 1)
        result *= square;
    return T(result);
  }
  /// The library's, but 1 also where a signalling NaN meets 0 or 1.
  template <RealLane T> static T apply(T base, T exponent) {
    return base == 1 || exponent == 0 ? T(1) : std::pow(base, exponent);
  }
  template <typename T> static std::complex<T> apply(std::complex<T> base, std::complex<T> exponent) {
    using Z = std::complex<T>;
    if (exponent == Z(0))
      return Z(1);
    auto raised = [&] { return rounded<T>(std::pow(widened(base), widened(exponent))); };
    if (base == Z(0))
      return exponent.imag() == 0 && exponent.real() > 0 ? Z(0) : raised();
    constexpr T infinity = std::numeric_limits<T>::infinity();
    if (base == Z(infinity, 0) && exponent.imag() == 0)
      return exponent.real() > 0 ? Z(infinity, 0) : Z(0);
    return raised();
  }
};
struct Atan2 {
  template <RealLane T> static T apply(T y, T x) { return std::atan2(y, x); }
  template <typename T> static std::complex<T> apply(std::complex<T> y, std::complex<T> x) {
    const std::complex<Wider<T>> i(0, 1), wideY = widened(y), wideX = widened(x);
    return rounded<T>(-i * std::log((wideX + i * wideY) / std::sqrt(wideX * wideX + wideY * wideY)));
  }
};
struct Complex {
  static constexpr bool keepsNan = true;
  template <RealLane T> static std::complex<T> apply(T real, T imag) { return {real, imag}; }
};

struct Select {
  static constexpr bool keepsNan = true;
  template <typename T> static T apply(bool which, T yes, T no) { return which ? yes : no; }
};
struct Clamp {
  static bool apply(bool low, bool x, bool high) { return (x || low) && high; }
  template <IntegerLane T> static T apply(T low, T x, T high) {
    T raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
  template <RealLane T> static T apply(T low, T x, T high) { return Minimum::apply(high, Maximum::apply(low, x)); }
};

template <typename Op> Kernel kernelOf(ComputeType type) { return binaryKernelOf<Op>(type); }
bool isComplexLane(ComputeType type) {
  return type == ComputeType::ComplexSingle || type == ComputeType::ComplexDouble;
}
template <> Kernel kernelOf<Maximum>(ComputeType type) {
  return isComplexLane(type) ? binaryKernelOf<GreaterReal>(type) : binaryKernelOf<Maximum>(type);
}
template <> Kernel kernelOf<Minimum>(ComputeType type) {
  return isComplexLane(type) ? binaryKernelOf<LesserReal>(type) : binaryKernelOf<Minimum>(type);
}

} // namespace

Kernel binaryKernel(Opcode opcode, ComputeType type) {
  switch (opcode) {
#define HLOC_KERNEL_Unary(Name)
#define HLOC_KERNEL_Binary(Name)                                                                                       \
  case Opcode::Name:                                                                                                   \
    return kernelOf<Name>(type);
#define HLOC_OPCODE(...)
#define HLOC_ELEMENTWISE(name, text, operands, family, ...) HLOC_KERNEL_##family(name)
#include "hloc/hlo/Opcodes.def"
#undef HLOC_KERNEL_Unary
#undef HLOC_KERNEL_Binary
  default:
    HLOC_UNREACHABLE("an op of another family");
  }
}

Kernel selectKernel(ComputeType type) {
  return withLaneType(type, [](auto zero) { return kernelFor<Select, bool, decltype(zero), decltype(zero)>(); });
}
Kernel clampKernel(ComputeType type) {
  return withLaneType(
      type, [](auto zero) -> Kernel { return kernelFor<Clamp, decltype(zero), decltype(zero), decltype(zero)>(); });
}

} // namespace hloc::interp
