#pragma once
// LaneOp: an elementwise instruction as a kernel over lanes. Whole arrays (Elementwise.cpp) and the scalar computations
// of reduce, map, sort, ... (ScalarFunction.cpp) use the same kernels, so an op has one definition here.

#include "hloc/hlo/HloInstruction.h"
#include "interp/Lanes.h"

#include <bit>
#include <concepts>
#include <optional>

namespace hloc::interp {

/// What a kernel is given. `bits` is the width of the integer type the lanes stand for, in which shifts, leading zeros
/// and saturation are defined.
struct Lanes {
  const void *operands[3] = {};
  void *result = nullptr;
  int64_t count = 0;
  unsigned bits = 0;
  unsigned exponentBits = 0, mantissaBits = 0; ///< reduce-precision only
  unsigned randomBits = 0;                     ///< stochastic-convert only: width of the random operand
};
using Kernel = void (*)(const Lanes &lanes);

struct LaneOp {
  Kernel kernel = nullptr;
  unsigned numOperands = 0;
  ElementType operandTypes[3] = {};
  ElementType resultType{};
  Round round = nullptr; ///< of the result type
  unsigned bits = 0;
  unsigned exponentBits = 0, mantissaBits = 0, randomBits = 0;

  void run(Lanes lanes) const {
    lanes.bits = bits;
    lanes.exponentBits = exponentBits;
    lanes.mantissaBits = mantissaBits;
    lanes.randomBits = randomBits;
    kernel(lanes);
    if (round)
      round(lanes.result, lanes.count);
  }
};

/// The op of an elementwise instruction; nothing if the opcode is not elementwise or not defined on these types.
/// bitcast-convert, which works on bytes, is not among them.
std::optional<LaneOp> laneOp(const HloInstruction &instr);

// The kernels by family; null where the op is not defined on the type.
Kernel unaryKernel(Opcode opcode, ComputeType type);
Kernel binaryKernel(Opcode opcode, ComputeType type);
enum class FloatOrder { Partial, Total, TotalFnuz };
FloatOrder totalOrderOf(ElementType type);
Kernel compareKernel(ComparisonDirection direction, FloatOrder order, ComputeType type);
Kernel selectKernel(ComputeType type);
Kernel clampKernel(ComputeType type);
Kernel convertKernel(ElementType from, ElementType to);
Kernel reducePrecisionKernel(ComputeType type);
Kernel stochasticConvertKernel(ComputeType type);

// --- writing kernels: an op is a struct with overloads of a static `apply(x, ...)`, or `apply(bits, x, ...)` if it
// depends on the width; a lane type without a matching overload has no kernel.

template <typename T>
concept IntegerLane = std::same_as<T, int64_t> || std::same_as<T, uint64_t>;
template <typename T>
concept RealLane = std::same_as<T, float> || std::same_as<T, double>;
template <typename T>
concept ComplexLane = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

/// The NaN of arithmetic: positive, with all bits set but f64's, as a GPU has it. Selecting, moving and changing the
/// sign keep the bits of a NaN: their structs say `keepsNan`.
inline float arithmeticNan(float) { return std::bit_cast<float>(0x7FFFFFFFu); }
inline double arithmeticNan(double) { return std::bit_cast<double>(uint64_t(0x7FF8) << 48); }

template <typename Op, typename T> T finished(T result) {
  if constexpr (requires { Op::keepsNan; })
    return result;
  else if constexpr (RealLane<T>)
    return result == result ? result : arithmeticNan(T());
  else if constexpr (ComplexLane<T>)
    return {finished<Op>(result.real()), finished<Op>(result.imag())};
  else
    return result;
}

template <typename Op, typename... Ts> void runKernel(const Lanes &lanes) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    auto operands = std::make_tuple(static_cast<const Ts *>(lanes.operands[I])...);
    if constexpr (requires(Ts... xs) { Op::apply(xs...); }) {
      auto *result = static_cast<decltype(Op::apply(std::declval<Ts>()...)) *>(lanes.result);
      for (int64_t i = 0; i < lanes.count; ++i)
        result[i] = finished<Op>(Op::apply(std::get<I>(operands)[i]...));
    } else {
      unsigned bits = lanes.bits;
      auto *result = static_cast<decltype(Op::apply(bits, std::declval<Ts>()...)) *>(lanes.result);
      for (int64_t i = 0; i < lanes.count; ++i)
        result[i] = finished<Op>(Op::apply(bits, std::get<I>(operands)[i]...));
    }
  }(std::index_sequence_for<Ts...>());
}

template <typename Op, typename... Ts> Kernel kernelFor() {
  if constexpr (
      requires(Ts... xs) { Op::apply(xs...); } || requires(unsigned bits, Ts... xs) { Op::apply(bits, xs...); })
    return &runKernel<Op, Ts...>;
  else
    return nullptr;
}

template <typename Op> Kernel unaryKernelOf(ComputeType type) {
  return withLaneType(type, [](auto zero) -> Kernel { return kernelFor<Op, decltype(zero)>(); });
}
template <typename Op> Kernel binaryKernelOf(ComputeType type) {
  return withLaneType(type, [](auto zero) -> Kernel { return kernelFor<Op, decltype(zero), decltype(zero)>(); });
}

} // namespace hloc::interp
