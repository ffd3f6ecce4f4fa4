#pragma once
// The part of the CUDA driver's binary interface that is used, written from its public documentation: types and values
// are fixed for all drivers since CUDA 11.

#include <cstddef>
#include <cstdint>

namespace hloc::cuda {

enum Result : int { // the others are known by the name the driver gives them
  Success = 0,
  NoDevice = 100,
  NoBinaryForGpu = 209,
  UnsupportedPtxVersion = 222,
};

using DeviceHandle = int;
using DevicePointer = uint64_t;
using Context = struct ContextHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using Stream = struct StreamHandle *;
using Event = struct EventHandle *;

enum DeviceAttribute : int {
  MaxSharedMemoryPerBlock = 8,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedMemoryPerBlockOptin = 97,
};
enum FunctionAttribute : int {
  MaxThreadsPerBlock = 0,
  SharedSizeBytes = 1,
  MaxDynamicSharedSizeBytes = 8,
};
enum JitOption : int {
  InfoLogBuffer = 3,
  InfoLogBufferSizeBytes = 4,
  ErrorLogBuffer = 5,
  ErrorLogBufferSizeBytes = 6,
};

} // namespace hloc::cuda
