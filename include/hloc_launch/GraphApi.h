#pragma once
// What nodes of graphs are added with, as <cuda.h> declares it (CUgraphNodeParams).

#include "Driver.h"

namespace hloc_launch {

enum NodeType : int { KernelNode = 0, CopyNode = 1, FillNode = 2, ChildGraphNode = 4, ConditionalNode = 13 };
enum ConditionalType : int { ConditionalIf = 0, ConditionalWhile = 1 };

struct KernelNodeParams {
  CUfunc_st *function;
  unsigned grid[3], block[3], sharedBytes;
  void **parameters, **extra;
  void *kernel; ///< instead of `function`
  Context context;
};
struct CopyEnd {
  size_t x, y, z, level;
  int memoryType; ///< 2: on the device
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
  CUgraph_st *graph; ///< which is copied
  int ownership;
};
struct ConditionalNodeParams {
  ConditionHandle handle;
  ConditionalType type;
  unsigned size;
  CUgraph_st **bodies; ///< filled in: `size` graphs that belong to the node
  Context context;
};
/// CUgraphNodeParams. What is reserved or not used has to be 0.
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
static_assert(sizeof(KernelNodeParams) == 72 && sizeof(CopyEnd) == 88 && sizeof(CopyNodeParams) == 216);
static_assert(sizeof(FillNodeParams) == 48 && sizeof(ConditionalNodeParams) == 32 && sizeof(NodeParams) == 256);

/// CUgraphEdgeData.
struct EdgeData {
  unsigned char fromPort, toPort; ///< fromPort 1: as soon as all blocks have let the next kernel begin
  unsigned char type;             ///< 0: ordinary, 1: programmatic
  unsigned char reserved[5];
};
static_assert(sizeof(EdgeData) == 8);

} // namespace hloc_launch
