#pragma once
// The versioned JSON next to a PTX file: everything a launcher needs to run the compiled module.
//
// A module is a list of buffers and an ordered list of steps over them; buffer 0.. are the entry parameters, then
// temporaries and results. Kernels are described once and launched by steps.

#include "hloc/kernel/KernelSpec.h"

#include <string>
#include <vector>

namespace hloc {

struct ModuleBuffer {
  enum class Kind { Parameter, Result, Temporary, Constant };
  Kind kind = Kind::Temporary;
  uint64_t bytes = 0;
  std::string shape;               ///< HLO text with layout; empty for temporaries without one
  uint32_t parameterNumber = 0;    ///< Kind::Parameter: which entry parameter ...
  std::vector<uint32_t> leafIndex; ///< Parameter and Result: ... and which leaf of its (result's) tuple
  std::string constantData;        ///< Kind::Constant: bytes, device layout (hex in JSON)
};

struct BufferSlice {
  uint32_t buffer = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct ModuleStep {
  enum class Kind { Launch, Copy };
  Kind kind = Kind::Launch;
  uint32_t kernel = 0;                ///< Launch: index into Manifest::kernels
  std::vector<BufferSlice> arguments; ///< Launch: one per kernel parameter. Copy: {from, to}
};

/// A result leaf that is an entry parameter or shares another result's buffer still names its buffer here.
struct ModuleResult {
  std::vector<uint32_t> leafIndex;
  BufferSlice slice;
  std::string shape;
};

struct Manifest {
  static constexpr int currentVersion = 1;
  std::string module;                                            ///< HLO module name
  std::string target;                                            ///< `sm_90`
  std::string ptxVersion;                                        ///< `8.0`
  std::vector<std::pair<std::string, std::string>> toolVersions; ///< hloc, llvm, ptxas
  std::vector<KernelSpec> kernels;
  std::vector<ModuleBuffer> buffers;
  std::vector<ModuleStep> steps;
  std::vector<ModuleResult> results;
};

/// JSON text, two-space indented, keys in a fixed order, ends with a newline. Same manifest, same bytes.
std::string printManifest(const Manifest &manifest);

/// Inverse of printManifest. Returns false and sets `error` (with JSON path and reason) on malformed or contradictory
/// text, unknown versions, indices out of range. Never trusts the input.
bool parseManifest(const std::string &text, Manifest &manifest, std::string &error);

} // namespace hloc
