#pragma once
// NVIDIA targets hloc compiles for, one row each in Targets.def.

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// A GPU architecture as the emitters see it. Sizes in bytes unless said otherwise.
struct TargetInfo {
  std::string name; ///< `sm_90`, `sm_90a`
  uint32_t major = 9, minor = 0;
  uint32_t ptxVersion = 80;       ///< lowest PTX ISA (times ten) that knows this target; 80 = 8.0
  uint32_t multiprocessors = 132; ///< of the product the defaults are tuned for
  uint32_t threadsPerMultiprocessor = 2048;
  uint32_t maxVectorBytes = 16;                        ///< widest global access of one thread: 32 on sm_100 and later
  static constexpr uint32_t staticSharedBytes = 49152; ///< limit without opt-in
  uint32_t maxSharedBytes = 232448;                    ///< per block, opt-in
  uint32_t warpSize = 32;
  uint32_t maxThreadsPerBlock = 1024;
  uint32_t maxGridX = 2147483647, maxGridY = 65535, maxGridZ = 65535;

  bool atLeast(uint32_t wantedMajor, uint32_t wantedMinor) const {
    return major != wantedMajor ? major > wantedMajor : minor >= wantedMinor;
  }
  bool hasAsyncCopies() const { return atLeast(8, 0); }   ///< cp.async
  bool hasWarpgroups() const { return name == "sm_90a"; } ///< wgmma: warps that multiply together, of shared memory
  bool hasTf32() const { return atLeast(8, 0); }          ///< among the types of tensor cores
};

/// Accepts `sm_90`, `sm_90a`, `9.0`, `90`, product names in any case (`h200`, `a100`, `rtx4090`). Nothing if unknown.
std::optional<TargetInfo> findTarget(llvm::StringRef spelling);
/// The name or product that an unknown spelling probably means: `sm90`, `h100 pcie`, `h10O`; empty if it is like none.
std::string nearestTarget(llvm::StringRef spelling);
/// All rows in ascending order, for `--list-targets`.
std::vector<TargetInfo> allTargets();
/// Product spellings of a target, for `--list-targets`.
std::vector<std::string> productNames(const TargetInfo &target);

} // namespace hloc
