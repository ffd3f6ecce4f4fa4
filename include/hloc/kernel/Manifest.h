#pragma once
// The versioned JSON next to a PTX file: everything a launcher needs to run the compiled module.
//
// A module is a list of buffers and a tree of steps over them (Steps.h); buffer 0.. are the entry parameters, then
// temporaries and results. Kernels are described once and launched by steps. src/kernel/manifest.schema.json is the
// form as a JSON schema.

#include "hloc/kernel/KernelSpec.h"
#include "hloc/kernel/Steps.h"

#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// Places of temporaries in the memory that they share are multiples of it: what cudaMalloc aligns to, and what kernels
/// may count on.
constexpr uint64_t bufferPlacement = 256;
/// The first place behind a buffer of `bytes` that lies at 0.
constexpr uint64_t placementEnd(uint64_t bytes) {
  return (bytes + bufferPlacement - 1) / bufferPlacement * bufferPlacement;
}

struct ModuleBuffer {
  enum class Kind { Parameter, Result, Temporary, Constant };
  Kind kind = Kind::Temporary;
  uint64_t bytes = 0;
  std::string shape;               ///< HLO text with layout; empty for temporaries without one
  uint32_t parameterNumber = 0;    ///< Kind::Parameter: which entry parameter ...
  std::vector<uint32_t> leafIndex; ///< Parameter and Result: ... and which leaf of its (result's) tuple
  std::string constantData;        ///< Kind::Constant: bytes, device layout (hex in JSON)
  bool donated = false;            ///< Parameter: a result takes its place, as input_output_alias says
  /// Temporary: where it lies in the memory that the temporaries share, a multiple of bufferPlacement. Others may lie
  /// there when it is not needed: what is there before it is written first is undefined. Nothing: in memory of its own.
  std::optional<uint64_t> offset = std::nullopt;
};

/// Bytes of the memory that temporaries share, and of what has memory of its own among them: a module's peak beside
/// parameters, results and constants.
uint64_t sharedTemporaryBytes(const std::vector<ModuleBuffer> &buffers);
uint64_t temporaryBytes(const std::vector<ModuleBuffer> &buffers);

/// A result leaf that is an entry parameter or shares another result's buffer still names its buffer here.
struct ModuleResult {
  std::vector<uint32_t> leafIndex;
  BufferSlice slice;
  std::string shape;
};

struct Manifest {
  static constexpr int currentVersion = 2;
  std::string module;                                            ///< HLO module name
  std::string target;                                            ///< `sm_90`
  std::string ptxVersion;                                        ///< `8.0`
  std::vector<std::pair<std::string, std::string>> toolVersions; ///< hloc, llvm, ptxas
  std::vector<KernelSpec> kernels;
  std::vector<ModuleBuffer> buffers;
  Steps steps;
  std::vector<ModuleResult> results;
};

/// JSON text, two-space indented, keys in a fixed order, ends with a newline. Same manifest, same bytes.
std::string printManifest(const Manifest &manifest);

/// Inverse of printManifest. Returns false and sets `error` (with JSON path and reason) on malformed or contradictory
/// text, unknown versions, indices out of range. Never trusts the input.
bool parseManifest(const std::string &text, Manifest &manifest, std::string &error);

} // namespace hloc
