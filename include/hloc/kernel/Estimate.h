#pragma once
// How long a kernel takes, in plain arithmetic, from counts of what it does: a cost model to compare plans and kernels
// by. It knows no DRAM pages, and of caches only that they have what an array does not bring for the first time; it
// ranks, and is right to a factor where nothing unusual happens.
//
//   copy of f32[1048576] on an H100: 262144 sectors of arrays that have as many, 8192 warps of 17 instructions, 256
//   threads a block
//     memory   8 MiB / 3.05 TB/s                                                   2.8 us
//     issue    139264 / (4 a clock * 132)                                          0.1 us
//     latency  8192 warps / (132 * 64 resident) = 1 wave * 700 clocks             0.4 us
//     launch                                                                       2.0 us
//
// A pure function: planners may call it with counts of plans that have no code yet.

#include "hloc/kernel/KernelSpec.h"
#include "hloc/kernel/TargetInfo.h"

#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace hloc {

/// From so many bytes on every multiprocessor has a block: below, launches cost as much as what idle ones could do.
inline constexpr uint64_t bytesOfLargeKernel = uint64_t(8) << 20;

/// Of an empty kernel, from the end of the one before it.
inline constexpr double launchSeconds = 2e-6;

/// Instructions that depend on each other in the time until sums of tensor cores may be added to: published
/// microbenchmarks say 33 clocks on an H100, of 4 for others.
inline constexpr double instructionsOfMma = 8;

/// A product. Rates are those that kernels reach, not those on paper.
struct DeviceModel {
  llvm::StringRef name;   ///< as Targets.def spells the product
  llvm::StringRef target; ///< `sm_90`
  unsigned multiprocessors;
  double gigahertz;
  double dramBytesPerSecond;         ///< of a copy
  double l2BytesPerClock;            ///< of a multiprocessor
  double dramLatency, sharedLatency; ///< clocks
  double doublesPerClock;            ///< f64 lanes of a multiprocessor
  /// Multiply-adds of its tensor cores: of 16-bit factors, of f64.
  double productsPerClock, doubleProductsPerClock;
  double sharedBytes;          ///< of a multiprocessor
  double peakProductsPerClock; ///< as productsPerClock, but of the data sheet: what shares of libraries are of
};
/// Rows of Devices.def.
llvm::ArrayRef<DeviceModel> allDevices();
/// By product name in any case; null if there is none.
const DeviceModel *findDevice(llvm::StringRef name);
/// The device of a target, or of the nearest older one that has one.
const DeviceModel &deviceOf(const TargetInfo &target);

/// What one launch of a kernel does. Warp instructions are counted once a warp, whatever the number of active lanes.
struct KernelCounts {
  uint64_t blocks = 1;
  uint32_t threadsPerBlock = 128;
  uint32_t registers = 32;  ///< a thread
  uint32_t sharedBytes = 0; ///< a block
  double sectors = 0;       ///< 32 bytes each, of global memory, loads and stores
  /// Of these arrays all sectors together: what is asked for more often comes from caches. 0: not known, none does.
  double footprint = 0;
  double storedSectors = 0;    ///< of the sectors: results, where a kernel has warpgroups
  double instructions = 0;     ///< warp instructions, all
  double specialFunctions = 0; ///< of these: those that go through units of 16 lanes, conversions among them
  double doubles = 0;          ///< of these: f64 arithmetic
  double products = 0;         ///< multiply-adds of tensor cores; of wider factors than 16 bits as many more, but f64
  double doubleProducts = 0;   ///< of f64
  double groupProducts = 0;    ///< as products, but of warpgroups; of few columns as many more as they take longer
  double sharedPasses = 0;     ///< of shared memory, and shuffles
  double atomics = 0;          ///< on global memory, each lane
  /// Does a block make products, and do all else that its steps take, in turns between barriers?
  bool inTurns = false;
  /// Of warpgroups' results a block has so many tiles, one after another: while one is stored, the next one's products
  /// are made.
  double tilesOfBlock = 1;
  // The longest chain of one warp, whose links wait for each other.
  double memoryRoundTrips = 1;  ///< loads of global memory whose addresses or turns wait for others
  double sharedRoundTrips = 0;  ///< loads of shared memory, shuffles, barriers
  double chainInstructions = 0; ///< others
};

/// Seconds. `total` is launch + the largest of the others + a share of the rest, which overlaps with it; of what is
/// done in turns, most of their sum; where a multiprocessor has one block of warpgroups at a time, the largest and what
/// is done before and behind their products.
struct KernelEstimate {
  double launch = 0, memory = 0, issue = 0, shared = 0, latency = 0, total = 0;
  double waves = 0;           ///< blocks over those that the device holds at a time
  uint32_t residentWarps = 0; ///< of a multiprocessor, as far as registers, shared memory and blocks allow
  llvm::StringRef bound;      ///< name of the largest: `memory`, `issue`, `shared`, `latency`
};

KernelEstimate estimate(const KernelCounts &counts, const DeviceModel &device);

/// A copy or fill that reads and writes so many bytes of device memory, its start included.
double secondsToMove(double bytes, const DeviceModel &device);

/// Blocks of so many warps that a multiprocessor, if it has so much shared memory, holds at a time: with so many
/// registers a thread and so many bytes of shared memory a block. At least 1.
double residentBlocks(uint32_t registers, uint32_t sharedBytes, double warpsOfBlock,
                      double sharedOfMultiprocessor = 228 * 1024);

/// How many registers a thread may take, `registers` or more, without fewer blocks of so many warps resident for it.
uint32_t mostRegistersBeside(uint32_t registers, double warpsOfBlock);

} // namespace hloc
