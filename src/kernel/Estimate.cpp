#include "hloc/kernel/Estimate.h"

#include "hloc/kernel/CopiesAhead.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace hloc {

namespace {

constexpr DeviceModel devices[] = {
#define HLOC_DEVICE(name, target, multiprocessors, gigahertz, terabytes, l2, dramLatency, sharedLatency, doubles,      \
                    products, doubleProducts, shared, peakProducts)                                                    \
  {name,          target,  multiprocessors, gigahertz,      terabytes * 1e12, l2,          dramLatency,                \
   sharedLatency, doubles, products,        doubleProducts, shared * 1024.0,  peakProducts},
#include "Devices.def"
};

// Of a multiprocessor, for all rows of the table. CUDA C++ Programming Guide, compute capabilities.
constexpr double schedulers = 4;    // warp instructions a clock
constexpr double specialLanes = 16; // lanes a clock
constexpr double registersOfMultiprocessor = 65536, registerGranule = 8, maxRegisters = 255;
constexpr double sharedOfSystem = 1024; // bytes of each block
constexpr double maxResidentWarps = 64, maxResidentBlocks = 32;
constexpr double atomicsPerClock = 8; // lanes
// Elsewhere.
constexpr double sectorBytes = 32;
constexpr double instructionLatency = 4; // clocks until a dependent arithmetic instruction
constexpr double exposed = 0.1;          // share of what is not the bottleneck that does not hide behind it
/// Of the data sheet's rate what wgmma reaches as long as it multiplies. Whole kernels of 8192^3 reach 0.82 (fast.cu)
/// to 0.84 (DeepGEMM) of it, and 0.81 those of hloc on an H100 (1,368 us), of which results, first loads and launch
/// take 57.
constexpr double shareOfGroups = 0.88;
// Of turns, with other blocks beside them or without: 0.78 to 0.94 in 12 dots that were timed on an H100.
constexpr double exposedTurns = 0.85;

} // namespace

double residentBlocks(uint32_t registers, uint32_t sharedBytes, double warpsOfBlock, double sharedOfMultiprocessor) {
  const double ofThread = std::ceil(std::max(1u, registers) / registerGranule) * registerGranule;
  return std::max(1.0, std::floor(std::min(
                           {maxResidentWarps / warpsOfBlock, registersOfMultiprocessor / (ofThread * 32 * warpsOfBlock),
                            sharedOfMultiprocessor / (sharedBytes + sharedOfSystem), maxResidentBlocks})));
}

uint32_t mostRegistersBeside(uint32_t registers, double warpsOfBlock) {
  const double blocks = residentBlocks(registers, 0, warpsOfBlock);
  const double shared = registersOfMultiprocessor / (32 * warpsOfBlock * blocks);
  const double most = std::min(std::floor(shared / registerGranule) * registerGranule, maxRegisters);
  return std::max(registers, uint32_t(most));
}

llvm::ArrayRef<DeviceModel> allDevices() { return devices; }

const DeviceModel *findDevice(llvm::StringRef name) {
  for (const DeviceModel &device : devices)
    if (name.equals_insensitive(device.name))
      return &device;
  return nullptr;
}

/// Those of `devices`, in order. Whoever searches asks for each kernel that it tries.
static llvm::ArrayRef<std::optional<TargetInfo>> targetsOfDevices() {
  static const std::vector<std::optional<TargetInfo>> targets = [] {
    std::vector<std::optional<TargetInfo>> found;
    for (const DeviceModel &device : devices)
      found.push_back(findTarget(device.target));
    return found;
  }();
  return targets;
}

const DeviceModel &deviceOf(const TargetInfo &target) {
  const DeviceModel *found = &devices[0];
  for (auto [device, its] : llvm::zip_equal(devices, targetsOfDevices()))
    if (its && target.atLeast(its->major, its->minor) && device.target != found->target)
      found = &device;
  return *found;
}

/// Where warpgroups multiply what is copied behind everybody's back, all is hidden but what their block does before and
/// behind: it waits for its first copies, and stores its results. (A share of instructions is not, either: an
/// attention's weights are made while another warpgroup multiplies, but for the first and the last piece, and where
/// both are at it; 0.75 to 0.77 of the data sheet is what the fastest one published reaches, FlashAttention 3.) No
/// other block is there to multiply meanwhile, and all multiprocessors do so at about the same time. Of a block's
/// tiles the last one's results alone are on their way while nothing is multiplied, but each one's are put into shared
/// memory and read from there: `clocksOfTurn` is what 180 instructions of eight warps and four barriers are for a tile
/// of 128 by 256, of which one warpgroup's part is hidden behind the other's products. With it 8192^3 comes out at the
/// 0.84 of the data sheet that DeepGEMM reaches in such blocks, 4096^3 at 0.97 of cuBLAS's time.
static double ofLoneBlocks(const KernelEstimate &parts, const KernelCounts &counts, double instructions,
                           double blocksOfMultiprocessor, const DeviceModel &device) {
  const double stores = counts.storedSectors * sectorBytes / device.dramBytesPerSecond / counts.tilesOfBlock;
  const double firstCopies = tripsOfBusyMemory * device.dramLatency / (device.gigahertz * 1e9);
  constexpr double clocksOfTurn = 1200;
  const double turns = blocksOfMultiprocessor * (counts.tilesOfBlock - 1) * clocksOfTurn / (device.gigahertz * 1e9);
  const double loop = std::max({parts.memory - stores, parts.issue, parts.shared, parts.latency});
  return loop + exposed * instructions + stores + turns + blocksOfMultiprocessor * firstCopies;
}

double secondsToMove(double bytes, const DeviceModel &device) {
  return launchSeconds + bytes / device.dramBytesPerSecond;
}

KernelEstimate estimate(const KernelCounts &counts, const DeviceModel &device) {
  KernelEstimate result;
  const double clock = device.gigahertz * 1e9, numMultiprocessors = device.multiprocessors;
  const double blocks = double(std::max<uint64_t>(counts.blocks, 1));
  const double warpsOfBlock = std::ceil(std::max(1u, counts.threadsPerBlock) / 32.0);
  const double resident = residentBlocks(counts.registers, counts.sharedBytes, warpsOfBlock, device.sharedBytes);
  // Blocks are dealt out evenly: the multiprocessor with the most of them decides.
  const double mostBlocks = std::ceil(blocks / numMultiprocessors), share = mostBlocks / blocks;
  const double busy = std::min(blocks, numMultiprocessors);
  result.residentWarps = uint32_t(resident * warpsOfBlock);
  result.waves = blocks / (resident * numMultiprocessors);

  result.launch = launchSeconds;
  const double cached = busy * device.l2BytesPerClock * clock;
  const double first = counts.footprint > 0 ? std::min(counts.sectors, counts.footprint) : counts.sectors;
  result.memory = std::max(first * sectorBytes / std::min(device.dramBytesPerSecond, cached),
                           counts.sectors * sectorBytes / cached) +
                  counts.atomics * share / (atomicsPerClock * clock);
  const double products = counts.products / device.productsPerClock +
                          counts.doubleProducts / device.doubleProductsPerClock +
                          counts.groupProducts / (shareOfGroups * device.peakProductsPerClock);
  result.issue = share / clock *
                 std::max({counts.instructions / schedulers, counts.specialFunctions * 32 / specialLanes,
                           counts.doubles * 32 / device.doublesPerClock, products});
  result.shared = share / clock * counts.sharedPasses;
  // Resident warps wait at the same time; those that come after them wait again.
  const double chain = counts.memoryRoundTrips * device.dramLatency + counts.sharedRoundTrips * device.sharedLatency +
                       counts.chainInstructions * instructionLatency;
  result.latency = std::max(1.0, mostBlocks / resident) * chain / clock;

  const std::array<std::pair<llvm::StringRef, double>, 4> parts = {
      {{"memory", result.memory}, {"issue", result.issue}, {"shared", result.shared}, {"latency", result.latency}}};
  auto largest =
      std::max_element(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  const double sum = result.memory + result.issue + result.shared + result.latency;
  result.bound = largest->first;
  const double overlapped =
      counts.groupProducts > 0 && !counts.inTurns && resident < 2
          ? ofLoneBlocks(result, counts, share / clock * counts.instructions / schedulers, mostBlocks, device)
          : largest->second + exposed * (sum - largest->second);
  const double turns = result.latency + share / clock * (counts.instructions / schedulers + products);
  result.total = result.launch + std::max(overlapped, counts.inTurns ? exposedTurns * turns : 0);
  return result;
}

} // namespace hloc
