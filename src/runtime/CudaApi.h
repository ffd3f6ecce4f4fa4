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
  NonPortableClusterSizeAllowed = 14,
};
enum JitOption : int {
  InfoLogBuffer = 3,
  InfoLogBufferSizeBytes = 4,
  ErrorLogBuffer = 5,
  ErrorLogBufferSizeBytes = 6,
};

enum LaunchAttributeId : int { ClusterDimension = 4, ProgrammaticStreamSerialization = 6 };
struct LaunchAttribute {
  LaunchAttributeId id;
  alignas(8) unsigned value[3]; ///< of a union of 64 bytes: x, y, z; or whether
  char rest[52];
};
static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, value) == 8);
struct LaunchConfiguration {
  unsigned grid[3], block[3], sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};
static_assert(sizeof(LaunchConfiguration) == 56 && offsetof(LaunchConfiguration, attributes) == 40);

} // namespace hloc::cuda
