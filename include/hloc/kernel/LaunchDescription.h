#pragma once
// How to run PTX of another compiler: buffers, then copies, fills and kernel launches in order, then where the results
// lie.
//
//   {"target": "sm_90", "buffers": [{"id": 0, "bytes": 64, "parameter": 0}, {"id": 1, "bytes": 64}],
//    "steps": [{"launch": {"kernel": "f", "grid": [1, 1, 1], "block": [16, 1, 1], "dynamic_shared_bytes": 0, "inputs":
//    1,
//               "arguments": [{"buffer": 0, "offset": 0, "bytes": 64}, {"buffer": 1, "offset": 0, "bytes": 64}]}}],
//    "results": [{"index": [], "buffer": 1, "offset": 0, "bytes": 64}]}

#include "hloc/kernel/KernelSpec.h"
#include "hloc/kernel/Steps.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hloc {
class DiagnosticEngine;

struct LaunchBuffer {
  int64_t id = 0;
  uint64_t bytes = 0;
  std::optional<int64_t> parameter;       ///< entry parameter that fills it
  std::optional<StructureValue> contents; ///< or what it is filled with: all its bytes
};

/// A kernel as one step launches it: other compilers launch one with different grids.
struct LaunchKernel {
  std::string name;
  Dim3 grid, block;                           ///< all at least 1
  std::optional<Dim3> cluster = std::nullopt; ///< blocks of each, at least 1; nothing: what the kernel itself says
  bool programmatic = false;                  ///< it may begin before the kernel before it is complete
  uint32_t dynamicSharedBytes = 0;
  uint32_t inputs = 0; ///< the first so many arguments are read only
};

struct LaunchResult {
  std::vector<int64_t> index; ///< tuple index; empty for a result that is an array
  BufferSlice slice;
};

struct LaunchDescription {
  std::string target;
  std::vector<LaunchBuffer> buffers;
  std::vector<LaunchKernel> kernels; ///< one for each launch
  Steps steps; ///< copies, fills and launches; `buffer` of a slice is an index into `buffers`, not an id
  std::vector<LaunchResult> results;
};

/// The engine's file is the JSON text. Everything is checked; nothing after an error.
std::optional<LaunchDescription> parseLaunchDescription(DiagnosticEngine &diagnostics);

} // namespace hloc
