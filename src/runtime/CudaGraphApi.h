#pragma once
// The part of the CUDA driver's binary interface that graphs take: cuGraphAddNode_v2, of CUDA 12.3, adds nodes of every
// kind, and drivers before it make no graphs here. Written from its public documentation, as CudaApi.h.

#include "CudaApi.h"

namespace hloc::cuda {

using Graph = struct GraphHandle *;
using GraphNode = struct GraphNodeHandle *;
using GraphExec = struct GraphExecHandle *;
using ConditionHandle = uint64_t;

enum NodeType : int { KernelNode = 0, CopyNode = 1, FillNode = 2, ChildGraphNode = 4, ConditionalNode = 13 };
enum ConditionalType : int { ConditionalIf = 0, ConditionalWhile = 1 };
enum MemoryType : int { DeviceMemory = 2 };
enum CaptureMode : int { CaptureRelaxed = 2 };

struct KernelNodeParams {
  Function function;
  unsigned grid[3], block[3], sharedBytes;
  void **parameters, **extra;
  void *kernel; ///< instead of `function`
  Context context;
};
struct CopyEnd {
  size_t x, y, z, level;
  MemoryType type;
  const void *host;
  DevicePointer device;
  void *array, *reserved;
  size_t pitch, height;
};
struct CopyNodeParams {
  int flags, reserved;
  Context context;
  CopyEnd from, to;
  size_t width, height, depth; ///< width in bytes
};
struct FillNodeParams {
  DevicePointer to;
  size_t pitch;
  unsigned value, elementBytes;
  size_t width, height; ///< width in elements
  Context context;
};
struct ChildGraphParams {
  Graph graph; ///< which is copied
  int ownership;
};
struct ConditionalNodeParams {
  ConditionHandle handle;
  ConditionalType type;
  unsigned size;
  Graph *bodies; ///< filled in: `size` graphs that belong to the node
  Context context;
};
struct NodeParams {
  NodeType type;
  int reserved[3];
  union {
    uint64_t all[29] = {};
    KernelNodeParams kernel;
    CopyNodeParams copy;
    FillNodeParams fill;
    ChildGraphParams child;
    ConditionalNodeParams conditional;
  };
  uint64_t reservedEnd;
};
static_assert(sizeof(KernelNodeParams) == 72 && offsetof(KernelNodeParams, parameters) == 40);
static_assert(sizeof(CopyEnd) == 88 && offsetof(CopyEnd, device) == 48);
static_assert(sizeof(CopyNodeParams) == 216 && offsetof(CopyNodeParams, width) == 192);
static_assert(sizeof(FillNodeParams) == 48 && sizeof(ConditionalNodeParams) == 32);
static_assert(sizeof(NodeParams) == 256 && offsetof(NodeParams, kernel) == 16);

enum EdgeType : unsigned char { OrdinaryEdge = 0, ProgrammaticEdge = 1 };
struct EdgeData {
  unsigned char fromPort, toPort; ///< fromPort 1: as soon as all blocks have let the next kernel begin
  EdgeType type;
  unsigned char reserved[5];
};
static_assert(sizeof(EdgeData) == 8);

} // namespace hloc::cuda
