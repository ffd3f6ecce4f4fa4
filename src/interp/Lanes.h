#pragma once
// Lanes: short runs of values in the type an op computes in. All arithmetic of the interpreter happens on lanes:
//
//   elements in memory --load--> lanes --kernel--> lanes --round--> lanes --store--> elements in memory
//
// bf16 `add` loads two runs as float, adds, and rounds once. Seven compute types carry all element types.

#include "hloc/hlo/ElementType.h"

#include <complex>
#include <cstddef>
#include <cstdint>

namespace hloc::interp {

/// C++ types: bool, int64_t, uint64_t, float, double, std::complex<float>, std::complex<double>.
enum class ComputeType : uint8_t { Bool, Signed, Unsigned, Single, Double, ComplexSingle, ComplexDouble };

/// What values of `type` are computed in: pred Bool, s* Signed, u* Unsigned, floats of up to 32 bits Single.
ComputeType computeType(ElementType type);
/// Bytes of one lane.
size_t laneBytes(ComputeType type);

/// The most lanes a kernel is called with by code that buffers them.
constexpr int64_t maxLanes = 512;
/// Room for maxLanes lanes of any type.
struct alignas(64) LaneBuffer {
  std::byte bytes[maxLanes * 16];
};

/// Reads `count` host elements (Literal representation) into lanes.
using Load = void (*)(const uint8_t *elements, void *lanes, int64_t count);
/// Rounds or wraps lanes to the element type and writes host elements.
using Store = void (*)(const void *lanes, uint8_t *elements, int64_t count);
/// Rounds or wraps lanes to the element type, in place.
using Round = void (*)(void *lanes, int64_t count);

Load loadFunction(ElementType type);
Store storeFunction(ElementType type);
/// Null where every lane is a value of the type already (f32, s64, ...).
Round roundFunction(ElementType type);
/// True if lanes and host elements are the same bytes, so that no load or store is needed.
bool isNative(ElementType type);

/// Calls `visit(T())` with the C++ type of the lanes.
template <typename Visit> auto withLaneType(ComputeType type, Visit visit) {
  switch (type) {
  case ComputeType::Bool:
    return visit(bool());
  case ComputeType::Signed:
    return visit(int64_t());
  case ComputeType::Unsigned:
    return visit(uint64_t());
  case ComputeType::Single:
    return visit(float());
  case ComputeType::Double:
    return visit(double());
  case ComputeType::ComplexSingle:
    return visit(std::complex<float>());
  case ComputeType::ComplexDouble:
    return visit(std::complex<double>());
  }
  __builtin_unreachable();
}

} // namespace hloc::interp
